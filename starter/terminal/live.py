"""Progress as a table that redraws itself, for a person at a terminal."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
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

_RUN_STYLES = {"done": "bold green", "failed": "bold red", "cancelled": "bold red"} | dict.fromkeys(
    ("blocked", "partial"), "bold yellow"
)
_OTHER_LINES = 4  # lines of the screen that are neither nodes nor what the run waits for
_QUESTIONS = 5
_SHOWN_LINES = 5
_TEXT_LINES = 6
"""Lines of the screen for what a model writes just now: the last of it."""
_BAR = 24


class LiveTable:
    """Draws the run on standard error and keeps it up to date; its last state stays when it closes."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._console = terminal.console()
        self._began, self._ended = time.time(), 0.0
        self._took: float | None = None
        self._since: dict[str, float] = {}
        self._view: RunView | None = None
        self._note = ""
        self._texts: dict[str, str] = {}  # by node, the one that was written last at the end
        self._spinner = Spinner("dots")
        self._live: Live | None = None
        self._paused = self._closed = False

    def started(self, run: Run[Any]) -> None:
        announce(run, self._terminal)
        self._began, self._ended = run.began or self._began, run.closed
        self._start()

    def show(self, view: RunView) -> None:
        now = time.monotonic()
        for node in view.nodes:
            if node.status != "running":
                self._since.pop(node.id, None)
            else:
                self._since.setdefault(node.id, now - (node.duration_ms or 0) / 1000)
        self._view, self._note = view, ""
        self._start()

    def blocked(self, item: BlockedOn) -> None:
        """Do nothing: what a run waits for is part of the table."""

    def text(self, event: RunEvent) -> None:
        """Show what a model writes for a node, and no longer what was discarded."""
        before = self._texts.pop(event.node, "")
        if event.kind == "text":
            self._texts[event.node] = before[: event.offset] + event.text

    def note(self, text: str) -> None:
        self._note = one_line(text)

    def notice(self, text: str) -> None:
        self._terminal.notice(text)

    @contextmanager
    def paused(self, item: BlockedOn) -> Iterator[None]:
        """Leave the table as it is while a question is asked below it; the next view begins a new one."""
        self._paused = True
        self._stop()
        if len(shown := shown_lines(item)) > _SHOWN_LINES:  # the table has only their beginning
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
            self._live = Live(console=self._console, get_renderable=self._draw, refresh_per_second=8)
            self._live.start()

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _draw(self) -> RenderableType:
        width = self._console.width
        if self._view is None:
            return Text.assemble(self._spin(), " ", (self._note or "starting", "dim"))
        view = self._view
        took = time.time() - self._began if self._took is None else self._took
        facts = (counts_text(view.counts), duration_text(took * 1000), usage_text(view.usage))
        status = status_text(view)
        head = fit("· " + " · ".join(filter(None, facts)), width - len(status) - 1)
        below = [Text(line, style) for line, style in self._waiting_lines(view, width)]
        below += self._text_lines(view, width)
        taken = sum(-(-max(cell_len(line.plain), 1) // width) for line in below)
        rows = self._rows(view, width, max(self._console.height - _OTHER_LINES - taken, 4))
        return Group(Text.assemble((status, _RUN_STYLES.get(view.status, "bold")), f" {head}"), *rows, *below)

    def _waiting_lines(self, view: RunView, width: int) -> Iterator[tuple[str, str]]:
        """Yield what the run waits for; a command is never cut, so that it can be copied."""
        for item in view.blocked[:_QUESTIONS]:
            question, *shown, command = blocked_lines(item, self._terminal.flags)
            yield fit(question, width), "yellow"
            cut = [f"  | … {len(shown) - _SHOWN_LINES + 1} more lines"] if len(shown) > _SHOWN_LINES else []
            for line in [*shown[: _SHOWN_LINES - len(cut)], *cut]:
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
        bands = bands_of(view.nodes, room)
        gutter = -1
        if len(bands) > 1:
            gutter = max((cell_len(band.name) for band in bands), default=0)
        listed = [node for band in bands for node in band.nodes]
        wide, tries = min(id_width(listed), width // 3), max((len(_tries(node)) for node in listed), default=0)
        now = time.monotonic()
        for band in bands:
            name = band.name
            if band.folded:
                yield self._bar(band, gutter, width)
                name = ""
            for node in band.nodes:
                line = _gutter(name, gutter)
                self._append_name(line, node, wide, now)
                line.append(f"{_tries(node):<{tries}}", "yellow")
                style = "red"
                if node.status != "failed":
                    style = _dim(node)
                line.append(fit_label(label(node), max(width - line.cell_len, 0)), style)
                line.truncate(width)
                yield line
                name = ""

    def _bar(self, band: Band, gutter: int, width: int) -> Text:
        line = _gutter(band.name, gutter)
        for status, signs in bar_of(band.counts, min(_BAR, width // 3)):
            line.append(signs, STYLES.get(status, ""))
        line.append(" " + fit(counts_text(band.counts), width - line.cell_len - 1), "" if band.nodes else "dim")
        return line

    def _append_name(self, line: Text, node: NodeView, wide: int, now: float) -> None:
        """Append the mark of a node's status, its id and its time, up to now while it runs."""
        since = self._since.get(node.id)
        if since is None:
            line.append(GLYPHS[node.status], STYLES.get(node.status, _dim(node)))
            ms: float | None = node.duration_ms if node.status in ENDED_STATUSES else None
        else:
            line.append_text(self._spin())
            ms = (now - since) * 1000
        line.append(f" {padded(fit(node.id, wide), wide)} ", _dim(node) if since is None else "bold")
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
    return Text(f"{name.rjust(width) if name[:1].isdigit() else padded(name, width)} ", "dim")


def _dim(node: NodeView) -> str:
    return "dim" if node.status in ("pending", "handled", "skipped", "cancelled") else ""


def _tries(node: NodeView) -> str:
    if node.attempts <= 1:
        return ""
    return f"x{node.attempts} "


def _final_view(report: RunReport, last: RunView | None) -> RunView:
    """Return the last view: nodes as the report has them, with what only earlier views say of them."""
    final = {node.id: node.model_dump(exclude={"summary"}) for node in report.nodes}
    known = last.nodes if last is not None else ()
    nodes = [node.model_copy(update=final.pop(node.id, {})) for node in known]
    nodes += [NodeView(**node.model_dump()) for node in report.nodes if node.id in final]
    return RunView(
        id=report.id,
        run_id=report.run_id,
        status=report.status,
        phase="ended",
        counts=report.counts,
        nodes=tuple(nodes),
        usage=report.usage,
    )
