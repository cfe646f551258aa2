"""What JSON text cannot carry is found, with its place, and everything that it can is let through."""

import json
from typing import Any

import pytest
from doubles.plan.junk import anything, part_at
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.language import json_checks
from sennit.workflows.plan.language.json_checks import first_violation
from sennit.workflows.plan.limits import MAX_JSON_LEVELS


@given(anything)
def test_data_without_a_flaw_survives_json(data: Any) -> None:
    found = first_violation(data)
    if found is None:
        assert json.loads(json.dumps(data, allow_nan=False, ensure_ascii=False).encode()) == data
    else:
        where, sentence = found
        part_at(data, where)
        assert sentence.isprintable()


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**1000), 2**1000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
)


@given(_JSON)
def test_plain_json_has_no_flaw(data: Any) -> None:
    assert first_violation(data) is None


@pytest.mark.parametrize(
    ("data", "where", "expected"),
    [
        (float("nan"), (), "NaN is no number"),
        ([0, float("-inf")], (1,), "-Infinity is no number"),
        ({"a": {"b": 2**1025}}, ("a", "b"), "over 300 digits"),
        ({"a": -(10**400)}, ("a",), "over 300 digits"),
        ({"a": ["x", "\ud83d"]}, ("a", 1), "half a surrogate pair"),
        ({"a": {"\ude00": 1}}, ("a",), "the field `\\ude00` holds half"),
        ({None: 1}, (), "a field is named by a value (NoneType)"),
        ({"a": (1, 2)}, ("a",), "tuple is nothing that JSON"),
        ({"a": {1, 2}}, ("a",), "set is nothing that JSON"),
        (object(), (), "object is nothing that JSON"),
    ],
)
def test_a_flaw_is_named_at_its_place(data: Any, where: tuple[Any, ...], expected: str) -> None:
    found = first_violation(data)
    assert found is not None
    assert found[0] == where
    assert expected in found[1]


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_the_depth_is_bounded_to_the_level() -> None:
    assert first_violation(_nested(MAX_JSON_LEVELS + 1)) is None
    assert first_violation(_nested(MAX_JSON_LEVELS + 2)) == (
        (),
        f"nested more than {MAX_JSON_LEVELS} levels deep; flatten it, or put the text in a document",
    )
    assert first_violation(_nested(100_000)) is not None
    assert first_violation(_nested(5), depth=3) is not None


def test_the_number_of_values_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_checks, "MAX_JSON_VALUES", 1_000)
    assert first_violation([0] * 1_000) is None
    found = first_violation([[0] * 100] * 11)
    assert found is not None
    assert "over 1,000 values" in found[1]


def test_data_that_contains_itself_is_too_deep() -> None:
    data: list[Any] = []
    data.append(data)
    assert first_violation(data) is not None
