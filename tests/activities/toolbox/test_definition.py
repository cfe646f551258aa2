import asyncio
import math
import pickle
import threading
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from sennit.activities.toolbox import Preview, Registry, Tool, ToolArgumentError, ToolContext, definition, tool
from sennit.activities.toolbox.batch import Batches, Seat
from sennit.activities.toolbox.errors import BadOutput, ToolResultError
from sennit.workflows.messages import queues


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
    ("declared", "value", "result"),
    [
        (Found, {"day": "2024-05-01", "where": "a"}, {"day": "2024-05-01", "where": "a"}),
        (int, "5", 5),
        (list[float], (1, "2.5"), [1.0, 2.5]),
        (Iterable[int], iter([1, 2]), [1, 2]),
        (str | None, None, None),
        (dict, None, None),
        (Any, None, None),
        (object, None, None),
    ],
)
async def test_a_result_is_of_the_type_that_is_declared(
    declared: Any, value: Any, result: Any, context: ToolContext
) -> None:
    def given(args: Arguments) -> Any:
        return value

    given.__annotations__["return"] = declared
    assert await made(given).call({"word": "x"}, context) == result


@pytest.mark.parametrize(
    ("declared", "value", "problem"),
    [
        (Found, None, "given returned None, which is not what it declares: must be an object"),
        (Found, {"day": "2024-05-01"}, "given returned a value of type dict, which is not what it declares: where: is"),
        (int, "sk-secret", "given returned a value of type str, which is not what it declares: must be a whole number"),
        (dict[str, int], {"a": "x"}, "given returned a value of type dict, which is not what it declares: a: must be"),
        (None, 3, "given returned a value of type int, which is not what it declares: "),
    ],
)
async def test_another_result_is_refused_for_good_and_without_its_value(
    declared: Any, value: Any, problem: str, context: ToolContext
) -> None:
    async def given(args: Arguments) -> Any:
        return value

    given.__annotations__["return"] = declared
    with pytest.raises(BadOutput) as caught:
        await made(given).call({"word": "x"}, context)
    assert str(caught.value).startswith(problem)
    assert "sk-secret" not in str(caught.value)
    assert (caught.value.retryable, caught.value.value) == (False, value)
    assert pickle.loads(pickle.dumps(caught.value)).value == value


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


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def is_even(cls, value: int) -> int:
        if value % 2:
            raise RuntimeError("a validator's own error")
        return value


async def test_each_call_of_a_batch_has_its_own_end_whatever_that_is() -> None:
    async def all_of_them(calls: list[Arguments]) -> list[Any]:
        return [{"number": 2}, {"number": 3}, StopIteration(4), asyncio.CancelledError()]

    async def find(args: Arguments) -> Even:
        return Even(number=len(args.word))

    async def end(place: Seat, word: str) -> Any:
        return await place.run(place.call(found, Arguments(word=word)))

    found, batches = made(find, batch=all_of_them), Batches()
    async with asyncio.timeout(20):
        ends = await asyncio.gather(
            *[end(each, "x") for each in [batches.seat() for _ in range(4)]], return_exceptions=True
        )
    assert ends[0] == {"number": 2}
    assert [type(each).__name__ for each in ends[1:]] == ["RuntimeError", "ToolExit", "ToolResultError"]
