"""Match statements: mappings, sequences, classes, guards, captures."""
from dataclasses import dataclass


@dataclass
class Point:
    x: int
    y: int


def kind(value):
    match value:
        case []:
            return "empty"
        case [one]:
            return f"one {one}"
        case [first, *rest] if isinstance(first, str):
            return f"{first} and {len(rest)}"
        case {"kind": "move", "by": (x, y), **others}:
            return f"move {x},{y} {sorted(others)}"
        case Point(x=0, y=y):
            return f"on the axis at {y}"
        case Point(x, y) as point:
            return f"{point} sums to {x + y}"
        case int(number) | float(number) if number > 10:
            return f"large {number}"
        case "yes" | "y":
            return True
        case None:
            return "nothing"
        case _:
            return "other"


async def main():
    values = [[], [1], ["a", 2, 3], {"kind": "move", "by": [1, 2], "z": 0, "a": 1}, Point(0, 4), Point(1, 2)]
    return [kind(value) for value in [*values, 11, 2.5, "y", None, {1}]]
