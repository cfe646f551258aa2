"""A receiver of traces: it takes OTLP over HTTP, decodes the protobuf, and keeps the spans."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

otlp = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="needs sennit[otel]")


@dataclass(frozen=True)
class Received:
    """One span as it was sent; ids are hexadecimal, times nanoseconds."""

    id: str
    trace: str
    parent: str
    name: str
    start: int
    end: int
    links: tuple[str, ...]
    links_dropped: int
    error: str | None
    attributes: dict[str, Any] = field(hash=False)


@dataclass
class TraceServer:
    """What was received, in order, and the `services` that sent it."""

    url: str = ""
    spans: list[Received] = field(default_factory=list)
    services: set[str] = field(default_factory=set)
    paths: list[str] = field(default_factory=list)

    def named(self, name: str) -> list[Received]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Received:
        (span,) = self.named(name)
        return span

    def below(self, span: Received) -> list[Received]:
        return [each for each in self.spans if each.parent == span.id]

    def take(self, path: str, body: bytes) -> None:
        self.paths.append(path)
        for resource in otlp.ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services.add(_attributes(resource.resource.attributes)["service.name"])
            for scope in resource.scope_spans:
                self.spans += [_received(span) for span in scope.spans]


def _received(span: Any) -> Received:
    return Received(
        id=span.span_id.hex(),
        trace=span.trace_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        links=tuple(link.span_id.hex() for link in span.links),
        links_dropped=span.dropped_links_count,
        error=span.status.message if span.status.code == 2 else None,
        attributes=_attributes(span.attributes),
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@contextmanager
def trace_server() -> Iterator[TraceServer]:
    """Run a receiver until the block ends."""
    found = TraceServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.take(self.path, gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
