from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.programs import Play

from sennit.activities.programs.interpreter import Interpreter


@pytest.fixture
async def interpreter() -> AsyncIterator[Interpreter]:
    """Monty's processes."""
    async with Interpreter() as found:
        yield found


@pytest.fixture
def play(tmp_path: Path, interpreter: Interpreter) -> Callable[..., Play]:
    """Makes runs of programs, each with a store of its own."""

    def make(script: str, **fields: Any) -> Play:
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        return Play(place, interpreter, script, **fields)

    return make
