"""Agents of other frameworks as tools, loaded as a user loads them, in front of a model server."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.toolbox import Registry, ToolContext, load_tools
from sennit.testing import models
from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer

TOOLS = Path(__file__).parents[2] / "examples" / "tools"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelServer]:
    async with models.model_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        monkeypatch.setenv("TRIAGE_MODEL", "test-model")
        monkeypatch.setenv("ESSAY_MODEL", "test-model")
        yield server


async def called(
    name: str, module: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any
) -> tuple[Any, list[int], list[str]]:
    """Return what a tool gives, the tokens that it books, and its progress."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    registry: Registry = load_tools([module], [TOOLS])
    tokens: list[int] = []
    lines: list[str] = []

    def spent(*, tokens: int = 0, cost: float = 0.0) -> None:
        booked.append(tokens)

    booked = tokens
    context = ToolContext(folder, folder, "run", "n1", 1, 1, "run/n1/1", lines.append, spent=spent)
    return await registry.get(name).call(fields, context), [count for count in tokens if count], lines


async def test_an_agent_of_pydantic_ai_books_what_each_turn_has_used(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic_ai", reason="needs the extra pydantic-ai")
    answer = {"urgency": "high", "about": "a leak"}
    server.on("leak", Reply(calls=(Call("final_result", answer),), usage=(120, 30)))
    found, tokens, _ = await called("triage", "pydantic_ai_agent", tmp_path, monkeypatch, letter="There is a leak!")
    assert found == answer
    assert tokens == [150]


async def test_a_graph_of_langgraph_books_what_each_node_has_used(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langgraph", reason="needs langgraph")
    server.on("improve: Short", Reply("Longer, please", usage=(10, 1)))
    server.on("improve: Long", Reply("OK", usage=(10, 2)))
    server.on("Longer, please", Reply("Long", usage=(20, 4)))
    server.on("nothing yet", Reply("Short", usage=(20, 3)))
    found, tokens, lines = await called("essay", "langgraph_graph", tmp_path, monkeypatch, topic="rivers")
    assert found == "Long"
    assert tokens == [23, 11, 24, 12]
    assert lines == ["round 1", "round 2"]
