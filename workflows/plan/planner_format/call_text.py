"""A call's arguments while they arrive, rewritten as Python would write them.

Curly quotes and full-width brackets count as plain ones outside strings. A `$` outside strings
becomes a letter, so that references are names. Linear: no character is looked at more than a
fixed number of times.
"""

import re
from keyword import iskeyword

from sennit.workflows.plan.limits import MAX_BRACKET_LEVELS
from sennit.workflows.plan.planner_format.json_text import Unreadable

DOLLAR = "\u01c2"
"""What stands for a `$` outside strings: a letter of no language that plans are written in."""

WIDE = {code + 0xFEE0: code for code in range(0x21, 0x7F)}
"""Full-width signs, letters and digits as plain ones."""

_CONSTANTS = ("None", "True", "False")
"""Keywords that Python holds to be values under any spelling."""
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_QUOTES = r"\"'\u201c-\u201e\u2018\u2019\u00ab\u00bb\uff02\uff07"
_OUTSIDE = re.compile(
    rf"\$\{{[^{{}}\n]{{0,200}}\}}|[()\[\]{{}},:=+\uff08\uff09\uff3b\uff3d\uff5b\uff5d\uff0c\uff1a\uff1d\uff0b{_QUOTES}]"
)
_PREFIX = re.compile(r"(?<![A-Za-z0-9_])[rRbBfFuU]{0,2}\Z")
_ENDINGS = (
    {'"': '"', "'": "'", "\u2018": "[\u2019']", "\u2019": "[\u2019']"}
    | dict.fromkeys("\u201c\u201d\u201e", '[\u201d\u201c"]')
    | dict.fromkeys("\u00ab\u00bb", "[\u00bb\u00ab]")
)
_INSIDE = {sign: re.compile(rf"\\.?|{ending}", re.DOTALL) for sign, ending in _ENDINGS.items()}
_INSIDE |= {sign * 3: re.compile(rf"\\.?|{sign * 3}", re.DOTALL) for sign in "\"'"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": "", "$": "$$"}
_ESCAPED |= {sign: sign for sign in "\\/\"'`"}
_NUMBER_SIGN = re.compile(r"#(?=\w)")
_BRACED = re.compile(rf"{DOLLAR}_((?:[0-9a-f]{{2}})*)")


class CallText:
    """The text behind an opening parenthesis, as far as it has come; the parenthesis that
    ends it is no part of it.
    """

    def __init__(self) -> None:
        self.quote = ""
        """What opened the string that has not ended yet."""
        self._python: list[str] = []
        self._behind_string = False
        self._closers = [")"]
        self._text: list[str] = []

    @property
    def python(self) -> str:
        """The arguments as Python writes them."""
        return "".join(self._python)

    @property
    def missing(self) -> str:
        """What the text lacks so far to be a whole call."""
        return self.quote or self._closers[-1]

    def take(self, row: str, at: int = 0) -> int | None:
        """Read on; return the position behind the parenthesis that ends the call, None if
        it is not in this row.

        A row goes with its line end, and is never given in parts. Raises Unreadable.
        """
        while at < len(row):
            if self.quote:
                at = self._string(row, at)
                continue
            at = self._outside(row, at)
            if not self._closers:
                return at
        return None

    def _outside(self, row: str, at: int) -> int:
        found = _OUTSIDE.search(row, at)
        if found is None:
            self._text.append(row[at:])
            return len(row)
        self._text.append(row[at : found.start()])
        sign = found[0].translate(WIDE)
        end = found.end()
        if sign[0] == "$":
            inside = found[0][2:-1]
            self._text.append(f"{DOLLAR}_{inside.encode().hex()}")
            return end
        if sign in _ENDINGS:
            return self._opened(row, found.start(), sign)
        if sign == "=":
            name = "".join(self._text).strip()
            if iskeyword(name) and name not in _CONSTANTS:
                # To Python it is the same name, and no keyword.
                self._text = [chr(ord(name[0]) + 0xFEE0), name[1:]]
        self._end_text()
        self._behind_string = False
        if sign in _CLOSERS:
            if len(self._closers) > MAX_BRACKET_LEVELS:
                raise Unreadable(
                    f"brackets nest more than {MAX_BRACKET_LEVELS} levels deep; nest fewer"
                )
            self._closers.append(_CLOSERS[sign])
        elif sign in ")]}":
            wanted = self._closers.pop()
            if sign != wanted:
                raise Unreadable(f"`{sign}` stands where `{wanted}` is missing")
        if self._closers:
            self._python.append(sign)
        return end

    def _opened(self, row: str, at: int, sign: str) -> int:
        """Open a string, with the letters before it that say how it is written."""
        before = "".join(self._text)
        prefix = _PREFIX.search(before)
        begins = len(before)
        if prefix:
            begins = prefix.start()
        # As in "the letter "b"", and not as in "two " "parts".
        if self._behind_string and not begins:
            raise Unreadable(
                f"a text begins right behind another; write \\{sign} for a quote inside"
            )
        self._text = [before[:begins]]
        self._end_text()
        self.quote = sign
        if sign * 3 in _INSIDE and row.startswith(sign * 3, at):
            self.quote = sign * 3
        self._text = [before[begins:]]
        return at + len(self.quote)

    def _string(self, row: str, at: int) -> int:
        for found in _INSIDE[self.quote].finditer(row, at):
            if found[0][0] != "\\":
                self._text.append(row[at : found.start()])
                self._end_string()
                return found.end()
        self._text.append(row[at:])
        return len(row)

    def _end_text(self) -> None:
        # `#1` and `#E1` are how ReWOO (arXiv 2305.18323) refers.
        text = _NUMBER_SIGN.sub("$", "".join(self._text))
        self._python.append(text.replace("$", DOLLAR))
        self._text = []

    def _end_string(self) -> None:
        prefix = self._text[0].lower()
        body = "".join(self._text[1:])
        text = body
        if "r" not in prefix:
            text = unescaped(body)
        letter = ""
        if "f" in prefix and "{" in body:
            letter = "f"
        self._python.append(f" {letter}{text!r}")
        self._text = []
        self.quote = ""
        self._behind_string = True


def with_dollars(python: str) -> str:
    """Return text outside strings as the model wrote it."""

    def written(found: re.Match[str]) -> str:
        inside = bytes.fromhex(found[1]).decode()
        return f"${{{inside}}}"

    return _BRACED.sub(written, python).replace(DOLLAR, "$")


def unescaped(text: str) -> str:
    r"""Return a string's text with `\n`, `\"`, `\u00e9` and the like replaced; a `\`
    before another sign stays.
    """
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
        if code > 0x10FFFF:
            return "\ufffd"
        return chr(code)
    return _ESCAPED.get(sign, found[0])
