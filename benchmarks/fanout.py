"""`make bench ARGS=fanout`: one run that starts hundreds of sub-agents, beside plain asyncio and
LangGraph with the same server.

Each agent makes five model calls, one after the other: the plan that its planner writes has four.
The model server is a process of its own that takes as long as a model would. The critical path is
five calls, however many agents there are.

The same calls run once more as a chain of each item. Then nothing is planned, and no item has a
workflow of its own: that is what the lightest agent could cost.
"""

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import psutil
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from benchmarks.performance.table import Part, Table, figure, goal_cell
from benchmarks.stage import Stage, stage
from sennit.starter.dev.server import free_port

AGENTS, CALLS, SECONDS = 300, 5, 0.8
WARM = 5
PLAIN = "plain asyncio, to the critical path"
LANGGRAPH = "LangGraph with Send, in memory, to the critical path"
GOAL_RATIO, GOAL_CPU, GOAL_EVENTS, GOAL_KILOBYTES = 3.0, 80, 5, 2.0
SLOTS = 400
"""Calls that the worker makes at once: with the usual 100, the calls of 300 agents
would wait for one another.
"""
WIDEST = 500
"""The widest window of a run."""
LONGEST = 900.0
PLAN = {
    "nodes": [
        {
            "id": f"n{place}",
            "kind": "llm",
            "prompt": f"Step {place}: $n{place - 1}" if place > 1 else "Step 1",
        }
        for place in range(1, CALLS)
    ],
    "answer": f"$n{CALLS - 1}",
}
RULES = [
    {"match": "You plan work", "text": json.dumps(PLAN), "usage": [900, 100]},
    {"match": "Step", "text": "fine", "usage": [200, 20]},
]


AGENT: dict[str, Any] = {"kind": "agent", "goal": "Look into $item.", "tools": []}


def chain() -> list[dict[str, Any]]:
    """Return the calls of an agent, as the chain of an item."""
    calls: list[dict[str, Any]] = [{"id": "s1", "kind": "llm", "prompt": "Step 1 of $item"}]
    for place in range(2, CALLS):
        prompt = f"Step {place}: $s{place - 1}"
        calls.append({"id": f"s{place}", "kind": "llm", "prompt": prompt})
    calls.append({"kind": "llm", "prompt": f"Step {CALLS}: $s{CALLS - 1}"})
    return calls


def request(items: int, do: object) -> dict[str, Any]:
    """Return the request of a run that does this for each of so many items."""
    team = {"id": "team", "kind": "map", "over": "$input.topics", "max_items": items, "do": do}
    plan = {"inputs": {"topics": {"type": "array"}}, "nodes": [team], "answer": "$team"}
    topics = [f"topic {place}" for place in range(items)]
    # All items at once, as in asyncio, or as many as a run may start.
    return {"plan": plan, "inputs": {"topics": topics}, "window": min(items, WIDEST)}


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of so many items took: seconds, processor seconds by process, and its history."""

    items: int
    seconds: float
    cpu: dict[str, float]
    types: Counter[str]
    """How many events of each type its history has."""
    size: int
    """The bytes of its history."""

    @property
    def ratio(self) -> float:
        """The seconds in those of the critical path."""
        return _ratio(self.seconds)

    @property
    def millis(self) -> float:
        """Processor milliseconds of an item with its calls: those of the
        workers and of the client.
        """
        return 1000 * (self.cpu["worker"] + self.cpu["client"]) / self.items

    @property
    def server_millis(self) -> float:
        """Processor milliseconds of Temporal, an item."""
        return 1000 * self.cpu["server"] / self.items

    @property
    def events(self) -> float:
        """Events of the run's history, an item."""
        return self.types.total() / self.items

    @property
    def kilobytes(self) -> float:
        """Kilobytes of the run's history, an item."""
        return self.size / 1000 / self.items


@dataclass(frozen=True, slots=True)
class Fan:
    """A run of agents, the history of one of them, and the same calls done in other ways."""

    agents: Run
    child_types: Counter[str]
    child_size: int
    chain: Run
    asyncio_seconds: float
    langgraph_seconds: float | None
    """None where it is not installed."""


def found(fan: Fan) -> Part:
    """Return the table of one run."""
    agents, chain = fan.agents, fan.chain
    title = f"{agents.items} agents x {CALLS} calls of {SECONDS:g} s"
    rows = [
        _row("seconds, to the critical path", agents.ratio, chain.ratio, GOAL_RATIO),
        (PLAIN, figure(_ratio(fan.asyncio_seconds)), "", ""),
        (LANGGRAPH, _langgraph_cell(fan), "", ""),
        _row("ms of processor an item: workers and client", agents.millis, chain.millis, GOAL_CPU),
        _row("ms of processor an item: Temporal", agents.server_millis, chain.server_millis),
        _row("events of the run, an item", agents.events, chain.events, GOAL_EVENTS),
        _row("KB of its history, an item", agents.kilobytes, chain.kilobytes, GOAL_KILOBYTES),
        ("events of an agent's own run", f"{fan.child_types.total()}", "", ""),
        ("KB of an agent's own history", f"{fan.child_size / 1000:.1f}", "", ""),
    ]
    load = f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores."
    columns = (title, "agents", "chains", "goal of agents")
    return Part(Table(columns, rows), [load])


def _row(name: str, agent: float, chain: float, goal: float | None = None) -> tuple[str, ...]:
    cell = ""
    if goal is not None:
        cell = goal_cell(agent, goal)
    return name, figure(agent), figure(chain), cell


def _ratio(seconds: float) -> float:
    return seconds / (CALLS * SECONDS)


def _langgraph_cell(fan: Fan) -> str:
    if fan.langgraph_seconds is None:
        return "not installed"
    return figure(_ratio(fan.langgraph_seconds))


@asynccontextmanager
async def model_server(place: Path) -> AsyncIterator[str]:
    """Start the model server, and yield its address as OPENAI_BASE_URL has it."""
    rules, port = place / "rules.json", free_port()
    rules.write_text(json.dumps(RULES))
    command = [
        sys.executable,
        "-m",
        "sennit.testing.models",
        "--port",
        str(port),
        "--rules",
        str(rules),
    ]
    command += ["--first-token", str(SECONDS)]
    with (place / "models.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(10)


async def plain(address: str, agents: int) -> float:
    """Return the seconds that plain asyncio takes for the same calls."""

    async def agent(client: httpx.AsyncClient) -> None:
        for _ in range(CALLS):
            await ask(client, address)

    async with connections(agents) as clients:
        started = time.perf_counter()
        await asyncio.gather(*map(agent, clients))
        return time.perf_counter() - started


async def langgraph(address: str, agents: int) -> float | None:
    """Return the seconds that LangGraph takes for the same calls: a graph that sends each agent
    what it is to do, and for each agent a graph of a node a call. It keeps its state in the memory
    of this process. None if it is not there.
    """
    if find_spec("langgraph") is None:
        return None
    from benchmarks.langgraph_send import team  # it may be missing where nobody develops

    async with connections(agents) as clients:
        # Each call takes the next client: a client then never has many calls at once.
        turns = itertools.cycle(clients)

        async def ask_next() -> str:
            return await ask(next(turns), address)

        compiled = team(ask_next, CALLS)
        started = time.perf_counter()
        settings: Any = {"configurable": {"thread_id": "team"}, "max_concurrency": agents}
        state = await compiled.ainvoke(
            {"topics": [f"topic {place}" for place in range(agents)]}, settings
        )
        seconds = time.perf_counter() - started
    assert len(state["answers"]) == agents, "an agent of LangGraph has not answered"
    return seconds


@asynccontextmanager
async def connections(agents: int) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Yield a client for each agent. One for all would take most of the time: a pool of httpx looks
    at each of its connections for every call.
    """
    certificates = httpx.create_ssl_context()
    async with AsyncExitStack() as stack:
        clients: list[httpx.AsyncClient] = []
        for _ in range(agents):
            client = httpx.AsyncClient(verify=certificates, timeout=60)
            clients.append(await stack.enter_async_context(client))
        yield clients


async def ask(client: httpx.AsyncClient, address: str) -> str:
    """Make one call of a model."""
    message = {"role": "user", "content": "Step"}
    body = {"model": "test-model", "messages": [message], "stream": False}
    answer = await client.post(f"{address}/chat/completions", json=body)
    answer.raise_for_status()
    text: str = answer.json()["choices"][0]["message"]["content"]
    return text


async def fan_out(built: Stage, address: str, items: int) -> Fan:
    """Do the same calls in each way, and read what is left of the runs."""
    asyncio_seconds = await plain(address, items)
    langgraph_seconds = await langgraph(address, items)
    agents, workflow = await run(built, items, AGENT)
    child_types, child_size = await _events(built.client, f"{workflow}.team[{items // 2}]")
    chained, _ = await run(built, items, chain())
    return Fan(
        agents=agents,
        child_types=child_types,
        child_size=child_size,
        chain=chained,
        asyncio_seconds=asyncio_seconds,
        langgraph_seconds=langgraph_seconds,
    )


async def run(built: Stage, items: int, do: object) -> tuple[Run, str]:
    """Run once, and read what is left of it. Returns it with the id of its workflow."""
    server = [process for process in psutil.process_iter() if _is_server_of(process, built)]
    tops = {"worker": built.processes["all"], "client": [psutil.Process()], "server": server}
    before = {name: _spent(tree) for name, tree in tops.items()}
    async with asyncio.timeout(LONGEST):
        seconds, handle = await built.timed(**request(items, do), model="openai:test-model")
    cpu = {name: _spent(tree) - before[name] for name, tree in tops.items()}
    types, size = await _events(built.client, handle.id)
    return Run(items, seconds, cpu, types, size), handle.id


def _is_server_of(process: psutil.Process, built: Stage) -> bool:
    try:
        return (
            process.ppid() == os.getpid() and built.address.rpartition(":")[2] in process.cmdline()
        )
    except psutil.Error:
        return False


def _spent(processes: Sequence[psutil.Process]) -> float:
    """Return the processor seconds that processes have used, with their children."""
    times = [
        each.cpu_times()
        for top in processes
        for each in (top, *top.children(recursive=top.pid != os.getpid()))
    ]
    own = [psutil.Process().cpu_times()] if processes[:1] == [psutil.Process()] else times
    return sum(each.user + each.system for each in own)


async def _events(client: Client, workflow: str) -> tuple[Counter[str], int]:
    """Return how many events of each type the histories of a workflow have, and their bytes: those
    of all its runs, if it has continued as new.
    """
    types: Counter[str] = Counter()
    size = 0
    run_id: str | None = None  # the latest run; the server calls the one before the first ""
    while run_id != "":
        history = await client.get_workflow_handle(workflow, run_id=run_id).fetch_history()
        for event in history.events:
            types[EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")] += 1
            size += event.ByteSize()
        started = history.events[0].workflow_execution_started_event_attributes
        run_id = started.continued_execution_run_id
    return types, size


async def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fanout")
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument(
        "--slots", type=int, default=SLOTS, help="calls that the worker makes at once"
    )
    parser.add_argument(
        "--events", action="store_true", help="print the events of the histories by type, too"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as folder:
        place = Path(folder)
        async with model_server(place) as address:
            env = {
                "OPENAI_BASE_URL": address,
                "OPENAI_API_KEY": "any",
                "SENNIT_SLOTS": str(options.slots),
            }
            async with stage(place, **env) as built:
                await run(built, WARM, AGENT)
                fan = await fan_out(built, address, options.agents)
    print(found(fan).text())
    if options.events:
        print(f"\nthe run: {dict(fan.agents.types)}\nan agent: {dict(fan.child_types)}")
        print(f"the run with chains: {dict(fan.chain.types)}")
    met = fan.agents.ratio <= GOAL_RATIO and fan.agents.millis <= GOAL_CPU
    return 0 if met else 1
