"""An effect is tried once, unless it is known that it did not happen; and what was written is known."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.stores import new_store

from sennit.activities.nodes import effect_ledger
from sennit.activities.nodes.effect_ledger import EffectLedger, Write
from sennit.activities.nodes.error_mapping import NodeTimeout, OutputRefused
from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.toolbox import ToolError
from sennit.activities.toolbox.errors import AlreadyWritten, ToolResultError, UnknownOutcome
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.plan.language.facts import FactTooLarge
from sennit.workflows.plan.scheduling.events import Question

Call = Callable[[], Awaitable[NodeReply]]
Ask = Callable[[], Awaitable[NodeReply | None]]
PREFIX = "space/run"
WRITTEN = NodeReply(ref="written")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effect_ledger, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(effect_ledger, "_STORING_SECONDS", 0.0)


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return new_store(tmp_path)


def write(amount: int = 100, *, generation: int = 1, seconds: float = 0.05, idempotent: bool = False) -> Write:
    return Write(f"run/n1/{generation}", "pay", str(amount), f'{{"amount":{amount}}}', seconds, idempotent)


def ends(error: BaseException) -> Call:
    async def call() -> NodeReply:
        raise error

    return call


async def never() -> NodeReply:
    raise AssertionError("called a second time")


async def unmarked() -> NodeReply:
    """End, but leave no marker."""
    return WRITTEN


def enter(
    store: DirectoryStore, call: Call | None = None, ask: Ask | None = None, *, lost: bool = False, **fields: Any
) -> Awaitable[NodeReply]:
    """Enter a write; without a `call` of its own it succeeds and leaves its marker."""
    entered = write(**fields)

    async def recorded(name: str) -> NodeReply | None:
        found = await store.marked(PREFIX, name)
        return NodeReply(ref=found.decode()) if found else None

    async def succeeds() -> NodeReply:
        await store.mark(PREFIX, entered.marker, b"written")
        return WRITTEN

    return EffectLedger(store, PREFIX, recorded).enter(entered, call or succeeds, ask, lost=lost)


@pytest.mark.parametrize("idempotent", [False, True])
async def test_what_was_written_is_returned_and_other_arguments_are_refused(
    store: DirectoryStore, idempotent: bool
) -> None:
    assert await enter(store, idempotent=idempotent) == WRITTEN
    assert await enter(store, never, idempotent=idempotent) == WRITTEN
    with pytest.raises(AlreadyWritten, match=r'pay has written {"amount":100}; now it would write {"amount":999}'):
        await enter(store, never, amount=999, idempotent=idempotent)
    assert await enter(store, amount=999, generation=2, idempotent=idempotent) == WRITTEN


@pytest.mark.parametrize("amount", [100, 999])
async def test_an_intent_without_outcome_bars_the_way(store: DirectoryStore, amount: int) -> None:
    await enter(store, unmarked)
    cut_off = r'pay: an earlier attempt to write {"amount":100} was cut off; whether it took effect is not known'
    with pytest.raises(UnknownOutcome, match=cut_off):
        await enter(store, never, amount=amount)
    assert await enter(store, generation=2) == WRITTEN


async def test_an_idempotent_tool_is_called_again_at_once_but_only_with_the_same_arguments(
    store: DirectoryStore,
) -> None:
    with pytest.raises(NodeTimeout):
        await enter(store, ends(NodeTimeout("no result")), idempotent=True)
    with pytest.raises(UnknownOutcome, match="cut off"):
        await enter(store, never, amount=999, idempotent=True)
    with pytest.raises(ToolError, match="busy"):
        await enter(store, ends(ToolError("busy")), seconds=60.0, idempotent=True)
    with pytest.raises(UnknownOutcome, match="cut off"):
        await enter(store, never, amount=999, idempotent=True)
    assert await enter(store, seconds=60.0, idempotent=True) == WRITTEN


async def test_an_error_that_knows_nothing_was_done_leaves_the_way_free(store: DirectoryStore) -> None:
    for _ in range(2):
        with pytest.raises(ToolError, match="busy") as failed:
            await enter(store, ends(ToolError("busy", retryable=True)))
        assert failed.value.retryable
    assert await enter(store, amount=999) == WRITTEN


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("lost"), r"pay: RuntimeError: lost \(.*, in call\); whether it took effect is not known"),
        (NodeTimeout("no result within 1 s"), "no result within 1 s; whether"),
        (ToolResultError("no JSON"), "no JSON; it has taken effect"),
        (OutputRefused("too long"), "too long; it has taken effect"),
        (FactTooLarge("too long"), "too long; it has taken effect"),
        (StoreUnavailable("disk full"), "disk full; it has taken effect"),
        (UnknownOutcome("cut off"), "cut off"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_error_that_does_not_know_is_final(store: DirectoryStore, error: Exception, message: str) -> None:
    with pytest.raises(UnknownOutcome, match=message) as unknown:
        await enter(store, ends(error))
    assert not unknown.value.retryable
    with pytest.raises(UnknownOutcome, match="earlier attempt"):
        await enter(store, never)


async def test_a_cancelled_call_leaves_its_intent(store: DirectoryStore) -> None:
    with pytest.raises(asyncio.CancelledError):
        await enter(store, ends(asyncio.CancelledError()))
    with pytest.raises(UnknownOutcome):
        await enter(store, never)


@pytest.mark.parametrize("error", [None, ToolError("busy")], ids=["succeeds", "does nothing"])
async def test_an_attempt_in_flight_is_waited_for(store: DirectoryStore, error: ToolError | None) -> None:
    """If the first one did nothing, the second takes its place."""
    begun, called = asyncio.Event(), asyncio.Event()

    async def slow() -> NodeReply:
        begun.set()
        await asyncio.sleep(0.1)
        if error is not None:
            raise error
        await store.mark(PREFIX, write().marker, b"written")
        return WRITTEN

    async def second() -> NodeReply:
        called.set()
        return WRITTEN

    first = asyncio.ensure_future(enter(store, slow, seconds=60.0))
    await begun.wait()
    assert await enter(store, second, seconds=60.0) == WRITTEN
    assert called.is_set() == (error is not None)
    await asyncio.wait([first])
    assert first.exception() is error


@pytest.mark.parametrize("lost", [True, False])
async def test_an_attempt_that_was_taken_for_lost_gets_its_time_again(store: DirectoryStore, lost: bool) -> None:
    """After a sleep of the machine its time is over, and it goes on."""
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def sleeps() -> NodeReply:
        begun.set()
        await goes_on.wait()
        await store.mark(PREFIX, write().marker, b"written")
        return WRITTEN

    first = asyncio.ensure_future(enter(store, sleeps, seconds=0.0))
    await begun.wait()
    second = asyncio.ensure_future(enter(store, never, seconds=60.0, lost=lost))
    await asyncio.sleep(0.1)
    goes_on.set()
    if lost:
        assert await second == WRITTEN
    else:
        with pytest.raises(UnknownOutcome):
            await second
    assert await first == WRITTEN


async def test_a_write_is_asked_for_only_if_it_is_not_known_yet_and_again_if_another_attempt_did_nothing(
    store: DirectoryStore,
) -> None:
    """Else a reset while an approved write is in flight could let other arguments through."""
    question = NodeReply(question=Question(text="pay?"))
    asked: list[NodeReply] = []
    begun, end = asyncio.Event(), asyncio.Event()

    async def ask() -> NodeReply | None:
        asked.append(question)
        return question

    async def approved() -> NodeReply | None:
        return None

    async def does_nothing() -> NodeReply:
        begun.set()
        await end.wait()
        raise ToolError("busy")

    assert await enter(store, never, ask, seconds=60.0) == question
    first = asyncio.ensure_future(enter(store, does_nothing, approved, seconds=60.0))
    await begun.wait()
    second = asyncio.ensure_future(enter(store, never, ask, amount=999, seconds=60.0))
    await asyncio.sleep(0.05)
    assert asked == [question], "not while it is known that the write has begun"
    end.set()
    assert await second == question
    assert len(asked) == 2
    await asyncio.wait([first])
    assert isinstance(first.exception(), ToolError)
    assert await enter(store, None, approved) == WRITTEN
    assert await enter(store, never, ask) == WRITTEN


async def test_an_attempt_that_is_cancelled_while_its_intent_is_set_leaves_no_doubt(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_set = asyncio.Event()

    async def late(*marker: Any) -> bytes:
        found = await DirectoryStore.mark(store, *marker)
        is_set.set()
        await asyncio.sleep(30)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(store, "mark", late)
        attempt = asyncio.ensure_future(enter(store, never))
        await is_set.wait()
        attempt.cancel()
        await asyncio.wait([attempt])
    assert attempt.cancelled()
    assert await enter(store) == WRITTEN
