"""References by line, `$1`, `${1.items[0].name}` and `$height` for `height = ...`,
as references by node.

A number refers to a line only if that line stands above. Prices and figures stay text: `$4
million`, `$1,000`, `$2.50`. What may be either is refused with both ways to write it.
"""

import re
from collections.abc import Callable

from sennit.workflows.plan.language.text import format_name, format_value
from sennit.workflows.plan.limits import MAX_LINE_NUMBER
from sennit.workflows.plan.planner_format.json_text import Unreadable

_STEP = r"""(?:\.[A-Za-z_][\w-]*|\[\d{1,6}\]|\["[\w-]{1,60}"\]|\['[\w-]{1,60}'\])"""
_NAME = r"[A-Za-z][A-Za-z0-9_]{0,39}"
_REFERENCE = re.compile(
    rf"\$\$|\$\{{(?P<inside>[^{{}}\n]{{0,200}})\}}(?P<more>{_STEP}*)"
    rf"|\$(?P<head>\d{{1,9}}(?!\d)|{_NAME})(?P<path>(?:{_STEP.replace('-]*', ']*')}"
    rf"(?:\.\d{{1,6}})?)*)",
    re.ASCII,
)
_INSIDE = re.compile(
    rf"\s*(?P<head>\d{{1,9}}|{_NAME})(?P<path>(?:{_STEP}|\.\d{{1,6}})*)\s*", re.ASCII
)
_LINE_WORD = r"(?:(?:n|e|step|line|task|node|result|output|results? of|output of)[ _#-]?)?"
_PLACEHOLDER = re.compile(
    rf"\A\s*(?:\{{\s*{_LINE_WORD}(?P<alone>\d{{1,3}})(?:[._]?\w+)?\s*\}}|<\s*{_LINE_WORD}(?P<angled>\d{{1,3}})[^<>]{{0,20}}>)\s*\Z"
    rf"|\{{\{{\s*{_LINE_WORD}(?P<doubled>\d{{1,3}})[^{{}}]{{0,40}}\}}\}}"
    r"|\b(?:results?|outputs?) (?:of|from) (?:line|step|task|call) #?(?P<said>\d{1,3})\b"
    r"|\A\s*<[A-Za-z][\w']*(?: [\w'.-]+){1,8}>\s*\Z",
    re.IGNORECASE,
)
"""What stands for the result of a line in other systems: a number in braces, or words
that describe the value.
"""
_SUBSCRIPT = re.compile(r"\[(?:-|\*|\w*:|[a-z]+\])")
_LETTER = re.compile(r"[^\W\d_]")

_FIGURE = re.compile(
    r",\d{3}(?!\d)|\.\d|(?:k|m|mn|mio|b|bn)\b|\s?(?:thousand|million|billion|trillion|usd|dollars?"
    r"|bucks?)\b",
    re.IGNORECASE | re.ASCII,
)
_UNIT = re.compile(
    r"[\s-]?(?:/[a-z]|[%\u20ac\u00a3\u00b0]|(?:per|each|apiece|fees?|off|discount|tax|tips?|bills?"
    r"|notes?|coins?|tickets?|prices?"
    r"|deposit|charges?|or (?:less|more)|and (?:up|under)|an? (?:hour|day|week|month|year|piece"
    r"|head)|euros?|eur|gbp|"
    r"percent|units?|items?|shares?|people|[ckm]?m|km/h|k?g|lbs?|ft|miles?|(?:kilo)?met(?:re|er)s?"
    r"|seconds?|minutes?|hours?|"
    r"days?|weeks?|months?|years?|hourly|daily|weekly|monthly|annual(?:ly)?|yearly)\b)|[A-Za-z_]",
    re.IGNORECASE | re.ASCII,
)
_PRICED = re.compile(
    r"(?:costs?|costing|pays?|paid|charges?|charged|spends?|spent|earns?|worth|priced at"
    r"|cheaper than|print|"
    r"(?:price|cost|fee|fine|budget|total|sum|amount|salary|value) of)\s+\Z",
    re.IGNORECASE,
)


def resolve(text: str, id_of: Callable[[str], str | None]) -> str:
    """Return `text` with references by line as references by node. `id_of` gives the node of a line
    above, by number or name. Raises Unreadable.
    """
    _refuse_placeholder(text, id_of)
    if "$" not in text:
        return text
    alone = _REFERENCE.fullmatch(text.strip()) is not None
    in_words = False
    if not alone:
        words = _REFERENCE.sub("", text)
        in_words = _LETTER.search(words) is not None

    def put(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$$"
        if found["head"] is None:
            return _braced(found, id_of)
        if not found["head"].isdigit():
            node = id_of(found["head"])
            if node is None:
                return found[0]
            return f"${{{node}{_dotted(found['path'])}}}"
        return _numbered(found, id_of, in_words=in_words)

    return _REFERENCE.sub(put, text)


def _refuse_placeholder(text: str, id_of: Callable[[str], str | None]) -> None:
    """Raise Unreadable for a text that means the result of a line and does not refer to it:
    nobody would fill it in.
    """
    for found in _PLACEHOLDER.finditer(text):
        number = found["alone"] or found["angled"] or found["doubled"] or found["said"]
        if number is None or id_of(number) is not None:
            todo = "write $ and the number of the line that gives it"
            if number:
                todo = f"write ${number}"
            raise Unreadable(
                f"{format_value(found[0])} is no reference, and would be taken as it is; {todo}"
            )


def _braced(found: re.Match[str], id_of: Callable[[str], str | None]) -> str:
    inside = _INSIDE.fullmatch(found["inside"])
    if inside is None:
        if found["inside"].strip()[:1].isdigit():
            raise Unreadable(
                f"{format_name(found[0])} is no reference; write ${{1}} or ${{1.items[0].name}}"
            )
        return found[0]
    head = inside["head"]
    node = id_of(head)
    if node is None and head.isdigit():
        raise _dangling(found[0], head)
    _refuse_subscript(found)
    path = _dotted(inside["path"] + found["more"])
    return f"${{{node or head}{path}}}"


def _numbered(found: re.Match[str], id_of: Callable[[str], str | None], *, in_words: bool) -> str:
    text = found.string
    number = found["head"]
    path = found["path"]
    before = text[max(0, found.start() - 30) : found.start()]
    after = text[found.end() : found.end() + 20]
    if not path and (_FIGURE.match(after) or _LETTER.match(before[-1:])):
        return found[0]
    node = id_of(number)
    price = False
    if not path and in_words:
        price = bool(_UNIT.match(after) or _PRICED.search(before))
    if node is not None and price:
        raise Unreadable(
            f"${number} may be the result of line {number} or an amount; write ${{{number}}} for "
            f"the result, $${number} for the amount"
        )
    if node is not None:
        _refuse_subscript(found)
        dotted = _dotted(path)
        if path == dotted:
            return f"${node}{path}"
        return f"${{{node}{dotted}}}"
    if price or (not path and int(number) > MAX_LINE_NUMBER):
        return found[0]
    raise _dangling(found[0], number)


def _dotted(path: str) -> str:
    """Return a path with `["name"]` as `.name` and `.0` as `[0]`."""
    path = re.sub(r"""\[["']([\w-]+)["']\]""", r".\1", path)
    return re.sub(r"\.(\d+)(?![\w-])", r"[\1]", path)


def _refuse_subscript(found: re.Match[str]) -> None:
    if _SUBSCRIPT.match(found.string, found.end()):
        end = found.string.find("]", found.end()) + 1
        if not end:
            end = len(found.string)
        wrong = format_name(found.string[found.start() : end])
        raise Unreadable(
            f"{wrong} is no path; write one index, such as $1[0], or a map for each of a list"
        )


def _dangling(written: str, number: str) -> Unreadable:
    wrong = f"it refers to {written}, and no line {number} stands above it"
    return Unreadable(f"{wrong}; write that line first, or $$ for a dollar sign")
