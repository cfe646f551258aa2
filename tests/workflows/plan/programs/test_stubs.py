import ast
from typing import Any

import pytest

from sennit.workflows.plan.programs.stubs import stubs_of, type_of
from sennit.workflows.plan.programs.vocabulary import RUN_PROGRAM, WORDS

LIMITS = "timeout: float | None = None, retry: int | None = None"
SEARCH = {
    "name": "search",
    "description": 'Find """ passages.\nAll of them.',
    "effect": "read",
    "schema": {
        "properties": {"k": {"type": "integer", "default": 5}, "query": {"type": "string"}, "from": {"type": "string"}},
        "required": ["query"],
    },
    "output_schema": {"$ref": "#/$defs/Hits", "$defs": {"Hits": {"type": "array", "items": {"type": "string"}}}},
}


def functions(stubs: str) -> dict[str, ast.AST]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name: node for node in ast.parse(stubs).body if isinstance(node, kinds)}


def test_every_word_has_a_stub() -> None:
    assert sorted({*functions(stubs_of([]))} - {"size"}) == sorted([*WORDS, RUN_PROGRAM, "log"])


def test_a_tool_has_its_arguments_and_its_result() -> None:
    odd = {"name": "time.now"}
    bare = {"name": "bare", "effect": "write", "schema": {"additionalProperties": False}}
    assert f"async def search(*, {LIMITS}, **others: Any) -> Ref:" in stubs_of(
        [{**SEARCH, "schema": {}, "large": True}]
    )
    stubs = stubs_of([SEARCH, odd, bare])
    assert stubs.endswith(
        f'async def bare(*, {LIMITS}) -> Any:\n    """It changes things."""\n'
        f"async def search(k: int = 5, *, query: str, {LIMITS}, **others: Any) -> list[str]:\n"
        """    \"\"\"Find ' passages. All of them. It only reads.\"\"\"\n"""
    )
    assert {"bare", "search"} <= functions(stubs).keys()


def test_a_schema_that_names_itself_often_has_a_short_stub() -> None:
    wide = {"anyOf": [{"type": "object", "additionalProperties": {"$ref": "#/$defs/A"}}, {"type": "string"}] * 25}
    schema = {"properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": wide}}
    assert len(stubs_of([{"name": "wide", "effect": "read", "schema": schema}])) < len(stubs_of([])) + 10_000


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "str"),
        ({"type": ["integer", "null"]}, "int | None"),
        ({"anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "number"}]}, "float | bool"),
        ({"anyOf": [{"type": "number"}, {}]}, "Any"),
        ({"type": "array", "items": {"type": "object"}}, "list[dict[str, Any]]"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "dict[str, str]"),
        ({"enum": ["a", 1, True]}, "Literal['a', 1, True]"),
        ({"enum": ["a", None], "type": "string"}, "str"),
        ({"const": "a"}, "Literal['a']"),
        ({"$ref": "#/$defs/Tree"}, "list[list[list[list[list[list[Any]]]]]]"),
        ({"type": "odd"}, "Any"),
        (True, "Any"),
    ],
)
def test_the_type_of_a_schema(schema: Any, text: str) -> None:
    assert type_of(schema, {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}) == text
