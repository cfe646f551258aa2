"""The budget of a run, and what its programs can cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from sennit.workflows.limits import MAX_QUOTED_PROGRAMS
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.limits import amount_text
from sennit.workflows.plan.scheduling.budget import Budget, ledger
from sennit.workflows.plan.scheduling.ready import missing_calls
from sennit.workflows.plan.scheduling.state import RunState


def quote_line(state: RunState) -> str:
    """Return the quotes of a run's programs in one line, "" if it has none."""
    quotes: dict[str, str] = {}
    for spec in state.graph.specs:
        if spec.quote is not None:
            quotes[spec.id] = spec.quote.text
    if len(quotes) == 1:
        return next(iter(quotes.values()))
    parts: list[str] = []
    for name, text in islice(quotes.items(), MAX_QUOTED_PROGRAMS):
        parts.append(f"{name}: {text}")
    left = len(quotes) - MAX_QUOTED_PROGRAMS
    if left > 0:
        parts.append(f"and {left} more")
    return " · ".join(parts)


def budget_warnings(state: RunState) -> list[str]:
    """Return what people have to know of a run's budget: that it was exceeded, and where a quote
    guesses that it is not enough.
    """
    if state.budget is None:
        return []
    return [*_quotes_above(state.graph, state.budget), *_overspent(state.budget)]


def _quotes_above(graph: Graph, budget: Budget) -> list[str]:
    """Return where a quote guesses that the budget is not enough. A guess may be wrong,
    so it holds nothing up.
    """
    names = [name for name in ("tokens", "cost") if name in budget.limits]
    warnings = []
    for spec in graph.specs:
        if spec.quote is None:
            continue
        for name in names:
            guess = getattr(spec.quote, name)
            limit = budget.limits[name]
            if guess > limit:
                takes = amount_text(name, guess)
                has = amount_text(name, limit)
                warnings.append(
                    f"`{spec.id}` takes about {takes} by its quote; the budget has {has}"
                )
    return warnings


def _overspent(budget: Budget) -> list[str]:
    """Return the limits that the run has exceeded: a server may count more than it
    was sent and asked for.
    """
    warnings = []
    for name, limit in budget.limits.items():
        amount = getattr(budget.spent, name)
        if amount > limit:
            used = amount_text(name, amount)
            allowed = amount_text(name, limit)
            warnings.append(f"the budget was overspent: {used} of {allowed}")
    return warnings


@dataclass(frozen=True, slots=True)
class Shortage:
    """How many model calls the budget lacks for one program, and a sentence that says so."""

    calls: int
    sentence: str


def shortage(state: RunState, units: Iterable[int]) -> Shortage | None:
    """Return what the budget lacks for the program that lacks most; None where it is
    enough for all of them.
    """
    if state.budget is None:
        return None
    most = 0
    program = -1
    for unit in units:
        missing = missing_calls(state, unit)
        if missing and (missing, unit) > (most, program):
            most = missing
            program = unit
    if not most:
        return None
    left = state.budget.left("calls")
    name = state.path(program)
    sentence = f"`{name}` makes at least {left + most} model calls; the budget has {left} left"
    return Shortage(most, sentence)


def spent(budget: Budget, names: Iterable[str]) -> str:
    """Return the sentence on the limits that are used up."""
    rows = ledger(budget)
    parts: list[str] = []
    for name in names:
        row = rows[name]
        parts.append(f"{name} {row['spent']} of {row['limit']}")
    listed = ", ".join(parts)
    return f"the budget is spent ({listed})"
