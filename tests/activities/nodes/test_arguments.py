"""The digest of a call's arguments."""

from typing import Any

import pytest

from sennit.activities.nodes.effect_ledger import arguments_digest

GIVEN = {"path": "a.txt", "text": "x", "mode": ["a", 1]}


def test_equal_values_have_one_digest_whatever_their_order() -> None:
    assert arguments_digest("write", GIVEN) == arguments_digest("write", dict(reversed(GIVEN.items())))
    assert arguments_digest("write", {"text": "\ud800"}), "half a pair does no harm"


@pytest.mark.parametrize("other", [{"text": "y"}, {"mode": ["a", "1"]}, {"mode": ["a", 1.5]}, {"more": None}])
def test_any_other_value_gives_another_digest(other: dict[str, Any]) -> None:
    assert arguments_digest("write", GIVEN | other) != arguments_digest("write", GIVEN)
    assert arguments_digest("note", GIVEN) != arguments_digest("write", GIVEN)
