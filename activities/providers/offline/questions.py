"""What a goal asks, as data: the meeting point of the rules that read it, plan it and answer it."""

from dataclasses import dataclass
from typing import Literal

from activities.providers.offline.words import Attribute

Shape = Literal[
    "lookup",
    "passage",
    "compare",
    "check",
    "difference",
    "sum",
    "average",
    "ratio",
    "list",
    "superlative",
    "members",
]
By = Literal["", "next", "least"]
Term = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One question. A term is a thing, or several taken together; `sign` is 1 where more of the attribute wins.

    `by` asks for the distance to the next or to the last; `family` is the kind of thing that a folder-wide question
    ranges over, `rank` the place asked for and `top` how many; `unit` the symbol an answer is wanted in.
    """

    shape: Shape
    text: str
    attribute: Attribute | None = None
    terms: tuple[Term, ...] = ()
    sign: int = 1
    word: str = ""
    by: By = ""
    family: str = ""
    rank: int = 1
    top: int = 1
    unit: str = ""
    year: int | None = None

    @property
    def subjects(self) -> tuple[str, ...]:
        """Every thing asked about, once, in the order named."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term))
