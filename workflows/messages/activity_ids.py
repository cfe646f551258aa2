"""What activities of nodes are called: the one place that writes their ids, and reads them again."""

import re
from dataclasses import dataclass
from typing import Final, Literal

Work = Literal["", "question", "ledger", "goal"]
"""What an activity does for its node, if it is not its call: put a question together, look a write up, bind a goal."""
RUN: Final = "run:"
"""What the ids of a run's own activities begin with."""
_FORM: Final = re.compile(
    r"(?P<node>[^~+.@]+(?:(?<=\])\.(?!question|ledger|goal)\w+)?)(?:~(?P<generation>[0-9]{1,9}))?(?:\+(?P<others>[0-9]{1,9}))?"
    r"(?:\.(?P<question>question))?(?:\.(?P<ledger>ledger))?(?:@(?P<epoch>[0-9]{1,9}))?(?:\.(?P<goal>goal))?"
)


@dataclass(frozen=True, slots=True)
class ActivityId:
    """The path of a node or item, its generation, how many `others` run in the same activity, and the number of the
    run's plan: `n1`, `n1~2`, `m[0]+49`, `m[0].page`, `n1~2.ledger`, `n1@3`, `sub@3.goal`.
    """

    node: str
    generation: int = 1
    others: int = 0
    work: Work = ""
    epoch: int = 1

    @property
    def full_path(self) -> str:
        """The path with its generation."""
        return self.node if self.generation == 1 else f"{self.node}~{self.generation}"

    def __str__(self) -> str:
        others = f"+{self.others}" if self.others else ""
        before = f".{self.work}" if self.work in ("question", "ledger") else ""
        epoch = f"@{self.epoch}" if self.epoch > 1 else ""
        behind = ".goal" if self.work == "goal" else ""
        return f"{self.full_path}{others}{before}{epoch}{behind}"


def parse_activity_id(text: str) -> ActivityId | None:
    """Return what an id says; None for an activity of the run itself, or of nobody here."""
    found = _FORM.fullmatch(text)
    if found is None or text.startswith(RUN):
        return None
    works: tuple[Work, ...] = ("question", "ledger", "goal")
    work: Work = next((each for each in works if found[each]), "")
    numbers = (int(found["generation"] or 1), int(found["others"] or 0))
    parsed = ActivityId(found["node"], *numbers, work, int(found["epoch"] or 1))
    return parsed if str(parsed) == text else None
