"""A JSON value that remembers the line of each of its parts, so that a problem can name where it is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 100
MAX_VALUES = 500_000

Scalar = str | int | float | bool | None


class Misread(Exception):
    """A plan file that cannot be read as JSON data. `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class Spot:
    """One value with its line. `written` is a scalar's text where it is read as something else (`yes` as true).

    `size` counts the values it stands for, aliases written out.
    """

    line: int
    value: "Scalar | dict[str, Spot] | list[Spot]"
    size: int = 1
    written: str | None = None


def plain(spot: Spot) -> Any:
    """Return the value without lines, every alias written out."""
    if isinstance(spot.value, dict):
        return {key: plain(item) for key, item in spot.value.items()}
    if isinstance(spot.value, list):
        return [plain(item) for item in spot.value]
    return spot.value


def find(spot: Spot, where: Iterable[str | int]) -> Spot:
    """Return the deepest part on the path `where`; steps that are not in the value are passed over."""
    for step in where:
        inside = spot.value
        if isinstance(inside, dict) and step in inside:
            spot = inside[str(step)]
        elif isinstance(inside, list) and isinstance(step, int) and 0 <= step < len(inside):
            spot = inside[step]
    return spot


def put(spots: dict[str, Spot], key: str, item: Spot, line: int) -> None:
    """Add a key to an object; raises Misread when it is there already."""
    if key in spots:
        raise Misread(line, f"the key `{key}` is already on line {spots[key].line}; a key may stand once")
    spots[key] = item


def counted(size: int, line: int) -> int:
    """Return `size`; raises Misread when a value stands for more values than a plan may have."""
    if size > MAX_VALUES:
        raise Misread(line, f"more than {MAX_VALUES:,} values, aliases written out; use `map` for many alike nodes")
    return size


def too_deep(line: int) -> Misread:
    """Return the error for nesting beyond what any plan needs."""
    return Misread(line, f"nested more than {MAX_DEPTH} levels deep")
