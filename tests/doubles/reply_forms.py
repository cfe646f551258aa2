"""The tables of `reply_forms.md`, which docs/replies.md has as rules, and damage to what stands in them."""

import os
import random
import re
from collections.abc import Sequence
from pathlib import Path

DAMAGED = int(os.environ.get("SENNIT_DAMAGED_REPLIES", "10000"))
"""How many damaged replies each of the suite's readers reads. The full count is 100000, with `--timeout 900`."""

PAGE = Path(__file__).with_suffix(".md")


def rows(section: str) -> list[tuple[str, str, str]]:
    """Return the rows of a section's tables: reply, result, and the equal reply or the words of the error."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [re.split(r"(?<!\\) ?\| ?", line) for line in text.splitlines()]
    known = [cells for cells in lines if len(cells) == 5 and cells[2] in ("read", "repaired", "refused")]
    return [(_plain(reply), result, _plain(expected)) for _, reply, result, expected, _ in known]


def _plain(cell: str) -> str:
    text = cell.strip("`").strip() if cell.startswith("``") else cell.strip("`")
    return text.replace("↵", "\n").replace("\\|", "|").replace("BOM", "\ufeff")


def damaged(chance: random.Random, replies: Sequence[str]) -> str:
    """Return one of the replies with one to three pieces of it taken out, copied, put in or exchanged."""
    text = list(chance.choice(replies))
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text))
        match chance.randrange(4):
            case 0:
                del text[at : at + chance.randrange(1, 4)]
            case 1:
                text[at:at] = text[chance.randrange(len(text)) :][: chance.randrange(1, 20)]
            case 2:
                text[at:at] = chance.choice(
                    ["\n", "- ", "3. ", " x ", "**", "| ", "<END>", "Thought: ", "#", "(", "= "]
                )
            case _:
                text[at] = chance.choice(["\n", '"', "'", "(", ")", "[", "$", "{", "`", ",", "=", ".", "“", "x", "1"])
        text = text or ["x"]
    return "".join(text)
