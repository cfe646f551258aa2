"""An effect is tried once, unless it is known that it did not happen."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from activities.nodes.effect_ledger import EffectLedger
from activities.storage.directory import DirectoryStore
from activities.toolbox import ToolError
from activities.toolbox.errors import ToolResultError, UnknownOutcome

Call = Callable[[], Awaitable[Any]]


@pytest.fixture
def ledger(tmp_path: Path) -> EffectLedger:
    return EffectLedger(DirectoryStore(tmp_path))


def ends(error: BaseException) -> Call:
    async def call() -> Any:
        raise error

    return call


async def fine() -> str:
    return "written"


async def never() -> str:
    raise AssertionError("called a second time")


async def enter(ledger: EffectLedger, call: Call, key: str = "run/n1/1") -> Any:
    return await ledger.enter("space/run", key, "post", call)


async def test_after_a_success_the_intent_still_bars_the_way(ledger: EffectLedger) -> None:
    assert await enter(ledger, fine) == "written"
    with pytest.raises(UnknownOutcome, match="post: an earlier attempt was cut off; whether it took effect"):
        await enter(ledger, never)
    assert await enter(ledger, fine, "run/n1/2") == "written"


async def test_an_error_that_knows_nothing_was_done_leaves_the_way_free(ledger: EffectLedger) -> None:
    for _ in range(2):
        with pytest.raises(ToolError, match="busy") as failed:
            await enter(ledger, ends(ToolError("busy", retryable=True)))
        assert failed.value.retryable
    assert await enter(ledger, fine) == "written"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("lost"), "post: RuntimeError: lost; whether it took effect is not known"),
        (TimeoutError(), "post: TimeoutError: TimeoutError; whether"),
        (ToolResultError("no JSON"), "no JSON; it has taken effect"),
        (UnknownOutcome("cut off"), "cut off"),
    ],
)
async def test_an_error_that_does_not_know_is_final(ledger: EffectLedger, error: Exception, message: str) -> None:
    with pytest.raises(UnknownOutcome, match=message) as unknown:
        await enter(ledger, ends(error))
    assert not unknown.value.retryable
    with pytest.raises(UnknownOutcome, match="earlier attempt"):
        await enter(ledger, never)


async def test_a_cancelled_call_leaves_its_intent(ledger: EffectLedger) -> None:
    with pytest.raises(asyncio.CancelledError):
        await enter(ledger, ends(asyncio.CancelledError()))
    with pytest.raises(UnknownOutcome):
        await enter(ledger, never)


async def test_of_two_attempts_at_once_one_calls(ledger: EffectLedger) -> None:
    async def slow() -> str:
        await asyncio.sleep(0.1)
        return "written"

    ended = await asyncio.gather(enter(ledger, slow), enter(ledger, slow), return_exceptions=True)
    assert {type(each) for each in ended} == {str, UnknownOutcome}
