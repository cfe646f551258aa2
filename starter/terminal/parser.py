"""argparse as a person would want it: what is misspelt is named with what is near, under the usage of its command."""

import argparse
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


class Parser(argparse.ArgumentParser):
    """Refuses what no flag or command takes where it stands, with the nearest one there is. Exits with 2."""

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parse, or exit: argparse would blame what a command does not know on the program, and show its usage."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flags = self._option_string_actions
            self.error(f"unrecognized arguments: {' '.join(unknown)}{near(unknown[0].partition('=')[0], flags)}")
        return found, []

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            hint = near(str(value), action.choices) or f"; {self.prog} --help lists what there is"
            self.error(f"there is no {self.prog} {value}{hint}")
        super()._check_value(action, value)


def near(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?`, or nothing when nothing is near."""
    found = get_close_matches(word, list(known), 1)
    return f"; did you mean {found[0]}?" if found else ""
