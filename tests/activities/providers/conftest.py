"""Both wire formats against one model server, with limits short enough for tests."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from doubles.model_bench import KEY, QUICK, Bench, MakeRemote, url_of

from sennit.activities.providers.anthropic import Anthropic
from sennit.activities.providers.http_provider import HttpProvider, Limits
from sennit.activities.providers.openai import OpenAI
from sennit.activities.providers.settings import Server
from sennit.testing.models import ModelServer, model_server


@pytest.fixture
async def make_remote() -> AsyncIterator[MakeRemote]:
    """Make providers; they are closed at the end."""
    async with AsyncExitStack() as stack:

        def make(format: str, url: str, key: str = KEY, limits: Limits = QUICK) -> HttpProvider:  # noqa: A002
            wire = OpenAI() if format == "openai" else Anthropic()
            remote = HttpProvider(wire, Server(format, url, key), limits)
            stack.push_async_callback(remote.close)
            return remote

        yield make


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    """A model server that wants the key."""
    async with model_server(key=KEY) as found:
        yield found


@pytest.fixture(params=["openai", "anthropic"])
def bench(request: pytest.FixtureRequest, server: ModelServer, make_remote: MakeRemote) -> Bench:
    """Every test with it runs in both formats."""
    return Bench(server, make_remote(request.param, url_of(server, request.param)), request.param)
