"""The evidence of a joiner's answer: what stands in its source keeps its mark, and the text says what does not."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import from_json

from sennit.activities.limits import MAX_EVIDENCE, MAX_QUOTED_LEVELS
from sennit.activities.prompts.outputs import Result
from sennit.workflows.plan.language.json_schema import parts_of
from sennit.workflows.plan.language.text import format_value

SHORTEST_QUOTE = 12
"""Characters from which on a quote tells enough; a shorter one has to be a whole value, with its unit."""
UNPROVEN = "[unproven]"
"""What stands in an answer in the place of a mark whose evidence does not hold."""

_MARK = re.compile(r"(?P<ticks>`+)|(?P<space>\s?)\[(?P<numbers>\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\](?!\()")
_NODE = re.compile(r"[\s$\[{(]*(?P<name>[A-Za-z0-9_]{1,40})")
_NUMBER = re.compile(r"[-+]?[$\u20ac\u00a3]? ?\d[\d.,' ]*%?")
_AMOUNT = re.compile(
    r"[-+\u2212]?(?:[$\u20ac\u00a3\u00a5]\s?\d[\d.,']*+|\d[\d.,' ]*+(?:%|\u00b0\s?[a-z]?|[^\W\d_][/\u00b2\u00b3\w]*+))"
)
_PLACES = ("path", "url", "source")
_STRAIGHT = str.maketrans("\u201c\u201d\u2018\u2019\u00a0", "\"\"'' ")


def cited(answer: Any, entries: list[Any], results: Mapping[str, Result]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return an output `{answer, evidence}` with the evidence that stands, numbered by its marks, and warnings.

    The mark of evidence that does not stand says so; one without an entry goes. Brackets that cannot be marks stay: in
    code, behind a word as in `x[0]`, lists of other numbers, and all of them in answers that are numbers or JSON.
    """
    warnings: list[str] = []
    numbers: dict[int, int] = {}
    evidence: list[dict[str, Any]] = []
    for place, entry in enumerate(entries, 1):
        piece = _piece(entry, results, warnings) if place <= MAX_EVIDENCE else None
        mark = entry.get("n") if isinstance(entry, dict) else None
        number = mark if isinstance(mark, int) else place
        numbers.setdefault(number, 0)
        if piece is not None:
            evidence.append({"n": len(evidence) + 1, **piece})
            numbers[number] = len(evidence)
    if len(entries) > MAX_EVIDENCE:
        warnings.append(f"evidence behind the first {MAX_EVIDENCE} pieces was left out")
    if isinstance(answer, str) and not _is_data(answer):
        answer, marked = _renumbered(answer, numbers, warnings)
        unmarked = "".join(f"[{piece['n']}]" for piece in evidence if piece["n"] not in marked)
        answer = f"{answer} {unmarked}" if unmarked else answer
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
    code = None
    for place, mark in enumerate(found):
        ticks = mark["ticks"]
        if code is not None:
            code = None if ticks == code else code
        elif not ticks:
            yield mark
        elif last[ticks] > place:
            code = ticks


def _renumbered(answer: str, numbers: Mapping[int, int], warnings: list[str]) -> tuple[str, set[int]]:
    """Return the answer with its marks as the evidence is numbered now, and those numbers."""
    pieces, end, marked = list[str](), 0, set[int]()
    for mark in _marks(answer):
        written = [int(number) for number in re.split("[,;]", mark["numbers"])]
        known = [numbers[number] for number in written if number in numbers]
        before = answer[mark.start() - 1 : mark.start()] if mark.start() else ""
        if not known and (len(written) > 1 or (not mark["space"] and before.isalnum())):
            continue
        text = "".join(f"[{number}]" for number in dict.fromkeys(known) if number)
        text += UNPROVEN if 0 in known else ""
        if not known:
            warnings.append(f"the mark [{written[0]}] was left out: there is no evidence with that number")
        pieces += [answer[end : mark.start()], f"{mark['space']}{text}" if text else ""]
        marked.update(known)
        end = mark.end()
    return "".join([*pieces, answer[end:]]), marked


def _piece(entry: Any, results: Mapping[str, Result], warnings: list[str]) -> dict[str, str] | None:
    """Return a piece of evidence, None with a warning if it does not stand."""
    if not isinstance(entry, dict):
        warnings.append(f"evidence {format_value(entry)} is no object and was left out")
        return None
    found = _NODE.match(str(entry.get("node", "")))
    name = found["name"] if found else ""
    name = f"n{int(name)}" if name.isdecimal() and name.isascii() else name
    quote, claim = _line(entry.get("quote")), _line(entry.get("claim"))
    if name not in results:
        warnings.append(f"evidence of {format_value(entry.get('node'))} was left out: there is no such result")
        return None
    if not claim:
        warnings.append(f"evidence of {name} was left out: it has no claim")
        return None
    source, held = _held(results[name].value, _plain(quote), "", 0) if quote else ("", True)
    if not held:
        why = f"the quote {format_value(quote)} does not stand in {name} as a passage or a whole value"
        warnings.append(f"{format_value(claim)} is unproven: {why}")
        return None
    return {"node": name, "claim": claim, "source": source, "quote": quote}


def _held(value: Any, quote: str, document: str, depth: int) -> tuple[str, bool]:
    """Return (document, whether) of a quotation in a result: the path or address nearest to where it stands."""
    if isinstance(value, str):
        return (document, True) if _stands(quote, _plain(value)) else ("", False)
    if depth > MAX_QUOTED_LEVELS:
        return "", False
    if isinstance(value, int | float):
        return (document, True) if quote == str(value) else ("", False)
    if isinstance(value, dict):
        documents = (value[field] for field in _PLACES if isinstance(value.get(field), str))
        document = next(documents, document)
    for item in parts_of(value):
        found = _held(item, quote, document, depth + 1)
        if found[1]:
            return found
    return "", False


def _stands(quote: str, text: str) -> bool:
    """Whether a quote is all of a text, or stands in it between whole words and numbers and says enough."""
    if quote == text:
        return bool(quote)
    if quote not in text or (len(quote) < SHORTEST_QUOTE and not _AMOUNT.fullmatch(quote)):
        return False
    before = r"(?<![\w$€£¥+\u2212\u2013-])(?<!\d[.,'])(?<!\d (?=\d{3}(?!\d)))" if quote[0].isdigit() else r"(?<!\w)"
    behind = r"(?![.,']?\d)(?! \d{3}(?!\d))(?!\w)" if quote[-1].isdigit() else r"(?!\w)"
    pattern = f"{before if quote[0].isalnum() else ''}{re.escape(quote)}{behind if quote[-1].isalnum() else ''}"
    return re.search(pattern, text) is not None


def _plain(text: str) -> str:
    """Return text as quotations are compared: one space between words, straight quotes, small letters."""
    return " ".join(text.translate(_STRAIGHT).split()).strip("\"'. …").lower()


def _line(text: Any) -> str:
    return " ".join(text.split())[:1000] if isinstance(text, str) else ""
