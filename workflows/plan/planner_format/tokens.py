"""Cuts the text of a call's arguments into tokens, row by row, up to the parenthesis that ends the call.

Models quote carelessly, so a string opens only where a value may begin (`what's` holds none) and closes only where a
value may end (`"the "Nile" river"` is one). Linear: no character is looked at more than a fixed number of times.
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "string", "open", "close", "mark"]

MAX_DEPTH = 60
"""How deep brackets may nest."""

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_OUTSIDE = re.compile(r"[()\[\]{},:=\"']")
_PREFIX = re.compile(r"\s*[rRbBfFuU]{0,2}\Z")
_ENDS = r"(?=\s*+(?:[,)\]}:=]|\Z)|\s++[\"'])"
_INSIDE = {
    '"': re.compile(rf"\\.?|\"{_ENDS}", re.DOTALL),
    "'": re.compile(rf"\\.?|'{_ENDS}", re.DOTALL),
    '"""': re.compile(r"\\.?|\"\"\"", re.DOTALL),
    "'''": re.compile(r"\\.?|'''", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": "", "$": "$$"}
_ESCAPED |= {sign: sign for sign in "\\/\"'`"}


class Unbalanced(Exception):
    """A bracket that does not fit, or too many of them; the message names it."""


@dataclass(frozen=True, slots=True)
class Token:
    """`source` is the text as written, `value` what a string says; a mark is one of `,` `:` `=`."""

    kind: Kind
    source: str
    value: str = ""


class Tokens:
    """The tokens behind an opening parenthesis, as far as they have come; the parenthesis that ends them is none."""

    def __init__(self) -> None:
        self.found: list[Token] = []
        self._closers = [")"]
        self._text: list[str] = []
        self._quote = ""
        self._raw = False
        self._plain = False

    @property
    def verbatim(self) -> bool:
        """Whether the text goes on inside triple quotes, where a row that looks like the next call is none."""
        return len(self._quote) == 3

    @property
    def missing(self) -> str:
        """What the text lacks so far to be a whole call."""
        return self._quote or self._closers[-1]

    def take(self, row: str, at: int = 0) -> int | None:
        """Read on; return the position behind the parenthesis that ends the call, None if it is not in this row.

        A row goes with its line end, and is never given in parts. Raises Unbalanced.
        """
        while at < len(row):
            at = self._string(row, at) if self._quote else self._outside(row, at)
            if not self._closers:
                return at
        return None

    def _outside(self, row: str, at: int) -> int:
        found = _OUTSIDE.search(row, at)
        if found is None:
            self._text.append(row[at:])
            return len(row)
        self._text.append(row[at : found.start()])
        sign, end = found[0], found.end()
        if sign in "\"'":
            return self._opened(row, found.start(), sign)
        self._end_text()
        if sign in _CLOSERS:
            if len(self._closers) > MAX_DEPTH:
                raise Unbalanced(f"brackets nest more than {MAX_DEPTH} levels deep")
            self._closers.append(_CLOSERS[sign])
            self.found.append(Token("open", sign))
        elif sign in ")]}":
            self._close(sign)
        else:
            self.found.append(Token("mark", sign))
        return end

    def _close(self, sign: str) -> None:
        wanted = self._closers.pop()
        if sign != wanted:
            raise Unbalanced(f"`{sign}` stands where `{wanted}` is missing")
        if self._closers:
            self.found.append(Token("close", sign))

    def _opened(self, row: str, at: int, sign: str) -> int:
        """Open a string, or take the quote as text where no value begins."""
        before = "" if self._plain else "".join(self._text)
        if self._plain or not _PREFIX.match(before):
            self._plain = True
            self._text.append(sign)
            return at + 1
        self._quote = sign * 3 if row.startswith(sign * 3, at) else sign
        self._raw = "r" in before.lower()
        self._text = [before + self._quote]
        return at + len(self._quote)

    def _string(self, row: str, at: int) -> int:
        for found in _INSIDE[self._quote].finditer(row, at):
            if found[0][0] != "\\":
                self._text.append(row[at : found.end()])
                self._end_string()
                return found.end()
        self._text.append(row[at:])
        return len(row)

    def _end_text(self) -> None:
        text, self._text, self._plain = "".join(self._text), [], False
        if text:
            self.found.append(Token("text", text))

    def _end_string(self) -> None:
        source, width = "".join(self._text), len(self._quote)
        body = source[source.index(self._quote) + width : -width]
        self.found.append(Token("string", source, body if self._raw else unescaped(body)))
        self._text, self._quote = [], ""


def unescaped(text: str) -> str:
    r"""Return a string's text with `\n`, `\"`, `\u00e9` and the like replaced; a `\` before another sign stays."""
    if "\\" not in text:
        return text
    written = _ESCAPE.sub(_unescape, text)
    if any("\ud800" <= sign <= "\udfff" for sign in written):
        return written.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return written


def _unescape(found: re.Match[str]) -> str:
    sign = found[1]
    if len(sign) > 1:
        code = int(sign[1:], 16)
        return chr(code) if code <= 0x10FFFF else "\ufffd"
    return _ESCAPED.get(sign, found[0])
