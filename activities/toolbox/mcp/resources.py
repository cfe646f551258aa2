"""The resources of an MCP server: one tool that reads, and lists them."""

from typing import Any, Final

from mcp_types import Resource, ResourceTemplate
from pydantic import TypeAdapter

from sennit.activities.limits import MAX_MESSAGE_CHARACTERS
from sennit.activities.toolbox.definition import Tool, ToolContext
from sennit.activities.toolbox.mcp.answers import McpText, content_of, failures, text_of
from sennit.activities.toolbox.mcp.session import Listed, Session
from sennit.activities.toolbox.redaction import mask
from sennit.activities.toolbox.server_thread import ServerThread
from sennit.workflows.plan.language.text import one_line, printable

TOOL: Final = "read_resource"
_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "uri": {"type": "string", "description": "Of the resource; without it they are listed"}
    },
    "additionalProperties": False,
}


def resource_tool(name: str, session: Session, thread: ServerThread, listed: Listed) -> Tool:
    """Return the tool of that name. What it lists is what the server had
    when it listed its tools.
    """
    server = session.declared
    known: list[Resource | ResourceTemplate] = [*listed.resources, *listed.templates]

    async def call(arguments: dict[str, Any], _: ToolContext) -> McpText:
        if "uri" not in arguments:
            return text_of(map(_line, known), list(map(_uri, known)), [])
        with failures(name, repeatable=True):
            contents = await thread.start(session.read(arguments["uri"], server.timeout))
        return content_of(contents)

    return Tool(
        name=name,
        description=one_line(
            mask(f"Read a resource of {session.name}: {'; '.join(map(_line, known))}"),
            MAX_MESSAGE_CHARACTERS,
        ),
        effect="read",
        version=listed.version,
        timeout=server.timeout + 5,
        resource=server.resources.get(TOOL),
        schema=_SCHEMA,
        output_schema=TypeAdapter(McpText).json_schema(mode="serialization"),
        function=call,
    )


def _uri(resource: Resource | ResourceTemplate) -> str:
    return str(resource.uri if isinstance(resource, Resource) else resource.uri_template)


def _line(resource: Resource | ResourceTemplate) -> str:
    about = resource.description or resource.title or resource.name
    return printable(f"{_uri(resource)} ({about})", MAX_MESSAGE_CHARACTERS)
