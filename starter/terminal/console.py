"""Where a command writes: answers to standard output, everything else to standard error."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TextIO

from rich.console import Console
from rich.text import Text

from sennit.starter.client.errors import SennitError
from sennit.starter.terminal.text import as_json
from sennit.workflows.plan.language.text import clean

Output = Literal["text", "json", "jsonl", "none"]
Colour = Literal["auto", "always", "never"]


@dataclass(slots=True)
class Terminal:
    """The streams of a command. `flags` is what a suggested command needs to
    reach the same server.
    """

    output: Output = "text"
    colour: Colour = "auto"
    quiet: bool = False
    flags: str = ""
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    stdin: TextIO = field(default_factory=lambda: sys.stdin)

    @property
    def live(self) -> bool:
        """Whether progress may be redrawn in place."""
        return (
            self.err.isatty()
            and os.environ.get("TERM", "dumb") not in ("", "dumb")
            and not self.quiet
        )

    @property
    def has_person(self) -> bool:
        """Whether somebody is there to answer questions."""
        return self.stdin.isatty() and self.err.isatty()

    @property
    def width(self) -> int | None:
        """Columns of standard output, or None if it is no terminal and lines should stay whole."""
        if not self.out.isatty():
            return None
        return Console(file=self.out).width

    @property
    def columns(self) -> int:
        """Columns for a table: those of the terminal, or 100."""
        return self.width or 100

    def console(self) -> Console:
        """Return a console on standard error that shows text as it is and colours as asked."""
        is_terminal = self.err.isatty()
        is_coloured = self.colour == "always"
        if self.colour == "auto":
            is_coloured = is_terminal and not os.environ.get("NO_COLOR")

        # Nobody knows what a pipe shows, so it gets the colours that everything shows.
        colours: Literal["auto", "standard"] | None = None
        if is_coloured:
            colours = "auto" if is_terminal else "standard"
        return Console(
            file=self.err,
            force_terminal=is_terminal,
            color_system=colours,
            no_color=not is_coloured,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def answer(self, text: str, end: str = "\n") -> None:
        """Write a result to standard output. Raises SennitError if that fails,
        BrokenPipeError for a closed pipe.
        """
        if not text or self.output == "none":
            return
        try:
            self.out.write(text + end)
            self.out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise SennitError(f"the answer cannot be written: {error.strerror}") from None

    def answer_json(self, value: object) -> None:
        """Write a result as one JSON object: a line in jsonl, indented for `json` on a terminal."""
        indented = self.output == "json" and self.out.isatty()
        self.answer(as_json(value, indent=2 if indented else None))

    def result(self, text: str, data: object) -> None:
        """Write a result for a person or as JSON, as the output is to be."""
        if self.output == "text":
            self.answer(text)
        else:
            self.answer_json(data)

    def results(self, text: str, rows: Sequence[object]) -> None:
        """Write a list of results: a line each in jsonl."""
        if self.output != "jsonl":
            self.result(text, rows)
            return
        for row in rows:
            self.answer_json(row)

    def say(self, text: str, style: str = "") -> None:
        """Write a line of progress to standard error; nothing if quiet."""
        if not self.quiet:
            self.notice(text, style)

    def notice(self, text: str, style: str = "") -> None:
        """Write a line that must be read to standard error, even if quiet: an error, a question."""
        self.console().print(Text(clean(text), style), soft_wrap=True)


def terminal_for(args: argparse.Namespace) -> Terminal:
    flags = ""
    for name in ("address", "namespace"):
        value = getattr(args, name)
        if value:
            flags += f" --{name} {shlex.quote(value)}"
    return Terminal(output=args.output, colour=args.color, quiet=args.quiet, flags=flags)
