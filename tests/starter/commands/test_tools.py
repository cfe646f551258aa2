"""The list of tools."""

from rich.cells import cell_len

from starter.commands.tools import tools_text
from starter.plans.catalogue import Catalogue


def test_each_tool_has_its_arguments_effect_and_what_it_does() -> None:
    schema = {"properties": {"k": {}, "query": {}}, "required": ["query"]}
    tool = {"name": "search", "effect": "read", "description": "Finds\npassages. " * 20, "schema": schema}
    lines = tools_text(Catalogue(tools=[tool]), 80).splitlines()
    assert lines[0] == "search(query, k?)  read"
    assert lines[1].startswith("    Finds passages.")
    assert cell_len(lines[1]) <= 80
    assert tools_text(Catalogue(tools=[{**tool, "hint": "a \x1b[31mhint"}]), 80).splitlines()[2:] == ["    a hint"]
    assert len(tools_text(Catalogue(tools=[tool]), None).splitlines()[1]) == 4 + 16 * 20 - 1
