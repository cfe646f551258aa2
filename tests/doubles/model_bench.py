"""A provider before a model server, with limits short enough for tests."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sennit.activities.providers.http_provider import HttpProvider, Limits
from sennit.activities.providers.model import ModelReply, ModelRequest
from sennit.testing.models import ModelServer
from sennit.workflows.plan.language.call_settings import CallSettings
from sennit.workflows.plan.language.limits import CALL_SECONDS

KEY = "sk-canary-93f1c07e"
QUICK = Limits(connect=2.0, first=1.0, idle=0.5)

MakeRemote = Callable[..., HttpProvider]


def url_of(server: ModelServer, wire_format: str) -> str:
    """Return where a server speaks this format."""
    return server.openai_url if wire_format == "openai" else server.url


@dataclass
class Bench:
    """A provider before a model server; `pieces` is the text as it was streamed, `progress` its progress lines."""

    server: ModelServer
    remote: HttpProvider
    format: str
    pieces: list[str] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)

    async def ask(self, prompt: str = "Hello", **fields: Any) -> ModelReply:
        """Make a call with these fields of a request, and of its settings."""
        usual = {"role": "worker", "seconds": CALL_SECONDS, "on_text": self.pieces.append}
        given = {**usual, **fields}
        names = [name for name in given if name in CallSettings.model_fields and name != "system"]
        given["settings"] = CallSettings(**{name: given.pop(name) for name in names})
        model = f"{self.format}:{given.pop('model', 'test-model')}"
        return await self.remote.complete(
            ModelRequest(
                model=model,
                goal=prompt,
                prompt=prompt,
                template=prompt,
                progress=self.progress.append,
                **given,
            )
        )

    @property
    def tokens_sent(self) -> int:
        """About how many tokens the last request had: three bytes each."""
        return -(-len(json.dumps(self.sent, ensure_ascii=False, separators=(",", ":")).encode()) // 3)

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.server.asked[-1].body
