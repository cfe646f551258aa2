"""An MCP server on stdio that does what servers have been seen to do: `odd_mcp_server.py FOLDER [cursor|resources]`.

It notes each call in FOLDER. With `cursor` its list of tools never ends; with `resources` it has one, and cannot say
whether it has templates of others.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
CHUNK = "x" * 65_536


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def nested(levels: int) -> str:
    return '{"properties": {"a": ' * levels + "{}" + "}}" * levels


def progress(number: Any, token: Any) -> dict[str, Any]:
    """Take longer than it may be silent, and report progress."""
    for step in range(1, 9):
        time.sleep(0.25)
        say(method="notifications/progress", params={"progressToken": token, "progress": step, "total": 8})
    return {"content": text("done")}


def logs(number: Any, token: Any) -> dict[str, Any]:
    for level, data in (("info", "begun"), ("error", "3 of 10 rows were skipped")):
        say(method="notifications/message", params={"level": level, "data": data})
    return {"content": text("imported")}


def long_answer(number: Any, token: Any) -> None:
    sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {number}, "result": {{"content": [{{"type": "text", "text": "')
    for _ in range(17 * 16):
        sys.stdout.write(CHUNK)
    sys.stdout.write('"}]}}\n')
    sys.stdout.flush()


def deep_answer(number: Any, token: Any) -> None:
    sys.stdout.write(
        f'{{"jsonrpc": "2.0", "id": {number}, "result": {{"content": [], "structuredContent": {nested(2_000)}}}}}\n'
    )
    sys.stdout.flush()


def noise(number: Any, token: Any) -> dict[str, Any]:
    print("INFO starting, which is no message\n\n[1, 2]", flush=True)
    return {"content": text("fine")}


def change(number: Any, token: Any) -> dict[str, Any]:
    """Change the list of tools: one goes, one comes, one has another schema."""
    del TOOLS["text_only"]
    TOOLS["new"] = {}
    TOOLS["plain"] = {"inputSchema": {"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}}}
    say(method="notifications/tools/list_changed")
    return {"content": text("changed")}


ANSWERS: dict[str, dict[str, Any]] = {
    "text_only": {"content": text("q must be a number")},
    "json_text": {"content": text('{"n": 3}')},
    "wrong_type": {"content": text("created 7"), "structuredContent": {"n": "seven"}},
    "wrong_silently": {"content": [], "structuredContent": {"n": "seven"}},
    "no_content": {"structured": 1},
    "failed": {
        "isError": True,
        "content": text("it does not compile"),
        "structuredContent": {"file": "a.c", "line": 121},
    },
    "failed_long": {"isError": True, "content": text("Traceback\n" + "frame " * 2_000 + "\nValueError: no such row")},
    "empty": {"content": []},
}
ACTIONS: dict[str, Callable[[Any, Any], dict[str, Any] | None]] = {
    "progress": progress,
    "logs": logs,
    "long_answer": long_answer,
    "deep_answer": deep_answer,
    "noise": noise,
    "change": change,
}
STRUCTURED = ("text_only", "json_text", "wrong_type", "wrong_silently")
TOOLS: dict[str, dict[str, Any]] = {
    **{name: {"outputSchema": COUNT} if name in STRUCTURED else {} for name in ANSWERS},
    **{name: {} for name in ACTIONS},
    "plain": {},
    "task": {"execution": {"taskSupport": "required"}},
}


def listing(number: Any) -> str:
    tools = [
        json.dumps({"name": name, "inputSchema": {"type": "object", "properties": {}}, **tool})
        for name, tool in TOOLS.items()
    ]
    tools.insert(3, f'{{"name": "deep", "inputSchema": {nested(2_000)}}}')
    cursor = ', "nextCursor": "again"' if "cursor" in sys.argv else ""
    return f'{{"jsonrpc": "2.0", "id": {number}, "result": {{"tools": [{", ".join(tools)}]{cursor}}}}}'


def answer(message: dict[str, Any]) -> None:
    number, method = message["id"], message["method"]
    if method == "initialize":
        about = {"name": "odd", "version": "1"}
        offers: dict[str, Any] = {"tools": {"listChanged": True}, "logging": {}}
        if "resources" in sys.argv:
            offers["resources"] = {}
        say(id=number, result={"protocolVersion": "2025-11-25", "capabilities": offers, "serverInfo": about})
    elif method == "tools/list":
        print(listing(number), flush=True)
    elif method == "resources/list" and "resources" in sys.argv:
        say(id=number, result={"resources": [{"uri": "memo://insights", "name": "insights"}]})
    elif method == "tools/call":
        params = message["params"]
        with (FOLDER / "calls").open("a") as calls:
            calls.write(params["name"] + "\n")
        name, token = params["name"], params.get("_meta", {}).get("progressToken")
        found = ACTIONS[name](number, token) if name in ACTIONS else ANSWERS.get(name, {"content": text("plain")})
        if found is not None:
            say(id=number, result=found)
    else:
        say(id=number, error={"code": -32601, "message": f"no {method}"})


for line in sys.stdin:
    received = json.loads(line)
    if "id" in received:
        answer(received)
