"""A real MCP server with the official package, for tests: `mcp_server.py FOLDER [PORT]`, on stdio without a port.

It leaves files in FOLDER, so that a test sees what reached it.
"""

import asyncio
import html
import json
import os
import sys
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import ToolAnnotations
from pydantic import BaseModel

FOLDER = Path(sys.argv[1])
READS = ToolAnnotations(read_only_hint=True)
server = MCPServer("double", version="7", log_level="ERROR")
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64": lambda text: "Basic " + b64encode(f"me:{text}".encode()).decode(),
    "urlsafe": lambda text: urlsafe_b64encode(text.encode()).decode(),
    "percent": lambda text: quote(text, safe=""),
    "html": html.escape,
    "json": json.dumps,
}


class Sum(BaseModel):
    total: int


@server.tool(annotations=READS)
def add(a: int, b: int) -> Sum:
    """Add two numbers.

    Not part of the summary.
    """
    return Sum(total=a + b)


@server.tool(annotations=READS, structured_output=False)
def echo(text: str, times: int = 1) -> str:
    return text * times


@server.tool(name="get-variable", annotations=READS, structured_output=False)
def get_variable(name: str, form: str = "plain") -> str:
    return FORMS[form](os.environ.get(name, ""))


@server.tool(annotations=READS)
def fail(reason: str) -> str:
    raise ToolError(f"{reason} {os.environ.get('TOKEN', '')}")


@server.tool(annotations=READS, structured_output=False)
def refuse(code: int) -> str:
    """Answer with an error of the protocol."""
    raise MCPError(code=code, message="no such thing")


@server.tool(structured_output=False)
async def note_slowly(text: str) -> str:
    """Make a note once somebody says so."""
    (FOLDER / f"begun-{text}").touch()
    while not (FOLDER / "go").exists():
        await asyncio.sleep(0.02)
    return note(text)


DOT = b"\x89PNG\r\n\x1a\n and all that comes behind it"


@server.tool(annotations=READS, structured_output=False)
def picture() -> list[str | Image]:
    return ["a dot", Image(data=b"\x89PNG", format="png"), Image(data=DOT, format="png")]


@server.tool(structured_output=False)
def note(text: str) -> str:
    with (FOLDER / "notes.txt").open("a") as notes:
        notes.write(text + "\n")
    return "noted"


@server.tool(structured_output=False)
def note_and_die(text: str) -> str:
    note(text)
    os._exit(1)


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def die() -> str:
    os._exit(1)


@server.tool(annotations=READS, structured_output=False)
async def wait(context: Context) -> str:
    await context.report_progress(1, 3, "waiting")
    (FOLDER / "begun").touch()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        (FOLDER / "cancelled").touch()
        raise
    return "waited"


@server.resource("notes://all", mime_type="text/plain")
def notes() -> str:
    """All notes."""
    path = FOLDER / "notes.txt"
    return path.read_text() if path.exists() else ""


@server.resource("dots://{colour}", mime_type="image/png")
def dot(colour: str) -> bytes:
    """A dot."""
    return colour.encode() * 10


if __name__ == "__main__":
    with (FOLDER / "starts.txt").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    if len(sys.argv) > 2:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
