"""What servers of others have been seen to do, and what becomes of a call then: no text is lost, no write repeated."""

import asyncio
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.toolbox import Registry, ToolContext
from sennit.activities.toolbox.errors import McpToolFailed, ToolError

pytest.importorskip("mcp", reason="needs the extra mcp")
from sennit.activities.toolbox.mcp.tools import McpServers

SERVER = str(Path(__file__).parents[3] / "doubles" / "odd_mcp_server.py")
PLAIN = {"links": [], "media": [], "left_out": [], "truncated": False}


def odd(folder: Path, *args: str, **fields: Any) -> Registry:
    """Return the tools of the odd server, which may be silent for a second."""
    declared = {"command": sys.executable, "args": [SERVER, str(folder), *args], "timeout": "1s", **fields}
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"odd": declared}}))
    registry = Registry()
    McpServers(path, {}).offer(registry)
    return registry


@pytest.fixture(scope="module", params=["read", "write"])
def registry(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """The tools, as ones that read and as ones that write: an answer counts alike."""
    return odd(tmp_path_factory.mktemp("odd"), effects={"*": request.param})


async def called(
    registry: Registry, name: str, context: ToolContext, **fields: Any
) -> tuple[Any, list[str], list[str]]:
    """Return the output of a tool, its warnings and its lines of progress."""
    warnings: list[str] = []
    lines: list[str] = []
    told = replace(context, warn=warnings.append, progress=lines.append)
    return await registry.get(f"odd_{name}").call(fields, told), warnings, lines


@pytest.mark.parametrize(
    ("name", "output", "warning"),
    [
        ("text_only", {"text": "q must be a number", **PLAIN}, ("promises structured output and gave text",)),
        ("json_text", {"n": 3}, ()),
        ("wrong_type", {"text": "created 7", **PLAIN}, ("not what it promises (n ",)),
        ("wrong_silently", {"text": '{"n": "seven"}', **PLAIN}, ("not what it promises",)),
        ("empty", {"text": "", **PLAIN}, ()),
        ("noise", {"text": "fine", **PLAIN}, ()),
    ],
)
async def test_an_answer_is_never_lost(
    registry: Registry, context: ToolContext, name: str, output: Any, warning: tuple[str, ...]
) -> None:
    found, warnings, _ = await called(registry, name, context)
    assert found == output
    assert len(warnings) == len(warning)
    for words, written in zip(warning, warnings, strict=True):
        assert words in written


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("failed", r'odd_failed: it does not compile \{"file": "a.c", "line": 121\}'),
        ("failed_long", r"odd_failed_long: Traceback frame .* \[\.\.\.\] .* ValueError: no such row"),
        ("long_answer", r"odd_long_answer: its answer has over 16,777,216 bytes"),
        ("deep_answer", r"odd_deep_answer: its answer cannot be read"),
        ("no_content", r"odd_no_content: its answer is not what the protocol says"),
    ],
)
async def test_what_the_server_has_answered_is_in_no_doubt(
    registry: Registry, context: ToolContext, name: str, reason: str
) -> None:
    with pytest.raises(McpToolFailed, match=reason) as caught:
        await called(registry, name, context)
    assert not caught.value.retryable
    assert (await called(registry, "plain", context))[0]["text"] == "plain"


async def test_a_call_goes_on_as_long_as_its_server_reports_progress(registry: Registry, context: ToolContext) -> None:
    found, _, lines = await called(registry, "progress", context)
    assert found["text"] == "done"
    assert lines == [f"{step}/8" for step in range(1, 9)]


async def test_and_no_longer_than_the_operator_allows(tmp_path: Path, context: ToolContext) -> None:
    registry = odd(tmp_path, timeout="0.5s", longest="1s", effects={"*": "read"})
    with pytest.raises(ToolError, match="odd_progress: no answer in time"):
        await called(registry, "progress", context)
    assert registry.get("odd_progress").timeout == 6.0


async def test_what_a_server_logs_as_an_error_is_a_warning_of_the_node(
    registry: Registry, context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    _, warnings, _ = await called(registry, "logs", context)
    assert warnings == ["odd_logs: the server logs an error: 3 of 10 rows were skipped"]
    assert "odd_logs: the server logs: 3 of 10 rows were skipped" in caplog.text


def test_tools_that_cannot_be_called_are_named_and_cost_no_other(registry: Registry) -> None:
    assert {name: why for name, why in registry.left_out.items() if name.startswith("odd_")} == {
        "odd_deep": "its schema is nested more than 50 deep",
        "odd_task": "it runs as a task only, which is not supported yet",
    }
    assert "odd_plain" in registry
    assert registry.absences == {}


def test_a_cursor_that_stands_still_ends_the_list(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry = odd(tmp_path, "cursor")
    assert {"odd_plain", "odd_text_only"} <= {each.name for each in registry}
    assert "odd: its list of tools has no end: a cursor comes again" in caplog.text


async def test_a_changed_list_is_listed_again(tmp_path: Path, context: ToolContext) -> None:
    registry = odd(tmp_path, effects={"*": "read"})
    await called(registry, "change", context)
    async with asyncio.timeout(30):
        while "odd_new" not in registry:
            await asyncio.sleep(0.05)
    assert "odd_text_only" not in registry
    assert registry.get("odd_plain").schema["required"] == ["to"]
    assert "odd_json_text" in registry
    assert "odd_task" in registry.left_out


async def test_a_server_that_lists_no_templates_keeps_its_resources(tmp_path: Path, context: ToolContext) -> None:
    registry = odd(tmp_path, "resources")
    assert "odd_its resources" not in registry.left_out
    found = await registry.get("odd_read_resource").call({}, context)
    assert found["links"] == ["memo://insights"]
