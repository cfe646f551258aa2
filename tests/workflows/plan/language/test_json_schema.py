"""Values against JSON Schema: the same verdicts as a full validator on the part that plans use, and never an error."""

from typing import Any

import pytest
from doubles.plan.junk import anything
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sennit.workflows.plan.language.json_schema import equal, type_of, types_of, violations
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.schema_keywords import TYPES
from sennit.workflows.plan.limits import MAX_PATTERN_CHARACTERS, MAX_SCHEMA_STEPS

_TYPE = st.sampled_from(list(TYPES))
_VALUE = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2, -1, 1.0, 2.5, "", "a", "ab", "abc", "b1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def _optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


_SCHEMA = st.recursive(
    st.booleans()
    | _optional(
        type=_TYPE | st.lists(_TYPE, min_size=1, max_size=3, unique=True),
        minLength=st.integers(0, 2),
        maxLength=st.integers(0, 3),
        pattern=st.sampled_from(["^a", "b$", "[0-9]", "a?b"]),
        minimum=st.sampled_from([0, 1.5]),
        maximum=st.sampled_from([0, 2]),
        exclusiveMinimum=st.just(0),
        exclusiveMaximum=st.just(2),
        minItems=st.integers(0, 2),
        maxItems=st.integers(0, 2),
        title=st.just("x"),
    )
    | st.fixed_dictionaries({"enum": st.lists(_VALUE, min_size=1, max_size=3)})
    | st.fixed_dictionaries({"const": _VALUE})
    | st.just({"$ref": "#/$defs/Leaf"}),
    lambda inner: _optional(
        anyOf=st.lists(inner, min_size=1, max_size=3),
        allOf=st.lists(inner, min_size=1, max_size=2),
        type=_TYPE,
        items=inner,
        properties=st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        required=st.lists(st.sampled_from("abc"), max_size=2, unique=True),
        additionalProperties=inner,
    ),
    max_leaves=6,
)
_DEFS = {"Leaf": {"type": ["string", "integer"]}}


def messages(value: Any, schema: dict[str, Any]) -> list[str]:
    return [f"{place_of(where)} {sentence}".strip() for where, sentence in violations(value, schema)]


@settings(max_examples=250, deadline=None)
@given(_VALUE, _SCHEMA)
def test_the_verdict_is_that_of_a_full_validator_and_what_fits_is_of_an_allowed_type(value: Any, schema: Any) -> None:
    whole = {"allOf": [schema], "$defs": _DEFS}
    fits = not messages(value, whole)
    assert fits == Draft202012Validator(whole).is_valid(value)
    types = types_of(whole, _DEFS)
    if fits and types:
        number = type_of(value) in ("integer", "number")
        assert type_of(value) in types or (number and types & {"integer", "number"})


@settings(max_examples=40, deadline=None)
@given(
    anything,
    anything,
    st.dictionaries(
        st.sampled_from(
            [
                "type",
                "enum",
                "const",
                "anyOf",
                "allOf",
                "$ref",
                "$defs",
                "properties",
                "required",
                "items",
                "additionalProperties",
                "minLength",
                "maximum",
            ]
        ),
        anything,
    ),
)
def test_no_schema_makes_a_check_raise(value: Any, some: Any, fields: dict[str, Any]) -> None:
    for schema in (some, fields, {"properties": {"a": some}, "items": fields, "$defs": fields}):
        assert all(sentence.isprintable() for _, sentence in violations(value, schema))
        types_of(schema, {})


@pytest.mark.parametrize(
    ("value", "schema", "sentences"),
    [
        ("x", {"type": "integer"}, ['wanted integer, not "x"']),
        (True, {"type": "integer"}, ["wanted integer, not true"]),
        (None, {"type": ["string", "null"]}, []),
        (5, {"type": ["string", "null"]}, ["wanted string or null, not 5"]),
        (3.0, {"type": "integer"}, []),
        ("re", {"enum": ["red", "blue"]}, ['must be one of "red", "blue", not "re"; did you mean `red`?']),
        (1, {"const": True}, ["must be true, not 1"]),
        (1, {"enum": [True]}, ["must be one of true, not 1"]),
        ({}, {"required": ["a"]}, ["`a` is missing"]),
        ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}, ["b `b` is unknown; known: a"]),
        (
            {"nme": 1},
            {"properties": {"name": {}}, "additionalProperties": False},
            ["nme `nme` is unknown; did you mean `name`?"],
        ),
        ({"a": [1, "x"]}, {"properties": {"a": {"items": {"type": "integer"}}}}, ['a[1] wanted integer, not "x"']),
        (5, {"anyOf": [{"type": "string"}, {"type": "null"}]}, ["wanted null or string, not 5"]),
        ("", {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]}, ["has 0 characters; at least 1"]),
        ("abc", {"anyOf": [{"type": "string"}], "maxLength": 2}, ["has 3 characters; at most 2"]),
        ([1], {"items": False}, ["[0] is not allowed here"]),
        (0, {"exclusiveMinimum": 0, "minimum": 1}, ["is 0; at least 1", "is 0; must be above 0"]),
        ("x\n", {"pattern": "^[a-z]\n$", "maxLength": 1}, ["has 2 characters; at most 1"]),
        ("x\n", {"pattern": "^[a-z]$"}, ['"x\\n" does not match ^[a-z]$']),
        ("7", {"pattern": "^[a-z]+$"}, ['"7" does not match ^[a-z]+$']),
        (
            {"a": {"b": {}}},
            {"$ref": "#/$defs/T", "$defs": {"T": {"properties": {"a": {"$ref": "#/$defs/T"}}, "maxItems": 0}}},
            [],
        ),
    ],
)
def test_a_fault_is_a_sentence_at_its_place(value: Any, schema: dict[str, Any], sentences: list[str]) -> None:
    assert messages(value, schema) == sentences


def test_definitions_may_stand_under_their_old_name() -> None:
    schema = {"definitions": {"T": {"type": "string"}}, "properties": {"a": {"$ref": "#/definitions/T"}}}
    assert messages({"a": 1}, schema) == ["a wanted string, not 1"]


def test_a_text_may_be_taken_over_by_the_caller() -> None:
    seen = []

    def on_text(where: Any, text: str, schema: dict[str, Any]) -> Any:
        seen.append((where, text, schema))
        return iter([(where, "taken")]) if text.startswith("$") else None

    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    found = list(violations({"a": "$x", "b": "y"}, schema, on_text=on_text))
    assert found == [(("a",), "taken"), (("b",), 'wanted integer, not "y"')]
    assert seen == [(("a",), "$x", {"type": "integer"}), (("b",), "y", {"type": "integer"})]


_LOOP = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]}}}
_TWICE = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"items": {"$ref": "#/$defs/A"}}] * 2 + [{"const": 1}]}}}
_WIDE = {f"A{number}": {"anyOf": [{"$ref": f"#/$defs/A{number + 1}"}] * 9} for number in range(40)}


@pytest.mark.parametrize("schema", [_LOOP, _TWICE, {"$ref": "#/$defs/A0", "$defs": _WIDE}])
def test_a_schema_that_takes_for_ever_is_given_up_with_a_sentence(schema: dict[str, Any]) -> None:
    value: Any = 2
    for _ in range(60):
        value = [value]
    found = messages(value, schema)
    types_of(schema, schema["$defs"])
    assert (
        not found
        or found[-1] == f"cannot be checked in {MAX_SCHEMA_STEPS:,} steps; make the value or its schema simpler"
    )


def test_a_value_of_any_depth_is_judged_without_a_stack() -> None:
    value: Any = 2
    for _ in range(5_000):
        value = [value]
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}}
    assert messages(value, schema)[0].startswith("cannot be checked")


def test_a_long_text_is_not_matched_against_a_pattern() -> None:
    (sentence,) = messages("a" * (MAX_PATTERN_CHARACTERS + 1), {"pattern": "a*a*b"})
    assert sentence == "has 501 characters; a text with a `pattern` has at most 500"


_HOSTILE = (
    "a{0,9}" * 32 + "$",
    "(a|aa)" * 28 + "$",
    "a?" * 60 + "a" * 60 + "$",
    r"\w{0,9}" * 28 + "!",
    "(a+)+$",
    "(a|a)*b",
    "(?:(?:(?:a{0,9}){9}){9}){9}b",
    "a{999999999}",
    r"(?:\w{0,99}){99}",
)


@pytest.mark.parametrize("pattern", _HOSTILE)
def test_no_pattern_makes_a_check_take_long(pattern: str) -> None:
    """It is the process that is killed by the time limit of the suite if one backtracks."""
    texts = ["a" * length + "!" for length in (30, MAX_PATTERN_CHARACTERS - 1)]
    assert all(sentence.isprintable() for text in texts for sentence in messages(text, {"pattern": pattern}))


def test_many_patterns_and_many_texts_are_given_up_with_a_sentence() -> None:
    many = {"anyOf": [{"pattern": f"(?:x?y?){{40}}{number}!"} for number in range(5_000)]}
    long = {"items": {"pattern": ".{0,900}$"}}
    for value, schema in (("a" * 400, many), (["a" * 400] * 5_000, long)):
        (sentence,) = messages(value, schema)
        assert sentence == f"cannot be checked in {MAX_SCHEMA_STEPS:,} steps; make the value or its schema simpler"


_MANY = [f"n{number:04}" for number in range(1_600)]


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("n1", {"enum": _MANY}),
        ([0] * 1_600 + [1], {"const": [0] * 1_600 + [2]}),
        ({"n1": 1}, {"properties": dict.fromkeys(_MANY, True), "additionalProperties": False}),
        ({"n1": 1}, {"required": _MANY}),
        ({"n1": 1}, {"type": ["string"] * 1_600}),
        ([1], {"anyOf": [{}, *([{"type": "string"}] * 500)], "minItems": 2}),
    ],
)
def test_what_a_schema_lists_is_counted_when_many_alternatives_list_it(value: Any, schema: dict[str, Any]) -> None:
    assert not messages(value, schema)[0].startswith("cannot be checked")
    (sentence,) = messages(value, {"$defs": {"a": schema}, "anyOf": [{"$ref": "#/$defs/a"}] * 1_600})
    assert sentence.startswith("cannot be checked")


@pytest.mark.parametrize("pattern", ["(?=a)b", "[", "a" * 5_000, "x{5000}"])
def test_a_foreign_pattern_that_the_engine_cannot_take_is_left_to_who_brought_it(pattern: str) -> None:
    assert messages("b", {"pattern": pattern}) == []


@given(_VALUE)
def test_equality_is_that_of_json(value: Any) -> None:
    assert equal(value, value)
    assert not equal(True, 1)
    assert not equal([0], [False])
    assert equal({"a": 1}, {"a": 1.0})
