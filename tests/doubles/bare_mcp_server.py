"""An MCP server without the official package, for what that would not do: `bare_mcp_server.py TOOLS [FOLDER]` on stdio.

TOOLS is the list of tools as JSON. With FOLDER it says nothing until there is a file `go` in it; it starts a process in
a session of its own, and both ignore that they are asked to end.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(1000)"


def answer(method: str) -> dict[str, object]:
    if method == "initialize":
        about = {"name": "bare", "version": "1"}
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}}
    if method == "tools/list":
        return {"result": {"tools": json.loads(sys.argv[1])}}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": "done"}]}}
    return {"error": {"code": -32601, "message": f"no {method}"}}


def be_deaf(folder: Path) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    command = [sys.executable, "-I", "-S", "-c", DEAF]
    child = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read(1)
    with (folder / "pids").open("a") as pids:
        pids.write(f"{os.getpid()} {child.pid}\n")
    while not (folder / "go").exists():
        time.sleep(0.02)


if len(sys.argv) > 2:
    be_deaf(Path(sys.argv[2]))
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message["method"])}), flush=True)
while len(sys.argv) > 2:
    time.sleep(1)
