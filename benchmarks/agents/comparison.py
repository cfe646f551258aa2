"""`python -m benchmarks agents`: Sennit beside agents that call tools turn by turn, on
the same model and tools.

Each question is answered four times, one after the other: (a) ReAct with one call a turn, (b) ReAct
with all calls it can make in a turn, (c) Sennit, and Sennit once more with a model server that
gives the planner's text only when it is whole: the plan is made, and then run. Sennit's run is a
real one: a dev server with its database on disk, a worker process, streamed planning, a joiner. The
bound and the ideal are computed from the recorded calls: see `ideal`.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.agents import oracle as model
from benchmarks.agents.ideal import Recorded, bound, ideal, overlapped
from benchmarks.agents.oracle import Oracle
from benchmarks.agents.questions import Question, questions
from benchmarks.agents.react import TOOLS, answered
from benchmarks.stage import Stage, stage
from sennit.testing.model_rules import rule
from sennit.testing.models import model_server
from sennit.workflows.messages import queues

TOOL_SECONDS = 0.4
GOALS = {"a": 2.5, "b": 1.2, "overlap": 0.8}
LENGTHS = f"""\
A token is {model.CHARACTERS} characters; the first after 300 ms, then 60 a second; each tool call takes 400 ms.
A thought before each turn of an agent: {model.THOUGHT_CHARACTERS // model.CHARACTERS} tokens; the planner writes none.
The last message is the same for all, word for word.
"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class Timed:
    """One answer: seconds, calls of tools and of models, tokens in and out, whether it is
    the question's answer.
    """

    seconds: float
    calls: int
    turns: int
    read: int
    written: int
    same: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One question by all means: as `bound`, `ideal` and `overlapped` say; `first` is when its
    first node began, after an `opening`.
    """

    question: Question
    serial: Timed
    parallel: Timed
    sennit: Timed
    whole: Timed
    bound: float
    ideal: float
    overlapped: float
    first: float
    opening: float

    @property
    def means(self) -> tuple[Timed, ...]:
        """The measured ones."""
        return self.serial, self.parallel, self.sennit, self.whole


class Bench:
    """All that answers questions, on one model server."""

    def __init__(
        self, oracle: Oracle, built: Stage, url: str, client: httpx.AsyncClient, record: Path
    ) -> None:
        self.oracle = oracle
        self._built = built
        self._url = url
        self._client = client
        self._record = record

    async def row(self, question: Question) -> Row:
        """Answer a question by all means, one after the other."""
        serial = await self.agent(question, model.SERIAL)
        parallel = await self.agent(question, model.PARALLEL)
        sennit, streamed = await self.sennit(question)
        self.oracle.whole = True
        whole, waited = await self.sennit(question)
        self.oracle.whole = False
        return Row(
            question,
            serial,
            parallel,
            sennit,
            whole,
            bound(self.oracle, streamed),
            ideal(self.oracle, streamed),
            overlapped(self.oracle, waited),
            min(begin for begin, _ in streamed.calls.values()) - streamed.began,
            streamed.opening,
        )

    async def agent(self, question: Question, system: str) -> Timed:
        """Answer a question turn by turn."""
        before, began = len(self.oracle.said), time.time()
        system += model.EVIDENCE if self.oracle.evidence else ""
        answer, calls = await answered(
            self._client, self._url, system, question.goal, TOOL_SECONDS / self.oracle.pace
        )
        return self._timed(question, before, time.time() - began, answer, calls)

    async def sennit(self, question: Question) -> tuple[Timed, Recorded]:
        """Answer a question by a run."""
        self._record.write_text("")
        before, began = len(self.oracle.said), time.time()
        name = f"agent-bench-{uuid.uuid4().hex[:8]}"
        request = {"goal": question.goal, "tools": list(TOOLS)}
        handle = await self._built.client.start_workflow(
            "AgentRun", request, id=name, task_queue=queues.WORKFLOW
        )
        report = await handle.result()
        ended = time.time()
        made = [json.loads(line) for line in self._record.read_text().splitlines()]
        times = {key: (begin, end) for key, begin, end in made}
        calls = {call.number: times[question.key(call)] for call in question.calls}
        recorded = Recorded(question, began, ended, tuple(self.oracle.said[before:]), calls)
        return self._timed(
            question, before, ended - began, str(report["answer"]), len(made)
        ), recorded

    def _timed(
        self, question: Question, before: int, seconds: float, answer: str, calls: int
    ) -> Timed:
        said = self.oracle.said[before:]
        tokens = (sum(each.read for each in said), sum(each.written for each in said))
        return Timed(seconds, calls, len(said), *tokens, question.answer in answer)


@asynccontextmanager
async def bench(oracle: Oracle, place: Path, **more: str) -> AsyncIterator[Bench]:
    """Start model server, Temporal server and workers, these with more variables; `oracle`
    is what the model says.
    """
    record = place / "calls.jsonl"
    async with (
        model_server(rule("", oracle.reply)) as server,
        httpx.AsyncClient(timeout=60, trust_env=False) as client,
    ):
        env = {"OPENAI_BASE_URL": server.openai_url, "SENNIT_MODEL": "openai:test-model",
               "SENNIT_TOOLS": "benchmarks.agents.lookups", "SENNIT_BENCH_CALLS": str(record),
               "SENNIT_BENCH_SECONDS": str(TOOL_SECONDS / oracle.pace), **more}  # fmt: skip
        async with stage(place, **env) as built:
            yield Bench(oracle, built, server.openai_url, client, record)


def totals(rows: Sequence[Row]) -> list[float]:
    """Return the seconds of all questions, by each means."""
    return [sum(row.means[place].seconds for row in rows) for place in range(4)]


def overlap(rows: Sequence[Row], best: float) -> float:
    """Return how much of what streaming can save it has saved: of the way from
    plan-then-run to the best.
    """
    _, _, sennit, whole = totals(rows)
    return (whole - sennit) / (whole - best)


def print_row(row: Row) -> None:
    """Print one question."""
    seconds = "".join(f"{timed.seconds:8.2f}" for timed in row.means)
    calls = "/".join(str(timed.calls) for timed in row.means[:3])
    tokens = "  ".join(f"{timed.read:>6,}/{timed.written:>4,}" for timed in row.means[:3])
    same = "yes" if all(timed.same for timed in row.means) else "NO"
    print(
        f"{row.question.name:<22}{seconds}{row.ideal:8.2f}{row.bound:8.2f}  {calls:>8}  {tokens}  "
        f"{same}",
        flush=True,
    )


def print_totals(rows: Sequence[Row]) -> bool:
    """Print what follows from all; returns whether every goal was met."""
    serial, parallel, sennit, whole = totals(rows)
    best, path = sum(row.ideal for row in rows), sum(row.bound for row in rows)
    print(
        f"{'all ' + str(len(rows)):<22}{serial:8.2f}{parallel:8.2f}{sennit:8.2f}{whole:8.2f}{best:8.2f}{path:8.2f}\n"  # noqa: E501
    )
    for name, place in (("(a) ReAct", 0), ("(b) ReAct, parallel", 1), ("(c) Sennit", 2)):
        timed = [row.means[place] for row in rows]
        calls, turns = sum(each.calls for each in timed), sum(each.turns for each in timed)
        read, written = sum(each.read for each in timed), sum(each.written for each in timed)
        print(
            f"{name:<22}{calls:>6,} tool calls {turns:>6,} model calls {read:>9,} tokens in "
            f"{written:>7,} out"
        )
    found = {
        "a": serial / sennit,
        "b": parallel / sennit,
        "overlap": overlap(rows, sum(row.overlapped for row in rows)),
    }
    print("\nby shape" + " " * 14 + "questions  (a) / (c)  (b) / (c)")
    for shape in dict.fromkeys(row.question.shape for row in rows):
        of_shape = [row for row in rows if row.question.shape == shape]
        one, many, ours, _ = totals(of_shape)
        print(f"{shape:<22}{len(of_shape):>9}{one / ours:>11.2f}{many / ours:>11.2f}")
    each_a = statistics.median(row.serial.seconds / row.sennit.seconds for row in rows)
    each_b = statistics.median(row.parallel.seconds / row.sennit.seconds for row in rows)
    print(
        f"\n(a) / (c): {found['a']:.2f} of all, median {each_a:.2f}, ideal {serial / best:.2f}   "
        f"(goal >= {GOALS['a']})"
    )
    print(
        f"(b) / (c): {found['b']:.2f} of all, median {each_b:.2f}, ideal {parallel / best:.2f}   "
        f"(goal >= {GOALS['b']})"
    )
    print(f"(c) / critical path: {sennit / path:.2f}, (c) / ideal: {sennit / best:.2f}")
    print(f"overlap saved by streaming: {found['overlap']:.0%}   (goal >= {GOALS['overlap']:.0%})")
    print(
        f"  beside an engine that takes no time at all, as (c) / ideal: {overlap(rows, best):.0%}"
    )
    first, opening = (
        statistics.median(getattr(row, name) for row in rows) for name in ("first", "opening")
    )
    print(
        f"time to first node: median {first:.2f} s, of which {opening:.3f} s until the planner is "
        "asked"
    )
    same = all(timed.same for row in rows for timed in row.means)
    print(f"same answers: {'yes' if same else 'NO'}")
    return same and all(found[name] >= goal for name, goal in GOALS.items())


async def main(arguments: Sequence[str]) -> int:
    """Answer every question and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks agents")
    parser.add_argument("--only", default="", help="questions whose name has this in it")
    parser.add_argument(
        "--evidence", action="store_true", help="every client ends its answer with evidence"
    )
    options = parser.parse_args(arguments)
    chosen = [question for question in questions() if options.only in question.name]
    if not chosen:
        parser.error(f"no question has {options.only!r} in its name")
    print(LENGTHS)
    names = "".join(f"{name:>8}" for name in ("(a)", "(b)", "(c)", "whole", "ideal", "path"))
    print(
        f"{'question':<22}{names}  {'calls':>8}  tokens in/out of (a), (b), (c)          same",
        flush=True,
    )
    rows, before = [], os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with bench(Oracle(evidence=options.evidence), Path(place)) as built:
            # The first run of a worker loads what later ones find.
            await built.sennit(questions()[0])
            for question in chosen:
                rows.append(await built.row(question))
                print_row(rows[-1])
    met = print_totals(rows)
    print(
        f"load of the machine: {before:.1f} before, {os.getloadavg()[0]:.1f} after, "
        f"{os.cpu_count()} cores"
    )
    return 0 if met else 1
