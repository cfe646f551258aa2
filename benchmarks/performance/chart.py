"""The chart: for each workload a lane a contender, whose dot says by how much of the
critical path it is slower.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from benchmarks.performance.table import figure

WIDTH, LEFT, RIGHT, TOP = 860, 250, 70, 78
LANE, GAP = 15, 16
LEAST, MOST = 0.003, 500.0
TICKS = (0.01, 0.1, 1.0, 10.0, 100.0)
COLOURS = ("#6e7781", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#d55e00")
"""Told apart by those who see few colours, too (Okabe and Ito, Color Universal Design, 2008)."""
STYLE = """
text { font: 12px sans-serif; fill: #1f2328 } .low { fill: #57606a; font-size: 11px } .rule { stroke: #d8dce2 }
.bold { font-weight: bold } @media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .low { fill: #9198a1 } .rule { stroke: #3d444d } .back { fill: #0d1117 } }
"""  # noqa: E501


class Lane(NamedTuple):
    """A contender and its ratio to the critical path."""

    name: str
    ratio: float


def position(ratio: float) -> float:
    """Return where a ratio stands, in the units of the picture: what it adds to the critical
    path, logarithmically.
    """
    more = min(max(ratio - 1, LEAST), MOST)
    return LEFT + math.log(more / LEAST) / math.log(MOST / LEAST) * (WIDTH - LEFT - RIGHT)


def chart(workloads: Mapping[str, Sequence[Lane]]) -> str:
    """Return the SVG. The last contender of each workload stands out. Raises
    ValueError for more than six.
    """
    names = list(dict.fromkeys(lane.name for lanes in workloads.values() for lane in lanes))
    colours = dict(zip(names, COLOURS, strict=False))
    if len(names) > len(COLOURS):
        raise ValueError(f"there are {len(COLOURS)} colours for {len(names)} contenders")
    height = TOP + sum(len(lanes) * LANE + GAP for lanes in workloads.values())
    drawn = [*_legend(colours), *_axis(height)]
    top = float(TOP)
    for workload, lanes in workloads.items():
        middle = top + len(lanes) * LANE / 2
        drawn.append(
            f'<text x="{LEFT - 14}" y="{middle + 4:.0f}" '
            f'text-anchor="end">{escape(workload)}</text>'
        )
        for index, lane in enumerate(lanes):
            drawn += _lane(
                lane, top + (index + 0.5) * LANE, colours[lane.name], last=index == len(lanes) - 1
            )
        top += len(lanes) * LANE + GAP
    back = f'<rect class="back" width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    body = "\n".join([back, *drawn])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{STYLE}</style>\n{body}\n</svg>\n'
    )


def _legend(colours: Mapping[str, str]) -> list[str]:
    drawn = [
        (
            '<text class="bold" x="14" y="20">Time beyond the critical path (its ratio beside each '
            "dot)</text>"
        )
    ]
    left = 14.0
    for name, colour in colours.items():
        drawn += [f'<circle cx="{left + 5:.0f}" cy="40" r="5" fill="{colour}"/>',
                  f'<text x="{left + 15:.0f}" y="44">{escape(name)}</text>']  # fmt: skip
        left += 40 + 6.3 * len(name)
    return drawn


def _axis(height: int) -> list[str]:
    drawn = []
    for tick in TICKS:
        place = position(1 + tick)
        drawn += [
            (
                f'<line class="rule" x1="{place:.1f}" x2="{place:.1f}" y1="{TOP - 6}" '
                f'y2="{height - 8}"/>'
            ),
            (
                f'<text class="low" x="{place:.1f}" y="{TOP - 10}" '
                f'text-anchor="middle">+{tick:,.0%}</text>'
            ),
        ]
    return drawn


def _lane(lane: Lane, middle: float, colour: str, *, last: bool) -> list[str]:
    place, kind = position(lane.ratio), ' class="bold"' if last else ' class="low"'
    return [
        (
            f'<line x1="{LEFT}" x2="{place:.1f}" y1="{middle}" y2="{middle}" stroke="{colour}" '
            'stroke-opacity="0.45"/>'
        ),
        f'<circle cx="{place:.1f}" cy="{middle}" r="{5 if last else 4}" fill="{colour}"/>',
        f'<text{kind} x="{place + 9:.1f}" y="{middle + 4}">{figure(lane.ratio)}</text>',
    ]
