"""Progress as JSON lines on standard output: run_started, node, blocked, finished."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starter.follow import Followed
from starter.lines import Changes, told
from starter.render import blocked_lines
from starter.terminal import Terminal
from workflows.result import NodeLine, RunReport
from workflows.view import BlockedOn, RunView


class Events:
    """Writes one JSON object for each thing that happens. `finished` has the whole report and comes last, if at all."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._changes = Changes()

    def _write(self, event: str, **fields: Any) -> None:
        self._terminal.answer_json({"event": event, **fields})

    def _node(self, node: NodeLine) -> None:
        self._write("node", node=node.model_dump(mode="json", include=set(NodeLine.model_fields)))

    def started(self, run: Followed) -> None:
        told(run, self._terminal)
        self._write("run_started", id=run.id, run_id=run.run_id, ui_url=run.ui_url, joined=run.joined)

    def show(self, view: RunView) -> None:
        for node in self._changes.since(view.nodes):
            self._node(node)

    def blocked(self, item: BlockedOn) -> None:
        for line in blocked_lines(item, self._terminal.flags):
            self._terminal.tell(line)
        self._write("blocked", **item.model_dump(mode="json"))

    def note(self, text: str) -> None:
        self._terminal.say(text)

    def tell(self, text: str) -> None:
        self._terminal.tell(text)

    @contextmanager
    def aside(self) -> Iterator[None]:
        yield

    def over(self, report: RunReport) -> None:
        for node in self._changes.since(report.nodes):
            self._node(node)
        self._write("finished", report=report.model_dump(mode="json"))

    def close(self) -> None:
        return None
