"""Ids of activities are read as they are written."""

import itertools
from dataclasses import replace

import pytest

from sennit.workflows.messages.activity_ids import ActivityId, Work, parse_activity_id


def test_what_is_written_is_read_again() -> None:
    works: tuple[Work, ...] = ("", "question", "ledger", "goal")
    for node, generation, others in itertools.product(("n1", "m[17]", "main_1"), (1, 2, 12), (0, 49)):
        for work, epoch in itertools.product(works, (1, 3)):
            ident = ActivityId(node, generation, others, work, epoch)
            assert parse_activity_id(str(ident)) == ident
            further = replace(ident, node="main", advance=3)
            assert parse_activity_id(str(further)) == further


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n1~2.ledger", ActivityId("n1", 2, work="ledger")),
        ("n1+49", ActivityId("n1", others=49)),
        ("m[0]~2+9.question@3", ActivityId("m[0]", 2, 9, "question", 3)),
        ("sub.goal", ActivityId("sub", work="goal")),
        ("main~2.advance3", ActivityId("main", 2, advance=3)),
        ("sub~2@3.goal", ActivityId("sub", 2, work="goal", epoch=3)),
        ("run:plan~2", None),
        ("n1~1", None),
        ("n1.advance1", None),
        ("n1.other", None),
        ("1@2@3", None),
        ("", None),
    ],
)
def test_an_id_says_whose_it_is(text: str, expected: ActivityId | None) -> None:
    assert parse_activity_id(text) == expected
