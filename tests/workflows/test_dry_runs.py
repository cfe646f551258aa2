"""What a dry run says of an edit or a fork is what then happens: random edits of programs that read and write."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import happens, insist, until
from doubles.tools import calls
from temporalio.client import Client

from sennit.starter.client.client import Sennit
from sennit.workflows.messages.dry_run import MADE, TAKEN, DryRunReport

SEEDS = range(int(os.environ.get("SENNIT_SEEDS", "8")))
WAYS = {
    "loop": "[await {fn}({item}) for {item} in {items}]",
    "gather": "await asyncio.gather(*[{fn}({item}) for {item} in {items}])",
    "tasks": "await parallel([task({fn}, {item}={item}) for {item} in {items}])",
}
BODIES = {
    "read": 'found = await {read}(value=[{item}, "{tag}"])',
    "write": 'found = await note(text=f"{mark} {tag} {{{item}}}")',
    "both": 'found = await {read}(value=[{item}, "{tag}"])\n    found = await note(text=f"{mark} {tag} {{found}}")',
}
ENDS = ["", 'await fail(message="no")', 'await glance(value="end")']


@dataclass(frozen=True)
class Stage:
    """A function that is called for some items, in one of the WAYS."""

    function: str
    body: str
    way: str
    items: tuple[int, ...]
    read: str
    tag: str

    def define(self, mark: str) -> str:
        body = BODIES[self.body].format(item="item", read=self.read, tag=self.tag, mark=mark)
        return f'async def {self.function}(item: int):\n    {body}\n    return found["value"]\n'

    def call(self) -> str:
        return WAYS[self.way].format(fn=self.function, item="item", items=list(self.items))


@dataclass(frozen=True)
class Script:
    """A program of stages, one behind the other."""

    stages: tuple[Stage, ...]
    end: str = ""
    mark: str = field(default="", compare=False)

    def text(self) -> str:
        functions = "\n\n".join(stage.define(self.mark) for stage in self.stages)
        lines = [f"    v{place} = {stage.call()}" for place, stage in enumerate(self.stages)]
        lines += [f"    {self.end}"] if self.end else []
        return "\n".join(["import asyncio", "", functions, "", "async def main():", *lines, "    return 1", ""])


def random_script(rng: Random, mark: str) -> Script:
    stages = []
    for place in range(rng.randint(1, 3)):
        items = tuple(rng.sample(range(1, 6), rng.randint(1, 3)))
        body, way, read = rng.choice(list(BODIES)), rng.choice(list(WAYS)), rng.choice(["nap", "glance"])
        stages.append(Stage(f"step{place}", body, way, items, read, rng.choice("ab")))
    return Script(tuple(stages), rng.choice(ENDS), mark)


def _renamed(rng: Random, stage: Stage) -> Stage:
    return replace(stage, function=f"{stage.function}{rng.choice('xyz')}")


def _with_another_tag(rng: Random, stage: Stage) -> Stage:
    return replace(stage, tag=rng.choice("abc"))


def _another_way(rng: Random, stage: Stage) -> Stage:
    return replace(stage, way=rng.choice(list(WAYS)))


def _shifted(rng: Random, stage: Stage) -> Stage:
    front = tuple(rng.sample(range(6, 9), rng.randint(0, 2)))
    return replace(stage, items=front + stage.items[rng.randint(0, 1) :] or (1,))


def _reordered(rng: Random, stage: Stage) -> Stage:
    return replace(stage, items=tuple(rng.sample(stage.items, len(stage.items))))


EDITS: list[Callable[[Random, Stage], Stage]] = [_renamed, _with_another_tag, _another_way, _shifted, _reordered]


def edited(rng: Random, script: Script) -> Script:
    """Return a script with some stages changed, perhaps in another order, and with an end that does not fail."""
    stages = list(script.stages)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(stages))
        stages[place] = rng.choice(EDITS)(rng, stages[place])
    if rng.random() < 0.3:
        rng.shuffle(stages)
    if rng.random() < 0.2 and len(stages) > 1:
        stages.pop(rng.randrange(len(stages)))
    end = script.end.replace("fail(message", "glance(value") if rng.random() < 0.8 else ""
    return replace(script, stages=tuple(stages), end=end)


def program(script: str) -> dict[str, Any]:
    return {"nodes": [{"id": "main", "kind": "program", "script": script}], "answer": "$main"}


def _rests(view: dict[str, Any]) -> bool:
    return view["status"] in ("blocked", "done", "partial", "failed")


async def _to_its_end(handle: Any) -> tuple[dict[str, Any], dict[str, None]]:
    """Approve what a run asks until it is over or has failed. Return its view then, and what has asked."""
    asked: dict[str, None] = {}
    answered: dict[tuple[str, str], None] = {}
    while True:
        view = await until(handle, _rests)
        # Each write is approved by itself, and not all of them by their program.
        waiting = [item for item in view["blocked"] if item["update"] == "approve" and not item["parts"]]
        if not waiting:
            return view, asked
        for item in waiting:
            question = item["node"], item["example"]["digest"]
            if question not in answered:  # a query may see a question that was answered a moment ago
                answered[question] = asked[item["node"]] = None
                await insist(handle, "approve", item["example"] | {"node": item["node"]})
        await asyncio.sleep(0.05)


def _check(report: DryRunReport, view: dict[str, Any], asked: dict[str, None]) -> None:
    """Check that what was said of each call has become of it."""
    nodes = {node["id"]: node for node in view["nodes"]}
    for call in report.calls:
        node, about = nodes.get(call.node), (call, nodes.get(call.node))
        if call.fate == "not called":
            continue
        assert node is not None, about
        if call.fate in TAKEN:
            assert node.get("taken_over") or node["status"] in ("waiting", "running"), about
        elif call.fate in MADE:
            assert not node.get("taken_over"), about
            assert node["status"] in ("succeeded", "failed", "handled", "skipped", "cancelled"), about
        else:
            assert node["status"] in ("cancelled", "skipped"), about
        assert call.asks == (call.node in asked), about

    # If the dry run has come to the end of the script, there is nothing that it has not said.
    if report.is_whole:
        taken = [call.node for call in report.calls if call.fate in TAKEN]
        tools = [node for node in view["nodes"] if node["kind"] == "tool" and node.get("taken_over")]
        assert sorted(taken) == sorted(node["id"] for node in tools)
        assert not asked.keys() - {call.node for call in report.calls if call.asks}
        assert not [call for call in report.calls if call.fate in MADE]


def _stored(artifacts: Path) -> dict[str, tuple[int, int]]:
    files = [path for path in artifacts.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


async def _quietly(
    cache: Path, artifacts: Path, run: str, dry_run: Callable[[], Awaitable[DryRunReport]]
) -> DryRunReport:
    """Return what a dry run says, which leaves no trace: it changes no file of the store, and calls no tool."""
    before = _stored(artifacts)
    called = calls(cache, run)
    report = await dry_run()
    assert _stored(artifacts) == before
    assert calls(cache, run) == called
    return report


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_edit_does_what_its_dry_run_says(
    client: Client, start: Start, cache: Path, artifacts: Path, seed: int
) -> None:
    """`SENNIT_SEEDS=300` tries more programs."""
    rng = Random(seed)
    script = replace(random_script(rng, f"edit-{seed}"), end='await fail(message="no")')
    handle = await start(plan=program(script.text()), approval="never")
    await until(handle, _rests)
    new = edited(rng, script).text()
    repeat_writes = rng.random() < 0.5
    run = await Sennit(client).find(handle.id)
    report = await _quietly(
        cache, artifacts, handle.first_execution_run_id or "", lambda: run.dry_run(new, repeat_writes=repeat_writes)
    )
    assert not report.problems
    assert not report.stopped

    await insist(handle, "edit_program", {"script": new, "repeat_writes": repeat_writes})
    await asyncio.sleep(0.1)
    view, asked = await _to_its_end(handle)
    _check(report, view, asked)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_fork_does_what_its_dry_run_says(
    client: Client, start: Start, cache: Path, artifacts: Path, seed: int
) -> None:
    rng = Random(seed)
    script = random_script(rng, f"fork-{seed}")
    handle = await start(plan=program(script.text()), approval="never", on_failure="partial")
    await handle.result()
    new = edited(rng, script).text()
    repeat_writes = rng.random() < 0.5
    sennit = Sennit(client)
    origin = (await sennit.origin(handle.id)).with_script(new)
    report = await _quietly(
        cache,
        artifacts,
        handle.first_execution_run_id or "",
        lambda: sennit.dry_run(origin, repeat_writes=repeat_writes),
    )
    assert not report.problems
    assert not report.stopped

    fields: dict[str, Any] = {"repeat_writes": True} if repeat_writes else {}
    fork = await start(plan=program(new), approval="never", origins=list(origin.homes), **fields)
    view, asked = await _to_its_end(fork)
    _check(report, view, asked)


LONG = """
import asyncio

async def main():
    return await asyncio.gather(hang(name="HELD-kept"), hang(name="HELD-left"))
"""
OTHER = """
import asyncio

async def main():
    return await asyncio.gather(hang(name="HELD-kept"), nap(value=1))
"""


async def test_calls_that_run_are_taken_over_as_they_run_or_cancelled(
    client: Client, start: Start, cache: Path, held: Path
) -> None:
    old, new = LONG.replace("HELD", held.name), OTHER.replace("HELD", held.name)
    handle = await start(plan=program(old))
    began = [cache / f"{held.name}-{name}" / f"main_{number}.begun" for number, name in ((1, "kept"), (2, "left"))]
    await happens(lambda: all(each.exists() for each in began))
    run = await Sennit(client).find(handle.id)
    report = await run.dry_run(new)
    fates = {call.what: call.fate for call in report.calls}
    assert [fates[name] for name in fates if "kept" in name or "nap" in name] == ["in flight", "new"]
    assert [fates[name] for name in fates if "left" in name] == ["cancelled"]
    assert not report.is_whole

    await insist(handle, "edit_program", {"script": new})
    (cache / f"{held.name}-kept" / "main_1.end").touch()
    assert (await handle.result())["answer"] == [{"value": None}, {"value": 1}]
    await happens(lambda: (cache / f"{held.name}-left" / "main_2.cancelled").exists())


async def test_a_dry_run_says_how_a_script_ends_that_calls_nothing_new(client: Client, start: Start) -> None:
    script = 'async def main():\n    seen = await nap(value={"a": 1})\n    return seen["value"]["KEY"]\n'
    handle = await start(plan=program(script.replace("KEY", "b")))
    await until(handle, _rests)
    run = await Sennit(client).find(handle.id)
    report = await run.dry_run(script.replace("KEY", "a"))
    assert (report.is_whole, report.error, dict(report.counts)) == (True, "", {"taken over": 1})
    report = await run.dry_run(script.replace("KEY", "c"))
    assert report.is_whole
    assert report.error == 'KeyError: c (line 3: return seen["value"]["c"])'
    assert (await handle.query("plan"))["status"] == "blocked"


async def test_a_run_that_is_over_or_has_no_such_program_says_so(client: Client, start: Start) -> None:
    handle = await start(plan=program("async def main():\n    return 1\n"))
    await handle.result()
    run = await Sennit(client).find(handle.id)
    assert (await run.dry_run("async def main():\n    return 2\n")).problems
    asks = [{"id": "ok", "kind": "gate", "question": "Good?"}]
    handle = await start(plan={"nodes": asks})
    await until(handle, _rests)
    run = await Sennit(client).find(handle.id)
    [problem] = (await run.dry_run("async def main():\n    return 2\n", node="other")).problems
    assert "there is no program `other`" in problem
