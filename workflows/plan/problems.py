"""What is wrong with a plan: for a planner a repair prompt, for a person a sentence with its place."""

from collections.abc import Iterable
from dataclasses import dataclass

Where = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: a stable `code`, the path into the plan's JSON, and a sentence that says what to do."""

    code: str
    where: Where
    message: str

    def __str__(self) -> str:
        place = place_of(self.where)
        return f"{place}: {self.message}" if place else self.message


class InvalidPlan(Exception):
    """A plan that must not run; `problems` has everything found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def place_of(where: Where) -> str:
    """Return a path as people write it: `nodes[3].args.query`."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
