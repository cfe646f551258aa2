"""A dict that a script gives as `schema=` is a JSON schema or a dict of types; one that is neither is a problem."""

import ast
from typing import Any

import pytest

from sennit.activities.programs.schemas import schema_of
from sennit.workflows.plan.programs.syntax import problems_in
from sennit.workflows.plan.programs.written_schemas import is_json_schema, written_value

JSON_SCHEMAS = [
    '{"enum": ["yes", "no"]}',
    '{"enum": ["yes", "no"], "description": "Go on?"}',
    '{"type": ["string", "null"]}',
    '{"type": "string", "maxLength": 3}',
    '{"anyOf": [{"type": "string"}, {"type": "null"}]}',
    '{"oneOf": [{"const": 1}, {"const": -2}]}',
    '{"const": 1}',
    '{"minimum": 0.5}',
    '{"items": {"enum": [1, 2]}}',
    '{"properties": {"a": {"type": "string"}}, "required": ["a"]}',
    '{"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}',
]
TYPES = [
    '{"good": bool}',
    '{"title": str, "description": str}',
    '{"items": list[str], "type": str}',
    '{"title": str, "properties": {"a": int}}',
    '{"kind": ["draft", "final"], "type": ["x", "y"]}',
    '{"state": {"enum": ["draft", "final"]}, "size": int}',
    "{}",
]
WRONG = [
    ('{"a": 3}', "`3` is no type, nor part of a JSON schema"),
    ('{"a": [True]}', "`True` is no type, nor part of a JSON schema"),
    ('{"type": "strin"}', "the schema 'strin' is no type"),
    ('{"a": "nope"}', "the schema 'nope' is no type"),
    ('{"type": ["string", "nul"]}', "type[1]: must be one of"),
    ('{"type": "object", "prop": {}}', "schema keyword `prop` is not supported"),
    ('{"anyOf": [{"type": "strin"}, {"type": "null"}]}', "anyOf[0].type: must be one of"),
    ('{"$ref": "#/$defs/A"}', "is not in `$defs`"),
]


def value_of(schema: str) -> Any:
    """Return what a script gives, as a worker gets it."""
    return written_value(ast.parse(schema, mode="eval").body)


def problems(schema: str) -> list[str]:
    script = f'async def main():\n    return await ask("Go on?",\n        schema={schema})\n'
    return [str(problem) for problem in problems_in(script, {})]


@pytest.mark.parametrize("schema", JSON_SCHEMAS)
def test_a_json_schema_is_read_as_one(schema: str) -> None:
    assert schema_of(value_of(schema), {}) == ast.literal_eval(schema)
    assert problems(schema) == []


@pytest.mark.parametrize("schema", TYPES)
def test_a_dict_of_types_is_an_object_with_these_fields(schema: str) -> None:
    assert not is_json_schema(value_of(schema))
    found = schema_of(value_of(schema), {})
    assert (found["type"], list(found["properties"])) == ("object", list(value_of(schema)))
    assert problems(schema) == []


def test_a_field_may_have_a_json_schema() -> None:
    found = schema_of({"state": {"enum": ["draft", "final"]}, "size": "int"}, {})
    assert found["properties"] == {"state": {"enum": ["draft", "final"]}, "size": {"type": "integer"}}
    with pytest.raises(ValueError, match=r"a JSON schema with `\$defs` stands by itself"):
        schema_of({"a": {"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}}, {})


@pytest.mark.parametrize(("schema", "message"), WRONG)
def test_a_dict_that_is_neither_is_a_problem_with_its_line(schema: str, message: str) -> None:
    (found,) = problems(schema)
    assert found.startswith("line 3: ")
    assert message in found
    with pytest.raises(ValueError, match="schema"):
        schema_of(value_of(schema), {})


def test_the_line_is_that_of_the_part() -> None:
    (found,) = problems('{\n    "a": str,\n    "b": 4,\n}')
    assert found.startswith("line 5: `4` is no type")
    (found,) = problems('{\n    "type": "object",\n    "properties": {\n        "a": {"typ": "string"}}}')
    assert found.startswith("line 6: the JSON schema is wrong: properties.a.typ")


def test_a_schema_with_a_name_is_checked_where_it_is_written() -> None:
    script = 'CHOICES = ["a"]\nSCHEMA = {"enum": CHOICES, "a": 5}\n'
    script += 'async def main():\n    return await ask("?", schema=SCHEMA)\n'
    assert [problem.where for problem in problems_in(script, {})] == [("line", 2)]


def test_fields_of_a_json_schema_are_not_guessed() -> None:
    script = (
        'async def main():\n    found = await llm("x", schema={"type": ["object", "null"]})\n    return found["a"]\n'
    )
    assert problems_in(script, {}) == []
