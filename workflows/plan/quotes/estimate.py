"""The quote of a script, as people and programs read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sennit.workflows.plan.compile.execution_plan import Quoted
from sennit.workflows.plan.language.limits import micro_dollars
from sennit.workflows.plan.language.text import format_names
from sennit.workflows.plan.quotes.counts import ANY, NONE, Count

_WRITES = 5


class Round(NamedTuple):
    """The calls of one round of a loop that goes round an unknown number of times."""

    line: int
    what: str
    """The words for one round, such as "for each of `files`"."""
    functions: dict[str, Count]


@dataclass(frozen=True, slots=True)
class Quote:
    """The cost of a script, as far as it can be told before it runs."""

    calls: Count
    functions: dict[str, Count]
    tasks: Count
    tokens: Count
    cost: tuple[float, float | None] | None
    """From the least to the most, in dollars: None if a price is not known, and for the most
    without an upper bound.
    """
    rounds: tuple[Round, ...]
    writes: tuple[str, ...]
    may_write: tuple[str, ...]
    """Tools that the script names where its calls cannot be counted."""
    assumed: dict[str, Any]
    """The inputs on whose values the counts depend."""
    models: int
    """The fewest calls of `llm` that a run makes if it comes to its end."""

    @property
    def _amounts(self) -> str:
        """The tokens, and what they cost as far as all prices are known."""
        if self.tokens in (NONE, ANY):
            tokens = str(self.tokens)
        elif self.tokens.most is None:
            tokens = f"at least about {self.tokens.least:,}, no upper bound"
        else:
            tokens = f"about {self.tokens}"
        if self.cost is None or self.cost == (0, 0):
            return tokens
        least, most = self.cost
        if most is None:
            return f"{tokens}; at least ${least:,.4f}"
        return f"{tokens}; ${least:,.4f} to ${most:,.4f}"

    def in_short(self) -> Quoted:
        """Return the part that a run shows, and holds against its budget."""
        parts = [f"calls {_bounds(self.calls)}", f"tokens {self._amounts}"]
        if self.writes or not self.may_write:
            parts.append(f"writes {format_names(self.writes, _WRITES)}")
        if self.may_write:
            parts.append(f"may write any tool among {format_names(self.may_write, _WRITES)}")
        text = "; ".join(parts)
        lowest_cost = 0.0
        if self.cost is not None:
            lowest_cost = self.cost[0]
        return Quoted(text, self.models, self.tokens.least, micro_dollars(lowest_cost))

    def lines(self, *, in_dollars: bool = False) -> list[str]:
        """Return the quote for people, who may have a budget `in_dollars`."""
        calls = f"calls: {_bounds(self.calls)}"
        if self.functions:
            calls += f" ({_listed(self.functions)})"
        lines = [calls]
        for one_round in self.rounds:
            called = _listed(one_round.functions)
            lines.append(f"  {one_round.what} (line {one_round.line}): {called}")
        if self.tasks != NONE:
            lines.append(f"tasks: {_bounds(self.tasks)}")
        tokens = f"tokens: {self._amounts}"
        if in_dollars and self.cost is None:
            tokens += "; not all prices are known"
        lines.append(tokens)
        if self.writes or not self.may_write:
            lines.append(f"writes: {', '.join(self.writes) or 'none'}")
        if self.may_write:
            lines.append(
                f"may write: any tool among {', '.join(self.may_write)}, in calls that cannot be "
                "counted"
            )
        if self.assumed:
            assumed = [f"{name} = {value}" for name, value in self.assumed.items()]
            inputs = ", ".join(assumed)
            lines.append(f"counted with {inputs}")
        return lines

    def data(self) -> dict[str, Any]:
        """Return the quote as JSON."""
        rounds: list[dict[str, Any]] = []
        for one_round in self.rounds:
            functions = _plain(one_round.functions)
            rounds.append(one_round._asdict() | {"functions": functions})
        cost = None
        if self.cost is not None:
            cost = {"least": self.cost[0], "most": self.cost[1]}
        return {
            "calls": self.calls._asdict(),
            "functions": _plain(self.functions),
            "rounds": rounds,
            "tasks": self.tasks._asdict(),
            "tokens": self.tokens._asdict(),
            "cost_usd": cost,
            "writes": list(self.writes),
            "may_write": list(self.may_write),
            "assumed": self.assumed,
        }


def _listed(amounts: Mapping[str, Any]) -> str:
    entries = [f"{name} {amount}" for name, amount in amounts.items()]
    return ", ".join(entries)


def _bounds(count: Count) -> str:
    """Return a count that stands alone: it says so if there is no upper bound."""
    if count.least and count.most is None:
        return f"{count}, no upper bound"
    return str(count)


def _plain(counts: dict[str, Count]) -> dict[str, Any]:
    return {name: count._asdict() for name, count in counts.items()}
