import math
import threading
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from activities.toolbox import Registry, Tool, ToolArgumentError, ToolContext, ToolDefinitionError, tool
from activities.toolbox.errors import ToolResultError
from workflows.messages import queues


class Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    word: str = Field(min_length=1)
    times: int = 1

    @field_validator("word")
    @classmethod
    def no_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value


class Found(BaseModel):
    day: date
    where: Path


def made(function: Any, **options: Any) -> Tool:
    registry = Registry()
    assert tool(**{"effect": "pure", **options}, registry=registry)(function) is function
    return next(iter(registry))


def repeat(args: Arguments) -> str:
    """Repeat a word
    many times.

    Not shown to planners.
    """
    return args.word * args.times


def test_a_tool_describes_itself_from_its_function() -> None:
    described = made(repeat, version="2", timeout="500ms").describe()
    assert described == {
        "name": "repeat",
        "description": "Repeat a word many times.",
        "effect": "pure",
        "version": "2",
        "timeout": 0.5,
        "queue": queues.TOOLS,
        "resource": None,
        "idempotent": False,
        "schema": Arguments.model_json_schema(),
        "output_schema": {"type": "string"},
    }


def test_a_function_without_docstring_is_described_by_its_name() -> None:
    def look_it_up(args: Arguments) -> None: ...

    described = made(look_it_up)
    assert (described.description, described.output_schema) == ("look it up", {"type": "null"})


def test_without_return_annotation_the_output_has_no_schema() -> None:
    def bare(args: Arguments):  # type: ignore[no-untyped-def]  # the case under test
        return args.word

    assert made(bare).output_schema is None


async def test_a_synchronous_function_runs_in_another_thread(context: ToolContext) -> None:
    def where(args: Arguments) -> int:
        return threading.get_ident()

    assert await made(where).call({"word": "x"}, context) != threading.get_ident()


async def test_an_asynchronous_function_gets_the_context(context: ToolContext) -> None:
    async def key(args: Arguments, context: ToolContext) -> str:
        return context.idempotency_key

    assert await made(key).call({"word": "x"}, context) == "run/n1/1"


async def test_results_become_json_values(context: ToolContext) -> None:
    def find(args: Arguments) -> list[Found]:
        return [Found(day=date(2024, 5, 1), where=Path("a/b"))]

    assert await made(find).call({"word": "x"}, context) == [{"day": "2024-05-01", "where": "a/b"}]


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), "\ud800", {"a": [math.nan]}])
async def test_a_result_that_json_cannot_carry_is_an_error(value: object, context: ToolContext) -> None:
    def bad(args: Arguments) -> Any:
        return value

    with pytest.raises(ToolResultError, match="bad returned a"):
        await made(bad).call({"word": "x"}, context)


@pytest.mark.parametrize(
    ("arguments", "field", "problem"),
    [
        ({}, "word", "Field required"),
        ({"word": ""}, "word", "at least 1 character"),
        ({"word": " "}, "word", "must not be blank"),
        ({"word": "a", "times": "many"}, "times", "valid integer"),
        ({"word": "a", "tines": 2}, "tines", "there is no such field; did you mean `times`?"),
        ({"wrod": "a", "x": 1}, "word", "Field required"),
        (["a"], "", "valid dictionary"),
    ],
)
async def test_wrong_arguments_are_named_by_field_and_problem(
    arguments: Any, field: str, problem: str, context: ToolContext
) -> None:
    with pytest.raises(ToolArgumentError) as caught:
        await made(repeat).call(arguments, context)
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert str(caught.value).startswith("repeat: ")
    assert not caught.value.retryable


async def test_an_argument_error_does_not_repeat_the_value(context: ToolContext) -> None:
    with pytest.raises(ToolArgumentError) as caught:
        await made(repeat).call({"word": "a", "times": "sk-secret"}, context)
    assert "sk-secret" not in str(caught.value)


async def test_a_validation_error_inside_a_tool_is_not_blamed_on_the_arguments(context: ToolContext) -> None:
    def inner(args: Arguments) -> Arguments:
        return Arguments(word="")

    with pytest.raises(ValueError, match="Arguments") as caught:
        await made(inner).call({"word": "x"}, context)
    assert not isinstance(caught.value, ToolArgumentError)


def no_parameters() -> str:
    raise NotImplementedError


def no_annotation(args): ...  # type: ignore[no-untyped-def]  # the case under test


def no_model(args: dict[str, Any]) -> str:
    raise NotImplementedError


def three(args: Arguments, context: ToolContext, more: int) -> str:
    raise NotImplementedError


def starred(*args: Arguments) -> str:
    raise NotImplementedError


def second_untyped(args: Arguments, context: Any) -> str:
    raise NotImplementedError


def generator(args: Arguments) -> Any:
    yield 1


def unknown_type(args: "Missing") -> str:  # type: ignore[name-defined]  # noqa: F821 (the case under test)
    raise NotImplementedError


def no_schema(args: Arguments) -> threading.Thread:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "options", "problem"),
    [
        (no_parameters, {}, "a tool takes"),
        (no_annotation, {}, "annotate 'args' with a pydantic model"),
        (no_model, {}, "annotate 'args' with a pydantic model"),
        (three, {}, "a tool takes"),
        (starred, {}, "a tool takes"),
        (second_untyped, {}, "annotate 'context' with ToolContext"),
        (generator, {}, "yields"),
        (unknown_type, {}, "'Missing' is not defined"),
        (no_schema, {}, "Thread has no JSON schema"),
        (repeat, {"effect": "reads"}, "effect 'reads' is not one of pure, read, write"),
        (repeat, {"name": "a b"}, "'a b' cannot be a tool's name"),
        (repeat, {"name": ""}, "cannot be a tool's name"),
        (repeat, {"timeout": "soon"}, "'soon' is not a duration"),
    ],
)
def test_misuse_names_function_module_and_problem(function: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        made(function, **options)
    assert problem in str(caught.value)
    assert f"{function.__module__}.{function.__name__}: " in str(caught.value)


def test_only_a_function_can_be_a_tool() -> None:
    with pytest.raises(ToolDefinitionError, match="@tool takes a function"):
        made(Arguments)
