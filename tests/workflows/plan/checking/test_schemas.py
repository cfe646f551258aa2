"""A plan's own schemas are held to what the checks know: nothing in them is passed over or takes for ever."""

from typing import Any

import pytest
from doubles.plan.junk import anything
from hypothesis import given, settings

from sennit.workflows.plan.checking.schemas import unknown_keywords
from sennit.workflows.plan.language.problems import place_of


def messages(schema: Any) -> list[str]:
    return [f"{place_of(where)}: {sentence}" for where, sentence in unknown_keywords(schema)]


GOOD: list[dict[str, Any]] = [
    {},
    {
        "type": "string",
        "title": "x",
        "description": "y",
        "default": 1,
        "examples": [1],
        "$schema": "z",
        "format": "date",
    },
    {"type": ["string", "null"], "minLength": 0, "maxLength": 9, "pattern": "^[A-Z]{2}[0-9]+$"},
    {"enum": [None, 1, "a"], "const": None},
    {
        "type": "object",
        "properties": {"type": {"type": "string"}, "enum": True},
        "required": ["type"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"anyOf": [{"minimum": 0}, {"exclusiveMaximum": 1.5}]}, "minItems": 1, "maxItems": 2},
    {"$ref": "#/$defs/T", "$defs": {"T": {"type": "array", "items": {"$ref": "#/$defs/T"}}}},
    {
        "properties": {"a": {"$ref": "#/$defs/T"}},
        "$defs": {"T": {"oneOf": [{"type": "null"}, {"allOf": [{"$ref": "#/$defs/U"}]}]}, "U": {}},
    },
]


@pytest.mark.parametrize("schema", GOOD)
def test_what_the_checks_know_passes(schema: dict[str, Any]) -> None:
    assert messages(schema) == []


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("text", ': wanted object or boolean, not "text"'),
        ({"nul": True}, "nul: schema keyword `nul` is not supported"),
        ({"enums": []}, "enums: schema keyword `enums` is not supported; did you mean `enum`?"),
        ({"uniqueItems": True}, "uniqueItems: schema keyword `uniqueItems` is not supported"),
        (
            {"type": "text"},
            'type: must be one of "string", "integer", "number", "boolean", "array", "object", "null", not',
        ),
        ({"type": "strin"}, 'not "strin"; did you mean `string`?'),
        ({"type": {}}, "not an empty object"),
        ({"type": []}, "type: has 0 items; at least 1"),
        ({"type": [["string"]]}, "not a list of 1"),
        ({"enum": []}, "enum: has 0 items; at least 1"),
        ({"anyOf": {}}, "anyOf: wanted array, not an empty object"),
        ({"anyOf": [1]}, "anyOf[0]: wanted object or boolean, not 1"),
        ({"properties": [1]}, "properties: wanted object, not a list of 1"),
        ({"properties": {"a": 1}}, "properties.a: wanted object or boolean, not 1"),
        ({"items": [{}]}, "items: wanted object or boolean, not a list of 1"),
        ({"additionalProperties": "no"}, 'additionalProperties: wanted object or boolean, not "no"'),
        ({"required": "a"}, 'required: wanted array, not "a"'),
        ({"minLength": "3"}, 'minLength: wanted integer, not "3"'),
        ({"maxItems": -1}, "is -1; at least 0"),
        ({"minimum": True}, "minimum: wanted number, not true"),
        ({"$ref": 5}, "$ref"),
        ({"$ref": "#/$defs/T"}, "is not in `$defs`; write #/$defs/NAME, with one of none"),
        ({"$ref": "T", "$defs": {"T": {}}}, "with one of T"),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
            '$defs"].A: `A` refers to itself; say what it is',
        ),
        (
            {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}]}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}}},
            "refers to itself",
        ),
        (
            {"items": {"properties": {"a": {"anyOf": [{"if": {}}]}}}},
            "items.properties.a.anyOf[0].if: schema keyword `if` is not",
        ),
        ({"pattern": "["}, "pattern: `pattern` is no regular expression of Rust's syntax: unclosed character class"),
        ({"pattern": "*"}, "repetition operator missing expression"),
        ({"pattern": 5}, "pattern: wanted string, not 5"),
        ({"pattern": "a" * 201}, "pattern: has 201 characters; at most 200"),
        ({"pattern": "(a)\\1"}, "syntax: backreferences are not supported"),
        (
            {"items": {"pattern": "(?=a)"}},
            "items.pattern: `pattern` is no regular expression of Rust's syntax: look-ar",
        ),
        (
            {"pattern": "a{99999999999999}"},
            "is too large with its counted repeats written out; bound the text with max",
        ),
        ({"pattern": "((a{9}){9}){9}"}, "is too large"),
        ({"pattern": "a{ 9 }{9}{9}{9}"}, "is too large"),
        ({"pattern": "(?x)(a{9}) # {\n {99}{9}"}, "is too large"),
        ({"pattern": "\\w{99}"}, "is too large"),
    ],
)
def test_what_they_do_not_know_is_named_at_its_place(schema: Any, sentence: str) -> None:
    assert any(sentence in message for message in messages(schema)), messages(schema)


@pytest.mark.parametrize(
    "pattern",
    [
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
        "^v[0-9]+\\.[0-9]+\\.[0-9]+$",
        "^(yes|no)$",
        "^[^@ ]+@[^@ ]+\\.[a-z]{2,}$",
        "\\d{3}",
        "[]a]",
        "\\(x\\)+",
        "^(?:a|b)c?$",
        "^[\\w.+-]+@([\\w-]+\\.)+[\\w-]{2,}$",
        "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        "^.{1,500}$",
    ],
)
def test_patterns_people_write_are_allowed(pattern: str) -> None:
    assert messages({"pattern": pattern}) == []


@settings(max_examples=80, deadline=None)
@given(anything)
def test_any_schema_is_judged_in_sentences(schema: Any) -> None:
    for message in messages(schema) + messages(
        {"properties": schema, "items": schema, "$defs": schema, "anyOf": schema}
    ):
        assert message.isprintable()
