"""Finds one property of one thing in passages, with the sentence that gives it.

A sentence counts only if it begins with the thing and has nothing but plain words up to the figure: nothing is guessed.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from activities.providers.offline.questions import core
from activities.providers.offline.words import FIGURE, SCALES, Attribute, any_of, unit_of

Fact = dict[str, Any]

_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?]\W))(?<!\b(?:St|Mt|Dr|Mr|vs|No)\.)(?<!\b[A-Z]\.)\s+(?=\W?[^\W_a-z])")
_HEADING, _BULLET = re.compile(r"\s{0,3}#{1,6}\s+"), re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_KEY = re.compile(r"^([A-Za-z ]{3,40}): (?=[\d-]|about )")
_MARKUP = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_COMMON_WORDS = "a about an and are as at by did do does for from had has have how in is it its of on or that the their"
_COMMON = frozenset(f"{_COMMON_WORDS} to was were what when where which who why with".split())
_IS, _WAS = "(?:is|are|stands|measures|rises|lies|takes|has|have|had)", "(?:is|are|was|were)"
_HAS_A = "(?:has|have|had|reaches|can reach|(?:lies|stands|is|are) at) (?:an? |the )"
_ABOUT = "(?:(?:about|around|roughly|approximately|some|on average|an estimated|a total of|up to) )*"
_TAIL = (
    r"(?=$|[.;:)](?!\d)|,(?! (?:if|unless|but|or)\b|\d)| \(| (?:and(?! \d)|as of|in (?:all|total|\d{4})|when|which|"
    r"while|measured|since|above (?:the )?ground|of water|today)\b)"
)
_DATE = (
    r"(?:the year )?(?:\d{1,2} )?(?:[a-z]+ )?(?:\d{1,2}, )?(?:AD )?(?P<year>(?<=AD )\d{1,2}|\d{3,4})"
    r"(?![\w\u2013\u2014-]|[.,:]\d| ?[\u2013-]| (?:bce?|to|or)\b)"
)
_HOLDS_FOR = re.compile(r"(?: in all)?(?:,? (?:as of|in|since) | \()(\d{4})\b")
_WHO = r"(?:(?!\b(?:who|not|never|no|nobody|if|whether|it|they|he|she|that)\b)[^,;:()]){1,80}?"


class Passage(NamedTuple):
    """A piece of a document, and the node whose output it came in."""

    path: str
    title: str
    text: str
    node: str = ""


def sentences(passage: Passage) -> list[str]:
    """Return the statements of a passage in order, without headings and tables, each of at most 1,000 characters."""
    return [text for text in _statements(passage) if not _HEADING.match(text)]


def _statements(passage: Passage) -> Iterator[str]:
    """Yield sentences, and headings with their marks."""
    block = ""
    for line in [*passage.text.splitlines(), ""]:
        heading, plain = _HEADING.match(line), _MARKUP.sub("", _BULLET.sub("", line, count=1)).strip()
        if heading or not plain or plain.count("|") > 1 or _BULLET.match(line) or _KEY.match(plain):
            yield from (part[:1_000] for part in _END.split(block.strip()) if part)
            block = ""
        if heading:
            yield line
        elif plain.count("|") < 2:
            block += f" {plain}"


def nearest(prompt: str, passages: Sequence[Passage], most: int = 3) -> list[tuple[Passage, str]]:
    """Return the sentences that share most words with a prompt, in their order; the first where none shares any."""
    items = list(dict.fromkeys((passage, text) for passage in passages for text in sentences(passage)))
    wanted = _stems(prompt)
    scores = [len(wanted & (_stems(text) | _stems(passage.title))) for passage, text in items]
    best = sorted(range(len(items)), key=lambda index: (-scores[index], index))[:most]
    return [items[index] for index in sorted(index for index in best if scores[index] or index == best[0])]


def _stems(text: str) -> set[str]:
    words = set(re.findall(r"[^\W_]+", _unaccented(text).lower())) - _COMMON
    return {re.sub(r"(?<=\w{3})(?:ing|ed|er|es|s|e)$", "", word) for word in words}


def _unaccented(text: str) -> str:
    return "".join(unicodedata.normalize("NFKD", char)[0] if char.isalpha() else char for char in text)


def find(attribute: Attribute, subject: str, unit: str, passages: Sequence[Passage]) -> Fact:
    """Return `{found: true, value, unit, quote, source, ...}`, or `{found: false, near}` with near sentences."""
    pairs = [pair for passage in passages for pair in _facts(attribute, subject, unit, passage)]
    found = [fact for fact, own in pairs if own] or [fact for fact, _ in pairs]
    if all(fact["year"] for fact in found):  # else documents that do not agree tell nothing
        found = [fact for fact in found if fact["year"] == max(other["year"] for other in found)]
    about: Fact = {"subject": subject, "name": subject}
    if len({(fact["quote"] if attribute.did else fact["value"], fact["unit"]) for fact in found}) == 1:
        return {"found": True, **about, **found[0]}
    words = " ".join((subject, *attribute.nouns, *attribute.after, *attribute.happened, attribute.did))
    quotes = [{"source": fact["source"], "quote": fact["quote"]} for fact in found[:3]]
    near = [{"source": passage.path, "quote": text} for passage, text in nearest(words, passages, 2)]
    return {"found": False, **about, "near": quotes or near}


def _facts(attribute: Attribute, subject: str, unit: str, passage: Passage) -> Iterator[tuple[Fact, bool]]:
    words = map(re.escape, re.split(r"[\s-]+", _unaccented(core(subject))))
    name = rf"(?:the |an? )?(?:(?:river|mount|mt\.?) )?{r'[ -]'.join(words)}(?: river)?(?!\w)"
    patterns = [re.compile(text, re.IGNORECASE) for text in _patterns(attribute, name)]
    own = topical = follows = core(subject) == core(passage.title)
    for quote in _statements(passage):
        if heading := _HEADING.match(quote):
            topical = follows = core(subject) == core(quote[heading.end() :].strip(" #"))
            continue
        text = _unaccented(quote)
        if follows:  # a pronoun is the thing while the sentence before names nothing else
            text = re.sub(r"^(?:It|They|(Its|Their))\b", lambda it: subject + ("'s" if it[1] else ""), text)
        if topical:
            text = _KEY.sub(lambda key: f"{key[1]} of {subject} is ", text, count=1)
        matches = (pattern.match(text) for pattern in patterns)
        if read := next((read for match in matches if match and (read := _value(attribute, unit, match))), None):
            yield {"year": None, **read, "quote": quote, "source": passage.path}, own
        named = re.match(name, text, re.IGNORECASE)
        follows = named is not None and not re.search(r"\s[^\W\d_a-z]", text[named.end() :])


def _patterns(attribute: Attribute, name: str) -> list[str]:
    """Return how a sentence begins that gives the attribute of the thing."""
    start = rf"(?:(?:in|as of|by) (?P<lead>\d{{4}}),? )?{name}(?: \([^()]*\))?(?:, [^,;]{{1,80}},)? "
    figure, nouns, after = f"{_ABOUT}{FIGURE}", any_of(attribute.nouns), any_of(attribute.after)
    if attribute.did:
        did, capital = re.escape(attribute.did), r"(?-i:[^\W\d_a-z])"
        return [
            rf"(?={capital}){_WHO} {did} {name}(?!['\u2019-]| {capital})",
            rf"{start}(?:was|were) {did}(?: in \d{{4}})?,? by (?:[a-z]+ ){{0,4}}?{capital}",
        ]
    if attribute.happened:
        aside = r"(?: to the public)?(?:,? by [^,.;\d]{1,60}?)?,?"
        return [rf"{start}(?:was |were )?(?P<event>{any_of(attribute.happened)}){aside} (?:in|on) {_DATE}"]
    return [
        rf"{start}{_IS} {figure}[\s-](?:known )?{after}{_TAIL}",
        rf"{start}{_HAS_A}{nouns}(?: of)? {figure}{_TAIL}",
        rf"{start}{any_of(attribute.verbs)} {figure}{_TAIL}",
        rf"(?:the )?{nouns} of {name} {_WAS} {figure}{_TAIL}",
        rf"{name}['\u2019]s? {nouns} {_WAS} {figure}{_TAIL}",
    ]


def _value(attribute: Attribute, asked: str, match: re.Match[str]) -> Fact | None:
    """Return value, unit and, where the text says it, the year that it holds for; None for another measure."""
    groups = match.groupdict()
    if attribute.did:
        return {"value": None, "unit": ""}
    if attribute.happened:
        return {"value": int(match["year"]), "unit": "", "text": f"{match['event'].lower()} in {match['year']}"}
    unit, symbol = unit_of(match["unit"] or ""), asked or attribute.unit
    target = unit if symbol is None else unit_of(symbol)
    if unit is None or target is None or target.dimension != unit.dimension:
        return None
    holds = _HOLDS_FOR.match(match.string, match.end())
    year = groups.get("lead") or (holds and holds[1])
    number = float(match["number"].replace(",", "")) * SCALES.get((match["scale"] or "").lower(), 1)
    number *= unit.factor / target.factor * (-1 if match["sign"] else 1)
    value = float(f"{number:.{12 if unit == target else 6}g}")
    value = int(value) if value.is_integer() and abs(value) < 1e15 else value
    return {"value": value, "unit": target.symbol, "year": int(year) if year else None}
