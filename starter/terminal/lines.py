"""Progress as lines: one for each change of a node. For pipes, logs, and terminals that cannot redraw."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from starter.terminal.console import Terminal
from starter.terminal.follow import Followed
from starter.terminal.render import blocked_lines, closing_lines, id_width, node_line
from workflows.messages.result import NodeLine, RunReport
from workflows.messages.views import BlockedOn, RunView

STYLES = {"failed": "red", "succeeded": "green", "waiting": "yellow", "skipped": "dim", "cancelled": "dim"}
WIDTH = 160
MANY = 20
"""Items of one map above which a line each would bury the rest."""


def told(run: Followed, terminal: Terminal) -> None:
    """Say which run this is and where the web UI shows it."""
    terminal.say(f"run {run.id}" + (" (was there already)" if run.joined else ""), "bold")
    if run.ui_url:
        terminal.say(f"ui  {run.ui_url}", "dim")


class Changes:
    """Remembers how each node last was, and tells which are different now."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int, str | None]] = {}
        self._summaries: dict[str, str] = {}

    def since(self, nodes: Sequence[NodeLine]) -> list[NodeLine]:
        """Return the nodes that changed since the last call, with the longest summary seen: a report's may be cut.

        Those that only wait for their turn are no news.
        """
        return [node for node in map(self._whole, nodes) if self._is_new(node)]

    def _is_new(self, node: NodeLine) -> bool:
        now = (node.status, node.attempts, node.error)
        before = self._known.get(node.id, ("pending", 0, None))
        self._known[node.id] = now
        return now != before and node.status != "pending"

    def _whole(self, node: NodeLine) -> NodeLine:
        summary = max(self._summaries.get(node.id, ""), node.summary, key=len)
        self._summaries[node.id] = summary
        return node if summary == node.summary else node.model_copy(update={"summary": summary})


class Lines:
    """Writes progress line by line to standard error; of a big map only those items that went wrong or wait."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._changes = Changes()
        self._id_width = 0
        self._items: Counter[str] = Counter()
        self._noted = ""
        self._held: list[NodeLine] | None = None

    def started(self, run: Followed) -> None:
        told(run, self._terminal)

    def show(self, view: RunView) -> None:
        self._changed(view.nodes)

    def _changed(self, nodes: Sequence[NodeLine]) -> None:
        self._id_width = max(self._id_width, id_width(nodes))
        self._items = Counter(node.id.partition("[")[0] for node in nodes if "[" in node.id)
        for node in self._changes.since(nodes):
            self._line(node)

    def _line(self, node: NodeLine) -> None:
        map_id, item, _ = node.id.partition("[")
        if item and self._items[map_id] > MANY and node.attempts <= 1 and node.status in ("running", "succeeded"):
            return
        if self._held is not None:
            self._held.append(node)
            return
        self._terminal.say(node_line(node, WIDTH, self._id_width), STYLES.get(node.status, ""))

    def blocked(self, item: BlockedOn) -> None:
        for line in blocked_lines(item, self._terminal.flags):
            self._terminal.tell(line, "yellow")

    def note(self, text: str) -> None:
        if text != self._noted:
            self._terminal.say(text, "dim")
        self._noted = text

    def tell(self, text: str) -> None:
        self._terminal.tell(text)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hold lines back while something is asked."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            for node in held:
                self._line(node)

    def over(self, report: RunReport) -> None:
        self._changed(report.nodes)
        first, *rest = closing_lines(report)
        self._terminal.say(first, "bold")
        for line in rest:
            self._terminal.tell(line)

    def close(self) -> None:
        return None
