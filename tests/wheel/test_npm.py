"""What npm installs beside Sennit: MCP servers that people use, and a client in TypeScript."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from doubles.embedded import EMBED
from doubles.example_user import example_user

from sennit.activities.toolbox import Registry, ToolContext
from sennit.activities.toolbox.errors import McpToolFailed
from sennit.activities.toolbox.mcp.tools import McpServers
from sennit.starter.dev.server import DevServer

pytestmark = pytest.mark.timeout(900)


def installed(folder: Path, *packages: str) -> Path:
    """Return the folder of the commands of these packages. Without npm, or its registry, the test is skipped."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm on this machine")
    made = npm(folder, "npm", "install", "--no-audit", "--no-fund", *packages)
    if made.returncode != 0:
        pytest.skip(f"npm cannot install {', '.join(packages)}: {made.stderr[-200:]}")
    return folder / "node_modules" / ".bin"


def npm(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)


async def test_servers_from_npm(tmp_path: Path) -> None:
    commands = installed(tmp_path, *(f"@modelcontextprotocol/server-{name}" for name in ("filesystem", "everything")))
    (tmp_path / "a.txt").write_text("one\n")
    declared = {
        "fs": {"command": str(commands / "mcp-server-filesystem"), "args": [str(tmp_path)], "start_timeout": "100s"},
        "every": {"command": str(commands / "mcp-server-everything"), "start_timeout": "100s"},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": declared}))
    registry = Registry()
    McpServers(tmp_path / "mcp.json", {}).offer(registry)
    assert dict(registry.absences) == {}
    tools = {each.name: each for each in registry}
    context = ToolContext(
        docs=None, cache=tmp_path, run_id="run", node="n", generation=1, attempt=1, idempotency_key="n/1",
        progress=print,
    )  # fmt: skip
    read = await tools["fs_read_text_file"].call({"path": str(tmp_path / "a.txt")}, context)
    assert read["content"] == "one\n"
    assert (tools["fs_read_text_file"].hint != "", tools["fs_write_file"].hint) == (True, "")
    with pytest.raises(McpToolFailed, match="outside allowed directories"):
        await tools["fs_read_text_file"].call({"path": "/etc/passwd"}, context)
    assert (await tools["every_echo"].call({"message": "hello"}, context))["text"] == "Echo: hello"


@pytest.mark.server
def test_a_client_in_typescript_needs_only_json(dev_server: DevServer, tmp_path: Path) -> None:
    installed(tmp_path, "@temporalio/client@^1.11", "typescript@^5", "@types/node@^20")
    shutil.copy(EMBED / "client.mts", tmp_path)
    checks = ["--strict", "--module", "nodenext", "--target", "es2023", "--skipLibCheck"]
    compiled = npm(tmp_path, "npx", "tsc", *checks, "client.mts")
    assert compiled.returncode == 0, compiled.stdout
    with example_user(dev_server.address, tmp_path) as user:
        done = npm(tmp_path, "node", "client.mjs", user.env["TEMPORAL_ADDRESS"])
    assert done.stdout.splitlines()[0] == "ok: Go on?", done.stderr
    assert done.stdout.splitlines()[-1] == 'done: "yes"'
