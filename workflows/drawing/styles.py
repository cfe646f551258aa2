"""How each status looks: a colour, a kind of outline, and a badge that differs in
shape, not only in colour.

The colours are mid-tones with at least 3:1 contrast on white and on black, apart from each other
for the colour-blind (after Okabe and Ito 2008).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_GREEN, _BLUE, _AMBER, _RED, _GREY = "#009E73", "#2B7FD4", "#C08400", "#D5481F", "#808890"
_SQUARE = "stroke-linecap='square'"
_ON = "fill='none' stroke='#fff' stroke-width='2'"
_DASHED = "fill-opacity='0' stroke-width='1.2' stroke-dasharray='7 5'"


@dataclass(frozen=True, slots=True)
class Style:
    """`box` are the attributes of the outline; `badge` are paths around the origin
    in the status's colour.
    """

    colour: str
    box: str
    badge: str = ""

    @property
    def ink(self) -> str:
        """The attributes that colour lines and areas."""
        return f"fill='{self.colour}' stroke='{self.colour}'"


STYLES = {
    "succeeded": Style(
        _GREEN,
        "fill-opacity='.14' stroke-width='1.5'",
        f"<path stroke-width='17' d='M0 0h0'/><path {_ON} d='M-4 0l3 3 5-6'/>",
    ),
    "running": Style(
        _BLUE,
        "fill-opacity='.2' stroke-width='2.5' stroke-dasharray='10 6'",
        "<path stroke-width='17' d='M0 0h0'/><path fill='#fff' stroke='none' d='M-3-5l8 5-8 5z'/>",
    ),
    "waiting": Style(
        _AMBER,
        "fill-opacity='.22' stroke-width='3.5'",
        f"<path d='M-10 0l10-10 10 10-10 10z'/><path {_ON} d='M0-5v5m0 4v0'/>",
    ),
    "failed": Style(
        _RED,
        "fill-opacity='.22' stroke-width='3.5'",
        f"<path stroke-width='16' {_SQUARE} d='M0 0h0'/><path {_ON} d='M-4-4l8 8m0-8l-8 8'/>",
    ),
    "pending": Style(
        _GREY, "fill-opacity='.05' stroke-width='1.2'", "<path stroke-width='5' d='M0 0h0'/>"
    ),
    "blocked": Style(
        _GREY,
        "fill-opacity='0' stroke-width='2' stroke-dasharray='1 5'",
        f"<path stroke-width='16' d='M0 0h0'/><path {_ON} d='M-4 0h8'/>",
    ),
    "handled": Style(
        _GREY,
        _DASHED,
        f"<path stroke-width='12' {_SQUARE} d='M0 0h0'/><path {_ON} d='M-3-3l6 6m0-6l-6 6'/>",
    ),
    "skipped": Style(
        _GREY, _DASHED, "<path fill='none' stroke-width='2' d='M-5-4l4 4-4 4m6-8l4 4-4 4'/>"
    ),
    "cancelled": Style(_GREY, _DASHED, f"<path stroke-width='10' {_SQUARE} d='M0 0h0'/>"),
    "planned": Style(_GREY, "fill-opacity='.1' stroke-width='1.5'"),
}
"""In the order in which they are counted."""

ANIMATION = (
    "<animate attributeName='stroke-dashoffset' values='16;0' dur='1s' repeatCount='indefinite'/>"
)
"""Makes the outline of running boxes move."""

BadgePositions = dict[str, list[tuple[int, int]]]


def badges(badge_positions: Mapping[str, Sequence[tuple[int, int]]]) -> str:
    """Return the badge of each status, defined once and placed as a marker at
    the corners of a line.
    """
    drawn: list[str] = []
    for number, (status, style) in enumerate(STYLES.items()):
        if style.badge and status in badge_positions:
            drawn.append(markers(f"w{number}", style.ink, style.badge, badge_positions[status]))
    return "".join(drawn)


def markers(name: str, ink: str, shape: str, badge_positions: Sequence[tuple[int, int]]) -> str:
    """Return a shape placed at every position; each takes a few bytes."""
    line = ""
    for x, y in badge_positions:
        line += f"L{x} {y}"
    marker = f"<marker id='{name}' overflow='visible' {ink}>{shape}</marker>"
    return f"{marker}<path fill='none' marker-mid='url(#{name})' d='M0 0{line}h0'/>"
