"""What a script can cost, as people and programs read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sennit.workflows.plan.compile.execution_plan import Quoted
from sennit.workflows.plan.language.limits import micro_dollars
from sennit.workflows.plan.language.text import format_names
from sennit.workflows.plan.quotes.counts import ANY, NONE, Count

_WRITES = 5


class Round(NamedTuple):
    """What a round calls of a loop that goes round nobody knows how often."""

    line: int
    what: str
    functions: dict[str, Count]


@dataclass(frozen=True, slots=True)
class Quote:
    """What a script can cost, `cost` in dollars, None where no price is known, its end None where there is no upper
    bound. `assumed` are the inputs whose numbers
    were counted with. `may_write` are tools that the script names where nobody can count its calls. No run that comes
    to its end makes fewer calls of `llm` than `models`.
    """

    calls: Count
    functions: dict[str, Count]
    tasks: Count
    tokens: Count
    cost: tuple[float, float | None] | None
    rounds: tuple[Round, ...]
    writes: tuple[str, ...]
    may_write: tuple[str, ...]
    assumed: dict[str, Any]
    models: int

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
        """Return what a run shows of it, and holds against its budget."""
        parts = [f"calls {_bounds(self.calls)}", f"tokens {self._amounts}"]
        if self.writes or not self.may_write:
            parts.append(f"writes {format_names(self.writes, _WRITES)}")
        if self.may_write:
            parts.append(f"may write any tool among {format_names(self.may_write, _WRITES)}")
        text = "; ".join(parts)
        return Quoted(text, self.models, self.tokens.least, micro_dollars(self.cost[0] if self.cost else 0))

    def lines(self, *, in_dollars: bool = False) -> list[str]:
        """Return it for people, who may have a budget `in_dollars`."""
        functions = f" ({_listed(self.functions)})" if self.functions else ""
        lines = [f"calls: {_bounds(self.calls)}{functions}"]
        lines += [f"  {each.what} (line {each.line}): {_listed(each.functions)}" for each in self.rounds]
        if self.tasks != NONE:
            lines.append(f"tasks: {_bounds(self.tasks)}")
        unknown = "; not all prices are known" if in_dollars and self.cost is None else ""
        lines.append(f"tokens: {self._amounts}{unknown}")
        if self.writes or not self.may_write:
            lines.append(f"writes: {', '.join(self.writes) or 'none'}")
        if self.may_write:
            lines.append(f"may write: any tool among {', '.join(self.may_write)}, in calls that cannot be counted")
        if self.assumed:
            lines.append(f"counted with {', '.join(f'{name} = {value}' for name, value in self.assumed.items())}")
        return lines

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "calls": self.calls._asdict(),
            "functions": _plain(self.functions),
            "rounds": [each._asdict() | {"functions": _plain(each.functions)} for each in self.rounds],
            "tasks": self.tasks._asdict(),
            "tokens": self.tokens._asdict(),
            "cost_usd": self.cost and {"least": self.cost[0], "most": self.cost[1]},
            "writes": list(self.writes),
            "may_write": list(self.may_write),
            "assumed": self.assumed,
        }


def _listed(amounts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())


def _bounds(count: Count) -> str:
    """Return a count by itself, which says that it has no upper bound."""
    return f"{count}, no upper bound" if count.least and count.most is None else str(count)


def _plain(counts: dict[str, Count]) -> dict[str, Any]:
    return {name: count._asdict() for name, count in counts.items()}
