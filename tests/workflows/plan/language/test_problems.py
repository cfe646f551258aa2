"""How problems read: their place and their sentence."""

import pytest

from sennit.workflows.plan.language.problems import InvalidPlan, Problem, Where, place_of
from sennit.workflows.plan.limits import MAX_SENTENCE_CHARACTERS


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ((), ""),
        (("answer",), "answer"),
        (("nodes", 3, "args", "query"), "nodes[3].args.query"),
        (("answer", 0, 1), "answer[0][1]"),
        (("nodes", 0, "args", "two words"), 'nodes[0].args["two words"]'),
        (("nodes", 0, "args", "max-items"), "nodes[0].args.max-items"),
        (("inputs", ""), 'inputs[""]'),
        (("a\nb",), '["a\\nb"]'),
        (("\u202e",), '["\\u202e"]'),
        (("x" * 200,), f'["{"x" * 59}…"]'),
        (("größe",), "größe"),
    ],
)
def test_a_place_reads_as_people_write_it(where: Where, text: str) -> None:
    assert place_of(where) == text


def test_a_problem_reads_place_first_and_an_invalid_plan_has_a_line_each() -> None:
    first, second = Problem("a", ("nodes", 0), "one"), Problem("b", (), "two")
    assert str(InvalidPlan([first, second])) == "nodes[0]: one\ntwo"
    assert InvalidPlan(iter([first])).problems == (first,)


def test_a_sentence_is_one_printable_line_of_bounded_length() -> None:
    assert Problem("a", (), "two\nlines\ud800").message == "two\\nlines\\ud800"
    assert len(Problem("a", (), "x" * 10_000).message) == MAX_SENTENCE_CHARACTERS
