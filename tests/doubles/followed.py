"""A run that follows a script instead of a server, and the parts of its views."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from sennit.starter.client.errors import Refused, SennitError
from sennit.starter.client.outcome import RunOutcome
from sennit.workflows.messages.result import BlockedOn, NodeLine, RunReport, RunStatus
from sennit.workflows.messages.views import NodeView, RunEvent, RunView

NEVER_ENDING = RunOutcome(RunReport(id="run-1", run_id="r", status="running"))
"""The outcome of a fake run that goes on until the test sets `over`."""


def make_node(name: str, status: Any = "pending", **more: Any) -> NodeView:
    return NodeView(**{"id": name, "kind": "tool", "status": status, "summary": f'{name} search "{name}"', **more})


def make_gate(name: str, update: str = "answer", **example: Any) -> BlockedOn:
    command = f"sennit {update} run-1 {name}"
    example = {"node": name, **({"value": "yes"} if update == "answer" else {}), **example}
    return BlockedOn(node=name, why="", question=f"{name}?", update=update, example=example, command=command)


def make_view(*nodes: NodeView, status: RunStatus = "running", blocked: Sequence[BlockedOn] = ()) -> RunView:
    counts: dict[str, int] = {}
    for each in nodes:
        counts[each.status] = counts.get(each.status, 0) + 1
    return RunView(id="run-1", run_id="r", status=status, phase="", counts=counts, nodes=nodes, blocked=tuple(blocked))


def make_report(status: RunStatus = "done", **more: Any) -> RunReport:
    counts = Counter(node.status for node in more.get("nodes", ()))
    return RunReport(**{"id": "run-1", "run_id": "r", "status": status, "answer": "42", "counts": counts, **more})


def settled(name: str, status: Any = "succeeded", **more: Any) -> NodeLine:
    return NodeLine(id=name, kind="tool", status=status, **more)


class FakeRun:
    """Yields the views it was given, then stays in the last one until it took `updates` of those it `takes`.

    Then it ends with the given status, goes on if that is running, or loses its server when that is `gone`. Its events
    are those that have `happened`, and then the error if it is `silent`.
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
        gone: SennitError | None = None,
        last: RunView | None = None,
        happened: Sequence[RunEvent] = (),
        silent: SennitError | None = None,
    ) -> None:
        self._views = views
        self._takes = takes
        self._missing = updates if takes else 0
        self._end = end or RunOutcome(make_report())
        self._gone = gone
        self._last = last
        self._happened, self._silent = happened, silent
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

    async def events(self, *, after: int = 0, follow: bool = True) -> AsyncGenerator[RunEvent, None]:
        for event in self._happened:
            if event.number > after:
                yield event
        if self._silent:
            raise self._silent
        if follow:
            await self.over.wait()

    async def texts(self, *, position: int = 0) -> AsyncGenerator[RunEvent, None]:
        del position
        for event in self._happened:
            if event.kind in ("text", "discarded"):
                yield event
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


def make_run(*views: RunView, **more: Any) -> Any:
    """Return a fake run, as something that may stand for a real one."""
    return FakeRun(*views, **more)
