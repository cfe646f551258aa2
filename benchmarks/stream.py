"""`make bench ARGS=stream`: how soon a client has the first token of a model, and what an unread piece costs."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from benchmarks.stage import Stage, stage
from sennit.activities.llm.live_text import Channel, LiveText
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.testing.model_rules import Reply
from sennit.testing.models import ModelServer, model_server
from sennit.workflows.messages.text_stream import TextPiece

RUNS = 10
FIRST_TOKEN = 1.0
GOAL_MS = 150
PIECES = 200_000
GOAL_US = 15.0
STORY = "".join(f"The river has {number} bends. " for number in range(30))


async def first_token_ms(built: Stage, server: ModelServer) -> list[float]:
    """Return for some runs how many milliseconds pass from the server's first token to the client's first text."""
    sent: list[float] = []

    def reply(_: Any) -> Reply:
        sent.append(time.time() + FIRST_TOKEN)
        return Reply(STORY, rate=60, first_token=FIRST_TOKEN)

    server.on("", reply)
    sennit = Sennit(built.client, local_server(built.address, None))
    found: list[float] = []
    for _ in range(RUNS):
        handle = await built.start({"nodes": [{"id": "a", "kind": "llm", "prompt": "How many bends?"}]}, goal="g")
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
    text = LiveText(Channel(client, "run"), TextPiece(node="a"), answer_only=False)
    began = time.perf_counter()
    for _ in range(PIECES):
        text.add(" bends")
    return (time.perf_counter() - began) / PIECES * 1e6


async def main(_: Sequence[str]) -> int:
    """Print both figures; 1 if a goal is missed."""
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with model_server() as server:
            where = {"OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "any", "SENNIT_MODEL": "openai"}
            async with stage(Path(place), **where) as built:
                taken = await first_token_ms(built, server)
    median, cost = statistics.median(taken), piece_us()
    print(f"first token, from the server to the client: median {median:.0f} ms, most {taken[-1]:.0f} (goal {GOAL_MS})")
    print(f"a piece that nobody listens to: {cost:.2f} us (goal {GOAL_US:.0f})")
    return int(median > GOAL_MS or cost > GOAL_US)


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main([])))
