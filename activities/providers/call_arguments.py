"""The arguments of a call of a tool while they arrive, piece by piece."""

from typing import Final

from sennit.workflows.plan.planner_format.json_text import Unreadable, decode_whole

_CLOSING: Final = {'"': '"', "'": "'", "\u201c": "\u201d"}
"""The quotes that a reader of such JSON takes, each with the one that ends it."""


class CallArguments:
    """Says after each piece whether the arguments are whole, in time that is
    linear in their length.

    They are decoded at most once: when the bracket that was opened first is closed.
    """

    def __init__(self) -> None:
        self._text: list[str] = []
        self._depth = 0
        self._quote: str | None = None  # that ends the text in which the last piece ended
        self._escaped = False
        self._closed = False
        self._whole = False

    def __str__(self) -> str:
        if len(self._text) > 1:
            self._text = ["".join(self._text)]
        return "".join(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)

    def add(self, piece: str) -> None:
        """Take the next piece."""
        if not piece:
            return
        self._text.append(piece)
        if self._closed:
            self._whole = self._whole and piece.isspace()  # more behind the end is no JSON
            return
        end = self._end_in(piece)
        if end is not None:
            self._closed = True
            self._whole = not piece[end:].strip() and is_object(str(self))

    @property
    def whole(self) -> bool:
        """Whether they are one JSON object from beginning to end."""
        return self._whole

    @property
    def is_empty(self) -> bool:
        """Whether they are an object without a field."""
        return self._whole and str(self).strip() == "{}"

    def _end_in(self, piece: str) -> int | None:
        """Return where in this piece the first bracket has been closed, None if
        that is still to come.
        """
        for place, sign in enumerate(piece, 1):
            if self._escaped:
                self._escaped = False
            elif self._quote is not None:
                self._escaped = sign == "\\"
                if sign == self._quote:
                    self._quote = None
            elif sign in _CLOSING:
                self._quote = _CLOSING[sign]
            elif sign in "{[":
                self._depth += 1
            elif sign in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    return place
        return None


def is_object(text: str) -> bool:
    """Whether a text is one JSON object from beginning to end."""
    try:
        return isinstance(decode_whole(text), dict)
    except Unreadable:
        return False
