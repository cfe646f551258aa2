"""Server-sent events from bytes in chunks of any size (WHATWG HTML, section 9.2)."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name, empty as a rule, and its data."""

    name: str
    data: str


class EventParser:
    """Gives the same events however the bytes are cut; an event without its empty line at the end is none.

    Lines end with LF, CRLF or CR. Comments, ids and retry times are left out. Raises UnicodeDecodeError.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._after_cr = False
        self._first = True
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that `chunk` completes."""
        if self._after_cr and chunk:
            chunk, self._after_cr = chunk.removeprefix(b"\n"), False
        start = len(self._rest)
        self._rest += chunk
        while (end := _line_end(self._rest, start)) >= 0:
            line = bytes(self._rest[:end])
            cr = self._rest[end] == 13
            self._after_cr = cr and end + 1 == len(self._rest)
            del self._rest[: end + (2 if cr and self._rest[end + 1 : end + 2] == b"\n" else 1)]
            start = 0
            yield from self._line(line)

    def _line(self, line: bytes) -> Iterator[Event]:
        text = line.decode()
        if self._first:
            text, self._first = text.removeprefix("\ufeff"), False
        if not text:
            if self._data:
                yield Event(self._name, "\n".join(self._data))
            self._name, self._data = "", []
            return
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value


def _line_end(data: bytearray, start: int) -> int:
    ends = [end for end in (data.find(b"\n", start), data.find(b"\r", start)) if end >= 0]
    return min(ends, default=-1)
