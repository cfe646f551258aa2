"""What is wrong with a plan: for a planner a repair prompt, for a person a sentence with its place."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

Where = tuple[str | int, ...]

SHOWN_CHARACTERS = 60
LISTED_CHARACTERS = 300
SENTENCE_CHARACTERS = 700
_COMPARED_NAMES = 1_000


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: a stable `code`, the path into the plan's JSON, and a sentence that says what to do.

    The sentence is one printable line of at most 700 characters, whatever the plan holds.
    """

    code: str
    where: Where
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", printable(self.message))

    def __str__(self) -> str:
        place = place_of(self.where)
        return f"{place}: {self.message}" if place else self.message


class InvalidPlan(Exception):
    """A plan that must not run; `problems` has everything found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def place_of(where: Where) -> str:
    """Return a path as people write it, on one line: `nodes[3].args.query`, `inputs["two words"]`."""
    text = ""
    for part in where:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("-", "_").isidentifier() and len(part) <= SHOWN_CHARACTERS:
            text += f".{part}" if text else part
        else:
            text += f"[{shown(part)}]"
    return text


def printable(text: str, limit: int = SENTENCE_CHARACTERS) -> str:
    """Return `text` cut to `limit` characters, with what does not print written as an escape; never raises."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in cut)


def shown(value: Any) -> str:
    """Return a value as JSON writes it, short and on one line; lists and objects only by their kind. Never raises."""
    if isinstance(value, str):
        return '"' + printable(value, SHOWN_CHARACTERS).replace('"', '\\"') + '"'
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 200 else f"a number of {value.bit_length()} bits"
    if isinstance(value, dict):
        return f"an object with {listed(map(str, value), 3)}" if value else "an empty object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    return printable(type(value).__name__, SHOWN_CHARACTERS)


def named(name: str) -> str:
    """Return a name in backticks, whatever it holds."""
    return f"`{printable(name, SHOWN_CHARACTERS)}`"


def listed(names: Iterable[str], most: int = 20) -> str:
    """Return names as `a, b, c`, the first ones when there are many, `none` when there are none."""
    every = list(names)
    text = ", ".join(printable(name, SHOWN_CHARACTERS) for name in every[:most])
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return (printable(text, LISTED_CHARACTERS) or "none") + more


def nearest(name: str, names: Collection[str]) -> str:
    """Return `; did you mean ...?` for the name most like it, or nothing; compares 1,000 names at most."""
    wanted = name[:80]
    alike: Collection[str] = names
    if len(names) > _COMPARED_NAMES:
        alike = [other for other in names if abs(len(other) - len(wanted)) <= 1][:_COMPARED_NAMES]
    found = get_close_matches(wanted, alike, 1)
    return f"; did you mean {named(found[0])}?" if found else ""
