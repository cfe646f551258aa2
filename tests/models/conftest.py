"""A real model behind a real server: SmolLM2 with 135 million parameters in llama.cpp. `make test-models` runs this.

So small a model understands next to nothing. The tests assert what Sennit makes of its replies, never what is in them.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from models.llama import MODEL, Llama, installed

from sennit.activities.providers.http_provider import HttpProvider, Limits
from sennit.activities.providers.model import ModelReply, ModelRequest
from sennit.activities.providers.openai import OpenAI
from sennit.activities.providers.settings import Server

CONTEXT = 3072


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder with llama.cpp and the weights."""
    return installed()


@pytest.fixture(scope="session")
def llama(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    """A server that the whole session shares."""
    server = Llama(packages, tmp_path_factory.mktemp("llama") / "log", CONTEXT)
    asyncio.run(server.start())
    yield server
    server.kill()


@dataclass
class Caller:
    """Calls the server as workers do. `pieces` is what has come of the last reply so far."""

    remote: HttpProvider
    pieces: list[str] = field(default_factory=list)

    async def ask(self, prompt: str, **fields: Any) -> ModelReply:
        """Make a call with these fields of a request; the reply may have 24 tokens unless they say otherwise. A text is
        a planner's: any other that is cut is an error.
        """
        self.pieces.clear()
        role = "worker" if fields.keys() & {"output_schema", "tools"} else "planner"
        given = {"role": role, "on_text": self.pieces.append, "max_output_tokens": 24, **fields}
        given |= {"model": MODEL, "goal": prompt, "prompt": prompt, "template": prompt}
        return await self.remote.complete(ModelRequest(**given))


@pytest.fixture
async def caller(llama: Llama, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    """Somebody who calls the server; the parameter may be other limits."""
    remote = HttpProvider(OpenAI(), Server("openai", llama.openai_url), getattr(request, "param", Limits()))
    yield Caller(remote)
    await remote.close()
