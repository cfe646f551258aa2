"""What hints from earlier runs bring to planners: width and critical path of their plans on
the dataset questions.

Each question is planned by a planner that has seen the runs of all others. Two scripted planners
are compared, each with and without hints. The first one writes the plan of the dataset: each call
waits for what it refers to. The second one is cautious: each call waits for the call before it as
well. With hints it takes the edges of a plan that calls the same tools in the same order, if it
is shown one, and else leaves an edge out where the hints say that its tool used nothing of what
that tool gave. Whether a model does so is not measured here; this is what it could win. A
critical path counts calls.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.agents.questions import Call, Question, questions
from sennit.activities.prompts.hints import hints
from sennit.activities.providers.model import tokens_of
from sennit.activities.storage.learned import Marks
from sennit.workflows.plan.learning.limits import MAX_GOAL_WORDS
from sennit.workflows.plan.learning.patterns import PatternTable
from sennit.workflows.plan.learning.trajectory import NotedCall, PlanShape, Trajectory, keys_of

MARKS = Marks(b"of a benchmark")
_UNUSED = re.compile(r"`(\w+)` used nothing of what `(\w+)` gave")
_LINE = re.compile(r"^\d+\. (\w+)\((.*)\)$", re.MULTILINE)
Edges = Mapping[int, Sequence[int]]


def catalogue() -> list[dict[str, Any]]:
    """Return the tools of the dataset as a catalogue."""
    names = dict.fromkeys(call.tool for question in questions() for call in question.calls)
    return [{"name": name, "schema": {"type": "object"}} for name in names]


def trajectory(question: Question) -> Trajectory:
    """Return the run of a question whose calls start as soon as they can,
    and take one second each.
    """
    keys, depth = (
        keys_of(catalogue()),
        depths({call.number: call.needs for call in question.planned}),
    )
    place = {call.number: number for number, call in enumerate(_by_start(question.planned, depth))}
    calls = []
    for call in _by_start(question.planned, depth):
        began = 1000 * (depth[call.number] - 1)
        uses = tuple(sorted(place[need] for need in call.needs))
        version = keys[call.tool].partition("@")[2]
        calls.append(
            NotedCall(
                name=call.tool, kind="tool", version=version, began=began, millis=1000, uses=uses
            )
        )
    lines = []
    for number, call in enumerate(question.planned, 1):
        named = "".join(f" ${need}" for need in call.needs)
        lines.append(f'{number}. {call.tool}("…{named}")')
    return Trajectory(
        run=question.name,
        status="done",
        ended=1,
        calls=tuple(calls),
        words=MARKS.words(question.goal, MAX_GOAL_WORDS),
        plan=PlanShape(lines=tuple(lines), tools=tuple(dict.fromkeys(call.key for call in calls))),
    )


def _by_start(calls: Sequence[Call], depth: Mapping[int, int]) -> list[Call]:
    return sorted(calls, key=lambda call: (depth[call.number], call.number))


def depths(edges: Edges) -> dict[int, int]:
    """Return the number of calls on the longest path to each call, itself included."""
    found: dict[int, int] = {}
    for number, needs in edges.items():
        found[number] = 1 + max((found[need] for need in needs), default=0)
    return found


def cautious(question: Question, told: str) -> dict[int, list[int]]:
    """Return the edges of a planner that has each call wait for the one before, but
    where it was told better.
    """
    unused = {(first, second) for second, first in _UNUSED.findall(told)}
    example = shown_plan(question, told)
    edges: dict[int, list[int]] = {}
    before: Call | None = None
    for place, call in enumerate(question.planned):
        needs = list(call.needs)
        if example is not None:
            needs += [question.planned[line - 1].number for line in example[place]]
        elif before is not None and (before.tool, call.tool) not in unused:
            needs.append(before.number)
        edges[call.number] = needs
        before = call
    return edges


def shown_plan(question: Question, told: str) -> list[list[int]] | None:
    """Return to which lines each line of the first plan refers that calls the same
    tools in the same order.
    """
    wanted = [call.tool for call in question.planned]
    for plan in re.split(r"^Plan .*$", told, flags=re.MULTILINE)[1:]:
        lines = _LINE.findall(plan)
        if [tool for tool, _ in lines] == wanted:
            return [[int(line) for line in re.findall(r"\$(\d+)", rest)] for _, rest in lines]
    return None


def measure() -> list[tuple[str, float, float, float]]:
    """Return (planner, mean width, mean critical path, mean tokens of hints) in a row each."""
    plans: dict[str, list[Edges]] = {"dataset, no hints": [], "dataset, hints": []}
    plans |= {"cautious, no hints": [], "cautious, hints": []}
    sizes = []
    for question in questions():
        table = PatternTable()
        for other in questions():
            if other is not question:
                table.fold(trajectory(other))
        told = hints(table, catalogue(), MARKS.words(question.goal, MAX_GOAL_WORDS))
        sizes.append(tokens_of(told))
        true = {call.number: call.needs for call in question.planned}
        plans["dataset, no hints"].append(true)
        plans["dataset, hints"].append(true)  # its plan has no edge to leave out
        plans["cautious, no hints"].append(cautious(question, ""))
        plans["cautious, hints"].append(cautious(question, told))
    rows = []
    for name, every in plans.items():
        paths = [max(depths(edges).values()) for edges in every]
        widths = [len(edges) / path for edges, path in zip(every, paths, strict=True)]
        tokens = statistics.mean(sizes) if name.endswith(", hints") else 0.0
        rows.append((name, statistics.mean(widths), statistics.mean(paths), tokens))
    return rows


async def main(_: Sequence[str]) -> int:
    """Print the table."""
    print("| planner | mean width | critical path, calls | tokens of hints |\n|---|---|---|---|")
    for name, width, path, tokens in measure():
        print(f"| {name} | {width:.2f} | {path:.2f} | {tokens:.0f} |")
    return 0
