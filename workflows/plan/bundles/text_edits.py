"""Changes of a script's text, each at the place of a part of it; each line keeps its number."""

import ast
import re
from typing import Any, NamedTuple

from sennit.workflows.plan.programs.source import FILE_MARK, modules_in

MARK = b"#~"
"""Lines that are put in end with it."""
_MEANT = re.compile(rb"#(=?)(\d+)" + MARK + rb"$")


def lines_of(text: str) -> list[int]:
    """Return the line of the script for each line of its text as it runs, the first at 1."""
    numbers, number = [0], 0
    for line in text.encode().split(b"\n"):
        number += not line.endswith(MARK)
        meant = _MEANT.search(line)
        if meant and meant[1]:
            number = int(meant[2])
        numbers.append(int(meant[2]) if meant and not meant[1] else max(number, 1))
    return numbers


def modules_first(text: str, script: str) -> str:
    """Return the changed text of a script with its modules before the program, whose top level may need them."""
    modules = modules_in(text)
    if not modules:
        return text
    begin, mark = text.index(FILE_MARK.format(modules[0][1])), MARK.decode()
    return f"#={modules_in(script)[0][0] - 1}{mark}\n{text[begin:].rstrip()}\n#=0{mark}\n{text[:begin]}"


class _Edit(NamedTuple):
    """What comes in the place of a part of the text: of those at one place the ends of parts go first, from the inside
    out, and then the beginnings, from the outside in.
    """

    begin: int
    rank: tuple[int, int]
    end: int
    text: bytes


class Edits:
    """Collects the changes of one script."""

    def __init__(self, text: str) -> None:
        self.body = text.encode()
        self._lines = [0, *(place for place, byte in enumerate(self.body, 1) if byte == ord("\n"))]
        self._edits: list[_Edit] = []

    def changed(self) -> str:
        """Return the text with all changes."""
        parts, begin = list[bytes](), 0
        for edit in sorted(self._edits, key=lambda edit: edit[:3]):
            if edit.begin >= begin:  # not in a part that has gone
                parts += [self.body[begin : edit.begin], edit.text]
                begin = edit.end
        return b"".join([*parts, self.body[begin:]]).decode(errors="replace")

    def _at(self, node: Any) -> tuple[int, int]:
        begin = self._lines[node.lineno - 1] + node.col_offset
        return begin, self._lines[node.end_lineno - 1] + node.end_col_offset

    def _dot(self, node: ast.Attribute) -> int:
        """Return where the dot of an attribute stands: what is before it may stand in brackets."""
        return self.body.rindex(b".", self._at(node.value)[1], self._at(node)[1])

    def _around(self, first: ast.AST, before: str, after: str, last: ast.AST | None = None) -> None:
        """Put text before a node and after it, or after another."""
        begin, (_, end), number = self._at(first)[0], self._at(last or first), len(self._edits)
        self._edits.append(_Edit(begin, (1, number), begin, before.encode()))
        self._edits.append(_Edit(end, (0, -number), end, after.encode()))

    def _instead(self, begin: int, end: int, text: str) -> None:
        self._edits.append(_Edit(begin, (1, len(self._edits)), end, text.encode()))

    def _after(self, place: int, text: str) -> None:
        """Put text at a place, behind all that ends there."""
        self._edits.append(_Edit(place, (0, -len(self._edits)), place, text.encode()))

    def expression(self, node: ast.expr, text: str) -> None:
        """Write an expression in the place of another, which may have more lines."""
        begin, end = self._at(node)
        rows = self.body.count(b"\n", begin, end)
        self._instead(begin, end, f"({text}{chr(10) * rows})" if rows else text)

    def _statement(self, node: ast.stmt, text: str) -> None:
        """Write a statement in the place of another, which may have more lines."""
        self._instead(*self._at(node), text + "\n" * ((node.end_lineno or 0) - node.lineno))

    def _before(self, node: ast.stmt, text: str) -> None:
        """Put a statement before one that begins its line."""
        line = self._lines[node.lineno - 1]
        indent = self.body[line : line + node.col_offset].decode()
        self._instead(line, line, f"{indent}{text}  {MARK.decode()}\n")
