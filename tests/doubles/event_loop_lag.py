"""How long an event loop is kept from its other work, and a server that sends bytes in chunks of any size."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass


@dataclass
class Lag:
    """The longest time for which one turn of an event loop has computed. `seconds` counts the processor's time of the
    loop's thread, so that a busy machine does not change it.
    """

    seconds: float = 0.0
    _since: float = 0.0
    _measuring: bool = False

    def _turn(self) -> None:
        now = time.thread_time()
        self.seconds = max(self.seconds, now - self._since)
        self._since = now
        if self._measuring:
            asyncio.get_running_loop().call_later(0.001, self._turn)


@contextmanager
def measured_lag() -> Iterator[Lag]:
    """Measure the running event loop until the block ends."""
    lag = Lag(_since=time.thread_time(), _measuring=True)
    asyncio.get_running_loop().call_soon(lag._turn)
    try:
        yield lag
    finally:
        lag._measuring = False
        lag._turn()


@contextmanager
def byte_server(body: bytes, size: int, *, kind: str = "text/event-stream", head: bytes = b"") -> Iterator[str]:
    """Serve an answer in chunks of `size` bytes to every request; gives the URL. Whatever is sent goes out at once.

    The server has a thread of its own: what it computes is no lag of the event loop.
    """
    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(piece), piece)
        for piece in (body[start : start + size] for start in range(0, len(body), size))
    )
    answer = head or (b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n" % kind.encode())
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            received = b""
            while b"\r\n\r\n" not in received:
                piece = connection.recv(65536)
                if not piece:
                    return
                received += piece
            connection.sendall(answer + b"Connection: close\r\n\r\n" + chunks + b"0\r\n\r\n")

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
