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
_PRONOUN = re.compile(r"^(?:It|They|Its|Their)\b")
_PLURAL, _ENDING = re.compile(r"(?<=\w{2}[^\Ws])s$"), re.compile(r"(?<=\w{3})(?:ing|ed|er|e)$")
_CAPITALISED = r"[^\W\d_a-z][\w&-]*"
_NAME = re.compile(rf"\b{_CAPITALISED}(?: {_CAPITALISED})*(?P<possessive>['\u2019]s? +(?P<possessed>\w+))?")

_COMMON_WORDS = (
    "a about all an and any are as at be been by can could did do does for from get had has have how i in is it its me "
    "my of on or our please should so tell that the their them there these they this to us was we were what when where "
    "which while who whom whose why will with you your"
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
    itself. `about` is the title or heading above an entry, or above a pronoun that can mean nothing else.
    """

    passage: Passage
    text: str
    about: str = ""


def _stem(word: str) -> str:
    return re.sub("y$", "i", _ENDING.sub("", _PLURAL.sub("", word)))


_FAMILY = {_stem(word): row.split()[0] for row in re.split(r"[|\n]", _FAMILIES.strip()) for word in row.split()}


def stems(text: str) -> frozenset[str]:
    """Return what the words of a text stand for, whatever their form; common words stand for nothing."""
    words = set(re.findall(r"[^\W_]+", unaccented(text).lower())) - _COMMON
    return frozenset(_FAMILY.get(_stem(word), _stem(word)) for word in words)


def unaccented(text: str) -> str:
    return "".join(unicodedata.normalize("NFKD", char)[0] if char.isalpha() else char for char in text)


def statements(passage: Passage) -> list[Statement]:
    """Return the statements of a passage in order, each of at most 1,000 characters; headings are none."""
    return [each for each in _with_headings(passage) if not _HEADING.match(each.text)]


def _with_headings(passage: Passage) -> Iterator[Statement]:
    block, entry, heading, header = "", False, passage.title, ""
    for line in [*passage.text.splitlines(), ""]:
        plain = _MARKUP.sub("", _BULLET.sub("", line, count=1)).strip()
        is_row, is_key = plain.count("|") > 1, bool(_KEY.match(plain))
        if _HEADING.match(line) or not plain or is_row or is_key or _BULLET.match(line):
            yield from _parts(passage, block.strip(), heading, entry)
            block, entry = "", bool(_BULLET.match(line)) or is_key
        if _HEADING.match(line):
            title = _HEADING.sub("", line).strip(" #")
            heading = passage.title if stems(title) <= stems(passage.title) else f"{passage.title} / {title}"
            yield Statement(passage, line)
        elif is_row and not header:
            header = plain
        elif is_row and not _RULE.match(plain):
            yield Statement(passage, plain[:1_000], f"{heading} / {header}")
        elif not is_row:
            header, block = "", f"{block} {plain}"


def _parts(passage: Passage, block: str, heading: str, entry: bool) -> Iterator[Statement]:
    before = ""
    for part in filter(None, _END.split(block)):
        about = heading if entry or (_PRONOUN.match(part) and _is_about(before, passage.title)) else ""
        yield Statement(passage, part[:1_000], about)
        before = passage.title if about and not entry else part


def _is_about(text: str, title: str) -> bool:
    """Whether a sentence begins with the title and names nothing else, so that a pronoun behind it means that."""
    bare = re.sub(r"^(?:The|An?) ", "", text)
    return bool(title) and bare.startswith(title) and not _NAME.search(bare, len(title))


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
