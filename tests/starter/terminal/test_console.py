"""What a terminal can show."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]


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
