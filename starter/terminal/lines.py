"""Progress as sentences, for pipes, logs, and terminals that cannot redraw."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sennit.starter.client.run import Run
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.render import blocked_lines, closing_lines, node_sentence
from sennit.workflows.messages.result import BlockedOn, NodeLine, RunReport
from sennit.workflows.messages.views import RunView
from sennit.workflows.plan.language.text import one_line

STYLES = {
    "failed": "red",
    "succeeded": "green",
    "waiting": "yellow",
    "handled": "dim",
    "skipped": "dim",
    "cancelled": "dim",
}
WIDTH = 160
PACE = " · about "
MANY_ITEMS = 20
"""Items of one map above which a line for each would bury the rest."""


def announce(run: Run[Any], terminal: Terminal) -> None:
    """Say which run this is and where the web UI shows it."""
    text = f"run {run.id}"
    if run.joined:
        text += " (joined; it was already started)"
    terminal.say(text, "bold")
    if run.ui_url:
        terminal.say(f"ui  {run.ui_url}", "dim")


class Changes:
    """Remembers how each node last was, and finds the nodes that changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int, str | None]] = {}
        self._summaries: dict[str, str] = {}

    def since(self, nodes: Sequence[NodeLine]) -> list[NodeLine]:
        """Return the nodes that changed since the last call and no longer wait for their turn.

        Each has the longest summary seen: that of a report may be cut.
        """
        changed: list[NodeLine] = []
        for node in nodes:
            if self._is_new(node):
                changed.append(self._with_summary(node))
        return changed

    def _is_new(self, node: NodeLine) -> bool:
        known_summary = self._summaries.get(node.id, "")
        self._summaries[node.id] = max(known_summary, node.summary, key=len)
        now = (node.status, node.attempts, node.error)
        before = self._known.get(node.id, ("pending", 0, None))
        self._known[node.id] = now
        return now != before and node.status != "pending"

    def _with_summary(self, node: NodeLine) -> NodeLine:
        summary = self._summaries[node.id]
        if summary == node.summary:
            return node
        return node.model_copy(update={"summary": summary})


class Lines:
    """Writes a sentence for each change to standard error; for items of a big map only
    if one fails or waits.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._changes = Changes()
        self._items: Counter[str] = Counter()
        self._noted = ""
        self._held: list[NodeLine] | None = None

    def started(self, run: Run[Any]) -> None:
        announce(run, self._terminal)

    def show(self, view: RunView) -> None:
        progress = view.progress.partition(PACE)[0]
        # The pace alone would be a line each time.
        if progress and not progress.startswith(PACE.strip(" ·")):
            self.note(f"{view.phase}: {one_line(progress)}")
        self._show_changes(view.nodes)

    def _show_changes(self, nodes: Sequence[NodeLine]) -> None:
        self._items = Counter()
        for node in nodes:
            map_id, item, _ = node.id.partition("[")
            if item:
                self._items[map_id] += 1
        for node in self._changes.since(nodes):
            self._show_node(node)

    def _show_node(self, node: NodeLine) -> None:
        map_id, item, _ = node.id.partition("[")
        goes_well = node.attempts <= 1 and node.status in ("running", "succeeded")
        if item and goes_well and self._items[map_id] > MANY_ITEMS:
            return
        if self._held is not None:
            self._held.append(node)
            return
        self._terminal.say(node_sentence(node, WIDTH), STYLES.get(node.status, ""))

    def blocked(self, item: BlockedOn) -> None:
        for line in blocked_lines(item, self._terminal.flags):
            self._terminal.notice(line, "yellow")

    def note(self, text: str) -> None:
        if text != self._noted:
            self._terminal.say(text, "dim")
        self._noted = text

    def notice(self, text: str) -> None:
        self._terminal.notice(text)

    @contextmanager
    def paused(self, item: BlockedOn) -> Iterator[None]:
        """Hold lines back while a question is asked. What it is about has been written."""
        del item
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            for node in held:
                self._show_node(node)

    def finished(self, report: RunReport) -> None:
        self._show_changes(report.nodes)
        first, *rest = closing_lines(report)
        self._terminal.say(first, "bold")
        for line in rest:
            self._terminal.notice(line)

    def close(self) -> None:
        return None


class Notices(Lines):
    """Writes to standard error what must be read, and no progress: standard
    output has the run's events.
    """

    def show(self, view: RunView) -> None:
        """Do nothing: the events tell it."""

    def finished(self, report: RunReport) -> None:
        """Do nothing: the report is written."""
