"""What Google's server sends: pieces of a reply as events, and refusals."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from doubles.model_bench import QUICK
from doubles.raw_server import Answer, Piece, RawServer, Script, event, raw_server

from sennit.activities.providers.model import ModelReply, ModelRequest
from sennit.activities.providers.pydantic_ai.provider import PydanticAI
from sennit.activities.providers.settings import Server
from sennit.workflows.plan.language.call_settings import CallSettings

MODEL = "pydantic-ai:google:gemini-3-pro-preview"
GOOGLE_KEY = "AIza-canary-71be0c93"


def piece(*parts: dict[str, Any], reason: str = "", **fields: Any) -> bytes:
    """Return an event with parts of a reply."""
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    return event({"candidates": [candidate], "modelVersion": "gemini-3-pro-preview", "responseId": "r1", **fields})


def words(text: str, reason: str = "", **fields: Any) -> bytes:
    return piece({"text": text}, reason=reason, **fields)


def refusal(code: int, message: str, status: str = "", details: Sequence[Any] = (), **headers: str) -> Script:
    """Return a refusal in Google's form."""
    body = {"error": {"code": code, "message": message, "status": status, "details": list(details)}}
    return Script([json.dumps(body).encode()], code, "application/json", headers)


@dataclass
class GoogleBench:
    """pydantic-ai before a server that answers as Google's does; `pieces` is the text as it was streamed."""

    server: RawServer
    remote: PydanticAI
    pieces: list[str] = field(default_factory=list)

    async def ask(self, prompt: str = "Hello", **fields: Any) -> ModelReply:
        """Make a call with these fields of a request, and of its settings."""
        given = {"role": "worker", "model": MODEL, "goal": prompt, "template": prompt, **fields}
        names = [name for name in given if name in CallSettings.model_fields and name != "system"]
        given["settings"] = CallSettings(**{name: given.pop(name) for name in names})
        return await self.remote.complete(ModelRequest(prompt=prompt, on_text=self.pieces.append, **given))

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.server.asked[-1]


@asynccontextmanager
async def google(
    monkeypatch: pytest.MonkeyPatch, answer: Answer | Script | Sequence[Piece]
) -> AsyncIterator[GoogleBench]:
    """Run such a server; pieces are its answer to every request."""
    script = answer if isinstance(answer, Script) or callable(answer) else Script(answer)
    async with raw_server(script) as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("GOOGLE_API_KEY", GOOGLE_KEY)
        remote = PydanticAI(Server("pydantic-ai", ""), QUICK)
        try:
            yield GoogleBench(server, remote)
        finally:
            await remote.close()
