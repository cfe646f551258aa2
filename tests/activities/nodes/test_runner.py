"""What a finished node leaves behind, and when a successor may trust it."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from doubles.plan.samples import stored, tool
from doubles.stores import new_store
from pydantic import BaseModel

from sennit.activities.limits import MAX_MARKED_BYTES
from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.error_mapping import NodeTimeout
from sennit.activities.nodes.replies import Marker
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.storage.artifacts import StoreUnavailable, digest_of, encode, reference_to
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.patience import PatientStore
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox import Registry, Tool, threads
from sennit.activities.toolbox import tool as register
from sennit.activities.toolbox.errors import McpToolChanged
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.node_calls import GateNodeCall, NodeCall
from sennit.workflows.plan.digests import digest_in

PREFIX, KEY, BODY = "space/run", "k" * 40, b'"done"'
LONG = "a value " * MAX_MARKED_BYTES
"""An output that does not lie in the marker of its node."""


def marker(epoch: int = 1, output: bytes | None = None, **reply: Any) -> bytes:
    return Marker(reply=NodeReply(**reply), epoch=epoch).text(output)


@pytest.mark.parametrize(
    ("text", "has_body", "is_trusted"),
    [
        pytest.param(marker(ref=digest_of(BODY)), True, True, id="with its output"),
        pytest.param(marker(ref=digest_of(BODY)), False, False, id="without its output"),
        pytest.param(marker(), True, False, id="of no output"),
        pytest.param(marker(ref=digest_of(BODY), more="calls"), True, True, id="of a request for nodes"),
        pytest.param(marker(2, ref=digest_of(BODY), more="calls"), True, False, id="of another plan's request"),
        pytest.param(b"{", True, False, id="that is cut off"),
        pytest.param(marker(ref=reference_to(BODY, KEY), output=BODY), False, True, id="with its output in it"),
        pytest.param(marker(ref=reference_to(BODY, KEY), output=BODY[:-1]), True, False, id="with a part of it"),
        pytest.param(marker(ref=reference_to(BODY, KEY)), True, False, id="without the output that was in it"),
    ],
)
async def test_a_marker_counts_only_with_its_output(
    tmp_path: Path, text: bytes, has_body: bool, is_trusted: bool
) -> None:
    store = new_store(tmp_path)
    if has_body:
        await store.put(PREFIX, BODY)
    await store.mark(PREFIX, KEY, text)
    unused = cast("Any", None)
    runner = NodeRunner(store, unused, unused, unused, unused, tmp_path, unused)
    context = cast("Any", SimpleNamespace(run_prefix=PREFIX, call=SimpleNamespace(epoch=1)))
    reply = await runner._marked(context, KEY)
    assert (reply is not None) == is_trusted
    assert (await store.marked(PREFIX, KEY) is not None) == is_trusted, "one that cannot be trusted is removed"


@pytest.mark.parametrize("other", [b"damaged on its way", marker(2, ref="a" * 40, more="calls")])
async def test_a_marker_that_reads_well_the_second_time_keeps_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: bytes
) -> None:
    """It was damaged on its way; or another attempt has taken it back meanwhile, and marked its own output."""
    store, unused = new_store(tmp_path), cast("Any", None)
    await store.mark(PREFIX, KEY, marker(ref=reference_to(BODY, KEY), output=BODY))
    found = iter([other])

    async def marked(*_: str) -> bytes | None:
        return next(found, None) or await DirectoryStore.marked(store, PREFIX, KEY)

    monkeypatch.setattr(store, "marked", marked)
    runner = NodeRunner(store, unused, unused, unused, unused, tmp_path, unused)
    context = cast("Any", SimpleNamespace(run_prefix=PREFIX, call=SimpleNamespace(epoch=1)))
    reply = await runner._marked(context, KEY)
    assert reply is not None, "the call is made again"
    assert (await store.marked(PREFIX, KEY) or b"").endswith(b"\n" + BODY)


class Counted(DirectoryStore):
    """A store that counts what is stored."""

    made: Counter[str]

    async def put(self, run_prefix: str, body: bytes) -> str:
        self.made["put"] += 1
        return await super().put(run_prefix, body)

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        self.made["mark"] += 1
        return await super().mark(run_prefix, key, body)


@pytest.mark.parametrize(
    ("characters", "effect", "large", "made"),
    [
        pytest.param(MAX_MARKED_BYTES - 2, "read", False, {"mark": 1}, id="the longest in its marker"),
        pytest.param(MAX_MARKED_BYTES - 1, "read", False, {"put": 1, "mark": 1}, id="one byte more"),
        pytest.param(10, "write", False, {"mark": 2}, id="of a write, with the intent"),
        pytest.param(10, "read", True, {"put": 1, "mark": 1}, id="a script has a Ref to it"),
    ],
)
async def test_a_short_output_is_stored_by_one_operation(
    tmp_path: Path, characters: int, effect: str, large: bool, made: dict[str, int]
) -> None:
    def search(args: Nothing) -> str:
        called.append(args.query)
        return "x" * characters

    called: list[str] = []
    runner = runner_with(tmp_path, search, effect=effect, large=large)
    store = Counted(tmp_path)
    kept = stored(tool("a", args={"query": "a"}))
    call = NodeCall(run="run", plan=await runner.library.keep(PREFIX, kept), nodes=("a",))
    store.made = Counter()
    run = partial(replace(runner, store=store).run, call, "a", {}, run_prefix=PREFIX, attempts=Attempts(1, 0))
    first = await run()
    assert store.made == made
    assert (await run(), called) == (first, ["a"])
    assert await ArtifactReader(new_store(tmp_path)).value(PREFIX, first.ref or "") == "x" * characters


async def test_of_two_that_end_with_other_outputs_each_has_what_it_refers_to(tmp_path: Path) -> None:
    """The call of an earlier plan has marked meanwhile; what it has found does not count in this plan."""
    runner = runner_with(tmp_path, answer)
    store = runner.store
    reply = await outcome(runner)
    digest, _, key = (reply.ref or "").partition(".")
    await store.unmark(PREFIX, key)
    other = Marker(reply=NodeReply(ref=reference_to(BODY, key), size=len(BODY)), epoch=2).text(BODY)

    async def search(args: Nothing) -> str:
        await store.mark(PREFIX, key, other)
        return args.query

    late = await outcome(runner_with(tmp_path, search))
    assert late.ref == digest
    assert await store.get(PREFIX, digest) == b'"a"'
    assert await store.get(PREFIX, reference_to(BODY, key)) == BODY


async def test_a_call_that_an_earlier_plan_overtakes_replies_with_its_own_facts(tmp_path: Path) -> None:
    """The cancelled call of the draft marks after its successor has looked for a marker, and before that one marks."""
    store = new_store(tmp_path)
    library = ArtifactReader(store)
    draft = await library.keep(PREFIX, stored(tool("n1")))
    whole = await library.keep(PREFIX, stored(tool("n2")).model_copy(update={"wanted": {"n2": ["count"]}}))
    replies: dict[str, NodeReply] = {}

    async def run(node: str, plan: str, epoch: int) -> None:
        call = NodeCall(run="run", plan=plan, nodes=(node,), epoch=epoch)
        replies[node] = await runner.run(call, node, {}, run_prefix=PREFIX, attempts=Attempts(1, 0))

    async def search(_: Any, context: Any, limit: Any, isolated: bool) -> dict[str, int]:
        if context.node == "n2":
            await run("n1", draft, 1)
        return {"count": 3}

    fields = {"version": "1", "effect": "read", "is_async": True, "large": False, "name": "search", "call": search}
    fields |= {"may_change": False, "asks_agents": False}
    registry = SimpleNamespace(get=lambda _: SimpleNamespace(**fields))
    unused = cast("Any", None)
    runner = NodeRunner(store, library, cast("Any", registry), unused, unused, tmp_path, unused)
    await run("n2", whole, 2)
    assert replies["n1"].ref == replies["n2"].ref, "equal work"
    assert [dict(replies[node].facts) for node in ("n1", "n2")] == [{}, {"count": 3}]


class Nothing(BaseModel):
    query: str


def runner_with(tmp_path: Path, function: Callable[..., Any], **fields: Any) -> NodeRunner:
    """Return a runner whose one tool, `search`, is this function, and who has one thread."""
    store, registry, unused = new_store(tmp_path), Registry(), cast("Any", None)
    register(**{"effect": "read", "name": "search", **fields}, registry=registry)(function)
    library = ArtifactReader(store)
    return NodeRunner(store, library, registry, unused, unused, tmp_path, unused, asyncio.Semaphore(1))


async def outcome(runner: NodeRunner, *, lost: bool = False, **fields: Any) -> NodeReply:
    """Run node a of a plan with the nodes a and b."""
    kept = stored(*(tool(name, args={"query": name}, **fields) for name in ("a", "b")))
    call = NodeCall(run="run", plan=await runner.library.keep(PREFIX, kept), nodes=("a",))
    async with asyncio.timeout(100):
        return await runner.run(call, "a", {}, run_prefix=PREFIX, attempts=Attempts(1, 0, lost=lost))


def answer(args: Nothing) -> str:
    return args.query


@pytest.mark.parametrize(
    ("checked", "problem"),
    [
        ({}, None),
        ({"description": "another", "version": "2"}, None),
        ({"effect": "read"}, "search: its server has changed its effect since this run began, and nothing was called"),
        ({"schema": {"type": "object"}}, "search: its server has changed its schema since this run began"),
    ],
)
async def test_a_tool_that_its_server_has_changed_is_not_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: dict[str, Any], problem: str | None
) -> None:
    called: list[str] = []

    def search(args: Nothing) -> str:
        called.append(args.query)
        return args.query

    runner = runner_with(tmp_path, search, effect="write")
    now = replace(runner.registry.get("search"), may_change=True)
    runner.registry.exchange(["search"], [now])

    async def run_context(_: ArtifactReader, run_prefix: str, digest: str) -> Any:
        return SimpleNamespace(tools={"search": {**now.describe(), **checked}})

    monkeypatch.setattr(ArtifactReader, "run_context", run_context)
    if problem is None:
        await outcome(runner)
    else:
        with pytest.raises(McpToolChanged, match=problem):
            await outcome(runner)
    assert called == ([] if problem else ["a"])


async def test_the_wait_for_a_thread_is_not_the_time_of_the_node(tmp_path: Path) -> None:
    runner = runner_with(tmp_path, answer)
    await runner.threads.acquire()
    waiting = asyncio.create_task(outcome(runner, timeout="1s"))
    await asyncio.sleep(1.3)
    runner.threads.release()
    assert digest_in((await waiting).ref or "") == digest_of(b'"a"')


async def test_a_write_that_is_cut_off_while_it_waits_for_a_thread_has_not_begun(tmp_path: Path) -> None:
    runner = runner_with(tmp_path, answer, effect="write")
    await runner.threads.acquire()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(outcome(runner), 0.2)
    runner.threads.release()
    assert digest_in((await outcome(runner)).ref or "") == digest_of(b'"a"')


async def test_a_node_that_blocks_its_event_loop_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "TICK", 0.02)
    monkeypatch.setattr(threads, "GRACE", 0.1)
    monkeypatch.setattr(threads.tool_threads, "_loop", None)  # that of other tests may be watched from a closed loop
    go = threading.Event()

    async def blocks(args: Nothing) -> str:
        go.wait(30)
        return args.query

    problem = r"no result within 2 s; it blocked the event loop of all async tools for \d s; write it as a plain"
    with pytest.raises(NodeTimeout, match=problem):
        await outcome(runner_with(tmp_path, blocks), timeout="2s")
    go.set()


@pytest.mark.parametrize("lost", [False, True])
async def test_a_tool_is_isolated_after_its_worker_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    asked: list[bool] = []

    async def call(*_: Any, isolated: bool) -> str:
        asked.append(isolated)
        return "found"

    monkeypatch.setattr(Tool, "call", call)
    await outcome(runner_with(tmp_path, answer), lost=lost)
    assert asked == [lost]


class Leaving(DirectoryStore):
    """A store that tells of each call before it is made."""

    before: Callable[[str, str], Awaitable[None]]

    async def get(self, run_prefix: str, reference: str) -> bytes:
        await self.before("get", reference)
        return await super().get(run_prefix, reference)

    async def put(self, run_prefix: str, body: bytes) -> str:
        await self.before("put", "")
        return await super().put(run_prefix, body)

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        found = await super().mark(run_prefix, key, body)
        await self.before("marked", key)
        return found


class Values(BaseModel):
    query: str = ""
    value: Any = None


async def run_with(runner: NodeRunner, node: dict[str, Any], refs: dict[str, str]) -> NodeReply:
    """Run node b, which reads node a."""
    kept = stored(tool("a"), node)
    call = NodeCall(run="run", plan=await runner.library.keep(PREFIX, kept), nodes=("b",), refs=refs)
    async with asyncio.timeout(100):
        return await runner.run(call, "b", refs, run_prefix=PREFIX, attempts=Attempts(1, 0))


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_write_reads_nothing_more_once_its_intent_is_there(tmp_path: Path, is_async: bool) -> None:
    """So no store that is away, refuses, or has lost an input, leaves a doubt about a write that nobody has begun."""
    written: list[str] = []

    def search(args: Values) -> str:
        written.append(args.query)
        return "written"

    async def search_async(args: Values) -> str:
        return search(args)

    runner = runner_with(tmp_path, search_async if is_async else search, effect="write")
    store, has_begun = Leaving(tmp_path), False
    ref = await new_store(tmp_path).put(PREFIX, b'"what to write"')

    async def before(call: str, name: str) -> None:
        nonlocal has_begun
        has_begun = has_begun or (call == "marked" and name.endswith(".intent"))
        if has_begun and call == "get":
            raise StoreUnavailable("away")

    store.before = before
    runner = replace(runner, store=store, library=ArtifactReader(store))
    reply = await run_with(runner, tool("b", args={"query": "$a"}), {"a": ref})
    assert (digest_in(reply.ref or ""), written, has_begun) == (digest_of(b'"written"'), ["what to write"], True)


@pytest.mark.parametrize(("effect", "while_it"), [("read", "get"), ("read", "put"), ("write", "get"), ("write", "put")])
async def test_the_time_of_a_store_that_is_away_is_not_the_time_of_the_node(
    tmp_path: Path, while_it: str, effect: str
) -> None:
    runner = runner_with(tmp_path, answer, effect=effect)
    ref = await new_store(tmp_path).put(PREFIX, encode(LONG))
    store, missed = Leaving(tmp_path), list[StoreUnavailable]()

    async def before(call: str, name: str) -> None:
        if call == while_it and len(missed) < 6 and (call == "put" or name == ref):
            raise StoreUnavailable("away")

    async def identify() -> str:
        if len(missed) < 6:
            raise StoreUnavailable("away")
        return "id"

    store.before, store.identify = before, identify  # type: ignore[method-assign]
    patient = PatientStore(store, lambda: 60.0, missed.append)
    runner = replace(runner, store=patient, library=ArtifactReader(patient))
    kept = stored(tool("a"), tool("b", args={"query": "$a"}, timeout="1s"))
    plan = await ArtifactReader(new_store(tmp_path)).keep(PREFIX, kept)
    call = NodeCall(run="run", plan=plan, nodes=("b",), refs={"a": ref})
    reply = await runner.run(call, "b", {"a": ref}, run_prefix=PREFIX, attempts=Attempts(1, 0))
    assert (digest_in(reply.ref or ""), len(missed)) == (digest_of(encode(LONG)), 6)


async def test_an_answer_is_the_output_and_no_equal_call_finds_it(tmp_path: Path) -> None:
    called: list[str] = []

    def search(args: Nothing) -> str:
        called.append(args.query)
        return args.query

    runner = runner_with(tmp_path, search, effect="write")
    kept = stored(tool("a", args={"query": "a"}))
    call = NodeCall(run="run", plan=await runner.library.keep(PREFIX, kept), nodes=("a~2",))

    async def run(call: NodeCall) -> NodeReply:
        return await runner.run(call, "a~2", {}, run_prefix=PREFIX, attempts=Attempts(1, 0))

    reply = await run(GateNodeCall(**dict(call), answer={"found": None}))
    assert (reply.ref, reply.attempt, called) == (digest_of(b'{"found":null}'), 0, [])
    assert digest_in((await run(call)).ref or "") == digest_of(b'"a"'), "nothing says that it has been written"
    assert called == ["a"]
