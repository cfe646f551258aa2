"""Reads documents: their statements, and whether one carries the words of a question."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sennit.activities.limits import MAX_KEPT_STATEMENTS_BYTES
from sennit.workflows.plan.bounded_cache import BoundedCache

_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?]\W))(?<!\b(?:St|Mt|Dr|Mr|vs|No)\.)(?<!\b[A-Z]\.)\s+(?=\W?[^\W_a-z])")
_HEADING, _BULLET = re.compile(r"\s{0,3}#{1,6}\s+"), re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_KEY = re.compile(r"^(?P<key>[^\W\d_][\w'\u2019&-]*(?: [\w'\u2019&-]+){0,3}?)(?::| [-\u2013\u2014]) (?=\S)")
_RULE = re.compile(r"^[\s|:-]+$")
_IN_BRACKETS = re.compile(r"\(([^()]+)\)$")
_WORD = re.compile(r"[^\W_]+(?:['\u2019]s\b)?")
_CLAUSE = re.compile(r"[,;] (?:and|but|while) ")
_GOES_ON = re.compile(r"(?i)^(?:it|they|he|she|this|these)\b|\b(?P<place>there)\b(?! (?:is|are|was|were)\b)")
_MARKUP = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_PLURAL, _ENDING = re.compile(r"(?<=\w{2}[^\Ws])s$"), re.compile(r"(?<=\w{3})(?:ing|ed|er|e){1,2}$")
_CAPITALISED = r"[^\W\d_a-z][\w&-]*"
_NAME = re.compile(rf"\b{_CAPITALISED}(?: {_CAPITALISED})*(?P<possessive>['\u2019]s? +(?P<possessed>\w+))?")

_COMMON_WORDS = (
    "a about after all an and any are as at be been by came can come comes could did do does doing each every for "
    "from get go goes had has have her his how i in is it its made make makes many me might much must my now of "
    "on or our out per please shall should so still tell that the their them there these they this to us was we "
    "were what when where which while who whom whose why will with would you your"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_FAMILIES = """
long length|high height tall|deep depth|wide width breadth|heavy weight weigh mass|fast speed|area cover|hot temperature
cost price charge expensive cheap|population people inhabitant resident|decide decision agree|build built|orbit orbital
own owner responsible handle manage lead|start begin began begun|end finish expire|open opening|rent rental
choose chose chosen|sell sold|buy bought|pay paid|hold held|keep kept|leave left|run ran|send sent|teach taught
write wrote written|break broke broken|draw drew drawn|find found|give gave given|grow grew grown|lose lost|meet met
say said|speak spoke|spend spent|steal stole stolen|tell told|win won
day daily|week weekly|month monthly|year yearly annual
"""


class Passage(NamedTuple):
    """A piece of a document, and the node whose output it came in."""

    path: str
    title: str
    text: str
    node: str = ""


class Statement(NamedTuple):
    """A sentence, an item of a list or a cell of a table: `text` as it stands, and what it `says` in words.

    A cell says what its row and column are called, as in `Tern: price 1,240 EUR`; its `key` is then `Tern`, as it is in
    `Tern: ready in June`. `about` is the title and heading above, and `place` where it stands in its `paragraph`.
    """

    passage: Passage
    text: str
    says: str
    about: str = ""
    paragraph: tuple[str, ...] = ()
    place: int = 0
    is_item: bool = False
    key: str = ""

    @property
    def before(self) -> tuple[str, ...]:
        """The sentences before it in its paragraph."""
        return self.paragraph[: self.place]


def _stem(word: str) -> str:
    return re.sub("y$", "i", _ENDING.sub("", _PLURAL.sub("", word)))


_FAMILY = {_stem(word): row.split()[0] for row in re.split(r"[|\n]", _FAMILIES.strip()) for word in row.split()}


_PROPERTIES = frozenset(("long", "high", "deep", "wide", "heavy", "fast", "area", "hot", "cost", "population"))
"""What a statement must say itself: that something else costs 5 euros says of nothing what it costs."""


def stems(text: str) -> frozenset[str]:
    """Return what the words of a text stand for, whatever their form; common words stand for nothing."""
    plain = re.sub(r"['\u2019]s\b", "", unaccented(text).lower())
    words = {word: _stem(word) for word in re.findall(r"[^\W_]+", plain)}
    return frozenset(_FAMILY.get(stem, stem) for word, stem in words.items() if not {word, stem} & _COMMON)


def unaccented(text: str) -> str:
    return "".join(unicodedata.normalize("NFKD", char)[0] if char.isalpha() else char for char in text)


def statements(passage: Passage) -> Iterator[Statement]:
    """Yield the statements of a passage in order, each of at most 1,000 characters; headings are none."""
    block, about, head, is_item = "", passage.title, list[str](), False
    for line in [*passage.text.splitlines(), ""]:
        plain = _MARKUP.sub("", _BULLET.sub("", line, count=1)).strip()
        is_row, is_heading = plain.count("|") > 1, _HEADING.match(line) is not None
        starts_item = _BULLET.match(line) is not None
        if is_heading or is_row or starts_item or _KEY.match(plain) or not plain:
            yield from _sentences(passage, block, about, is_item)
            block, is_item = "", starts_item
        if is_heading:
            title = _HEADING.sub("", line).strip(" #")
            about = passage.title if stems(title) <= stems(passage.title) else f"{passage.title} / {title}"
        elif is_row and head:
            yield from () if _RULE.match(plain) else _cells(passage, plain, about, head)
        elif not is_row:
            block = f"{block} {plain}"
        head = (head or _split(plain)) if is_row else []


def _sentences(passage: Passage, block: str, about: str, is_item: bool) -> Iterator[Statement]:
    paragraph = tuple(part[:1_000] for part in _END.split(block.strip()) if part)
    for place, text in enumerate(paragraph):
        key = _KEY.match(text)
        yield Statement(passage, text, text, about, paragraph, place, is_item and not key, key["key"] if key else "")


def _split(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("| ").split("|")]


def _cells(passage: Passage, row: str, about: str, head: Sequence[str]) -> Iterator[Statement]:
    """Yield what each cell of a row says, and what the whole row does; a unit in the head belongs to the figures."""
    label, *cells = _split(row)
    said = []
    for name, cell in zip(head[1:], cells, strict=False):
        unit = _IN_BRACKETS.search(name)
        said.append(f"{name[: unit.start()].rstrip()} {cell} {unit[1]}" if unit else f"{name} {cell}")
    for what in [*said, "; ".join(said)] if len(said) > 1 else said:
        yield Statement(passage, row[:1_000], f"{label}: {what}"[:1_000], about, key=label)


def carries(wanted: frozenset[str], implied: frozenset[str], statement: Statement, named: str = "") -> int | None:
    """Return how well a statement says all the words of a question: 0 by itself, 1 with what its form and units imply,
    2 with what stands around it, None where it does not.

    It must say them of the same things: `Blue Nile` and `the Nile's delta` do not say `Nile`. Around it are the heading
    above and the sentences before it, if it is an item of a list or goes on about what the question names; `named` is
    the answer that it may begin with.
    """
    says = _said(wanted, statement.says)
    if wanted <= says | implied:
        return 0 if wanted <= says else 1
    stated = says | implied | (around(wanted, statement, named) - _PROPERTIES)
    return 2 if wanted & (says | implied) and wanted <= stated else None


def around(wanted: frozenset[str], statement: Statement, named: str = "") -> frozenset[str]:
    """Return the words of a question that stand around a statement and belong to it."""
    topics = {_topic(clause, named) for clause in _CLAUSE.split(statement.says)}
    if not (statement.is_item or topics & wanted & _said(wanted, statement.says)):
        goes_on = _GOES_ON.search(statement.says)
        subject = next((text for text in reversed(statement.before) if _topic(text)), "")
        if not goes_on or (goes_on["place"] is None and _topic(subject) not in wanted):
            return frozenset()
    *above, heading = statement.about.split(" / ")
    texts = [heading, *(above if stems(heading) & wanted else ())]
    stated = _stated_before(wanted, statement.paragraph)[statement.place] if statement.place else frozenset[str]()
    return wanted & stated.union(*(_said(wanted, text) for text in texts))


_STATED = BoundedCache[tuple[frozenset[str], tuple[str, ...]], list[frozenset[str]]](MAX_KEPT_STATEMENTS_BYTES)


def _stated_before(wanted: frozenset[str], paragraph: tuple[str, ...]) -> list[frozenset[str]]:
    """Return the words of a question that the sentences before each one of a paragraph say: each is read once."""
    return _STATED.get_or_make((wanted, paragraph), lambda: _stated_in(wanted, paragraph))


def _stated_in(wanted: frozenset[str], paragraph: tuple[str, ...]) -> list[frozenset[str]]:
    found = [frozenset[str]()]
    for text in paragraph:
        names = (name[0].split()[0] for name in _NAME.finditer(text))  # `Ann Lee` goes on as `Ann`
        found.append(found[-1] | wanted & _said(wanted, text).union(*map(stems, names)))
    return found


def in_context(wanted: frozenset[str], statement: Statement) -> str:
    """Return a statement behind the sentences before it that say what it does not say itself."""
    lacks = wanted - stems(statement.says)
    return " ".join([*(text for text in statement.before if stems(text) & lacks), statement.says])


def _topic(text: str, named: str = "") -> str:
    """Return the first word that stands for something: what a sentence is about; empty where that is a pronoun."""
    words = () if _GOES_ON.match(text) else _WORD.findall(text.replace(named, " ") if named else text)
    return next((stem for word in words for stem in stems(word)), "")


def _said(wanted: frozenset[str], text: str) -> frozenset[str]:
    """Return what the words of a text stand for, without those that are part of the name of something else."""

    def of_the_same(name: re.Match[str]) -> str:
        words, possessed = stems(name[0].partition("'")[0]), name["possessed"]
        is_other = words & wanted and (not words <= wanted or (possessed and not stems(possessed) & wanted))
        return (possessed or "") if is_other else name[0]

    return stems(_NAME.sub(of_the_same, unaccented(text)))


def nearest(prompt: str, passages: Sequence[Passage], most: int = 3) -> list[Statement]:
    """Return the statements that share most words with a prompt, in their order; the first where none shares any."""
    items = list({each.text: each for passage in passages for each in statements(passage)}.values())
    wanted = stems(prompt)
    scores = [len(wanted & stems(f"{each.says} {each.passage.title}")) for each in items]
    best = sorted(range(len(items)), key=lambda index: (-scores[index], index))[:most]
    return [items[index] for index in sorted(index for index in best if scores[index] or index == best[0])]
