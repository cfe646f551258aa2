"""`python -m benchmarks faults`: the questions of `agents` on a model server that fails,
and without one at all.

First 30 questions are answered by a sound server, then by one that fails one call of ten: 500, 429,
a stream that is cut, one that stops, and no answer at all. Then the server is down when a goal is
asked: for a minute, after which the run must go on by itself; and for good, after which it must be
blocked, and one `sennit retry` must finish it.
"""

import argparse
import asyncio
import os
import random
import shlex
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from benchmarks.agents.comparison import TOOL_SECONDS
from benchmarks.agents.oracle import Oracle
from benchmarks.agents.questions import Question, questions
from benchmarks.agents.react import TOOLS
from benchmarks.stage import Stage, stage
from sennit.starter.dev.server import free_port
from sennit.testing.model_rules import Asked, Reply, rule
from sennit.testing.models import model_server
from sennit.workflows.messages import queues
from sennit.workflows.messages.views import RunView

Run = WorkflowHandle[Any, Any]

COUNT, SHARE, SEED = 30, 0.1, 13
MOST_TIMES = 2.0
DOWN_SECONDS = 60.0
FAULTS: dict[str, Reply] = {
    "500": Reply("overloaded", status=500),
    "429": Reply("slow down", status=429, headers={"retry-after": "1"}),
    "cut": Reply(fault="cut"),
    "hang in stream": Reply(fault="hang in stream"),
    "hang": Reply(fault="hang"),
}


@dataclass
class Faulty(Oracle):
    """An oracle of whose replies a `share` fails; `made` counts the failures."""

    share: float = 0.0
    chance: random.Random = field(default_factory=lambda: random.Random(SEED))
    made: Counter[str] = field(default_factory=Counter)

    def reply(self, asked: Asked) -> Reply:
        """Return what the model says, or a fault, each kind as often as the others."""
        whole = super().reply(asked)
        if self.chance.random() >= self.share:
            return whole
        name = min(FAULTS, key=lambda each: self.made[each])
        self.made[name] += 1
        fault = FAULTS[name]
        return fault if fault.status != 200 else replace(whole, fault=fault.fault)


async def asked(built: Stage, question: Question) -> Run:
    """Start a run of a question."""
    request = {"goal": question.goal, "tools": list(TOOLS)}
    name = f"agent-faults-{uuid.uuid4().hex[:8]}"
    return await built.client.start_workflow(
        "AgentRun", request, id=name, task_queue=queues.WORKFLOW
    )


async def answered(built: Stage, chosen: Sequence[Question]) -> tuple[list[float], int]:
    """Return the seconds of each question, one after the other, and how many answers were right."""
    seconds, right = [], 0
    for question in chosen:
        began = time.perf_counter()
        report = await (await asked(built, question)).result()
        seconds.append(time.perf_counter() - began)
        right += report["status"] == "done" and question.answer in str(report["answer"])
    return seconds, right


async def view(handle: Run) -> RunView:
    """Return a run as it stands."""
    return RunView.model_validate(await handle.query("plan", 0))


async def outages(built: Stage, question: Question, port: int, oracle: Oracle) -> bool:
    """Ask while nothing listens at the server's port; returns whether both
    runs ended as they should.
    """
    handle = await asked(built, question)
    await asyncio.sleep(DOWN_SECONDS)
    print(f"down for {DOWN_SECONDS:.0f} s: {(await view(handle)).status}", end="", flush=True)
    began = time.perf_counter()
    async with model_server(rule("", oracle.reply), port=port):
        report = await handle.result()
    print(f", back, {report['status']} {time.perf_counter() - began:.1f} s later")
    went_on = question.answer in str(report["answer"])
    handle = await asked(built, question)
    while not (stands := await view(handle)).blocked:
        await asyncio.sleep(0.2)
    command = stands.blocked[0].command
    print(f"down for good: {stands.status}: {stands.blocked[0].question}\n  {command}", flush=True)
    async with model_server(rule("", oracle.reply), port=port):
        began = time.perf_counter()
        address = {"TEMPORAL_ADDRESS": built.client.service_client.config.target_host}
        sennit = [sys.executable, "-m", "sennit", *shlex.split(command)[1:]]
        done = await asyncio.create_subprocess_exec(*sennit, env={**os.environ, **address})
        await done.wait()
        report = await handle.result()
    print(f"  {report['status']} {time.perf_counter() - began:.1f} s after one retry")
    return went_on and question.answer in str(report["answer"])


async def main(arguments: Sequence[str]) -> int:
    """Answer the questions and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks faults")
    parser.add_argument("--count", type=int, default=COUNT, help="how many questions")
    options = parser.parse_args(arguments)
    oracle, port, chosen = Faulty(), free_port(), questions()[: options.count]
    env = {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "SENNIT_MODEL": "openai:test-model",
        "SENNIT_TOOLS": "benchmarks.agents.lookups",
        "SENNIT_BENCH_SECONDS": str(TOOL_SECONDS),
    }
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sennit-bench-")))
        built = await stack.enter_async_context(
            stage(place, SENNIT_BENCH_CALLS=str(place / "calls.jsonl"), **env)
        )
        async with model_server(rule("", oracle.reply), port=port):
            # The first run of a worker loads what later ones find.
            await answered(built, chosen[:1])
            sound, right = await answered(built, chosen)
            print(
                f"sound server: {right} of {len(chosen)} right, median "
                f"{statistics.median(sound):.2f} s",
                flush=True,
            )
            oracle.share = SHARE
            faulty, survived = await answered(built, chosen)
        times = statistics.median(faulty) / statistics.median(sound)
        made = ", ".join(f"{count} x {name}" for name, count in oracle.made.items())
        print(
            f"one call of ten fails: {survived} of {len(chosen)} right, median "
            f"{statistics.median(faulty):.2f} s,"
        )
        print(
            f"  {times:.2f} times the sound one (goal <= {MOST_TIMES}), longest {max(faulty):.1f} "
            f"s; {made}",
            flush=True,
        )
        oracle.share = 0.0
        recovered = await outages(built, chosen[0], port, oracle)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    return 0 if right == survived == len(chosen) and times <= MOST_TIMES and recovered else 1
