"""Plans to look at, of any size and fate: read many pages, put each into a few words, join, report."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from doubles.runs import call, until
from doubles.web_stack import Handle, WebStack
from temporalio.client import WorkflowFailureError

from sennit.workflows.plan.programs.program_plan import program_plan, title_of

State = Literal["running", "blocked", "failed", "done"]
STATES: tuple[State, ...] = ("running", "blocked", "failed", "done")
Runs = dict[tuple[int, State], Handle]
SIZES = (5, 50, 500)
STATUS = {"running": "Running", "blocked": "Running", "failed": "Failed", "done": "Completed"}
"""How the web UI calls a run in that state."""
SAMPLES: tuple[tuple[int, State], ...] = (
    *((5, state) for state in STATES), (50, "running"), (50, "done"), (500, "running"), (500, "blocked"),
)  # fmt: skip
"""Every state, and every size at work and when nothing goes on any more."""
FUSE_ABOVE = 100
PROGRAM = '''
"""Put 51 pages into a few words each."""


async def look(page: int) -> str:
    host = "down.example.org" if page in (7, 33) else "example.org"
    found = await visit(url=f"https://{host}/{page}")
    gist = await digest(text=found["value"])
    return gist["value"]


async def main(pages: int) -> list:
    return await parallel([task(look, page=page) for page in range(1, pages + 1)])
'''
"""Of its 102 calls, two fail."""


def sample_request(size: int, state: State) -> dict[str, Any]:
    """Return a request for a run of exactly `size` nodes that comes to `state`; the page in the middle decides it."""
    sections = {5: 0, 50: 4, 500: 10}[size]
    tail = 1 + bool(sections)
    pages = (size - sections - tail) // 2
    troubled = f"{'slow' if state == 'running' else 'down'}." if state != "done" else ""
    nodes: list[dict[str, Any]] = []
    parts: list[list[str]] = [[] for _ in range(max(sections, 1))]
    for page in range(1, pages + 1):
        host = f"{troubled if page == (pages + 1) // 2 else ''}example.org"
        timeout = {"timeout": "2h"} if host.startswith("slow") else {}
        nodes.append(call(f"page{page}", "visit", args={"url": f"https://{host}/{page}"}, **timeout))
        nodes.append(call(f"gist{page}", "digest", args={"text": f"$page{page}.value"}))
        parts[(page - 1) * len(parts) // pages].append(f"gist{page}")
    ends = [f"part{index}" for index in range(1, sections + 1)] or parts[0]
    if sections:
        nodes += [{"id": end, "kind": "join", "inputs": part} for end, part in zip(ends, parts, strict=True)]
        nodes.append({"id": "all", "kind": "join", "inputs": ends})
    nodes.append(call("report", "digest", args={"text": "$goal"}, needs=["all"] if sections else ends))
    plan: dict[str, Any] = {"goal": f"What do {pages} pages say?", "nodes": nodes}
    if size > FUSE_ABOVE:
        plan["fuse"] = "off" if state == "running" else "on"  # else the slow page would hide those beside it
    return {"goal": plan["goal"], "plan": plan, "on_failure": "fail" if state == "failed" else "park"}


async def start_sample_runs(stack: WebStack, samples: Sequence[tuple[int, State]] = SAMPLES) -> Runs:
    """Start these, and return them when all have come to their state."""
    started = [await stack.start(f"{state}-{size}", **sample_request(size, state)) for size, state in samples]
    await asyncio.gather(*(_arrival(run, state) for run, (_, state) in zip(started, samples, strict=True)))
    return dict(zip(samples, started, strict=True))


async def start_asking_run(stack: WebStack) -> Handle:
    """Start a run that asks a person about a draft, about a file and about each write of a map; return it then."""
    file = stack.cache / "note.md"
    file.write_text("# The Danube\n\nThe Danube is 2,800 km long.\nIt ends in the Black Sea.\n")
    sea = "and among the rivers of Europe only the Volga is longer, which flows to the Caspian Sea."
    better = f"# The Danube\n\nThe Danube is 2,850 km long, `as of` {{2020}}, {sea}\nIt ends in the Black Sea.\n"
    mail = {"kind": "tool", "tool": "note", "args": {"text": "Dear reader $item.n,\nthe note is out."}}
    nodes = [
        call("draft", args={"value": better}),
        {
            "id": "review",
            "kind": "gate",
            "question": "Publish this?\n\n${draft.value}",
            "schema": {"enum": ["yes", "no"]},
        },
        call("publish", "publish", args={"path": str(file), "text": "${draft.value}"}),
        call("readers", "count", args={"count": 3}),
        {"id": "mails", "kind": "map", "over": "$readers.items", "do": mail},
    ]
    plan = {"goal": "Publish a better note", "nodes": nodes, "answer": ["$review", "$publish", "$mails"]}
    run = await stack.start("asking", goal=plan["goal"], plan=plan)
    await until(run, lambda view: len(view["blocked"]) == 6)
    return run


async def start_program(stack: WebStack) -> Handle:
    """Start a program of 102 calls, and return it when two of them have failed."""
    run = await stack.start("pages", title=title_of(PROGRAM), plan=program_plan(PROGRAM), inputs={"pages": 51})
    await until(run, lambda view: len(view["blocked"]) == 2)
    return run


async def _arrival(run: Handle, state: State) -> None:
    if state == "done":
        assert (await run.result())["status"] == "done"
    elif state == "failed":
        try:
            await run.result()
        except WorkflowFailureError:
            return
        raise AssertionError("the run did not fail")
    else:
        await until(run, lambda view: view["status"] == state and view["counts"].get("succeeded", 0) > 0)
