"""Progress as lines and as events."""

from collections.abc import Callable
from typing import Any

from doubles.followed import make_gate, make_node, make_report, make_run, make_view, settled

from sennit.starter.terminal.lines import Changes, Lines

Make = Callable[..., Any]


def test_each_change_of_a_node_is_printed_once() -> None:
    changes = Changes()
    assert [n.id for n in changes.since([make_node("a", "running"), make_node("b")])] == ["a"]
    assert changes.since([make_node("a", "running"), make_node("b")]) == []
    assert [n.id for n in changes.since([make_node("a", "running", attempts=2), make_node("b", "skipped")])] == [
        "a",
        "b",
    ]
    ended = changes.since([settled("a", attempts=2, summary="a s"), settled("b", "skipped"), settled("c")])
    assert [(n.id, n.status, n.summary) for n in ended] == [("a", "succeeded", 'a search "a"'), ("c", "succeeded", "")]


def test_a_pipe_gets_the_run_first_and_then_a_line_a_change(make_terminal: Make) -> None:
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
            'a started: search "a"',
            "a failed: gone",
            'b succeeded: search "b"',
            "partial · 2 of 2 nodes, 1 failed",
            "  a failed: gone",
        ]
        or terminal.err.getvalue()
    )
    assert terminal.out.getvalue() == ""


def test_each_line_of_a_plan_is_printed_once_as_it_comes(make_terminal: Make) -> None:
    terminal = make_terminal()
    lines = Lines(terminal)
    for progress in (
        "",
        "about 2 tokens so far",
        "1. f() · about 9 tokens so far",
        "1. f() · about 99 tokens so far, 7 a",
    ):
        lines.show(make_view().model_copy(update={"phase": "planning", "progress": progress}))
    assert terminal.err.getvalue() == "planning: 1. f()\n"


def test_a_big_map_prints_only_its_failures(make_terminal: Make) -> None:
    terminal = make_terminal()
    lines = Lines(terminal)
    big = [make_node(f"big[{n}]", "running", attempts=1) for n in range(30)]
    lines.show(make_view(*big, make_node("small[0]", "running", attempts=1)))
    ended = [settled(f"big[{n}]", "failed" if n == 7 else "succeeded") for n in range(30)]
    lines.finished(make_report("partial", nodes=tuple(ended)))
    assert [line.partition(":")[0] for line in terminal.err.getvalue().splitlines()[:2]] == [
        "small[0] started",
        "big[7] failed",
    ]


def test_quiet_says_only_what_must_be_read(make_terminal: Make) -> None:
    terminal = make_terminal(quiet=True)
    lines = Lines(terminal)
    lines.started(make_run())
    lines.show(make_view(make_node("a", "running")))
    lines.blocked(make_gate("a"))
    lines.finished(make_report("failed", problem="no budget"))
    assert terminal.err.getvalue().splitlines() == ["a: a?", "    sennit answer run-1 a", "  no budget"]
