"""What of a reply people may read while it comes: no thoughts, no secrets, of a
joiner's JSON only its answer.
"""

import copy
import json
import re

from sennit.activities.toolbox.redaction import mask, safe_length
from sennit.workflows.plan.language.text import ThoughtFilter

_STRING = r'"(?:[^"\\]|\\.)*+"'
_VALUE = rf'(?:{_STRING}|[\w.+-]++|\[(?:[^\[\]"]|{_STRING})*+\])'
_ANSWER = re.compile(
    rf'\s*+\{{\s*+(?:(?!"answer"){_STRING}\s*+:\s*+{_VALUE}\s*+,\s*+)*+"answer"\s*+:\s*+"(?P<text>(?:[^"\\]|\\.)*+)',
    re.DOTALL,
)
"""A JSON object as far as its answer has come; what stands before the answer is whole."""
_HALF_ESCAPE = re.compile(
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{0,3})?|\\u[0-9a-fA-F]{0,3})\Z"
)
"""A character of which the first part has come: an escape, or half of an emoji."""
_HALF = re.compile("[\ud800-\udfff]")
_LONGEST_TAG = 40


class VisibleText:
    """Reads a reply piece by piece."""

    def __init__(self, *, answer_only: bool) -> None:
        self._answer_only = answer_only
        self._thoughts = ThoughtFilter()
        self._rows: list[str] = []
        self._row = ""

    def take(self, piece: str, *, is_whole: bool) -> str:
        """Take the next piece; return all that may be read by now. That of later calls begins with
        it, unless what was read turns out to be a thought.
        """
        text = _with_whole_characters(
            self._without_thoughts(piece, is_whole=is_whole), is_whole=is_whole
        )
        if self._answer_only:
            text = _answer_in(text)
        if not is_whole:
            text = text[: safe_length(text)]
        masked: str = mask(text)
        return masked

    def _without_thoughts(self, piece: str, *, is_whole: bool) -> str:
        *rows, self._row = (self._row + piece).split("\n")
        for row in rows:
            self._take_row(f"{row}\n")

        # What has come of the last row is read by a copy, as if it ended here.
        kept, begun = self._rows, self._row
        if not is_whole:
            begun = _without_half_a_tag(begun)
        last, was_thought = copy.copy(self._thoughts).take(begun)
        if was_thought:
            return last
        return "".join([*kept, last])

    def _take_row(self, row: str) -> None:
        rest, was_thought = self._thoughts.take(row)
        if was_thought:
            self._rows.clear()
        self._rows.append(rest)


def _with_whole_characters(text: str, *, is_whole: bool) -> str:
    """Return a text with halves of emoji joined, and without a first half at its end whose
    second may still come.
    """
    if not is_whole and _HALF.match(text[-1:]):
        text = text[:-1]
    if not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_half_a_tag(row: str) -> str:
    """Return a row without its end, if that may be the beginning of a tag around a thought."""
    for opening, closing in ("<>", "[]", "◁▷"):
        at = row.rfind(opening, max(0, len(row) - _LONGEST_TAG))
        if at >= 0 and closing not in row[at:]:
            row = row[:at]
    return row


def _answer_in(text: str) -> str:
    """Return the answer in a joiner's JSON as far as it has come; a reply that is no
    JSON is the answer itself.
    """
    begins = text.lstrip()[:1]
    if begins not in ("{", "`", "["):
        return text
    found = _ANSWER.match(text, max(0, text.find("{")))
    if found is None:
        return ""
    written = _HALF_ESCAPE.sub("", found["text"])
    try:
        answer: str = json.loads(f'"{written}"', strict=False)
    except ValueError:
        return ""  # a wrong escape: the reply will be refused, or read otherwise
    return answer
