"""The rivals: agents that call tools turn by turn over an OpenAI-compatible server (ReAct, arXiv
2210.03629), without Sennit. They stream, run the calls of a turn at the same time, forget
everything when they die, and retry nothing.
"""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import httpx
from pydantic import BaseModel

from benchmarks.agents import lookups
from sennit.activities.toolbox.registry import default_registry

TOOLS = ("fact", "find", "compute")
_MODELS: dict[str, type[BaseModel]] = {
    "fact": lookups.Fact,
    "find": lookups.Find,
    "compute": lookups.Compute,
}


@dataclass
class Turn:
    """One reply as it arrives."""

    text: str = ""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)

    def take(self, delta: dict[str, Any]) -> None:
        """Take a piece of the reply."""
        self.text += delta.get("content") or ""
        for part in delta.get("tool_calls") or ():
            call = self.calls.setdefault(part["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] += part.get("id") or ""
            for name, piece in part["function"].items():
                call[name] += piece

    def message(self) -> dict[str, Any]:
        """Return the reply as a message of the transcript."""
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in self.calls.values()
        ]
        return {
            "role": "assistant",
            "content": self.text,
            **({"tool_calls": calls} if calls else {}),
        }


def schemas() -> list[dict[str, Any]]:
    """Return the tools as the wire format describes them."""
    found = [default_registry.get(name) for name in TOOLS]
    return [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.schema},
        }
        for t in found
    ]


async def answered(
    client: httpx.AsyncClient, url: str, system: str, goal: str, seconds: float
) -> tuple[str, int]:
    """Return the answer, and how many calls of tools it took; each takes so many seconds."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": system},
        {"role": "user", "content": goal},
    ]
    made = 0
    while True:
        turn = await _turn(client, url, messages)
        messages.append(turn.message())
        if not turn.calls:
            return turn.text, made
        calls = list(turn.calls.values())
        made += len(calls)
        results = await asyncio.gather(*(_called(call, seconds) for call in calls))
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": str(result)}
            for call, result in zip(calls, results, strict=True)
        ]


async def _turn(client: httpx.AsyncClient, url: str, messages: list[dict[str, Any]]) -> Turn:
    turn = Turn()
    body = {"model": "test-model", "stream": True, "messages": messages, "tools": schemas()}
    async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    turn.take(choice["delta"])
    return turn


async def _called(call: dict[str, str], seconds: float) -> lookups.Value:
    args = _MODELS[call["name"]].model_validate_json(call["arguments"])
    return await lookups.result(call["name"], args, seconds)
