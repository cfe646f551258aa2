"""Runs whose models are behind real HTTP, or whose calls a test holds."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from doubles.local_workers import Start, serving, starting
from temporalio.client import Client

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.llm.models import Models
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.toolbox import load_tools
from sennit.testing import models
from sennit.testing.models import ModelServer


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    """A model server that answers by the rules which a test gives it."""
    async with models.model_server() as server:
        yield server


@pytest.fixture(params=["openai"])
async def model_host(
    request: pytest.FixtureRequest, model_server: ModelServer, cache: Path, artifacts: Path, docs: Path
) -> AsyncIterator[Activities]:
    """The activities of a worker whose models are served by the test's model server."""
    where = {"openai": model_server.openai_url, "anthropic": model_server.url}[request.param]
    name = request.param.upper()
    settings = ModelSettings.read({f"{name}_BASE_URL": where, f"{name}_API_KEY": "any", "SENNIT_MODEL": request.param})
    served = Models.of(settings)
    yield Activities(
        WorkerPaths(artifacts, cache, docs, (Path("/"),)),
        load_tools(["doubles.tools"]),
        served,
        identity="tests",
        approval="never",
    )
    await served.close()


@pytest.fixture
async def begin(
    client: Client, model_host: Activities, cached: int, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Start]:
    """Start a run on workers whose models are behind HTTP; its end is that of `starting`."""
    async with serving(client, model_host, cached=cached), starting(client) as start:
        yield start


@pytest.fixture
def held(cache: Path) -> Path:
    """A folder of one test in the cache, for calls of `hang`."""
    folder = cache / f"held-{uuid4().hex}"
    folder.mkdir()
    return folder
