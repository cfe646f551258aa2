"""JSON read with the line of every value; stricter than `json`: no repeated keys, no NaN, bounded depth and size."""

import json
import re
from bisect import bisect_right
from math import isinf

from starter.plans.positions import MAX_DEPTH, Misread, Scalar, Spot, counted, put, too_deep

_SPACE = re.compile(r"[ \t\n\r]*")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number a plan can hold")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_LONE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"[A-Za-z-]+")


def read_json(text: str) -> Spot:
    """Return the value in `text`; raises Misread."""
    reader = _Reader(text)
    root = reader.value(0)
    reader.end()
    return root


class _Reader:
    """Reads from `at` on; every method leaves `at` behind what it read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.breaks = [found.start() for found in re.finditer("\n", text)]

    @property
    def line(self) -> int:
        return bisect_right(self.breaks, self.at - 1) + 1

    def wrong(self, message: str) -> Misread:
        return Misread(self.line, message)

    def peek(self) -> str:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Spot:
        first = self.peek()
        if depth > MAX_DEPTH:
            raise too_deep(self.line)
        if first == "{":
            return self.object(depth)
        if first == "[":
            return self.array(depth)
        return Spot(self.line, self.scalar())

    def object(self, depth: int) -> Spot:
        line, items, size = self.line, dict[str, Spot](), 1
        while self.more("}", first=not items):
            if self.peek() != '"':
                raise self.wrong("expected a key in double quotes")
            at = self.line
            key = self.string()
            if self.peek() != ":":
                raise self.wrong(f"expected `:` after the key `{key[:40]}`")
            self.at += 1
            item = self.value(depth + 1)
            put(items, key, item, at)
            size = counted(size + item.size, at)
        return Spot(line, items, size)

    def array(self, depth: int) -> Spot:
        line, items, size = self.line, list[Spot](), 1
        while self.more("]", first=not items):
            items.append(self.value(depth + 1))
            size = counted(size + items[-1].size, line)
        return Spot(line, items, size)

    def more(self, closing: str, *, first: bool) -> bool:
        """Step over `{`, `[` or a comma; False when the bracket closes instead."""
        if first:
            self.at += 1
        after = self.peek()
        if after == closing:
            self.at += 1
            return False
        if first:
            return True
        if after != ",":
            raise self.wrong(f"expected `,` or `{closing}`")
        self.at += 1
        if self.peek() == closing:
            raise self.wrong(f"a comma before `{closing}`")
        return True

    def string(self) -> str:
        text = self.scalar()
        if not isinstance(text, str):
            raise self.wrong("expected text")
        return text

    def scalar(self) -> Scalar:
        try:
            value, end = _DECODER.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            at, self.at = self.at, max(error.pos, self.at)
            word = _WORD.match(self.text, at)
            raise self.wrong(
                f"`{word[0][:40]}` is not JSON" if word else _sentence(error, self.text[self.at : self.at + 1])
            ) from None
        except ValueError as error:
            raise self.wrong(str(error).partition(";")[0]) from None
        if isinstance(value, float) and isinf(value):
            raise self.wrong("a number too big to keep")
        if isinstance(value, str) and _LONE.search(value):
            raise self.wrong("half of a surrogate pair, which no text can hold")
        self.at = end
        return value if isinstance(value, str | int | float) else None

    def end(self) -> None:
        if self.peek():
            raise self.wrong("text after the end of the plan")


def _sentence(error: json.JSONDecodeError, found: str) -> str:
    if not found:
        return "the text ends here, before the plan does"
    return (error.msg[0].lower() + error.msg[1:]).removesuffix(" at")
