from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE

from sennit.activities.runs.absent_tools import absent_tools
from sennit.activities.storage.run_context import RunContext
from sennit.workflows.plan.language.parser import parse_plan

ABSENCES = {"far_": "MCP server far did not answer", "far_off_": "MCP server far_off did not answer"}
CONTEXT = RunContext(goal="", inputs={}, docs=None, approval="never", catalogue=CATALOGUE, absences=ABSENCES)


@pytest.mark.parametrize(
    "node",
    [
        {"kind": "tool", "tool": "far_look"},
        {"kind": "llm", "prompt": "p", "tools": ["search", "far_look"]},
        {"kind": "agent", "goal": "g", "tools": ["far_look"]},
        {"kind": "map", "over": "$input.list", "do": {"kind": "tool", "tool": "far_look"}},
        {"kind": "program", "script": "async def main():\n    return await far_look(a=await search(query='q'))"},
        {"kind": "program", "script": "async def main():\n    return await llm('p', tools=['search', 'far_look'])"},
    ],
    ids=["tool", "llm", "agent", "map", "program", "program's model"],
)
def test_a_plan_names_the_tools_that_are_not_there(node: dict[str, Any]) -> None:
    plan = parse_plan({"inputs": {"list": {"type": "array"}}, "nodes": [{"id": "n", **node}]})
    assert absent_tools(plan, CONTEXT) == {"far_look": "MCP server far did not answer"}


@pytest.mark.parametrize("tool", ["search", "fargo", "other_look"])
def test_other_tools_are_not_waited_for(tool: str) -> None:
    plan = parse_plan({"nodes": [{"id": "n", "kind": "tool", "tool": tool}]})
    assert absent_tools(plan, CONTEXT) == {}


def test_of_two_servers_the_longer_name_counts() -> None:
    plan = parse_plan({"nodes": [{"id": "n", "kind": "tool", "tool": "far_off_look"}]})
    assert absent_tools(plan, CONTEXT) == {"far_off_look": "MCP server far_off did not answer"}
