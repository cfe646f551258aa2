"""What activities of nodes are called: the one place that writes their
ids, and reads them again.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

Work = Literal["", "question", "ledger", "goal"]
"""What an activity does for its node, if it is not its call: put a question together, look a
write up, bind a goal.
"""
RUN: Final = "run:"
"""What the ids of a run's own activities begin with."""
_FORM: Final = re.compile(
    r"(?P<node>[^~+.@]+(?:(?<=\])\.(?!question|ledger|goal)\w+)?)(?:~(?P<generation>[0-9]{1,9}))?"
    r"(?:\.advance(?P<advance>[0-9]{1,9}))?(?:\+(?P<others>[0-9]{1,9}))?"
    r"(?:\.(?P<question>question))?(?:\.(?P<ledger>ledger))?(?:@(?P<epoch>[0-9]{1,9}))?(?:\."
    r"(?P<goal>goal))?"
)


@dataclass(frozen=True, slots=True)
class ActivityId:
    """The path of a node or item, its generation, how many `others` run in the same activity, and
    the number of the run's plan: `n1`, `n1~2`, `m[0]+49`, `m[0].page`, `n1~2.ledger`, `n1@3`,
    `sub@3.goal`. Of a program, which advance of its script it is: `main~2.advance3`.
    """

    node: str
    generation: int = 1
    others: int = 0
    work: Work = ""
    epoch: int = 1
    advance: int = 1

    @property
    def full_path(self) -> str:
        """The path with its generation."""
        if self.generation == 1:
            return self.node
        return f"{self.node}~{self.generation}"

    @property
    def label(self) -> str:
        """The path with its generation, and the advance from the second on."""
        if self.advance == 1:
            return self.full_path
        return f"{self.full_path}.advance{self.advance}"

    def __str__(self) -> str:
        text = self.label
        if self.others:
            text += f"+{self.others}"
        if self.work in ("question", "ledger"):
            text += f".{self.work}"
        if self.epoch > 1:
            text += f"@{self.epoch}"
        if self.work == "goal":
            text += ".goal"
        return text


def parse_activity_id(text: str) -> ActivityId | None:
    """Return what an id says; None for an activity of the run itself, or of nobody here."""
    parts = _FORM.fullmatch(text)
    if parts is None or text.startswith(RUN):
        return None
    work: Work = ""
    if parts["question"]:
        work = "question"
    elif parts["ledger"]:
        work = "ledger"
    elif parts["goal"]:
        work = "goal"
    parsed = ActivityId(
        node=parts["node"],
        generation=int(parts["generation"] or 1),
        others=int(parts["others"] or 0),
        work=work,
        epoch=int(parts["epoch"] or 1),
        advance=int(parts["advance"] or 1),
    )

    # Nobody writes an id in another way than `str` does: one with two kinds of work, or
    # `n1~1`, is none of ours.
    if str(parsed) != text:
        return None
    return parsed
