"""What the user of a local stack allows runs, as a client has written it into the state directory.

A run's input says what a run wants. It allows nothing, because whoever reaches the server can write it.
"""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError


class _Written(BaseModel):
    docs: tuple[Path, ...] = ()
    runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grants:
    """The grants in a file, as it is now; none without a file, or if others than its owner can write it."""

    path: Path | None

    @property
    def docs(self) -> tuple[Path, ...]:
        return self._read().docs

    def may_write(self, run: str) -> bool:
        """Whether the writes of the run with that workflow id need no approval."""
        return run in self._read().runs

    def _read(self) -> _Written:
        try:
            if self.path is not None and not self.path.stat().st_mode & 0o022:
                return _Written.model_validate_json(self.path.read_bytes())
        except (OSError, ValidationError):
            pass
        return _Written()
