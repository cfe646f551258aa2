"""The evidence of a joiner's answer: what stands in its source keeps its mark, and the
text says what does not.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import from_json

from sennit.activities.limits import MAX_EVIDENCE, MAX_QUOTED_LEVELS
from sennit.activities.prompts.outputs import Result
from sennit.workflows.plan.language.json_schema import parts_of
from sennit.workflows.plan.language.text import format_value

SHORTEST_QUOTE = 12
"""Characters from which on a quote tells enough; a shorter one has to be a
whole value, with its unit.
"""
UNPROVEN = "[unproven]"
"""What stands in an answer in the place of a mark whose evidence does not hold."""

_MARK = re.compile(
    r"(?P<ticks>`+)|(?P<space>\s?)\[(?P<numbers>\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\](?!\()"
)
_NODE = re.compile(r"[\s$\[{(]*(?P<name>[A-Za-z0-9_]{1,40})")
_NUMBER = re.compile(r"[-+]?[$\u20ac\u00a3]? ?\d[\d.,' ]*%?")
_AMOUNT = re.compile(
    r"[-+\u2212]?(?:[$\u20ac\u00a3\u00a5]\s?\d[\d.,']*+|\d[\d.,' ]*+(?:%|\u00b0\s?[a-z]?"
    r"|[^\W\d_][/\u00b2\u00b3\w]*+))"
)
_PLACES = ("path", "url", "source")
_STRAIGHT = str.maketrans("\u201c\u201d\u2018\u2019\u00a0", "\"\"'' ")


def cited(
    answer: Any, entries: list[Any], results: Mapping[str, Result]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return an output `{answer, evidence}` with the evidence that stands, numbered by
    its marks, and warnings.

    The mark of evidence that does not stand says so; one without an entry goes. Brackets that
    cannot be marks stay: in code, behind a word as in `x[0]`, lists of other numbers, and all of
    them in answers that are numbers or JSON.
    """
    warnings: list[str] = []
    evidence: list[dict[str, Any]] = []
    numbers: dict[int, int] = {}
    """For each number that the model has given, the number of the evidence now:
    0 if it does not stand.
    """
    for place, entry in enumerate(entries, 1):
        number = place
        if isinstance(entry, dict) and isinstance(entry.get("n"), int):
            number = entry["n"]
        numbers.setdefault(number, 0)
        if place > MAX_EVIDENCE:
            continue
        piece = _piece(entry, results, warnings)
        if piece is not None:
            evidence.append({"n": len(evidence) + 1, **piece})
            numbers[number] = len(evidence)
    if len(entries) > MAX_EVIDENCE:
        warnings.append(f"evidence behind the first {MAX_EVIDENCE} pieces was left out")

    # Evidence that the text does not mark is marked at its end.
    if isinstance(answer, str) and not _is_data(answer):
        answer, marked = _renumbered(answer, numbers, warnings)
        unmarked = [f"[{piece['n']}]" for piece in evidence if piece["n"] not in marked]
        if unmarked:
            answer = f"{answer} {''.join(unmarked)}"
    return {"answer": answer, "evidence": evidence}, tuple(warnings)


def _is_data(answer: str) -> bool:
    """Whether an answer is a number, JSON or a block of code, which marks would spoil."""
    text = answer.strip()
    if _NUMBER.fullmatch(text) or text.endswith("```"):
        return True
    try:
        from_json(text)
    except ValueError:
        return False
    return True


def _marks(answer: str) -> Iterator[re.Match[str]]:
    """Yield the marks outside of code, which begins and ends with as many backticks."""
    found = list(_MARK.finditer(answer))
    last = {mark["ticks"]: place for place, mark in enumerate(found) if mark["ticks"]}
    opening = None
    """The backticks that the code around this place has begun with; None outside of code."""
    for place, mark in enumerate(found):
        ticks = mark["ticks"]
        if opening is not None:
            if ticks == opening:
                opening = None
        elif not ticks:
            yield mark
        elif last[ticks] > place:
            opening = ticks


def _renumbered(
    answer: str, numbers: Mapping[int, int], warnings: list[str]
) -> tuple[str, set[int]]:
    """Return the answer with its marks as the evidence is numbered now, and those numbers."""
    renumbered = ""
    end = 0
    marked: set[int] = set()
    for mark in _marks(answer):
        start = mark.start()
        written = [int(number) for number in re.split("[,;]", mark["numbers"])]
        known = [numbers[number] for number in written if number in numbers]
        if not known:
            # Brackets that cannot be a mark stay, as of an index behind a word.
            is_behind_word = start > 0 and answer[start - 1].isalnum() and not mark["space"]
            if len(written) > 1 or is_behind_word:
                continue
            warnings.append(
                f"the mark [{written[0]}] was left out: there is no evidence with that number"
            )
        text = ""
        for number in dict.fromkeys(known):
            if number:
                text += f"[{number}]"
        if 0 in known:
            text += UNPROVEN
        renumbered += answer[end:start]
        if text:
            renumbered += f"{mark['space']}{text}"
        marked.update(known)
        end = mark.end()
    return renumbered + answer[end:], marked


def _piece(entry: Any, results: Mapping[str, Result], warnings: list[str]) -> dict[str, str] | None:
    """Return a piece of evidence, None with a warning if it does not stand."""
    if not isinstance(entry, dict):
        warnings.append(f"evidence {format_value(entry)} is no object and was left out")
        return None
    name = ""
    named = _NODE.match(str(entry.get("node", "")))
    if named:
        name = named["name"]
    if name.isdecimal() and name.isascii():
        name = f"n{int(name)}"
    quote = _line(entry.get("quote"))
    claim = _line(entry.get("claim"))
    if name not in results:
        warnings.append(
            f"evidence of {format_value(entry.get('node'))} was left out: there is no such result"
        )
        return None
    if not claim:
        warnings.append(f"evidence of {name} was left out: it has no claim")
        return None
    source: str | None = ""
    if quote:
        source = _source_of(results[name].value, _plain(quote), "", 0)
    if source is None:
        why = (
            f"the quote {format_value(quote)} does not stand in {name} as a passage or a whole "
            "value"
        )
        warnings.append(f"{format_value(claim)} is unproven: {why}")
        return None
    return {"node": name, "claim": claim, "source": source, "quote": quote}


def _source_of(value: Any, quote: str, document: str, depth: int) -> str | None:
    """Return the path or address nearest to where a quotation stands in a result, "" if none is
    near; None if it does not stand there. `document` is the nearest one so far.
    """
    if isinstance(value, str):
        if _stands(quote, _plain(value)):
            return document
        return None
    if depth > MAX_QUOTED_LEVELS:
        return None
    if isinstance(value, int | float):
        return document if quote == str(value) else None
    if isinstance(value, dict):
        for field in _PLACES:
            if isinstance(value.get(field), str):
                document = value[field]
                break
    for item in parts_of(value):
        source = _source_of(item, quote, document, depth + 1)
        if source is not None:
            return source
    return None


def _stands(quote: str, text: str) -> bool:
    """Whether a quote is all of a text, or stands in it between whole words and
    numbers and says enough.
    """
    if quote == text:
        return bool(quote)
    says_little = len(quote) < SHORTEST_QUOTE and not _AMOUNT.fullmatch(quote)
    if says_little or quote not in text:
        return False
    pattern = re.escape(quote)

    # A number does not stand in a longer one: nothing of an amount is before or behind it.
    if quote[0].isdigit():
        pattern = r"(?<![\w$€£¥+\u2212\u2013-])(?<!\d[.,'])(?<!\d (?=\d{3}(?!\d)))" + pattern
    elif quote[0].isalnum():
        pattern = r"(?<!\w)" + pattern
    if quote[-1].isdigit():
        pattern += r"(?![.,']?\d)(?! \d{3}(?!\d))(?!\w)"
    elif quote[-1].isalnum():
        pattern += r"(?!\w)"
    return re.search(pattern, text) is not None


def _plain(text: str) -> str:
    """Return text as quotations are compared: one space between words, straight
    quotes, small letters.
    """
    return " ".join(text.translate(_STRAIGHT).split()).strip("\"'. …").lower()


def _line(text: Any) -> str:
    if not isinstance(text, str):
        return ""
    return " ".join(text.split())[:1000]
