"""How much a run tells the server while its calls go on: each heartbeat is a write there, and is billed."""

from typing import Any

import pytest
from doubles.local_workers import Start
from temporalio import activity
from temporalio.client import AsyncActivityHandle

from sennit.activities.nodes import heartbeats
from sennit.testing.models import ModelServer


async def test_a_short_model_call_has_one_heartbeat_and_a_short_tool_none(
    begin: Start, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server.on("Say yes", "yes")
    told: list[str] = []
    confirmed = AsyncActivityHandle.heartbeat

    async def counted(self: AsyncActivityHandle, *details: Any, **options: Any) -> None:
        told.append("confirmed")
        await confirmed(self, *details, **options)

    monkeypatch.setattr(heartbeats, "BEAT_SECONDS", 60.0)  # all calls are short then
    monkeypatch.setattr(AsyncActivityHandle, "heartbeat", counted)
    monkeypatch.setattr(activity, "heartbeat", lambda *_: told.append("by the SDK"))
    sums = {"id": "two", "kind": "tool", "tool": "calculate", "args": {"expression": "1 + 1"}}
    asks = {"id": "asks", "kind": "llm", "prompt": "Say yes to $two"}
    plan = {"nodes": [sums, asks], "answer": "$asks"}
    report = await (await begin(plan=plan, budget={"tokens": 9000})).result()
    assert (report["status"], told) == ("done", ["confirmed"])
