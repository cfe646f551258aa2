"""Reads documents: their statements, and whether one carries the words of a question."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?]\W))(?<!\b(?:St|Mt|Dr|Mr|vs|No)\.)(?<!\b[A-Z]\.)\s+(?=\W?[^\W_a-z])")
_HEADING, _BULLET = re.compile(r"\s{0,3}#{1,6}\s+"), re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_KEY = re.compile(r"^[A-Z][A-Za-z -]{2,40}: (?=\S)")
_RULE = re.compile(r"^[\s|:-]+$")
_MARKUP = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_PLURAL, _ENDING = re.compile(r"(?<=\w{2}[^\Ws])s$"), re.compile(r"(?<=\w{3})(?:ing|ed|er|e){1,2}$")
_CAPITALISED = r"[^\W\d_a-z][\w&-]*"
_NAME = re.compile(rf"\b{_CAPITALISED}(?: {_CAPITALISED})*(?P<possessive>['\u2019]s? +(?P<possessed>\w+))?")

_COMMON_WORDS = (
    "a about all an and any are as at be been by can could did do does for from get had has have how i in is it its "
    "many me much my of on or our please should so tell that the their them there these they this to us was we were "
    "what when where which while who whom whose why will with you your"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_FAMILIES = """
long length|high height tall|deep depth|wide width breadth|heavy weight weigh mass|fast speed|area cover|hot temperature
cost price charge expensive cheap|population people inhabitant resident|decide decision agree
own owner responsible|start begin began|end finish expire|build built|open opening|orbit orbital
"""


class Passage(NamedTuple):
    """A piece of a document, and the node whose output it came in."""

    path: str
    title: str
    text: str
    node: str = ""


class Statement(NamedTuple):
    """A sentence, an entry of a list or a row of a table: as it stands, and what it is said of where it does not say so
    itself: `about` is the title or heading above an entry.
    """

    passage: Passage
    text: str
    about: str = ""


def _stem(word: str) -> str:
    return re.sub("y$", "i", _ENDING.sub("", _PLURAL.sub("", word)))


_FAMILY = {_stem(word): row.split()[0] for row in re.split(r"[|\n]", _FAMILIES.strip()) for word in row.split()}


def stems(text: str) -> frozenset[str]:
    """Return what the words of a text stand for, whatever their form; common words stand for nothing."""
    plain = re.sub(r"['\u2019]s\b", "", unaccented(text).lower())
    words = set(re.findall(r"[^\W_]+", plain)) - _COMMON
    return frozenset(_FAMILY.get(_stem(word), _stem(word)) for word in words)


def unaccented(text: str) -> str:
    return "".join(unicodedata.normalize("NFKD", char)[0] if char.isalpha() else char for char in text)


def statements(passage: Passage) -> Iterator[Statement]:
    """Yield the statements of a passage in order, each of at most 1,000 characters; headings and heads of tables are
    none.
    """
    block, about, heading, in_table = "", "", passage.title, False
    for line in [*passage.text.splitlines(), ""]:
        plain = _MARKUP.sub("", _BULLET.sub("", line, count=1)).strip()
        is_row, is_heading = plain.count("|") > 1, _HEADING.match(line) is not None
        is_entry = _BULLET.match(line) is not None or _KEY.match(plain) is not None
        if is_heading or is_row or is_entry or not plain:
            yield from (Statement(passage, part[:1_000], about) for part in _END.split(block.strip()) if part)
            block, about = "", heading if is_entry else ""
        if is_heading:
            title = _HEADING.sub("", line).strip(" #")
            heading = passage.title if stems(title) <= stems(passage.title) else f"{passage.title} / {title}"
        elif is_row and in_table and not _RULE.match(plain):
            yield Statement(passage, plain[:1_000], heading)
        elif not is_row:
            block = f"{block} {plain}"
        in_table = is_row


def carries(wanted: frozenset[str], statement: Statement) -> bool:
    """Whether a statement says all the words of a question, of the same things: `Blue Nile` and `the Nile's delta` do
    not say `Nile`. What it is said of counts where it does not say so itself.
    """
    says = stems(statement.text) - _others(wanted, statement.text)
    about = frozenset[str]().union(*(stems(part) - _others(wanted, part) for part in statement.about.split(" / ")))
    return bool(wanted & says) and wanted <= says | about


def _others(wanted: frozenset[str], text: str) -> frozenset[str]:
    """Return the words that are part of the name of something else."""
    others = frozenset[str]()
    for name in _NAME.finditer(unaccented(text)):
        words, possessed = stems(name[0].partition("'")[0]), name["possessed"]
        if words & wanted and (not words <= wanted or (possessed and not stems(possessed) & wanted)):
            others |= words
    return others


def nearest(prompt: str, passages: Sequence[Passage], most: int = 3) -> list[Statement]:
    """Return the statements that share most words with a prompt, in their order; the first where none shares any."""
    items = list(dict.fromkeys(each for passage in passages for each in statements(passage)))
    wanted = stems(prompt)
    scores = [len(wanted & stems(f"{each.text} {each.passage.title}")) for each in items]
    best = sorted(range(len(items)), key=lambda index: (-scores[index], index))[:most]
    return [items[index] for index in sorted(index for index in best if scores[index] or index == best[0])]
