"""A real S3 server in a thread, and before it a proxy that does to requests what networks and servers do."""

import http.client
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

KEY, SECRET = "AKIDFORTESTS", "nobody-may-read-this"
BUCKET = "artifacts"

Fault = Callable[[http.server.BaseHTTPRequestHandler], str | bytes | None]
"""Says what happens to a request: None passes it on, `lose` drops the answer, `late` holds the request back, `repeat`
gives the last answer to this path again, `forget` takes the condition away, and bytes are the whole answer."""


class S3Proxy(http.server.ThreadingHTTPServer):
    """Forwards to an S3 server what `fault` lets through. `requests` are those that came, as METHOD PATH."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port, self.fault, self.late = port, _no_fault, 1.0
        self.requests: list[str] = []
        self.answers: dict[str, tuple[int, list[tuple[str, str]], bytes]] = {}
        self.conditional = threading.Lock()
        """Held while a conditional write is made. S3 looks and writes in one; moto does so in two steps, between which
        another thread may write.
        """

    fault: Fault

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that did not wait for their answer."""

    @property
    def url(self) -> str:
        """What AWS_ENDPOINT_URL has to be."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: S3Proxy

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append(f"{self.command} {self.path}")
        fault = self.server.fault(self)
        if isinstance(fault, bytes):
            self.close_connection = True
            self.wfile.write(fault)
            return
        if fault == "late":
            time.sleep(self.server.late)
        known = self.server.answers.get(self.path) if fault == "repeat" else None
        with self.server.conditional if "If-None-Match" in self.headers else nullcontext():
            status, headers, reply = known or self._forward(body, fault)
        if fault == "lose":
            self.close_connection = True
            return
        self.server.answers[self.path] = status, headers, reply
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else reply)

    def _forward(self, body: bytes, fault: str | None) -> tuple[int, list[tuple[str, str]], bytes]:
        hidden = ("if-none-match",) if fault == "forget" else ()
        headers = {name: value for name, value in self.headers.items() if name.lower() not in hidden}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            reply = answer.read()
        finally:
            connection.close()
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in ("connection", "date")]
        return answer.status, kept, reply

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve  # noqa: N815 - the names that http.server looks for

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def _no_fault(_: object) -> None:
    return None


def refusal(status: int, code: str) -> bytes:
    """Return an answer as S3 refuses a request."""
    body = f"<Error><Code>{code}</Code><Message>not {SECRET}</Message></Error>"
    return f"HTTP/1.1 {status} {code}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@contextmanager
def s3_server() -> Iterator[S3Proxy]:
    """Serve S3 with one bucket until the block ends."""
    from moto.server import ThreadedMotoServer  # takes a second, and each process of the suite collects this module

    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    _, port = moto.get_host_and_port()
    proxy = S3Proxy(port)
    threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("PUT", f"/{BUCKET}")
        assert connection.getresponse().status == 200
        connection.close()
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        moto.stop()
