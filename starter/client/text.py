"""Text from runs made safe to show: a model or a document must not be able to steer the reader's terminal."""

import json
import re
from typing import Any

from rich.cells import cell_len, set_cell_size

_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
_CONTROL = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
_SHORT = r"\x1b[ -/]*[0-~]"
_ESCAPES = re.compile(f"{_STRING}|{_CONTROL}|{_SHORT}")
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ud800-\udfff{_BIDI}]")
_RETURNS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")


def clean(text: str) -> str:
    """Return `text` without terminal escapes, control characters and direction marks; line breaks and tabs stay."""
    return _HIDDEN.sub("", _RETURNS.sub("\n", _ESCAPES.sub("", text)))


def flat(text: str) -> str:
    """Return `text` cleaned and on one line."""
    return " ".join(clean(text).split())


def fit(text: str, width: int) -> str:
    """Return `text` cleaned, on one line, and at most `width` columns wide; what is cut is marked by an ellipsis."""
    line = flat(text)
    if cell_len(line) <= width:
        return line
    return set_cell_size(line, width - 1).rstrip() + "…" if width > 0 else ""


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Return `value` as JSON that is readable in any script and holds no raw control character."""
    separators = None if indent else (",", ":")
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    return re.sub(rf"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff{_BIDI}]", _escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
