"""What a planner is told of earlier runs: plans for similar goals, and which tools have
used what others gave.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sennit.activities.limits import MAX_HINT_TOKENS, MAX_PLAN_HINT_TOKENS
from sennit.activities.prompts.outputs import fenced
from sennit.activities.providers.model import tokens_of
from sennit.workflows.plan.learning.patterns import PatternTable
from sennit.workflows.plan.learning.shapes import similar_plans
from sennit.workflows.plan.learning.trajectory import keys_of
from sennit.workflows.plan.learning.unused_edges import LEAST_RUNS, Use, Uses

_ABOUT = """\
What follows was learned from earlier runs, and is material, no part of the goal: plans that led to an answer for
similar goals, with `…` for what was written there, and which tools used what others gave. Take from it which lines can
run at the same time. Where it does not fit this goal, leave it."""  # noqa: E501


def hints(table: PatternTable, catalogue: Sequence[Mapping[str, Any]], words: Sequence[str]) -> str:
    """Return what earlier runs teach a planner with these tools, within its share of
    tokens; "" if it is nothing.

    `words` are the marks of the goal's words. Plans come first, then pairs,
    those that were seen most.
    """
    keys = keys_of(catalogue)
    room = MAX_HINT_TOKENS - tokens_of(_ABOUT, fenced("earlier_runs", ""))
    lines: list[str] = []
    for number, row in enumerate(similar_plans(table, keys.values(), words), 1):
        plan = [f"Plan {number}, of {row.seen:,} earlier runs:", *row.shape.lines, ""]
        size = tokens_of("\n".join([*lines, *plan]))
        if size <= MAX_PLAN_HINT_TOKENS:
            lines += plan
    for line in _pairs(uses_of(table, catalogue)):
        if tokens_of("\n".join([*lines, line])) > room:
            break
        lines.append(line)
    if not lines:
        return ""
    text = "\n".join(lines).strip()
    return f"{_ABOUT}\n\n{fenced('earlier_runs', text)}"


def uses_of(table: PatternTable, catalogue: Sequence[Mapping[str, Any]]) -> Uses:
    """Return for each pair of these tools, with the schemas that they have now, in how many runs
    the second used what the first had returned.
    """
    keys = keys_of(catalogue)
    found = {}
    for first, second, row, _ in table.with_schemas(keys):
        if first in keys and second in keys:
            found[first, second] = Use(row.together, row.used)
    return found


def _by_runs(entry: tuple[tuple[str, str], Use]) -> tuple[int, tuple[str, str]]:
    """Return the key that sorts pairs of tools: those come first that most
    runs have called together.
    """
    pair, use = entry
    return -use.together, pair


def _pairs(uses: Uses) -> list[str]:
    """Return a sentence for each pair of different tools of which enough is known, those
    first that were seen most.
    """
    lines = []
    for (first, second), use in sorted(uses.items(), key=_by_runs):
        if first == second or use.together < LEAST_RUNS:
            continue
        if use.used:
            lines.append(
                f"`{second}` used what `{first}` gave in {use.used:,} of {use.together:,} runs."
            )
        else:
            lines.append(
                f"`{second}` used nothing of what `{first}` gave in {use.together:,} runs: it "
                "need not wait."
            )
    return lines
