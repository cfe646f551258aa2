"""`python -m benchmarks formats`: the time to the first node and the right answers, by the form of plans.

Every question of `agents` is answered once in each form, by a run on the same model server: a token is four characters,
so that each form takes as long as its characters do. With `--url` a real server plans the questions instead, one after
the other, and nothing is run: counted are the plans that pass every check, and timed is the first node that may start.
`auto` is `tools` only if no answer less is right than in lines, and the first node takes at most 1.1 times as long.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.agents.comparison import bench
from benchmarks.agents.oracle import Oracle
from benchmarks.agents.questions import Question, questions
from sennit.activities.llm.models import Models
from sennit.activities.nodes.attempts import Attempts
from sennit.activities.programs.reading import read
from sennit.activities.providers.model import ProviderError
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.runs.planner import Planner
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.run_context import ArtifactReader, RunContext
from sennit.activities.toolbox import load_tools
from sennit.workflows.messages.contracts import PlanCall
from sennit.workflows.plan.checking.validation import parse_plan, problems_of
from sennit.workflows.plan.language.problems import InvalidPlan

FORMATS = ("lines", "tools")
MOST_TIMES = 1.1
TOOLS = "benchmarks.agents.lookups"
HOME = "default/formats"


@dataclass(frozen=True, slots=True)
class Planned:
    """One question in one form: seconds to its first node, None if there was none, and whether it went right."""

    first: float | None
    right: bool
    written: int


async def answered(plan_format: str, chosen: Sequence[Question]) -> list[Planned]:
    """Answer the questions by runs."""
    found = []
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with bench(Oracle(), Path(place), SENNIT_PLAN_FORMAT=plan_format) as built:
            await built.sennit(questions()[0])  # the first run of a worker loads what later ones find
            for question in chosen:
                timed, recorded = await built.sennit(question)
                first = min(begin for begin, _ in recorded.calls.values()) - recorded.began
                found.append(Planned(first, timed.same, timed.written))
    return found


async def planned(plan_format: str, chosen: Sequence[Question], url: str, model: str) -> list[Planned]:
    """Plan the questions on a real server."""
    env = {"OPENAI_BASE_URL": url, "SENNIT_MODEL": model, "SENNIT_PLAN_FORMAT": plan_format}
    models, catalogue = Models.of(ModelSettings.read({**os.environ, **env})), load_tools([TOOLS]).catalogue()
    catalogue = [entry for entry in catalogue if entry["name"] in {call.tool for each in chosen for call in each.calls}]
    try:
        chain = (await models.chosen())["planner"]
        with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
            store = DirectoryStore(Path(place))
            store.create()
            planner = Planner(store, ArtifactReader(store), models, read)
            return [await _plan(planner, question, catalogue, chain) for question in chosen]
    finally:
        await models.close()


async def _plan(planner: Planner, question: Question, catalogue: list[dict[str, Any]], chain: list[str]) -> Planned:
    context = RunContext(
        goal=question.goal, inputs={}, docs=None, approval="writes", catalogue=catalogue, models={"planner": chain}
    )
    digest = await planner.library.keep(HOME, context)
    began, times = time.perf_counter(), list[float]()

    async def take(_: list[dict[str, Any]]) -> None:
        times.append(time.perf_counter() - began)

    try:
        result = await planner.plan(HOME, PlanCall(run="formats", run_context=digest), Attempts(1, 0), take)
    except ProviderError as error:
        print(f"  {question.name}: {error}", flush=True)
        return Planned(None, right=False, written=0)
    first = times[0] if times else time.perf_counter() - began
    try:
        wrong = result.problems or problems_of(
            parse_plan(await planner.library.value(HOME, result.draft)), catalogue, models=("openai",)
        )
    except InvalidPlan:
        wrong = ("no plan",)
    return Planned(first if not wrong else None, right=not wrong, written=result.usage.output_tokens)


def print_table(found: dict[str, list[Planned]]) -> bool:
    """Print a row for each form; returns whether calls of functions are at least as good as lines."""
    print(f"{'form':<10}{'right':>10}{'first node, median':>22}{'slowest':>10}{'tokens out':>12}")
    medians = {}
    for name, rows in found.items():
        times = [row.first for row in rows if row.first is not None]
        medians[name] = statistics.median(times) if times else float("inf")
        right, written = sum(row.right for row in rows), sum(row.written for row in rows)
        slowest = max(times, default=float("inf"))
        print(f"{name:<10}{f'{right} of {len(rows)}':>10}{medians[name]:>20.2f} s{slowest:>8.2f} s{written:>12,}")
    if not {"lines", "tools"} <= found.keys():
        return True
    lines, tools = (sum(row.right for row in found[name]) for name in ("lines", "tools"))
    good = tools >= lines and medians["tools"] <= MOST_TIMES * medians["lines"]
    print(f"\n`auto` is {'tools' if good else 'lines'} by these figures (tools / lines <= {MOST_TIMES}: "
          f"{medians['tools'] / medians['lines']:.2f})")  # fmt: skip
    return good


async def main(arguments: Sequence[str]) -> int:
    """Answer or plan every question in each form and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks formats")
    parser.add_argument("--only", default="", help="questions whose name has this in it")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--url", default="", help="a real server, such as http://127.0.0.1:8080/v1")
    parser.add_argument("--model", default="openai", help="its model, if it has several")
    options = parser.parse_args(arguments)
    chosen = [question for question in questions() if options.only in question.name]
    if not chosen:
        parser.error(f"no question has {options.only!r} in its name")
    found = {}
    for name in options.formats:
        if options.url:
            found[name] = await planned(name, chosen, options.url, options.model)
        else:
            found[name] = await answered(name, chosen)
    print_table(found)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    return 0
