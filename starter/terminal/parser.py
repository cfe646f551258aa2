"""argparse with better errors: a misspelt command or flag is refused with the nearest one that exists."""

import argparse
from collections.abc import Sequence
from typing import Any

from workflows.plan.language.text import did_you_mean


class Parser(argparse.ArgumentParser):
    """Refuses what no flag or command takes where it stands, with the nearest one there is. Exits with 2."""

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parse, or exit: argparse would blame what a command does not know on the program, and show its usage."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flags = self._option_string_actions
            hint = did_you_mean(unknown[0].partition("=")[0], flags)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found, []

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            hint = did_you_mean(str(value), action.choices) or f"; {self.prog} --help lists what there is"
            self.error(f"there is no {self.prog} {value}{hint}")
        super()._check_value(action, value)
