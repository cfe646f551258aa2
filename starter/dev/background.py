"""A supervisor that does not belong to the terminal or process that starts it."""

import os
import sys
from pathlib import Path

from starter.dev.launch import Launch


class Background:
    """One supervisor in a session of its own; it outlives this process."""

    def __init__(self, launch: Launch, log: Path) -> None:
        """Start it with its output added to `log`."""
        arguments = [sys.executable, "-P", "-m", "starter.dev.supervisor", launch.model_dump_json()]
        self._pid = os.posix_spawn(
            sys.executable,
            arguments,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )

    def ended(self) -> bool:
        """Whether it has ended; only its parent can ask, and each time until it is so."""
        try:
            return os.waitpid(self._pid, os.WNOHANG)[0] == self._pid
        except ChildProcessError:  # asked before
            return True
