"""Shows what an edit or a fork would do, and asks the person at the terminal before it is done."""

import argparse
from collections.abc import Awaitable
from typing import Any

from sennit.starter.client.errors import Exit, NoAnswer
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.dry_run import dry_run_text
from sennit.starter.terminal.prompt import Typist
from sennit.workflows.messages.dry_run import DryRunReport

_YES = ("y", "yes")


def add_review_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the commands that show first what they would do."""
    add = parser.add_argument
    add(
        "--dry-run",
        action="store_true",
        help="only show what would be taken over, made again and cancelled",
    )
    add("--yes", action="store_true", help="show it, and go on without asking")


class Review:
    """The review of one command. `exit` is how the command ends if it goes no further, and `report`
    the dry run, if there was one.
    """

    def __init__(self, args: argparse.Namespace, terminal: Terminal) -> None:
        self.exit: Exit | None = None
        self.report: DryRunReport | None = None
        self._only_shows = bool(args.dry_run)
        self._asks = terminal.has_person and not args.yes and not args.dry_run
        self._terminal = terminal

    @property
    def data(self) -> dict[str, Any]:
        """What the command's result says of the dry run as data."""
        if self.report is None:
            return {}
        return {"dry_run": self.report.model_dump(mode="json")}

    async def show(self, dry_run: Awaitable[DryRunReport], question: str) -> None:
        """Show a dry run, and ask whether to go on if somebody is there to be asked.

        With `--dry-run` it is the command's result. Otherwise a dry run that no worker could play
        keeps nobody from going on. Raises NoAnswer for `--dry-run`, or another SennitError.
        """
        try:
            self.report = await dry_run
        except NoAnswer as error:
            if self._only_shows:
                raise
            self._terminal.notice(f"no dry run: {error}")
        else:
            if self._only_shows:
                self._end()
                return
            self._write(dry_run_text(self.report))
        # Nobody can agree to what was not shown. Where nobody is asked, the run itself refuses
        # it, or takes it by now.
        if self._asks and self.report is not None and self.report.problems:
            self.exit = Exit.USAGE
        elif self._asks and not await self._agrees(question):
            self._terminal.notice("nothing was changed")
            self.exit = Exit.FAILED

    def _end(self) -> None:
        assert self.report is not None
        self._terminal.result(dry_run_text(self.report), self.report.model_dump(mode="json"))
        self.exit = Exit.USAGE if self.report.problems else Exit.ANSWER

    def _write(self, text: str) -> None:
        """Write lines that must be read if a question follows."""
        write = self._terminal.notice if self._asks else self._terminal.say
        for line in text.splitlines():
            write(line)

    async def _agrees(self, question: str) -> bool:
        line = await Typist(self._terminal).ask(f"{question} [y]es, [n]o: ")
        return line is not None and line.strip().lower() in _YES
