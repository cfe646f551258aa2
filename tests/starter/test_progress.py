"""Progress as lines, as events and as a live table."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from rich.cells import cell_len
from rich.text import Text

from starter.terminal.lines import Changes, Events, Lines
from starter.terminal.live import LiveTable
from workflows.messages.result import NodeLine

Make = Callable[..., Any]


def test_each_change_of_a_node_is_told_once(make_node: Make, settled: Make) -> None:
    changes = Changes()
    assert [n.id for n in changes.since([make_node("a", "running"), make_node("b")])] == ["a"]
    assert changes.since([make_node("a", "running"), make_node("b")]) == []
    assert [n.id for n in changes.since([make_node("a", "running", attempts=2), make_node("b", "skipped")])] == [
        "a",
        "b",
    ]
    ended = changes.since([settled("a", attempts=2, summary="a s"), settled("b", "skipped"), settled("c")])
    assert [(n.id, n.status, n.summary) for n in ended] == [("a", "succeeded", 'a search "a"'), ("c", "succeeded", "")]


def test_a_pipe_gets_the_run_first_and_then_a_line_a_change(
    make_terminal: Make, make_run: Make, make_view: Make, make_node: Make, make_report: Make, settled: Make
) -> None:
    terminal = make_terminal()
    lines = Lines(terminal)
    lines.started(make_run())
    lines.show(make_view(make_node("a", "running", attempts=1), make_node("b")))
    lines.show(make_view(make_node("a", "failed", attempts=1, error="gone\x1b[2J"), make_node("b")))
    lines.finished(make_report("partial", nodes=(settled("a", "failed", attempts=1, error="gone"), settled("b"))))
    assert (
        terminal.err.getvalue().splitlines()
        == [
            "run run-1",
            "ui  http://localhost:8233/r",
            'a  running                 search "a"',
            "a  failed                  gone",
            'b  succeeded               search "b"',
            "partial · 2 of 2 nodes, 1 failed",
            "  a failed: gone",
        ]
        or terminal.err.getvalue()
    )
    assert terminal.out.getvalue() == ""


def test_a_big_map_is_told_by_what_went_wrong_in_it(
    make_terminal: Make, make_run: Make, make_view: Make, make_node: Make, settled: Make, make_report: Make
) -> None:
    terminal = make_terminal()
    lines = Lines(terminal)
    big = [make_node(f"big[{n}]", "running", attempts=1) for n in range(30)]
    lines.show(make_view(*big, make_node("small[0]", "running", attempts=1)))
    ended = [settled(f"big[{n}]", "failed" if n == 7 else "succeeded") for n in range(30)]
    lines.finished(make_report("partial", nodes=tuple(ended)))
    assert [line.split()[:2] for line in terminal.err.getvalue().splitlines()[:2]] == [
        ["small[0]", "running"],
        ["big[7]", "failed"],
    ]


def test_quiet_says_only_what_must_be_read(
    make_terminal: Make, make_run: Make, make_view: Make, make_node: Make, make_gate: Make, make_report: Make
) -> None:
    terminal = make_terminal(quiet=True)
    lines = Lines(terminal)
    lines.started(make_run())
    lines.show(make_view(make_node("a", "running")))
    lines.blocked(make_gate("a"))
    lines.finished(make_report("failed", problem="no budget"))
    assert terminal.err.getvalue().splitlines() == ["a: a?", "    sennit answer run-1 a", "  no budget"]


def test_events_are_one_json_object_a_line_and_end_with_the_report(
    make_terminal: Make, make_run: Make, make_view: Make, make_node: Make, make_gate: Make, make_report: Make
) -> None:
    terminal = make_terminal("jsonl")
    events = Events(terminal)
    events.started(make_run())
    events.show(make_view(make_node("a", "running"), make_node("b")))
    events.blocked(make_gate("a"))
    events.finished(make_report(nodes=(NodeLine(id="a", kind="tool", status="succeeded"),)))
    written = [json.loads(line) for line in terminal.out.getvalue().splitlines()]
    assert [each["event"] for each in written] == ["run_started", "node", "blocked", "node", "finished"]
    assert written[0]["id"] == "run-1"
    assert (written[1]["node"]["status"], written[3]["node"]["status"]) == ("running", "succeeded")
    assert written[2]["example"] == {"node": "a", "value": "yes"}
    assert written[4]["report"]["answer"] == "42"
    assert terminal.err.getvalue().splitlines()[:1] == ["run run-1"]


@pytest.mark.parametrize("columns", [80, 200])
def test_the_live_table_fits_the_terminal_and_leaves_the_last_picture(
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    make_terminal: Make,
    make_run: Make,
    make_view: Make,
    make_node: Make,
    make_gate: Make,
    make_report: Make,
    settled: Make,
) -> None:
    terminal = make_terminal(tty=True, colour="never")
    monkeypatch.setenv("COLUMNS", str(columns))
    board = LiveTable(terminal)
    long = "n1 search " + "x" * 300 + " <- n0"
    nodes = [make_node("n1", "running", summary=long), *(make_node(f"n{n}", needs=("n1",)) for n in range(2, 60))]
    board.started(make_run())
    board.show(make_view(*nodes, status="blocked", blocked=[make_gate("n1")]))
    board.finished(make_report(nodes=tuple(settled(f"n{n}") for n in range(1, 60))))
    drawn = terminal.err.getvalue()
    last = drawn[drawn.rindex("done · 59 of 59 nodes") :]
    assert "1 ✓ n1" in last
    assert "2 ████████████████████████ 58 of 58 nodes" in last
    with board._console.capture() as captured:
        board._console.print(board._draw())
    assert max(map(len, captured.get().splitlines())) <= columns


def test_asking_stops_the_live_table_and_drawing_goes_on_below(
    make_terminal: Make, make_run: Make, make_view: Make, make_node: Make, make_gate: Make, make_report: Make
) -> None:
    terminal = make_terminal(tty=True, colour="never")
    board = LiveTable(terminal)
    board.started(make_run())
    board.show(make_view(make_node("a", "waiting"), blocked=[make_gate("a")]))
    with board.paused():
        shown = terminal.err.getvalue()
        assert "a: a?" in shown
        assert shown.endswith("\x1b[?25h")
        board.notice("asked")
    board.finished(make_report())
    assert terminal.err.getvalue().index("asked") < terminal.err.getvalue().rindex("done")


def test_a_finished_run_never_seen_before_is_drawn_from_its_report(
    make_terminal: Make, make_run: Make, make_report: Make, settled: Make
) -> None:
    terminal = make_terminal(tty=True, colour="never")
    run = make_run()
    run.began, run.closed = 100.0, 163.0
    board = LiveTable(terminal)
    board.started(run)
    board.finished(make_report(nodes=(settled("a", summary="a search x", duration_ms=20, attempts=2), settled("b"))))
    drawn = terminal.err.getvalue()
    assert "done · 2 of 2 nodes · 1 m 03 s" in drawn
    assert "✓ a    20 ms x2 search x" in drawn


@pytest.mark.parametrize("columns", [20, 80])
def test_whatever_nodes_say_the_picture_keeps_its_shape(
    columns: int, monkeypatch: pytest.MonkeyPatch, make_terminal: Make, make_view: Make, make_node: Make
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    board = LiveTable(make_terminal(tty=True, colour="always"))
    nodes = [
        make_node(
            "a", "running", summary='a search "👩‍👩‍👧‍👦 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字"'
        ),
        make_node(
            "b" * 40,
            "succeeded",
            summary="b \u202e\u05e9\u05dc\u05d5\u202c",
            needs=("a",),
            duration_ms=3_700_000,
            attempts=12,
        ),
        make_node("c", "failed", error="E: \x1b[2J\x07[bold]x[/bold]\nnext"),
    ]
    board._view = make_view(*nodes)
    with board._console.capture() as captured:
        board._console.print(board._draw())
    lines = Text.from_ansi(captured.get()).plain.splitlines()
    assert len(lines) == 4, "a line a node and one of the run"
    assert max(map(cell_len, lines)) <= columns
    assert "[bold]" in captured.get() or columns == 20
    assert "\x1b[2J" not in captured.get()


@pytest.mark.parametrize(
    ("tty", "colour", "no_color", "coloured"),
    [
        (True, "auto", "", True),
        (True, "auto", "1", False),
        (True, "never", "", False),
        (False, "auto", "", False),
        (False, "always", "1", True),
    ],
)
def test_colour_follows_flag_terminal_and_no_color(
    make_terminal: Make, monkeypatch: pytest.MonkeyPatch, tty: bool, colour: str, no_color: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    terminal = make_terminal(tty=tty, colour=colour)
    terminal.say("text", "red")
    assert ("\x1b[31m" in terminal.err.getvalue()) is coloured


@pytest.mark.parametrize(
    ("tty", "term", "live"), [(True, "xterm", True), (True, "dumb", False), (False, "xterm", False)]
)
def test_only_a_capable_terminal_is_redrawn(
    make_terminal: Make, monkeypatch: pytest.MonkeyPatch, tty: bool, term: str, live: bool
) -> None:
    terminal = make_terminal(tty=tty)
    monkeypatch.setenv("TERM", term)
    assert terminal.live is live
