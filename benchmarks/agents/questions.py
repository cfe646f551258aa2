"""The questions of the agent benchmark: a goal, the calls that lead to the answer, and the
answer, one file each.

A call has a tool, arguments and the result that the tool gives. `$2` in an argument stands for the
result of the second call, and makes it a dependency; `after` names others. Calls marked `replan`
are made only because an earlier result was a dead end: no plan holds them from the start.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "questions"
_REFERENCE = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool; `needs` are the numbers of the calls before it whose
    results it depends on.
    """

    number: int
    tool: str
    args: dict[str, str]
    result: str | int | float
    needs: tuple[int, ...]
    replan: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A goal with all that is to be known about it."""

    name: str
    goal: str
    calls: tuple[Call, ...]
    answer: str

    @property
    def shape(self) -> str:
        """What its graph looks like, as its name begins: chain, fan, pairs, diamond, dead-end."""
        found = re.match(r"dead-end|[a-z]+", self.name)
        return found[0] if found else ""

    @property
    def planned(self) -> tuple[Call, ...]:
        """The calls of the first plan."""
        return tuple(call for call in self.calls if not call.replan)

    @property
    def replanned(self) -> tuple[Call, ...]:
        """The calls that are made after a dead end."""
        return tuple(call for call in self.calls if call.replan)

    def bound(self, call: Call) -> dict[str, str]:
        """Return a call's arguments with the results in place of the references."""
        results = {str(each.number): str(each.result) for each in self.calls}
        return {
            name: _REFERENCE.sub(lambda found: results[found[1]], text)
            for name, text in call.args.items()
        }

    def key(self, call: Call) -> str:
        """Return what a tool knows a call by."""
        return key_of(call.tool, self.bound(call))

    def ready(self, done: Sequence[Call]) -> list[Call]:
        """Return the calls whose inputs are known once others are done, in order."""
        numbers = {call.number for call in done}
        return [
            call
            for call in self.calls
            if call.number not in numbers and numbers.issuperset(call.needs)
        ]


def key_of(tool: str, args: dict[str, str]) -> str:
    """Return a call as one text."""
    return f"{tool} {json.dumps(args, sort_keys=True)}"


def line(call: Call, numbers: dict[int, int]) -> str:
    """Return a call as a planner writes it; `numbers` are the numbers of the lines
    that the calls stand in.
    """
    args = ", ".join('"' + renumbered(text, numbers) + '"' for text in call.args.values())
    return f"{numbers[call.number]}. {call.tool}({args})"


def renumbered(text: str, numbers: dict[int, int]) -> str:
    """Return a text whose references name lines instead of calls."""
    return _REFERENCE.sub(lambda found: f"${numbers[int(found[1])]}", text)


@cache
def questions() -> tuple[Question, ...]:
    """Return all questions by name. Raises ValueError for a file that makes no sense."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.yaml")))


def _read(path: Path) -> Question:
    said = yaml.safe_load(path.read_text())
    calls = tuple(_call(number, entry) for number, entry in enumerate(said["calls"], 1))
    for call in calls:
        if any(need >= call.number for need in call.needs):
            raise ValueError(
                f"{path.name}: call {call.number} needs a call that does not come before it"
            )
    return Question(path.stem, said["goal"], calls, said["answer"])


def _call(number: int, entry: dict[str, Any]) -> Call:
    named = {int(found) for text in entry["args"].values() for found in _REFERENCE.findall(text)}
    needs = tuple(sorted(named | set(entry.get("after", ()))))
    return Call(
        number, entry["tool"], entry["args"], entry["result"], needs, bool(entry.get("replan"))
    )
