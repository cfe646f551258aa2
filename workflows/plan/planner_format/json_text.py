"""JSON in what a model wrote: bare, in a code fence, or with words around it."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sennit.workflows.plan.language.json_checks import first_violation
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.text import format_value

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|\'(?:[^\'\\]|\\.)*+\'?|\u201c(?:[^\u201d\\]|\\.)*+\u201d?'
    r"|[{}\[\]:,]|\s++|//[^\n]*+|/|[^\s{}\[\]:,\"'\u201c/]++",
    re.DOTALL,
)
_TO_ESCAPE = re.compile(r'\\(.)|"', re.DOTALL)
_LETTER_ESCAPE = re.compile(r"[bfnrt](?=[A-Za-z])")
_WORD = re.compile(r"[A-Za-z_]\w*")
_LITERALS = {"True": "true", "False": "false", "None": "null"}


class Unreadable(Exception):
    """What a model wrote cannot be read; the message says where and what to write, or
    nothing if that was said.
    """


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of these fields. Raises Unreadable if one would
    take the place of another.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        before = found.setdefault(name, value)
        if before is not value and before != value:
            raise Unreadable(f"{format_value(name)} stands twice in one object of the JSON")
    return found


# Line breaks stand in its texts.
_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_object)


def decode(text: str, start: int = 0) -> tuple[Any, int]:
    """Return (value, end) of the JSON at a place. Raises Unreadable; nothing else.

    What is malformed and can mean one thing only is read as that: line breaks and unknown
    escapes in texts, single or curly quotes, a comma at the end, names without quotes,
    comments, Python's True and None. What is cut is not, and neither are comments that stand
    for items which were left out.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        repaired, end = _repaired(text, start)
        try:
            value = _DECODER.decode(repaired)
        except (ValueError, RecursionError):
            raise Unreadable(
                f"the JSON breaks at line {error.lineno}, column {error.colno}: {error.msg}"
            ) from None
    except (ValueError, RecursionError):
        raise Unreadable("the JSON holds a number or a nesting that is too large") from None
    wrong = first_violation(value)
    if wrong is not None:
        where, sentence = wrong
        place = place_of(where) or "the JSON"
        raise Unreadable(f"{place} {sentence}")
    return value, end


def decode_whole(text: str) -> Any:
    """Return the JSON that a text is, but for space around it. Raises Unreadable, also if
    more stands behind it.
    """
    written = text.strip()
    value, end = decode(written)
    if end < len(written):
        raise Unreadable("more stands behind the JSON")
    return value


_LABEL = re.compile(
    r"[\s\ufeff]*+(?:[*_#]{0,4}[A-Za-z][\w ]{0,30}:)?[\s`*_]*+(?:json\b)?[\s`*_]*+(?=[{\[])",
    re.IGNORECASE,
)
_WRAP = re.compile(
    r"(?s)\s*<(?P<tag>answer|final_answer|output|json|result|response)>(?P<inside>.*)</"
    r"(?P=tag)>\s*",
    re.IGNORECASE,
)
_LEFT_OVER = re.compile(r"[\s`~}\]]*+")


@dataclass(frozen=True, slots=True)
class FoundJson:
    """The first object or list in a text, and what stands `before` and `behind` it."""

    value: Any
    before: str
    behind: str

    @property
    def has_words_behind(self) -> bool:
        """Whether no more than words stand behind the JSON, or closing
        brackets that are too many.
        """
        rest = self.behind[_LEFT_OVER.match(self.behind).end() :]  # type: ignore[union-attr]
        return "{" not in rest and '":' not in rest


def begins_with_json(text: str) -> bool:
    """Whether a text begins with an object or a list, behind no more than a
    label or the tag around it.
    """
    return _LABEL.match(_unwrapped(text)) is not None


def _unwrapped(text: str) -> str:
    """Return what stands in the tag around a text, or the text itself, without space around it."""
    wrap = _WRAP.fullmatch(text)
    if wrap is not None:
        text = wrap["inside"]
    return text.strip()


def find_json(text: str) -> FoundJson | None:
    """Return the first object or list in what a model wrote, None if there is none. Planners,
    joiners and workers are read by it. Raises Unreadable if it is broken.
    """
    text = _unwrapped(text)
    if text.startswith("{{") and text.endswith("}}"):  # as templates escape braces
        with suppress(Unreadable):
            return FoundJson(decode_whole(text[1:-1]), "", "")
    bracket = re.search(r"[{\[]", text)
    if bracket is None:
        return None
    value, end = decode(text, bracket.start())
    return FoundJson(value, text[: bracket.start()], text[end:])


def flaw(text: str) -> str:
    """Return why a text is no JSON, "" if it is some."""
    try:
        decode_whole(text)
    except Unreadable as error:
        return str(error)
    return ""


def _repaired(text: str, start: int) -> tuple[str, int]:
    """Return (JSON, end) of the object or list at a place, in one pass; no JSON
    if it is never closed.
    """
    pieces: list[str] = []
    depth = 0
    blank = note = ""
    for token in _TOKEN.finditer(text, start):
        sign = token[0]
        if sign.isspace():
            blank = sign
            continue
        if sign.startswith("//"):
            if "\n" in blank:
                note = sign
            if "..." in sign or "\u2026" in sign:
                raise _left_out(sign)
            continue
        if note and sign in ("]", "}"):
            raise _left_out(note)
        blank = note = ""
        if sign in ("]", "}") and _ends_with_comma(pieces):
            pieces.pop()
        if sign == ":" and pieces and _WORD.fullmatch(pieces[-1]):
            pieces[-1] = f'"{pieces[-1]}"'
        pieces.append(_written(sign))
        if sign in ("[", "{"):
            depth += 1
        elif sign in ("]", "}"):
            depth -= 1
        if depth <= 0:
            return " ".join(pieces), token.end()
    return "", len(text)


def _ends_with_comma(pieces: list[str]) -> bool:
    """Whether the last piece is a comma behind an item."""
    return pieces[-1:] == [","] and pieces[-2] not in ("[", "{", ",")


def _left_out(comment: str) -> Unreadable:
    return Unreadable(
        f"{format_value(comment)} stands for what the JSON has left out; write all of it"
    )


def _written(sign: str) -> str:
    """Return a token as JSON writes it. Raises Unreadable where nobody can tell
    what its escapes mean.
    """
    if sign[0] in "\"'\u201c":
        if _is_path(sign[1:-1]):
            raise Unreadable(
                f"{format_value(sign)} has backslashes that may be escapes; write each of them "
                "twice"
            )
        text = _TO_ESCAPE.sub(_escaped, sign[1:-1])
        return f'"{text}"'
    return _LITERALS.get(sign, sign)


def _is_path(text: str) -> bool:
    """Whether a text has an escape that JSON does not know before a letter, as in `C:\\Users`: then
    its other escapes before letters, as in `\\nile`, may be none either.
    """
    has_unknown = False
    has_letters = False
    for found in _TO_ESCAPE.finditer(text):
        if not found[1]:
            continue
        escape = found[1] + text[found.end() : found.end() + 1]
        if escape[0].isalnum() and escape[0] not in "bfnrtu":
            has_unknown = True
        if _LETTER_ESCAPE.match(escape):
            has_letters = True
    return has_unknown and has_letters


def _escaped(found: re.Match[str]) -> str:
    behind = found[1]
    if behind is None:
        return '\\"'
    if behind in '"\\/bfnrtu':
        return found[0]
    if behind in "'\u201d\n":
        return behind
    return f"\\\\{behind}"
