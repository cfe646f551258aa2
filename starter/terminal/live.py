"""Progress as a table that redraws itself, for a person at a terminal."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from sennit.starter.client.run import Run
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.layers import Band, bands_of, bar_of
from sennit.starter.terminal.lines import STYLES, announce
from sennit.starter.terminal.render import (
    GLYPHS,
    blocked_lines,
    closing_lines,
    counts_text,
    fit_label,
    id_width,
    label,
    shown_lines,
    status_text,
    usage_text,
)
from sennit.starter.terminal.text import fit, padded
from sennit.workflows.messages.result import BlockedOn, RunReport
from sennit.workflows.messages.views import ENDED_STATUSES, NodeView, RunEvent, RunView
from sennit.workflows.plan.language.limits import duration_text
from sennit.workflows.plan.language.text import clean, one_line

_RUN_STYLES = {
    "done": "bold green",
    "failed": "bold red",
    "cancelled": "bold red",
    "blocked": "bold yellow",
    "partial": "bold yellow",
}
_OTHER_LINES = 4  # lines of the screen that are neither nodes nor what the run waits for
_QUESTIONS = 5
_SHOWN_LINES = 5
_TEXT_LINES = 6
"""Lines of the screen for what a model writes just now: the last of it."""
_BAR = 24


class LiveTable:
    """Draws the run on standard error and keeps it up to date; its last
    state stays when it closes.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._console = terminal.console()
        self._began = time.time()
        self._ended = 0.0
        self._took: float | None = None
        self._since: dict[str, float] = {}
        """For each running node when it started, on the monotonic clock."""
        self._view: RunView | None = None
        self._note = ""
        self._texts: dict[str, str] = {}
        """What models write just now, by node; the node that was written for
        last stands at the end.
        """
        self._spinner = Spinner("dots")
        self._live: Live | None = None
        self._paused = False
        self._closed = False

    def started(self, run: Run[Any]) -> None:
        announce(run, self._terminal)
        if run.began:
            self._began = run.began
        self._ended = run.closed
        self._start()

    def show(self, view: RunView) -> None:
        now = time.monotonic()
        for node in view.nodes:
            if node.status == "running":
                ran_for = (node.duration_ms or 0) / 1000
                self._since.setdefault(node.id, now - ran_for)
            else:
                self._since.pop(node.id, None)
        self._view = view
        self._note = ""
        self._start()

    def blocked(self, item: BlockedOn) -> None:
        """Do nothing: what a run waits for is part of the table."""

    def text(self, event: RunEvent) -> None:
        """Show what a model writes for a node, and no longer what was discarded."""
        written = self._texts.pop(event.node, "")
        if event.kind == "text":
            self._texts[event.node] = written[: event.offset] + event.text

    def note(self, text: str) -> None:
        self._note = one_line(text)

    def notice(self, text: str) -> None:
        self._terminal.notice(text)

    @contextmanager
    def paused(self, item: BlockedOn) -> Iterator[None]:
        """Leave the table as it is while a question is asked below it; the next
        view begins a new one.
        """
        self._paused = True
        self._stop()
        shown = shown_lines(item)
        if len(shown) > _SHOWN_LINES:  # the table has only their beginning
            self._terminal.notice("\n".join(shown))
        try:
            yield
        finally:
            self._paused = False

    def finished(self, report: RunReport) -> None:
        self._took = (self._ended or time.time()) - self._began
        self.show(_final_view(report, self._view))
        self.close()
        for line in closing_lines(report)[1:]:
            self._terminal.notice(line)

    def close(self) -> None:
        self._stop()
        self._closed = True

    def _start(self) -> None:
        """Begin a new table at the cursor: the old one would be drawn over what came after it."""
        if self._live is None and not self._paused and not self._closed:
            self._live = Live(
                console=self._console, get_renderable=self._draw, refresh_per_second=8
            )
            self._live.start()

    def _stop(self) -> None:
        live = self._live
        self._live = None
        if live is not None:
            live.stop()

    def _draw(self) -> RenderableType:
        width = self._console.width
        if self._view is None:
            return Text.assemble(self._spin(), " ", (self._note or "starting", "dim"))
        view = self._view

        # The first line: the status, and the figures as far as they fit beside it.
        took = self._took
        if took is None:
            took = time.time() - self._began
        status = status_text(view)
        facts = (counts_text(view.counts), duration_text(took * 1000), usage_text(view.usage))
        room_of_figures = width - len(status) - 1
        figures = fit("· " + " · ".join(filter(None, facts)), room_of_figures)
        head = Text.assemble((status, _RUN_STYLES.get(view.status, "bold")), f" {figures}")

        # The nodes get the room that is left below: a command that a person must copy
        # may take several lines.
        below: list[Text] = []
        for text, style in self._waiting_lines(view, width):
            below.append(Text(text, style))
        below += self._text_lines(view, width)
        taken = 0
        for line in below:
            taken += max(ceil(cell_len(line.plain) / width), 1)
        room = max(self._console.height - _OTHER_LINES - taken, 4)
        return Group(head, *self._rows(view, width, room), *below)

    def _waiting_lines(self, view: RunView, width: int) -> Iterator[tuple[str, str]]:
        """Yield what the run waits for; a command is never cut, so that it can be copied."""
        for item in view.blocked[:_QUESTIONS]:
            question, *shown, command = blocked_lines(item, self._terminal.flags)
            yield fit(question, width), "yellow"
            if len(shown) > _SHOWN_LINES:
                kept = _SHOWN_LINES - 1
                shown = [*shown[:kept], f"  | … {len(shown) - kept} more lines"]
            for line in shown:
                yield fit(line, width), ""
            yield command, "bold"
        if len(view.blocked) > _QUESTIONS:
            yield f"and {len(view.blocked) - _QUESTIONS} more", "yellow"
        if self._note:
            yield self._note, "yellow"
        if view.progress and not view.blocked:
            yield fit(f"{view.phase}: {one_line(view.progress)}", width), "dim"

    def _text_lines(self, view: RunView, width: int) -> list[Text]:
        """Return the last lines of the text that a model writes for a node which has not ended."""
        ended = {node.id for node in view.nodes if node.status in ENDED_STATUSES}
        writing = [node for node in self._texts if node not in ended]
        if not writing or view.phase == "ended":
            return []
        node = writing[-1]
        text = clean(self._texts[node][-_TEXT_LINES * width :])
        lines = Text(text).wrap(self._console, width)
        return [Text(fit(f"{node} writes:", width), "dim"), *lines[-_TEXT_LINES:]]

    def _rows(self, view: RunView, width: int, room: int) -> Iterator[Text]:
        """Yield the nodes in at most `room` lines, with bars where there is
        no room for all of them.
        """
        bands = bands_of(view.nodes, room)

        # All lines share their columns, so the widest entry of each column is known first. A
        # single band needs no name.
        gutter = 0
        listed: list[NodeView] = []
        for band in bands:
            listed += band.nodes
            if len(bands) > 1:
                gutter = max(gutter, cell_len(band.name))
        wide = min(id_width(listed), width // 3)
        tries_width = max([len(_tries(node)) for node in listed], default=0)

        # The name of a band stands in its first line: in its bar, or else beside its first node.
        now = time.monotonic()
        for band in bands:
            name = band.name
            if band.folded:
                yield self._bar(band, gutter, width)
                name = ""
            for node in band.nodes:
                line = _gutter(name, gutter)
                self._append_name(line, node, wide, now)
                line.append(f"{_tries(node):<{tries_width}}", "yellow")
                style = "red"
                if node.status != "failed":
                    style = _dim(node)
                left = max(width - line.cell_len, 0)
                line.append(fit_label(label(node), left), style)
                line.truncate(width)
                yield line
                name = ""

    def _bar(self, band: Band, gutter: int, width: int) -> Text:
        line = _gutter(band.name, gutter)
        for status, signs in bar_of(band.counts, min(_BAR, width // 3)):
            line.append(signs, STYLES.get(status, ""))
        style = "dim"
        if band.nodes:
            style = ""
        counts = fit(counts_text(band.counts), width - line.cell_len - 1)
        line.append(f" {counts}", style)
        return line

    def _append_name(self, line: Text, node: NodeView, wide: int, now: float) -> None:
        """Append the mark of a node's status, its id and its time, up to now while it runs."""
        since = self._since.get(node.id)
        ms: float | None = None
        if since is not None:
            style = "bold"
            line.append_text(self._spin())
            ms = (now - since) * 1000
        else:
            style = _dim(node)
            line.append(GLYPHS[node.status], STYLES.get(node.status, style))
            if node.status in ENDED_STATUSES:
                ms = node.duration_ms
        name = padded(fit(node.id, wide), wide)
        line.append(f" {name} ", style)
        line.append(f"{duration_text(ms):>8} ", "dim")

    def _spin(self) -> Text:
        frame = self._spinner.render(self._console.get_time())
        if isinstance(frame, Text):
            return frame.copy()
        return Text(GLYPHS["running"])


def _gutter(name: str, width: int) -> Text:
    """Return the name of a band; numbers stand to the right, names of groups to the left."""
    if width <= 0:
        return Text()
    if name[:1].isdigit():
        return Text(f"{name.rjust(width)} ", "dim")
    return Text(f"{padded(name, width)} ", "dim")


def _dim(node: NodeView) -> str:
    if node.status in ("pending", "handled", "skipped", "cancelled"):
        return "dim"
    return ""


def _tries(node: NodeView) -> str:
    if node.attempts <= 1:
        return ""
    return f"x{node.attempts} "


def _final_view(report: RunReport, last: RunView | None) -> RunView:
    """Return the last view: nodes as the report has them, with what only
    earlier views say of them.
    """
    in_report = {node.id: node for node in report.nodes}
    nodes: list[NodeView] = []
    if last is not None:
        for node in last.nodes:
            line = in_report.pop(node.id, None)
            if line is not None:
                # Only the view has the summary of an item of a map.
                node = node.model_copy(update=line.model_dump(exclude={"summary"}))
            nodes.append(node)
    for line in in_report.values():
        nodes.append(NodeView(**line.model_dump()))
    return RunView(
        id=report.id,
        run_id=report.run_id,
        status=report.status,
        phase="ended",
        counts=report.counts,
        nodes=tuple(nodes),
        usage=report.usage,
    )
