"""What npm installs beside Sennit: MCP servers that people use, and a client in TypeScript."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def own_package(folder: Path, package: str, *more: str) -> Path:
    """Return the folder of the commands of a package from PyPI, in an environment of its own, with what else it needs.
    Without the package index the test is skipped.
    """
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=200)
    command = [str(folder / "venv" / "bin" / "pip"), "install", "--quiet", package, *more]
    made = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    if made.returncode != 0:
        pytest.skip(f"pip cannot install {package}: {made.stderr[-200:]}")
    return folder / "venv" / "bin"


async def each_once(folder: Path, declared: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Call each tool of these servers once, in the order of `calls` and without arguments after that. Return its output
    by its name, or its error.
    """
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": declared}))
    registry = Registry()
    McpServers(folder / "mcp.json", {}).offer(registry)
    assert dict(registry.absences) == {}
    found: dict[str, Any] = {"left out": registry.left_out, "warnings": [], "progress": []}
    context = ToolContext(
        docs=None, cache=folder, run_id="run", node="n", generation=1, attempt=1, idempotency_key="n/1",
        progress=found["progress"].append, warn=found["warnings"].append,
    )  # fmt: skip
    for name in dict.fromkeys([*calls, *(each.name for each in registry)]):
        try:
            found[name] = await registry.get(name).call(calls.get(name, {}), context)
        except McpToolFailed as error:
            found[name] = error
    return found


async def test_each_tool_of_servers_from_npm(tmp_path: Path) -> None:
    commands = installed(tmp_path, *(f"@modelcontextprotocol/server-{name}" for name in ("filesystem", "everything")))
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    a, b, c = (str(folder / name) for name in ("a.txt", "b.txt", "c.txt"))
    declared = {
        "fs": {"command": str(commands / "mcp-server-filesystem"), "args": [str(folder)], "start_timeout": "100s"},
        "every": {"command": str(commands / "mcp-server-everything"), "start_timeout": "100s", "timeout": "3s"},
    }
    found = await each_once(
        tmp_path,
        declared,
        {
            "fs_write_file": {"path": b, "content": "two"},
            "fs_edit_file": {"path": b, "edits": [{"oldText": "two", "newText": "three"}]},
            "fs_move_file": {"source": b, "destination": c},
            "fs_create_directory": {"path": str(folder / "d")},
            "fs_read_text_file": {"path": a},
            "fs_read_file": {"path": "/etc/passwd"},
            "fs_read_media_file": {"path": a},
            "fs_read_multiple_files": {"paths": [a, c]},
            "fs_list_directory": {"path": str(folder)},
            "fs_list_directory_with_sizes": {"path": str(folder)},
            "fs_directory_tree": {"path": str(folder)},
            "fs_search_files": {"path": str(folder), "pattern": "a*"},
            "fs_get_file_info": {"path": a},
            "every_echo": {"message": "hello"},
            "every_get_annotated_message": {"messageType": "error", "includeImage": True},
            "every_get_sum": {"a": 2, "b": 3},
            "every_get_structured_content": {"location": "Chicago"},
            "every_trigger_long_running_operation": {"duration": 5, "steps": 5},
            "every_gzip_file_as_resource": {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"},
            "every_get_resource_links": {"count": 2},
        },
    )
    refused = {name: str(each) for name, each in found.items() if isinstance(each, McpToolFailed)}
    assert list(refused) == ["fs_read_file"]
    assert "outside allowed directories" in refused["fs_read_file"]
    assert (folder / "c.txt").read_text() == "three"
    assert found["fs_read_text_file"]["content"] == "one\n"
    assert found["every_echo"]["text"] == "Echo: hello"
    assert found["every_get_structured_content"]["conditions"]
    assert [media["media"] for media in found["every_get_annotated_message"]["media"]] == ["image/png"]
    assert len(found["progress"]) >= 5, "of a call that takes longer than it may be silent"
    assert list(found["left out"].values()) == ["it runs as a task only, which is not supported yet"]


async def test_a_server_from_pypi(tmp_path: Path) -> None:
    commands = own_package(tmp_path, "mcp-server-fetch")
    declared = {"web": {"command": str(commands / "mcp-server-fetch"), "start_timeout": "100s"}}
    found = await each_once(tmp_path, declared, {"web_fetch": {"url": "http://127.0.0.1:9/"}})
    assert isinstance(found["web_fetch"], McpToolFailed)
    assert "127.0.0.1" in str(found["web_fetch"])


async def test_each_tool_of_a_database_from_pypi(tmp_path: Path) -> None:
    commands = own_package(tmp_path, "mcp-server-sqlite", "mcp<2")  # the one that it was written for
    args = ["--db-path", str(tmp_path / "rivers.db")]
    declared = {"db": {"command": str(commands / "mcp-server-sqlite"), "args": args, "start_timeout": "100s"}}
    calls = {
        "db_create_table": {"query": "CREATE TABLE rivers (name TEXT, km INTEGER)"},
        "db_write_query": {"query": "INSERT INTO rivers VALUES ('Nile', 6650)"},
        "db_read_query": {"query": "SELECT name, km FROM rivers"},
        "db_list_tables": {},
        "db_describe_table": {"table_name": "rivers"},
        "db_append_insight": {"insight": "the Nile is long"},
        "db_read_resource": {"uri": "memo://insights"},
    }
    found = await each_once(tmp_path, declared, calls)
    assert not [name for name, output in found.items() if isinstance(output, McpToolFailed)]
    assert calls.keys() <= found.keys()
    assert "6650" in found["db_read_query"]["text"]
    assert "rivers" in found["db_list_tables"]["text"]


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
