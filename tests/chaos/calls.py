"""The log of tool calls, read while runs write it: when each call was seen, and in which process."""

from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import NamedTuple


class LoggedCall(NamedTuple):
    """A call of a tool: the attempt, its process, what it is called with, and when it was seen in the log."""

    attempt: int
    pid: int
    arguments: str
    at: float


@dataclass
class CallLog:
    """The calls in a log, by run and node with its generation."""

    file: Path
    called: dict[str, list[LoggedCall]] = field(default_factory=dict)
    _read: int = 0

    def times(self, name: str, arguments: str) -> int:
        """Return how often a node of a run was called with these arguments."""
        return sum(call.arguments == arguments for call in self.called.get(name, ()))

    def read(self) -> None:
        """Note when each line came into the log."""
        if not self.file.exists():
            return
        with self.file.open() as lines:
            lines.seek(self._read)
            for line in lines:
                if not line.endswith("\n"):
                    return
                # Before it may stand what a full disk has left of a line: that call was not made.
                run, node, attempt, pid, arguments = line.split()[-5:]
                call = LoggedCall(int(attempt), int(pid), arguments, time())
                self.called.setdefault(f"{run} {node}", []).append(call)
                self._read += len(line.encode())
