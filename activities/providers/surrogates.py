"""Halves of a character: UTF-16 writes an emoji as two, and servers that count in
UTF-16 cut between them.

A gateway in Java or JavaScript sends `\\ud83d` at the end of one chunk and `\\ude00` at the
beginning of the next. Both are text to Python, and neither can be stored. Two halves that follow
each other are one character; a half that stays alone is U+FFFD, as Unicode wants it.
"""

import re
from typing import Any

_HALF = re.compile("[\ud800-\udfff]")
_FIRST = ("\ud800", "\udbff")
_ESCAPED_HALF = re.compile(
    r"(?<!\\)(?P<slashes>(?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
REPLACEMENT = "\ufffd"


def ends_in_half(text: str) -> bool:
    """Whether a text ends with the first half of a character."""
    return bool(text) and _FIRST[0] <= text[-1] <= _FIRST[1]


def joined(text: str) -> tuple[str, int]:
    """Return a text whose halves are joined, and how many stood alone."""
    if text.isascii() or not _HALF.search(text):
        return text, 0
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _HALF.subn(REPLACEMENT, whole)


def joined_in_json(text: str) -> tuple[str, int]:
    """Return JSON whose halves are joined, also those that it writes as escapes,
    and how many stood alone.
    """
    whole, raw = joined(text)
    if "\\u" not in whole:
        return whole, raw
    mended, escaped = _ESCAPED_HALF.subn(lambda found: f"{found['slashes']}\\ufffd", whole)
    return mended, raw + escaped


def joined_within(value: Any) -> Any:
    """Return a JSON value whose texts have their halves joined."""
    if isinstance(value, str):
        return joined(value)[0]
    if isinstance(value, list | tuple):
        return type(value)(joined_within(item) for item in value)
    if isinstance(value, dict):
        return {joined(name)[0]: joined_within(item) for name, item in value.items()}
    return value
