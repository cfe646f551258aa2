"""A run that follows a script instead of a server, and terminals that remember what was written to them."""

import asyncio
import io
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from starter.client.errors import CliError, Refused
from starter.client.outcome import RunOutcome
from starter.dev.binary import obtain
from starter.dev.server import DevServer
from starter.terminal.console import Output, Terminal
from workflows.messages.result import NodeLine, RunReport, RunStatus
from workflows.messages.views import BlockedOn, NodeView, RunView


class Stream(io.StringIO):
    """A text stream that may say that it is a terminal."""

    def __init__(self, *, tty: bool = False) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


@pytest.fixture
def make_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Terminal]:
    """Make a terminal of two streams; `tty` makes all three a person's, 80 columns wide and 24 lines high."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")

    def make(output: Output = "text", *, tty: bool = False, **more: Any) -> Terminal:
        return Terminal(output, out=Stream(tty=tty), err=Stream(tty=tty), stdin=Stream(tty=tty), **more)

    return make


def node(name: str, status: Any = "pending", **more: Any) -> NodeView:
    return NodeView(**{"id": name, "kind": "tool", "status": status, "summary": f'{name} search "{name}"', **more})


def gate(name: str, update: str = "answer", **example: Any) -> BlockedOn:
    command = f"sennit {update} run-1 {name}"
    example = {"node": name, **({"value": "yes"} if update == "answer" else {}), **example}
    return BlockedOn(node=name, why="", question=f"{name}?", update=update, example=example, command=command)


def view(*nodes: NodeView, status: RunStatus = "running", blocked: Sequence[BlockedOn] = ()) -> RunView:
    counts: dict[str, int] = {}
    for each in nodes:
        counts[each.status] = counts.get(each.status, 0) + 1
    return RunView(id="run-1", run_id="r", status=status, phase="", counts=counts, nodes=nodes, blocked=tuple(blocked))


def report(status: RunStatus = "done", **more: Any) -> RunReport:
    return RunReport(**{"id": "run-1", "run_id": "r", "status": status, "answer": "42", **more})


@pytest.fixture
def make_node() -> Callable[..., NodeView]:
    return node


@pytest.fixture
def make_gate() -> Callable[..., BlockedOn]:
    return gate


@pytest.fixture
def make_view() -> Callable[..., RunView]:
    return view


@pytest.fixture
def make_report() -> Callable[..., RunReport]:
    return report


class FakeRun:
    """Yields the views it was given, then stays in the last one until it took `updates` of those it `takes`.

    Then it ends as told, goes on if it is told to end as running, or loses its server when that is `gone`.
    """

    id = "run-1"
    run_id = "r"
    ui_url = "http://localhost:8233/r"
    joined = False
    began = closed = 0.0

    def __init__(
        self,
        *views: RunView,
        takes: Sequence[str] = (),
        updates: int = 1,
        end: RunOutcome | None = None,
        gone: CliError | None = None,
        last: RunView | None = None,
    ) -> None:
        self._views = views
        self._takes = takes
        self._missing = updates if takes else 0
        self._end = end or RunOutcome(report())
        self._gone = gone
        self._last = last
        self.over = asyncio.Event()
        self.updates: list[tuple[str, dict[str, Any]]] = []

    async def watch(
        self, *, every: bool = False, on_silence: Callable[[str], None] | None = None
    ) -> AsyncGenerator[RunView, None]:
        for each in self._views:
            yield each
        while self._missing:
            yield self._views[-1]
            await asyncio.sleep(0.005)
        if self._end.report.status != "running":
            self.over.set()
        await self.over.wait()

    async def outcome(self) -> RunOutcome:
        if self._gone:
            raise self._gone
        await self.over.wait()
        return self._end

    async def last_view(self) -> RunView | None:
        return self._last

    async def update(self, name: str, /, **fields: Any) -> str:
        self.updates.append((name, fields))
        if name not in self._takes:
            raise Refused(f"{name} does not fit")
        self._missing -= 1
        return f"{name} was applied"


@pytest.fixture
def make_run() -> type[FakeRun]:
    return FakeRun


@pytest.fixture
def never_ending() -> RunOutcome:
    """The ending of a fake run that goes on until the test sets `over`."""
    return RunOutcome(RunReport(id="run-1", run_id="r", status="running"))


@pytest.fixture
def settled() -> Callable[..., NodeLine]:
    def make(name: str, status: Any = "succeeded", **more: Any) -> NodeLine:
        return NodeLine(id=name, kind="tool", status=status, **more)

    return make


@pytest.fixture(scope="session")
def server_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Temporal server of its own for the client's tests."""
    binary: Path = obtain(pinned_only=True)
    server = DevServer(binary, None, tmp_path_factory.mktemp("server") / "log", port=0, ui_port=0, headless=True)
    asyncio.run(server.start())
    yield server.address
    asyncio.run(server.stop())


@pytest.fixture
async def client(server_address: str) -> Client:
    from workflows.messages.converter import DATA_CONVERTER

    return await Client.connect(server_address, data_converter=DATA_CONVERTER)
