"""A planner over real HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from doubles.planner_desk import Desk

from sennit.testing.models import model_server


@pytest.fixture
async def desk(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Desk]:
    """A planner; the parameter is the format it is held to."""
    async with model_server() as server:
        found = Desk(tmp_path, server, plan_format=getattr(request, "param", "auto"))
        yield found
        await found.models.close()
