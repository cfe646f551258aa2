"""References: read once, typed where they stand alone, text where they stand in text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.language.references import (
    BindError,
    Reference,
    bind,
    malformed_in,
    parse_path,
    parse_reference,
    parse_status_reference,
    path_text,
    references_in,
    rewrite,
)

OUTPUTS: dict[str, Any] = {
    "a": {"name": "Nile", "items": [{"km": 6650}, {"km": 6400}], "odd-key": 1},
    "b": 7,
    "t": "it costs $b",
}


def bound(value: Any) -> Any:
    """Bind to OUTPUTS."""
    return bind(value, OUTPUTS.__getitem__)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$b", 7),
        ("${b}", 7),
        ("$a.name", "Nile"),
        ("$a.items[1].km", 6400),
        ("${a.items[0]}", {"km": 6650}),
        ("$a.items.length", 2),
        ("${a.odd-key}", 1),
    ],
)
def test_a_value_that_is_only_a_reference_keeps_its_type(text: str, value: Any) -> None:
    assert bound(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("the $a.name is ${a.items[0].km} km", "the Nile is 6650 km"),
        ("see $a.items.", 'see [{"km":6650},{"km":6400}].'),
        ("$$b is $b", "$b is 7"),
        ("$5 and $ and $_x", "$5 and $ and $_x"),
        ("${b}0", "70"),
        ("$b.", "7."),
    ],
)
def test_in_text_a_reference_is_put_in_as_text(text: str, value: str) -> None:
    assert bound(text) == value


def test_what_is_put_in_is_never_read_again() -> None:
    assert bound("$t") == "it costs $b"
    assert bound("say: $t") == "say: it costs $b"


def test_references_are_found_in_every_string_but_not_in_keys() -> None:
    value = {"$b": ["$a.name", {"x": "at ${a.items[0].km}"}], "n": 5}
    assert [str(found) for found in references_in(value)] == ["${a.name}", "${a.items[0].km}"]
    assert bound(value) == {"$b": ["Nile", {"x": "at 6650"}], "n": 5}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("$a.river", r"\$a is an object with items, name, odd-key"),
        ("$a.items[5]", r"\$a.items is a list of 2"),
        ("$b.name", r"\$b is a int"),
        ("$a.name.length", "is a str"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_is_there(text: str, says: str) -> None:
    with pytest.raises(BindError, match=says):
        bound(text)


@pytest.mark.parametrize("text", ["${b", "${}", "${a b}", "${1}", "${a.}", "${a[x]}"])
def test_what_looks_like_a_reference_and_is_none_is_reported(text: str) -> None:
    assert list(malformed_in({"x": [f"so {text}"]})) == [text]


def test_an_escaped_dollar_is_not_malformed() -> None:
    assert list(malformed_in("$${b and $$")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [("$a:status", ("a", "status")), ("$a:error.type", ("a", "error.type")), ("$a:size", None), ("$a", None)],
)
def test_status_and_error_type_have_references_of_their_own(text: str, found: tuple[str, str] | None) -> None:
    assert parse_status_reference(text) == found


def test_the_fact_of_a_reference_is_its_path_as_written() -> None:
    found = parse_reference("$a.items[0].km")
    whole = parse_reference("$a")
    assert found is not None
    assert whole is not None
    assert (found.fact, whole.fact) == ("items[0].km", ".")


STEPS = st.one_of(st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True), st.integers(0, 999_999))


@given(st.lists(STEPS, max_size=5).map(tuple))
def test_a_path_is_read_back_as_it_was_written(path: tuple[str | int, ...]) -> None:
    assert parse_path(path_text(path)) == path
    assert parse_reference(f"${{n1{path_text(path)}}}") == Reference("n1", path)


@given(st.text())
def test_text_without_a_dollar_stays_as_it_is_and_any_text_can_be_escaped(text: str) -> None:
    assert bound(text.replace("$", "$$")) == text


@given(st.text(alphabet="$ab{}[].:019 \n", max_size=30))
def test_no_text_makes_binding_fail_but_for_what_is_not_there(text: str) -> None:
    try:
        bound(text)
    except (BindError, KeyError):
        assert any(True for _ in references_in(text))


def test_a_text_is_rewritten_only_where_asked_and_what_is_put_in_stays_text() -> None:
    known = {"input.unit": "$$km of $x", "item": "5"}
    text = rewrite(
        "in ${input.unit}, $item, $$item and $other.a", lambda reference: known.get(str(reference)[1:].strip("{}"))
    )
    assert text == "in $$$$km of $$x, 5, $$item and $other.a"
    assert bind(text, {"other": {"a": 1}}.__getitem__) == "in $$km of $x, 5, $item and 1"
