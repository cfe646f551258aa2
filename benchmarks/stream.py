"""`make bench ARGS=stream`: how soon a client has the first token of a model, and what a
piece of a stream costs.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from benchmarks.stage import Stage, stage
from sennit.activities.llm.live_text import Channel, LiveText
from sennit.activities.providers.errors import is_error
from sennit.activities.providers.model import ModelRequest
from sennit.activities.providers.openai import OpenAI
from sennit.activities.providers.reply_builder import ReplyBuilder
from sennit.activities.providers.sse import EventParser
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.testing.model_rules import Reply
from sennit.testing.models import ModelServer, model_server
from sennit.workflows.messages.text_stream import TextPiece

RUNS = 10
FIRST_TOKEN = 1.0
GOAL_MS = 150
PIECES = 200_000
ROUNDS = 5
GOAL_US = 15.0
STORY = "".join(f"The river has {number} bends. " for number in range(30))


async def first_token_ms(built: Stage, server: ModelServer) -> list[float]:
    """Return for some runs how many milliseconds pass from the server's first token to
    the client's first text.
    """
    sent: list[float] = []

    def reply(_: Any) -> Reply:
        sent.append(time.time() + FIRST_TOKEN)
        return Reply(STORY, rate=60, first_token=FIRST_TOKEN)

    server.on("", reply)
    sennit = Sennit(built.client, local_server(built.address, None))
    found: list[float] = []
    for _ in range(RUNS):
        handle = await built.start(
            {"nodes": [{"id": "a", "kind": "llm", "prompt": "How many bends?"}]}, goal="g"
        )
        run = await sennit.find(handle.id)
        async with aclosing(run.events()) as events:
            async for event in events:
                if event.kind == "text":
                    found.append((event.at - sent[-1]) * 1000)
                    break
        await handle.result()
    return sorted(found)


class Nobody:
    """A client whose server has no stream."""

    def get_workflow_handle(self, _: str) -> "Nobody":
        return self


def piece_us() -> float:
    """Return how many microseconds a worker spends on a piece of text that nobody listens to."""
    client: Any = Nobody()
    text = LiveText(Channel(client, "run", lambda: 2.0), TextPiece(node="a"), answer_only=False)
    began = time.perf_counter()
    for _ in range(PIECES):
        text.add(" bends")
    return (time.perf_counter() - began) / PIECES * 1e6


def read_us() -> float:
    """Return how many microseconds of its processor a worker spends on reading a piece of OpenAI's
    format, from bytes to the text of a reply; the least of some rounds.
    """
    choice = {"index": 0, "delta": {"content": " bends"}, "finish_reason": None}
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }
    event = f"data: {json.dumps(chunk)}\n\n".encode()
    wire, taken = OpenAI(), list[float]()
    for _ in range(ROUNDS):
        reply, parser = (
            ReplyBuilder(ModelRequest("worker", "openai:m", "g", "p", "p"), 1),
            EventParser(),
        )
        began = time.process_time()
        for _ in range(PIECES // ROUNDS):
            for data in parser.feed(event):
                take_event(wire, reply, from_json(data))
        taken.append((time.process_time() - began) / (PIECES // ROUNDS) * 1e6)
    return min(taken)


def take_event(wire: OpenAI, reply: ReplyBuilder, data: Any) -> None:
    """Take an event as a call does."""
    assert not is_error(data, wire.fields)
    wire.take(reply, data)


async def main(_: Sequence[str]) -> int:
    """Print all figures; 1 if a goal is missed."""
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with model_server() as server:
            where = {
                "OPENAI_BASE_URL": server.openai_url,
                "OPENAI_API_KEY": "any",
                "SENNIT_MODEL": "openai",
            }
            async with stage(Path(place), **where) as built:
                taken = await first_token_ms(built, server)
    median, cost, read = statistics.median(taken), piece_us(), read_us()
    print(
        f"first token, from the server to the client: median {median:.0f} ms, most "
        f"{taken[-1]:.0f} (goal {GOAL_MS})"
    )
    print(f"a piece that nobody listens to: {cost:.2f} us (goal {GOAL_US:.0f})")
    print(f"a piece that is read: {read:.1f} us of the processor (goal {GOAL_US:.0f})")
    return int(median > GOAL_MS or max(cost, read) > GOAL_US)


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main([])))
