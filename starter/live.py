"""Progress as a table that redraws itself, for a person at a terminal."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from starter.follow import Followed
from starter.lines import STYLES, Changes, told
from starter.printable import fit
from starter.render import (
    GLYPHS,
    blocked_lines,
    closing_lines,
    counts_text,
    fit_label,
    id_width,
    label,
    usage_text,
)
from starter.terminal import Terminal
from workflows.plan.durations import duration_text
from workflows.result import RunReport
from workflows.view import BlockedOn, NodeView, RunView

_URGENCY = {"failed": 0, "waiting": 1, "running": 2, "pending": 4, "skipped": 5, "cancelled": 5, "succeeded": 3}
_AROUND = 6  # lines of the screen that are not nodes
_QUESTIONS = 5


class Board:
    """Draws the run on standard error and keeps it up to date; its last picture stays when it closes."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._console = terminal.console()
        self._changes = Changes()
        self._began = time.monotonic()
        self._took: float | None = None
        self._since: dict[str, float] = {}
        self._view: RunView | None = None
        self._rows: list[NodeView] = []
        self._note = ""
        self._first, self._spinner = Spinner("dots"), Spinner("dots")
        self._live: Live | None = None
        self._aside = self._closed = False

    def started(self, run: Followed) -> None:
        told(run, self._terminal)
        self._start()

    def show(self, view: RunView) -> None:
        self._changes.since(view.nodes)
        self._take(view)
        self._start()

    def _take(self, view: RunView) -> None:
        now = time.monotonic()
        for node in view.nodes:
            if node.status != "running":
                self._since.pop(node.id, None)
            else:
                self._since.setdefault(node.id, now)
        room = self._console.height - _AROUND - 2 * min(len(view.blocked), _QUESTIONS)
        self._rows = chosen_rows(view.nodes, max(room, 3))
        self._view, self._note = view, ""

    def blocked(self, item: BlockedOn) -> None:
        """Nothing to do: what a run waits for is part of the picture."""

    def note(self, text: str) -> None:
        self._note = text

    def tell(self, text: str) -> None:
        self._terminal.tell(text)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave the picture as it is while something is asked below it; the next view begins a new one."""
        self._aside = True
        self._stop()
        try:
            yield
        finally:
            self._aside = False

    def over(self, report: RunReport) -> None:
        ended = {node.id: node for node in self._changes.at_end(report)}
        self._took = time.monotonic() - self._began
        if self._view is None:
            self.close()
            self._terminal.say(closing_lines(report)[0], "bold")
        else:
            nodes = tuple(ended.pop(node.id, node) for node in self._view.nodes) + tuple(ended.values())
            self._take(
                RunView(**_outline(report), phase="", counts=Counter(node.status for node in nodes), nodes=nodes)
            )
            self._start()
            self.close()
        for line in closing_lines(report)[1:]:
            self._terminal.tell(line)

    def close(self) -> None:
        self._stop()
        self._closed = True

    def _start(self) -> None:
        """Begin a new picture where the cursor is: one that was stopped would draw over what came after it."""
        if self._live is None and not self._aside and not self._closed:
            self._live = Live(console=self._console, get_renderable=self._draw, refresh_per_second=8)
            self._live.start()

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _draw(self) -> RenderableType:
        if self._view is None:
            self._first.update(text=Text(self._note or "starting"))
            return self._first
        view, width = self._view, self._console.width
        took = time.monotonic() - self._began if self._took is None else self._took
        told = (view.status, counts_text(view.counts), duration_text(took * 1000), usage_text(view.usage))
        parts: list[RenderableType] = [Text(fit(" · ".join(filter(None, told)), width), "bold"), self._table(width)]
        left_out = len(view.nodes) - len(self._rows)
        if left_out:
            parts.append(Text(f"  and {left_out:,} more", "dim"))
        for item in view.blocked[:_QUESTIONS]:
            parts += [Text(line, "yellow") for line in blocked_lines(item, self._terminal.flags)]
        if self._note:
            parts.append(Text(fit(self._note, width), "yellow"))
        return Group(*parts)

    def _table(self, width: int) -> Table:
        table = Table.grid(padding=(0, 1))
        wide = id_width(self._rows)
        for columns in (1, wide, 8, 3):
            table.add_column(width=columns, no_wrap=True, justify="right" if columns == 8 else "left")
        table.add_column(no_wrap=True)
        room = max(width - wide - 16, 8)
        now = time.monotonic()
        for node in self._rows:
            style = STYLES.get(node.status, "dim" if node.status == "pending" else "")
            glyph: RenderableType = self._spinner if node.status == "running" else Text(GLYPHS[node.status])
            tries = f"x{node.attempts}" if node.attempts > 1 else ""
            time_text = self._time(node, now)
            name = Text(fit(node.id, wide))
            table.add_row(glyph, name, time_text, tries, Text(fit_label(label(node), room)), style=style)
        return table

    def _time(self, node: NodeView, now: float) -> str:
        since = self._since.get(node.id)
        return duration_text(node.duration_ms if since is None else (now - since) * 1000)


def _outline(report: RunReport) -> dict[str, Any]:
    return {name: getattr(report, name) for name in ("id", "run_id", "status", "usage")}


def chosen_rows(nodes: Sequence[NodeView], room: int) -> list[NodeView]:
    """Return at most `room` nodes in the plan's order: what failed, waits or runs before what is done or to come."""
    if len(nodes) <= room:
        return list(nodes)
    ranked = sorted(range(len(nodes)), key=lambda index: (_URGENCY[nodes[index].status], index))
    return [nodes[index] for index in sorted(ranked[:room])]
