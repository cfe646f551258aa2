"""What every part of the benchmark gives: a table, what stands below it, and whether
asserted goals were met.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by name; the first says what a row is about, the others hold figures."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Return it for a terminal."""
        lines = [self.header, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.header))]
        return "\n".join(
            "  ".join(f"{cell:>{width}}" if column else f"{cell:<{width}}"
                      for column, (cell, width) in enumerate(zip(line, widths, strict=True))).rstrip()  # noqa: E501
            for line in lines
        )  # fmt: skip

    def markdown(self) -> str:
        """Return it for a page."""
        rule = ["---", *("---:" for _ in self.header[1:])]
        return "\n".join(f"| {' | '.join(line)} |" for line in (self.header, rule, *self.rows))


@dataclass(frozen=True, slots=True)
class Part:
    """What a part of the benchmark has found; `more` are other blocks of
    the page, by their names.
    """

    table: Table
    notes: Sequence[str] = ()
    met: bool = True
    more: Mapping[str, str] = field(default_factory=dict)
    chart: str = ""

    def text(self) -> str:
        """Return it for a terminal."""
        return "\n".join([self.table.text(), *self.notes])

    def markdown(self) -> str:
        """Return it for a page."""
        return "\n\n".join([self.table.markdown(), *self.notes])


def figure(ratio: float) -> str:
    """Return a ratio to the hundredth as long as that says something; none for
    one that there is not.
    """
    if ratio == math.inf:
        return "none"
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"


def goal_cell(found: float, goal: float, *, most: bool = True) -> str:
    """Return a goal, and by how much of it the figure falls short."""
    short = (found - goal if most else goal - found) / goal
    return f"{'<=' if most else '>='} {goal:g}" + (f", {short:.0%} short" if short > 0 else "")
