"""Progress as JSON lines on standard output: run_started, node, blocked, finished."""

from typing import Any

from starter.terminal.follow import Followed
from starter.terminal.lines import Lines
from workflows.messages.result import NodeLine, RunReport
from workflows.messages.views import BlockedOn


class Events(Lines):
    """Writes one JSON object for each thing that happens. `finished` has the whole report and comes last, if at all."""

    def _write(self, event: str, **fields: Any) -> None:
        self._terminal.answer_json({"event": event, **fields})

    def _line(self, node: NodeLine) -> None:
        self._write("node", node=node.model_dump(mode="json", include=set(NodeLine.model_fields)))

    def started(self, run: Followed) -> None:
        super().started(run)
        self._write("run_started", id=run.id, run_id=run.run_id, ui_url=run.ui_url, joined=run.joined)

    def blocked(self, item: BlockedOn) -> None:
        super().blocked(item)
        self._write("blocked", **item.model_dump(mode="json"))

    def over(self, report: RunReport) -> None:
        self._changed(report.nodes)
        self._write("finished", report=report.model_dump(mode="json"))
