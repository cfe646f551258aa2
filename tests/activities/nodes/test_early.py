"""What a call leaves that is made early, and what a real call takes of it."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from doubles.plan.samples import stored, tool
from doubles.stores import new_store

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.early import EarlyNote, marker_of
from sennit.activities.nodes.prefetch import Prefetcher
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.nodes.server_time import millis_now
from sennit.activities.storage.learned import LearnedStore
from sennit.activities.storage.run_context import ArtifactReader, RunContext
from sennit.activities.toolbox import Registry
from sennit.activities.toolbox import tool as register
from sennit.workflows.messages.contracts import NodeReply, PrefetchReply
from sennit.workflows.messages.node_calls import PrefetchCall, ToolNodeCall

PREFIX = "space/run"


class Bench:
    """A worker with tools, and a plan of two calls: `look`, and the one that follows it."""

    def __init__(self, folder: Path, **tools: Callable[..., Any]) -> None:
        self.store = new_store(folder)
        self.library = ArtifactReader(self.store)
        self.registry = Registry()
        self.called: list[str] = []

        async def look(words: str) -> dict[str, Any]:
            self.called.append(f"look {words}")
            return {"items": [{"path": "a.txt"}]}

        async def fetch(path: str, mode: str = "brief") -> str:
            self.called.append(f"fetch {path} {mode}")
            return f"{mode} of {path}"

        async def quote(text: str, path: str = "") -> str:
            self.called.append(f"quote {text} {path}".strip())
            return text.upper()

        self.register(look)
        self.register(quote)
        self.register(tools.get("fetch", fetch))
        unused = cast("Any", None)
        self.learned = LearnedStore(self.store)
        self.runner = NodeRunner(self.store, self.library, self.registry, unused, unused, folder, unused)
        self.prefetcher = Prefetcher(self.runner, self.learned)
        self.plan = ""

    def register(self, function: Callable[..., Any], **more: Any) -> None:
        register(**{"effect": "read", "name": function.__name__, "registry": self.registry, **more})(function)

    async def prepare(self, *, args: dict[str, Any] | None = None, catalogue: Any = None, **second_node: Any) -> None:
        entries = self.registry.catalogue() if catalogue is None else catalogue
        context = RunContext(goal="find", inputs={}, docs=None, approval="never", catalogue=entries)
        digest = await self.library.keep(PREFIX, context)
        first = tool("n1", "look", args={"words": "sea"})
        second = tool("n2", "fetch", args=args or {"path": "${n1.items[0].path}"}, **second_node)
        await self._keep_plan(digest, first, second)
        self.looked = await self.library.put(PREFIX, {"items": [{"path": "a.txt"}]})

    async def prepare_model(self, tools: list[str]) -> None:
        """Have a plan of one model that may call these tools."""
        context = RunContext(goal="", inputs={}, docs=None, approval="never", catalogue=self.registry.catalogue())
        digest = await self.library.keep(PREFIX, context)
        await self._keep_plan(digest, {"id": "m", "kind": "llm", "prompt": "look", "tools": tools})

    async def _keep_plan(self, context: str, *nodes: dict[str, Any]) -> None:
        checked = stored(*nodes).model_copy(update={"run_context": context})
        self.plan = await self.library.keep(PREFIX, checked)

    async def early(self, mapping: str = "path <- output items[0].path", **more: Any) -> PrefetchReply:
        """Make the call early that a pattern expects behind `look`."""
        patterns = await self.library.put(PREFIX, [mapping])
        known = {"run": "run", "plan": self.plan, "nodes": ("n1",), "refs": {"n1": self.looked}, "usual": 1_000}
        fields = {"name": "chain/1", "tool": "fetch", "patterns": patterns, **more}
        call = PrefetchCall.model_validate({**known, **fields})
        return await self.prefetcher.make(PREFIX, call, Attempts(1, 0))

    async def chained(self, mapping: str, **more: Any) -> PrefetchReply:
        """Make the call early that a pattern expects behind the early call of `fetch`."""
        return await self.early(mapping, **{"name": "chain/2", "tool": "quote", "first": "chain/1", **more})

    async def note(self, name: str) -> EarlyNote:
        return EarlyNote.model_validate_json(await self.store.marked(PREFIX, marker_of(name)) or b"")

    async def real(self, *, attempt: int = 1, early: tuple[str, ...] = ("chain/1",)) -> NodeReply:
        """Make the call of the plan."""
        call = ToolNodeCall(run="run", plan=self.plan, nodes=("n2",), refs={"n1": self.looked}, early=early)
        return await self.runner.run(call, "n2", call.refs, run_prefix=PREFIX, attempts=Attempts(attempt, 0))

    async def value(self, reply: NodeReply) -> Any:
        return await self.library.value(PREFIX, reply.ref or "")


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    await made.prepare()
    return made


async def test_a_real_call_takes_over_what_the_same_call_has_given_early(bench: Bench) -> None:
    assert await bench.early() == PrefetchReply()
    reply = await bench.real()
    assert await bench.value(reply) == "brief of a.txt"
    assert reply.early == "chain/1"
    assert bench.called == ["fetch a.txt brief"], "it was made once"


async def test_without_the_word_of_its_run_a_real_call_looks_for_nothing(bench: Bench) -> None:
    await bench.early()
    reply = await bench.real(early=())
    assert reply.early == ""
    assert len(bench.called) == 2


@pytest.mark.parametrize(
    "mapping",
    [
        "path <- output items[0].path; mode <- argument words",  # another argument than the real call's
        "path <- argument words",
    ],
)
async def test_a_poisoned_pattern_makes_another_call_and_that_is_not_used(bench: Bench, mapping: str) -> None:
    await bench.early(mapping)
    reply = await bench.real()
    assert await bench.value(reply) == "brief of a.txt"
    assert reply.early == ""
    assert len(bench.called) == 2


@pytest.mark.parametrize(
    "mapping",
    ["path <- output items[7].path", "path <- other", "path <- constant 0123456789abcdef", "nothing", "a <- output"],
)
async def test_what_cannot_be_bound_is_not_called(bench: Bench, mapping: str) -> None:
    assert (await bench.early(mapping)).problem
    assert bench.called == []
    assert (await bench.real()).early == ""


async def test_a_constant_is_found_by_its_mark(bench: Bench) -> None:
    await bench.prepare(args={"path": "${n1.items[0].path}", "mode": "brief"})
    mark = (await bench.learned.marks("space")).of("brief")
    assert (await bench.early(f"mode <- constant {mark}; path <- output items[0].path")).problem == ""
    assert (await bench.real()).early == "chain/1"


async def test_a_call_that_fails_early_costs_nothing_but_itself(tmp_path: Path) -> None:
    attempts: list[str] = []

    async def fetch(path: str) -> str:
        attempts.append(path)
        if len(attempts) == 1:
            raise ValueError("not now")
        return "there"

    bench = Bench(tmp_path, fetch=fetch)
    await bench.prepare()
    assert "not now" in (await bench.early()).problem
    reply = await bench.real()
    assert (await bench.value(reply), reply.early) == ("there", "")


async def test_ten_megabytes_are_not_kept(tmp_path: Path) -> None:
    async def fetch(path: str) -> str:
        return path * 2_500_000

    bench = Bench(tmp_path, fetch=fetch)
    await bench.prepare()
    assert "at most 1,048,576 are kept" in (await bench.early()).problem


async def real_beside_a_hanging_one(tmp_path: Path, answer: str, **prepared: Any) -> tuple[Any, str]:
    """Return what a real call gives while the same call hangs that was made early, and whose output it has taken."""
    called = 0

    async def fetch(path: str) -> str:
        nonlocal called
        called += 1
        if called == 1:
            await asyncio.Event().wait()
        return answer + path

    bench = Bench(tmp_path, fetch=fetch)
    await bench.prepare(**prepared)
    hanging = asyncio.create_task(bench.early(usual=1))
    while not called:
        await asyncio.sleep(0.01)
    reply = await bench.real()
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)
    return await bench.value(reply), reply.early


async def test_a_call_that_hangs_is_given_up_and_held_up_nobody_for_long(tmp_path: Path) -> None:
    assert await real_beside_a_hanging_one(tmp_path, "it is ") == ("it is a.txt", "")


async def test_a_real_call_waits_for_the_same_call_that_is_under_way(tmp_path: Path) -> None:
    # Tools have an event loop of their own, and an event of asyncio would not wake another one.
    goes_on = threading.Event()
    count = 0

    async def fetch(path: str) -> str:
        nonlocal count
        count += 1
        while not goes_on.is_set():
            await asyncio.sleep(0.01)
        return path

    bench = Bench(tmp_path, fetch=fetch)
    await bench.prepare()
    early = asyncio.create_task(bench.early(usual=20_000))
    while not count:
        await asyncio.sleep(0.01)
    real = asyncio.create_task(bench.real())
    await asyncio.sleep(0.1)
    goes_on.set()
    reply = await real
    await early
    assert (await bench.value(reply), reply.early, count) == ("a.txt", "chain/1", 1)


async def test_what_a_killed_worker_has_left_is_waited_for_no_longer_than_a_call_takes(bench: Bench) -> None:
    """It has noted which call it makes, and is gone."""
    await bench.early()
    marker = marker_of("chain/1")
    body = await bench.store.marked(PREFIX, marker)
    left = EarlyNote.model_validate_json(body or b"").model_copy(update={"status": "running", "until": millis_now()})
    await bench.store.replace_marker(PREFIX, marker, left.model_dump_json().encode())
    assert (await bench.real()).early == ""


async def test_an_output_that_has_grown_old_while_the_real_call_waited_for_a_worker_is_not_used(bench: Bench) -> None:
    await bench.early(fresh_for=0)
    await asyncio.sleep(0.01)
    assert (await bench.real()).early == ""


async def test_a_real_call_has_all_its_time_behind_a_wait_for_one_that_hangs(tmp_path: Path) -> None:
    """It waits for longer than it may take by itself."""
    assert await real_beside_a_hanging_one(tmp_path, "", timeout="500ms") == ("a.txt", "")


FROM_BOTH = "text <- output; path <- argument path"


async def test_a_call_behind_an_early_one_is_made_of_what_that_was_given_and_has_given(bench: Bench) -> None:
    await bench.early()
    assert await bench.chained(FROM_BOTH) == PrefetchReply()
    assert bench.called == ["fetch a.txt brief", "quote brief of a.txt a.txt"]


async def test_behind_an_early_call_of_a_chain_another_one_is_made(bench: Bench) -> None:
    await bench.early()
    await bench.chained("text <- output")
    assert await bench.chained("text <- output", name="chain/3", first="chain/2") == PrefetchReply()
    assert bench.called[-1] == "quote BRIEF OF A.TXT"


@pytest.mark.parametrize("first", ["chain/1", "chain/9", "../etc/passwd"])
async def test_behind_an_early_call_that_has_given_nothing_none_is_made(tmp_path: Path, first: str) -> None:
    async def fetch(path: str) -> str:
        raise ValueError("not now")

    bench = Bench(tmp_path, fetch=fetch)
    await bench.prepare()
    await bench.early()
    assert "has given nothing" in (await bench.chained("text <- argument path", first=first)).problem
    assert bench.called == []


async def test_a_call_behind_an_early_one_is_as_old_as_that(bench: Bench) -> None:
    await bench.early(fresh_for=60_000)
    await asyncio.sleep(0.05)
    await bench.chained(FROM_BOTH, fresh_for=5_000)
    first, second = await bench.note("chain/1"), await bench.note("chain/2")
    assert second.began == first.began
    assert second.fresh_until == first.began + 5_000


async def test_behind_a_call_that_a_model_has_asked_for_only_what_it_may_call_is_made(bench: Bench) -> None:
    await bench.prepare_model(["fetch"])
    await bench.early(nodes=("m",), patterns="", arguments=await bench.library.put(PREFIX, {"path": "a.txt"}))
    assert "m may not call quote" in (await bench.chained(FROM_BOTH, nodes=("m",))).problem
    await bench.prepare_model(["fetch", "quote"])
    assert (await bench.chained(FROM_BOTH, nodes=("m",))).problem == ""
    assert bench.called == ["fetch a.txt brief", "quote brief of a.txt a.txt"]


async def test_a_call_that_is_made_early_already_is_not_made_by_a_pattern_as_well(bench: Bench) -> None:
    await bench.early()
    assert "is made early already" in (await bench.early(name="chain/2", alike=("chain/1",))).problem
    assert bench.called == ["fetch a.txt brief"]
