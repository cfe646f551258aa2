"""The budget of a run, and what its programs can cost."""

from collections.abc import Iterable

from sennit.workflows.limits import MAX_QUOTED_PROGRAMS
from sennit.workflows.plan.language.limits import dollars
from sennit.workflows.plan.scheduling.budget import Budget, ledger
from sennit.workflows.plan.scheduling.ready import missing_calls
from sennit.workflows.plan.scheduling.state import RunState


def quote_line(state: RunState) -> str:
    """Return the quotes of a run's programs in one line, "" if it has none."""
    quoted = [(spec.id, spec.quote.text) for spec in state.graph.specs if spec.quote is not None]
    if len(quoted) == 1:
        return quoted[0][1]
    more = f" · and {len(quoted) - MAX_QUOTED_PROGRAMS} more" if len(quoted) > MAX_QUOTED_PROGRAMS else ""
    return " · ".join(f"{name}: {text}" for name, text in quoted[:MAX_QUOTED_PROGRAMS]) + more


def budget_warnings(state: RunState) -> list[str]:
    """Return what people have to know of a run's budget: that it was exceeded, and where a quote guesses that it is not
    enough.
    """
    return [*_quotes_above(state), *_overspent(state)]


def _quotes_above(state: RunState) -> list[str]:
    """Return where a quote guesses that the budget is not enough. A guess may be wrong, so it holds nothing up."""
    limits = state.budget.limits if state.budget is not None else {}
    found = []
    for spec in state.graph.specs if limits else ():
        for name in ("tokens", "cost"):
            guess = getattr(spec.quote, name, 0)
            if name in limits and guess > limits[name]:
                takes, has = _amount(name, guess), _amount(name, limits[name])
                found.append(f"`{spec.id}` takes about {takes} by its quote; the budget has {has}")
    return found


def _overspent(state: RunState) -> list[str]:
    """Return the limits that the run has exceeded: a server may count more than it was sent and asked for."""
    if state.budget is None:
        return []
    spent, limits = state.budget.spent, state.budget.limits
    over = [name for name, limit in limits.items() if getattr(spent, name) > limit]
    amounts = [f"{_amount(name, getattr(spent, name))} of {_amount(name, limits[name])}" for name in over]
    return [f"the budget was overspent: {amount}" for amount in amounts]


def _amount(name: str, amount: int) -> str:
    return f"${dollars(amount):,.4f}" if name == "cost" else f"{amount:,} {name}"


def shortage(state: RunState, units: Iterable[int]) -> tuple[int, str] | None:
    """Return how many model calls the budget lacks for that of the programs which lacks most, and a sentence on it."""
    missing, unit = max(((missing_calls(state, unit), unit) for unit in units), default=(0, -1))
    if not missing or state.budget is None:
        return None
    left = state.budget.left("calls")
    return missing, f"`{state.shown(unit)}` makes at least {left + missing} model calls; the budget has {left} left"


def spent(budget: Budget, names: Iterable[str]) -> str:
    """Return what was spent of each limit."""
    rows = ledger(budget)
    parts = (f"{name} {rows[name]['spent']} of {rows[name]['limit']}" for name in names)
    return f"the budget is spent ({', '.join(parts)})"
