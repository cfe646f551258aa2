import math
import pickle
import threading
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from activities.toolbox import Preview, Registry, Tool, ToolArgumentError, ToolContext, definition, tool
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
    assert made(repeat, version="2", timeout="500ms").describe() == {
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


def test_what_a_function_does_not_say_is_made_up_or_left_open() -> None:
    def look_it_up(args: Arguments) -> None: ...

    def bare(args: Arguments):  # type: ignore[no-untyped-def]  # the case under test
        return args.word

    described = made(look_it_up)
    assert (described.description, described.output_schema) == ("look it up", {"type": "null"})
    assert made(bare).output_schema is None


async def test_functions_run_in_other_threads_and_coroutine_functions_together(context: ToolContext) -> None:
    def plain(args: Arguments) -> int:
        return threading.get_ident()

    async def coroutine(args: Arguments, context: ToolContext) -> str:
        return f"{context.idempotency_key} {threading.get_ident()}"

    first = await made(coroutine).call({"word": "x"}, context)
    places = {f"run/n1/1 {await made(plain).call({'word': 'x'}, context)}", f"run/n1/1 {threading.get_ident()}", first}
    assert len(places) == 3
    assert await made(coroutine).call({"word": "x"}, context) == first


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
        ({}, "word", "is missing"),
        ({"word": ""}, "word", "is empty"),
        ({"word": " "}, "word", "must not be blank"),
        ({"word": "a", "times": "sk-secret"}, "times", "must be a whole number"),
        ({"word": "a", "tines": 2}, "tines", "there is no such field; did you mean `times`?"),
        ({"wrod": "a", "x": 1}, "word", "is missing (and 2 more)"),
        (["a"], "", "must be an object"),
    ],
)
async def test_wrong_arguments_are_named_by_field_and_problem_without_their_value(
    arguments: Any, field: str, problem: str, context: ToolContext
) -> None:
    with pytest.raises(ToolArgumentError) as caught:
        await made(repeat).call(arguments, context)
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert str(caught.value).startswith("repeat: ")
    assert "sk-secret" not in str(caught.value)
    assert not caught.value.retryable


async def test_a_validation_error_inside_a_tool_is_not_blamed_on_the_arguments(context: ToolContext) -> None:
    def inner(args: Arguments) -> Arguments:
        return Arguments(word="")

    with pytest.raises(ValueError, match="Arguments") as caught:
        await made(inner).call({"word": "x"}, context)
    assert not isinstance(caught.value, ToolArgumentError)


async def test_a_tool_can_be_sent_to_another_process_whatever_its_preview_is(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def send(function: Any, *_: Any) -> Any:
        return pickle.loads(pickle.dumps(function))()

    monkeypatch.setattr(definition, "run_isolated", send)
    monkeypatch.setattr(Tool, "_can_be_sent", True)
    sent = made(repeat, effect="write", preview=lambda args: Preview(args.word))
    assert await sent.call({"word": "x"}, context, isolated=True) == "x"
