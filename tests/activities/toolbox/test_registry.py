import threading
from typing import Any

import pytest
from pydantic import BaseModel

from sennit.activities.toolbox import Registry, ToolContext, ToolDefinitionError, UnknownTool, load_tools, tool


class Arguments(BaseModel):
    word: str


def same(args: Arguments) -> None: ...


def filled(*names: str) -> Registry:
    registry = Registry()
    for name in names:
        tool(effect="pure", name=name, registry=registry)(same)
    return registry


@pytest.mark.parametrize(
    ("source", "options", "problem"),
    [
        ("def bad(*words: str) -> str: ...", {}, "a call names its arguments; *words: str in the signature"),
        ("def bad(word: str, /) -> str: ...", {}, "a call names its arguments"),
        ("def bad(**words: str) -> str: ...", {}, "a call names its arguments"),
        ("def bad(word): ...", {}, "annotate 'word' with its type, such as `str`"),
        ("def bad(one: ToolContext, two: ToolContext) -> str: ...", {}, "one parameter takes the ToolContext"),
        ("def bad(word: str, thread: Thread) -> str: ...", {}, "its arguments have no JSON schema"),
        ("def bad(word: str) -> str: ...", {"resource": "file:{path}"}, "names 'path', which is no argument"),
        ("def bad(args: Arguments) -> str: yield 1", {}, "yields"),
        ("def bad(args: 'Missing') -> str: ...", {}, "'Missing' is not defined"),
        ("def bad(args: Arguments) -> Thread: ...", {}, "Thread has no JSON schema"),
        ("def bad(args: Arguments) -> str: ...", {"effect": "reads"}, "effect 'reads' is not one of pure, read, write"),
        ("def bad(args: Arguments) -> str: ...", {"effect": "write", "large": True}, "a write is not large"),
        ("def bad(args: Arguments) -> str: ...", {"name": "a b"}, "'a b' cannot be a tool's name"),
        ("def bad(args: Arguments) -> str: ...", {"name": ""}, "cannot be a tool's name"),
        ("def bad(args: Arguments) -> str: ...", {"timeout": "soon"}, "'soon' is not a duration"),
        ("def bad(args: Arguments) -> str: ...", {"resource": "file:{path}"}, "names 'path', which is no argument"),
    ],
)
def test_misuse_names_function_module_and_problem(source: str, options: dict[str, Any], problem: str) -> None:
    scope: dict[str, Any] = {"__name__": "mine", "Thread": threading.Thread}
    scope |= {"Arguments": Arguments, "ToolContext": ToolContext}
    exec(source, scope)
    with pytest.raises(ToolDefinitionError) as caught:
        tool(**{"effect": "pure", **options}, registry=Registry())(scope["bad"])
    assert str(caught.value).startswith("mine.bad: ")
    assert problem in str(caught.value)


def test_only_a_function_can_be_a_tool() -> None:
    with pytest.raises(ToolDefinitionError, match="@tool takes a function"):
        tool(effect="pure", registry=Registry())(Arguments)


def test_two_tools_of_a_name_are_refused_with_both_functions_named() -> None:
    with pytest.raises(ToolDefinitionError, match=r"same: the name 'search' is taken by .*\.same"):
        filled("search", "search")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("serch", "there is no tool `serch`; did you mean `search`?"),
        ("zzzzzz", "there is no tool `zzzzzz`; known: read, search"),
        ("x" * 100_000, f"there is no tool `{'x' * 59}…`; known: read, search"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_or_all(name: str, hint: str) -> None:
    with pytest.raises(UnknownTool) as caught:
        filled("search", "read").get(name)
    assert str(caught.value) == hint


def test_the_built_in_catalogue_is_complete_sorted_and_forbids_unknown_arguments() -> None:
    catalogue = load_tools().catalogue()
    assert [(each["name"], each["effect"]) for each in catalogue] == [
        ("calculate", "pure"),
        ("http_get", "read"),
        ("list_files", "read"),
        ("read", "read"),
        ("search", "read"),
        ("table", "pure"),
    ]
    for each in catalogue:
        assert each["schema"]["additionalProperties"] is False
        assert each["output_schema"]["type"] == "object"
        assert 0 < each["timeout"] <= 65
        assert each["description"]
