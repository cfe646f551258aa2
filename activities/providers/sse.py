"""Server-sent events from bytes in chunks of any size (WHATWG HTML, section 9.2)."""

from collections.abc import Iterator


class EventParser:
    """Gives the data of the same events however the bytes are cut.

    Lines end with LF, CRLF or CR. Comments, ids and retry times are left out, but `lines` counts
    them too: servers send them to show that they live. `is_error` says of the event that was given
    last whether its name is `error`; llama.cpp sends such an event as a field `error`. `idle_bytes`
    is how many bytes have come that were no data of an event; a comment is not kept while it
    arrives. Raises UnicodeDecodeError.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.idle_bytes = 0
        self.is_error = False
        self._rest = bytearray()
        self._after_cr = False
        self._first = True
        self._data: list[str] = []
        self._names_error = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the data of the events that `chunk` completes."""
        if not chunk:
            return
        chunk = chunk.removeprefix(b"\n") if self._after_cr else chunk
        self._after_cr = chunk.endswith(b"\r")
        for piece in chunk.splitlines(keepends=True):
            if piece.endswith((b"\n", b"\r")):
                line = bytes(self._rest + piece) if self._rest else piece
                self._rest.clear()
                data = self._line(line.rstrip(b"\r\n"))
                if data is not None:
                    yield data
            elif self._rest.startswith(b":"):
                self.idle_bytes += len(piece)
            else:
                self._rest += piece

    def close(self) -> Iterator[str]:
        """Yield the event that the end of the stream has left without its empty line:
        some servers send none.
        """
        lines = (bytes(self._rest), b"")
        self._rest.clear()
        for line in lines:
            data = self._line(line)
            if data is not None:
                yield data

    def _line(self, line: bytes) -> str | None:
        """Take a line; return the data of the event that it ends, None if it ends none."""
        self.lines += 1
        text = line.decode()
        if self._first:
            text, self._first = text.removeprefix("\ufeff"), False
        if not text:
            self.idle_bytes += 1
            data, self._data = self._data, []
            names_error, self._names_error = self._names_error, False
            if not data:
                return None
            self.is_error = names_error
            return "\n".join(data)
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field in ("data", "error"):
            self._data.append(value)
        else:
            self.idle_bytes += len(line)
        if field == "error" or (field == "event" and value.strip() == "error"):
            self._names_error = True
        return None
