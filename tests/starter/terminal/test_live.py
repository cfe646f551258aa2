"""Progress as a table that redraws itself."""

from collections.abc import Callable
from typing import Any

import pytest
from doubles.followed import make_gate, make_node, make_report, make_run, make_view, settled
from rich.cells import cell_len
from rich.text import Text

from sennit.starter.terminal.live import LiveTable
from sennit.workflows.messages.views import RunEvent

Make = Callable[..., Any]


@pytest.mark.parametrize("columns", [80, 200])
def test_the_live_table_fits_the_terminal_and_leaves_the_last_picture(
    columns: int, monkeypatch: pytest.MonkeyPatch, make_terminal: Make
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


def test_asking_stops_the_live_table_and_drawing_goes_on_below(make_terminal: Make) -> None:
    terminal = make_terminal(tty=True, colour="never")
    board = LiveTable(terminal)
    board.started(make_run())
    board.show(make_view(make_node("a", "waiting"), blocked=[make_gate("a")]))
    with board.paused(make_gate("a")):
        screen = terminal.err.getvalue()
        assert "a: a?" in screen
        assert screen.endswith("\x1b[?25h")
        board.notice("asked")
    board.finished(make_report())
    assert terminal.err.getvalue().index("asked") < terminal.err.getvalue().rindex("done")


def test_a_finished_run_never_seen_before_is_drawn_from_its_report(make_terminal: Make) -> None:
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
    columns: int, monkeypatch: pytest.MonkeyPatch, make_terminal: Make
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


def test_what_a_model_writes_is_shown_until_its_node_ends(make_terminal: Make) -> None:
    table = LiveTable(make_terminal(tty=True, colour="never"))
    table.started(make_run())
    table.show(make_view(make_node("a", "running"), make_node("b", "running")))

    def drawn() -> str:
        with table._console.capture() as captured:
            table._console.print(table._draw())
        return captured.get()

    def written(text: str, offset: int, kind: Any = "text") -> None:
        table.text(RunEvent(number=1, at=1.0, kind=kind, node="a", attempt=1, offset=offset, text=text))

    written("The Nile\nis ", 0)
    written("long.\x1b[2J", 12)
    assert "a writes:" in drawn()
    assert "is long." in drawn()
    assert "\x1b[2J" not in drawn()
    written("refused", 0, "discarded")
    assert "a writes:" not in drawn()
    written("many " * 500, 0)
    assert sum(line.startswith("many") for line in drawn().splitlines()) == 6, "the last lines of it"
    table.show(make_view(make_node("a", "succeeded"), make_node("b", "running")))
    assert "a writes:" not in drawn()
    table.close()
