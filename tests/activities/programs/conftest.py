import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.programs import Play

from sennit.activities.programs.interpreter import Interpreter


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Interpreter]:
    """The processes of scripts."""
    found = Interpreter()
    yield found
    asyncio.run(found.close())


@pytest.fixture
def play(tmp_path: Path, interpreter: Interpreter) -> Callable[..., Play]:
    """Makes runs of programs, each with a store of its own."""

    def make(script: str, **fields: Any) -> Play:
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        return Play(place, interpreter, script, **fields)

    return make
