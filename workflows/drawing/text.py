"""Text in a picture: measured without a font and clipped to its room.

The font is monospace, so the width of a letter is known. Characters that monospace fonts lack
come from another font; text with such characters gets an explicit width, so that it never
runs into its neighbour.
"""

import re
import unicodedata

from sennit.workflows.plan.language.text import one_line

CELL = 9.65
"""The width of a letter in a monospace font of 16 units, rounded up."""
_FAMILIAR = 0x530  # Latin, Greek, Cyrillic: in every monospace font
_FIRST_MARK = "\u0300"  # no combining mark comes before it
_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "{": "&#123;"}
_MARKS = re.compile(r"[&<>{]")


def plain(text: str, most: int) -> str:
    """Return at most `most` characters of `text` on one line, with at most two
    combining marks on a letter.
    """
    line = one_line(text, most)
    if max(line, default="") < _FIRST_MARK:
        return line
    kept: list[str] = []
    marks = 0
    for char in line:
        if unicodedata.combining(char):
            marks += 1
        else:
            marks = 0
        if marks <= 2:
            kept.append(char)
    return "".join(kept)


def cells(text: str) -> float:
    """Return the width of `text` in letters."""
    if text.isascii():
        return float(len(text))
    return sum(map(_cell, text))


def _cell(char: str) -> float:
    if _is_familiar(char):
        return 1.0
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0.0
    if ord(char) >= 0x1F000 and unicodedata.category(char) == "So":
        return 2.2
    if unicodedata.east_asian_width(char) in ("W", "F"):
        return 1.7
    return 1.0


def _is_familiar(char: str) -> bool:
    """Whether a character is as wide as a letter in every monospace font."""
    return ord(char) < _FAMILIAR or char == "…"


def clip(text: str, room: float) -> str:
    """Return `text`, or as much of its start as fits into `room` letters with an ellipsis."""
    if cells(text) <= room:
        return text
    used, kept = 1.0, 0
    for char in text:
        used += _cell(char)
        if used > room:
            break
        kept += 1
    return text[:kept].rstrip() + "…"


def clip_name(name: str, room: int) -> str:
    """Return an id, or its start and its end around an ellipsis: numbered ids differ at the end."""
    if len(name) <= room:
        return name
    tail = (room - 1) // 2
    start = name[: room - 1 - tail]
    end = name[len(name) - tail :]
    return f"{start}…{end}"


def escaped(text: str) -> str:
    """Return text as it stands in SVG inside a page that fills in `{names}`."""
    return _MARKS.sub(lambda mark: _SPECIAL[mark[0]], text)


def text_at(x: float, y: float, text: str, attributes: str = "") -> str:
    """Return a text element that is as wide as `cells` says."""
    if not all(map(_is_familiar, text)):
        attributes += f" textLength='{cells(text) * CELL:.0f}' lengthAdjust='spacingAndGlyphs'"
    place = ""
    if round(x):
        place += f" x='{x:.0f}'"
    if round(y):
        place += f" y='{y:.0f}'"
    return f"<text{place}{attributes}>{escaped(text)}</text>"
