"""The file named by SENNIT_HTTP_TOOLS: endpoints, and documents of OpenAPI that
describe more of them.
"""

from collections.abc import Mapping
from pathlib import Path

from sennit.activities.toolbox.configuration import Secrets, Strict, read_declared
from sennit.activities.toolbox.definition import Tool
from sennit.activities.toolbox.errors import ToolSetupError
from sennit.activities.toolbox.http.endpoints import Endpoint, endpoint_tool
from sennit.activities.toolbox.http.openapi import Source, read_source


class Declarations(Strict):
    """The whole file."""

    tools: tuple[Endpoint, ...] = ()
    openapi: tuple[Source, ...] = ()


def http_tools(path: Path, env: Mapping[str, str]) -> tuple[list[Tool], dict[str, str]]:
    """Return the tools that the file at `path` declares, and by name why operations
    of a document are none.

    Reads documents from where they are, and so cannot be called in an event loop. Raises
    ToolSetupError naming what to correct.
    """
    declared = read_declared(path, Declarations)
    secrets = Secrets(env)
    tools = [endpoint_tool(each, secrets, f"tools.{each.name}") for each in declared.tools]
    left_out: dict[str, str] = {}
    for source in declared.openapi:
        endpoints, without = read_source(source, path.parent)
        left_out |= without
        tools += [endpoint_tool(each, secrets, f"openapi.{source.name}") for each in endpoints]
    names: set[str] = set()
    for tool in tools:
        if tool.name in names:
            raise ToolSetupError(
                f"{path}: two tools are called {tool.name}; give one another `name`"
            )
        names.add(tool.name)
    return tools, left_out
