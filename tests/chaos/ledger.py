"""A service that takes payments and counts each one: it knows nothing of keys, so an effect made twice shows."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread


class Ledger:
    """Counts of payments by their text; `busy` are those that wait for their answer."""

    def __init__(self) -> None:
        self.url = ""
        self.busy = 0
        self._counts: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._lock = Lock()

    def take(self, text: str) -> None:
        """Count a payment."""
        with self._lock:
            self._counts[text] += 1

    def refuses(self, text: str, refusals: int) -> bool:
        """Refuse a payment that is to be refused so many times, unless that has been done. It does not count."""
        with self._lock:
            if self._refused[text] >= refusals:
                return False
            self._refused[text] += 1
            return True

    def paid(self, text: str) -> int:
        """Return how often it was paid."""
        with self._lock:
            return self._counts[text]


@contextmanager
def ledger_service(host: str = "127.0.0.1") -> Iterator[Ledger]:
    """Serve a ledger on a free port. A payment counts at once; its answer comes after the seconds that it names."""
    ledger = Ledger()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            payment = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = HTTPStatus.NO_CONTENT
            if ledger.refuses(payment["text"], payment.get("refusals", 0)):
                status = HTTPStatus.CONFLICT
            else:
                ledger.take(payment["text"])
            ledger.busy += 1
            time.sleep(payment["seconds"])
            ledger.busy -= 1
            try:
                self.send_response(status)
                self.end_headers()
            except OSError:
                pass  # the caller was killed

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    server.daemon_threads = True
    ledger.url = f"http://{host}:{server.server_address[1]}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield ledger
    finally:
        server.shutdown()
        server.server_close()
