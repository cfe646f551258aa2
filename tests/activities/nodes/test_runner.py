"""What a finished node leaves behind, and when a successor may trust it."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from doubles.plan.samples import stored, tool
from pydantic import BaseModel

from activities.nodes.attempts import Attempts
from activities.nodes.error_mapping import NodeTimeout
from activities.nodes.replies import Marker
from activities.nodes.runner import NodeRunner
from activities.storage.artifacts import digest_of, encode
from activities.storage.directory import DirectoryStore
from activities.storage.run_context import ArtifactReader
from activities.toolbox import Registry, Tool, threads
from activities.toolbox import tool as register
from workflows.messages.contracts import NodeCall, NodeReply

PREFIX, KEY, BODY = "space/run", "key", b'"done"'


def marker(epoch: int = 1, **reply: Any) -> bytes:
    return encode(Marker(reply=NodeReply(**reply), epoch=epoch).model_dump(mode="json", exclude_unset=True))


@pytest.mark.parametrize(
    ("text", "has_body", "is_trusted"),
    [
        pytest.param(marker(ref=digest_of(BODY)), True, True, id="with its output"),
        pytest.param(marker(ref=digest_of(BODY)), False, False, id="without its output"),
        pytest.param(marker(), True, False, id="of no output"),
        pytest.param(marker(ref=digest_of(BODY), more="calls"), True, True, id="of a request for nodes"),
        pytest.param(marker(2, ref=digest_of(BODY), more="calls"), True, False, id="of another plan's request"),
        pytest.param(b"{", True, False, id="that is cut off"),
    ],
)
async def test_a_marker_counts_only_with_its_output(
    tmp_path: Path, text: bytes, has_body: bool, is_trusted: bool
) -> None:
    store = DirectoryStore(tmp_path)
    if has_body:
        await store.put(PREFIX, BODY)
    await store.mark(PREFIX, KEY, text)
    unused = cast("Any", None)
    runner = NodeRunner(store, unused, unused, unused, unused, tmp_path, unused)
    context = cast("Any", SimpleNamespace(run_prefix=PREFIX, call=SimpleNamespace(epoch=1)))
    reply = await runner._marked(context, KEY)
    assert (reply is not None) == is_trusted
    assert (await store.marked(PREFIX, KEY) is not None) == is_trusted, "one that cannot be trusted is removed"


async def test_a_call_that_an_earlier_plan_overtakes_replies_with_its_own_facts(tmp_path: Path) -> None:
    """The cancelled call of the draft marks after its successor has looked for a marker, and before that one marks."""
    store = DirectoryStore(tmp_path)
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

    fields = {"version": "1", "effect": "read", "is_async": True, "name": "search", "call": search}
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
    store, registry, unused = DirectoryStore(tmp_path), Registry(), cast("Any", None)
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


async def test_the_wait_for_a_thread_is_not_the_time_of_the_node(tmp_path: Path) -> None:
    runner = runner_with(tmp_path, answer)
    await runner.threads.acquire()
    waiting = asyncio.create_task(outcome(runner, timeout="1s"))
    await asyncio.sleep(1.3)
    runner.threads.release()
    assert (await waiting).ref == digest_of(b'"a"')


async def test_a_write_that_is_cut_off_while_it_waits_for_a_thread_has_not_begun(tmp_path: Path) -> None:
    runner = runner_with(tmp_path, answer, effect="write")
    await runner.threads.acquire()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(outcome(runner), 0.2)
    runner.threads.release()
    assert (await outcome(runner)).ref == digest_of(b'"a"')


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

    reply = await run(call.model_copy(update={"answer": {"found": None}, "answered": True}))
    assert (reply.ref, reply.attempt, called) == (digest_of(b'{"found":null}'), 0, [])
    assert (await run(call)).ref == digest_of(b'"a"'), "nothing says that it has been written"
    assert called == ["a"]
