"""The problems of a plan: for a planner a repair prompt, for a person a sentence with its place."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sennit.workflows.plan.language.text import (
    did_you_mean,
    format_name,
    format_names,
    format_value,
    nearest_or_known,
    printable,
)
from sennit.workflows.plan.limits import MAX_VALUE_CHARACTERS

Where = tuple[str | int, ...]
OFFERED = {"write": "workers offer it where SENNIT_WRITE_ROOT is set"}
"""Tools of ours that are not always there, and when they are."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: a stable `code`, where, and a sentence that says what to do.

    `where` is the path into the plan's JSON, or ("line", number) of a script; line 0 is none in
    particular, and "helpers.py:3" one of a module. The sentence is one printable line of at most
    700 characters, whatever the plan holds.
    """

    code: str
    where: Where
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", printable(self.message))

    def __str__(self) -> str:
        place = place_of(self.where)
        if not place:
            return self.message
        return f"{place}: {self.message}"


class InvalidPlan(Exception):
    """A plan that must not run; `problems` has everything found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def no_such_tool(name: str, known: Collection[str]) -> str:
    """Return that there is no tool of that name, with when it is there, the
    nearest name, or all names.
    """
    if name in OFFERED:
        hint = f": {OFFERED[name]}"
    else:
        hint = nearest_or_known(name, sorted(known))
    return f"there is no tool {format_name(name)}{hint}"


def no_such_input(name: str, declared: Collection[str]) -> str:
    """Return that a plan declares no input of that name, with the nearest name and all names."""
    hint = did_you_mean(name, declared)
    return (
        f"the plan declares no input {format_name(name)}{hint}; declared: {format_names(declared)}"
    )


def place_of(where: Where) -> str:
    """Return a path as people write it, on one line: `nodes[3].args.query`,
    `inputs["two words"]`, `line 7`.
    """
    if where[:1] == ("line",):
        return _place_of_line(where[1:])
    if where[-3:-1] == ("script", "line"):
        script = place_of(where[:-2])
        line = place_of(where[-2:])
        return f"{script}, {line}".removesuffix(", ")
    text = ""
    for part in where:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("-", "_").isidentifier() and len(part) <= MAX_VALUE_CHARACTERS:
            if text:
                text += "."
            text += part
        else:
            text += f"[{format_value(part)}]"
    return text


def _place_of_line(line: Where) -> str:
    """Return the words for a line of a script, "" for none in particular."""
    if not line or line[0] == 0:
        return ""
    if isinstance(line[0], str):
        return line[0]
    return f"line {line[0]}"
