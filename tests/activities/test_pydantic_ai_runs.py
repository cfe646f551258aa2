"""Runs whose models are Google's, behind the extra `pydantic-ai`."""

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from doubles.google_server import GOOGLE_KEY, MODEL, google, piece, words
from doubles.local_workers import Start, serving, starting
from doubles.raw_server import Answer, RawServer, Script
from temporalio.client import Client

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.llm.models import Models
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.toolbox import load_tools

Running = Callable[[Answer], AbstractAsyncContextManager[tuple[Start, RawServer]]]
COUNTS = {"promptTokenCount": 1200, "cachedContentTokenCount": 800, "candidatesTokenCount": 10}


@pytest.fixture
def running(client: Client, artifacts: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """Serve all queues with a server that answers so, and give a way to start runs."""

    @asynccontextmanager
    async def serve(answer: Answer) -> AsyncIterator[tuple[Start, RawServer]]:
        async with google(monkeypatch, answer) as bench:
            models = Models.of(ModelSettings.read({"SENNIT_MODEL": MODEL}))
            paths = WorkerPaths(artifacts, cache, None, (Path("/"),))
            host = Activities(paths, load_tools(["doubles.tools"]), models, identity="tests", approval="never")
            async with serving(client, host), starting(client) as start:
                yield start, bench.server
            await models.close()

    return serve


async def test_a_goal_is_planned_line_by_line_and_answered(running: Running) -> None:
    def answer(body: dict[str, Any], _: int) -> Script:
        if "You plan work" in json.dumps(body):
            # The second line comes long after the first.
            return Script([words('1. calculate("6 * 7")\n'), 2.0, words("2. answer($1)", "STOP")])
        return Script([words('{"answer": "It is 42."}', "STOP", usageMetadata=COUNTS)])

    async with running(answer) as (start, _):
        handle = await start(goal="What is 6 times 7?")
        result = await handle.result()
        events = [event async for event in handle.fetch_history_events()]
    assert (result["status"], result["answer"]) == ("done", "It is 42.")
    assert result["usage"]["cached_tokens"] == 800
    assert result["usage"]["cost_usd"] > 0
    scheduled = {
        event.activity_task_scheduled_event_attributes.activity_id: event
        for event in events
        if event.HasField("activity_task_scheduled_event_attributes")
    }
    queue = "sennit.llm.pydantic-ai"
    planned = next(
        event for event in scheduled.values() if event.activity_task_scheduled_event_attributes.task_queue.name == queue
    )
    ended = next(
        event.event_id
        for event in events
        if event.activity_task_completed_event_attributes.scheduled_event_id == planned.event_id
    )
    assert scheduled["n1"].event_id < ended


async def test_a_tool_loop_gives_google_its_signature_back(running: Running, artifacts: Path) -> None:
    """The turn lies in the store in between, as JSON."""
    signature = base64.b64encode(b"opaque \x00 bytes").decode()
    call = {"functionCall": {"name": "nap", "args": {"value": "6,650 km"}}, "thoughtSignature": signature}
    turns = [Script([piece(call, reason="STOP")]), Script([words("It is 6,650 km long.", "STOP")])]
    node = {"id": "n1", "kind": "llm", "prompt": "How long is it?", "tools": ["nap"], "max_turns": 3}
    async with running(lambda _, count: turns[count - 1]) as (start, server):
        result = await (await start(goal="g", plan={"nodes": [node]})).result()
    assert (result["status"], result["answer"]) == ("done", "It is 6,650 km long.")
    _, called, answered = server.asked[1]["contents"]
    assert called["parts"][0]["thoughtSignature"] == signature
    assert "6,650 km" in json.dumps(answered["parts"][0]["functionResponse"]["response"])
    kept = [path.read_bytes() for path in artifacts.rglob("*") if path.is_file()]
    assert not any(GOOGLE_KEY.encode() in body for body in kept)
