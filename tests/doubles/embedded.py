"""The examples in examples/embed, run as their reader runs them: by any Python that has Sennit, in any folder."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

EMBED = Path(__file__).parents[2] / "examples" / "embed"
LONGEST = 60.0
PLAN = {
    "nodes": [
        {"id": "sum", "kind": "tool", "tool": "calculate", "args": {"expression": "1 + 2"}},
        {"id": "page", "kind": "tool", "tool": "write", "args": {"path": "sum.txt", "text": "It is ${sum.value}."}},
    ],
    "answer": "$page",
}
LEAVE = "import os, sys; sys.stdout.flush(); os._exit(0)"
"""Ends a process as `sennit` ends, once its work is done: taken down by Python, threads of the SDK may abort it."""
CELLS = """
import ast, asyncio, inspect, sys, types
source = open(sys.argv[1]).read()
code = compile(source, sys.argv[1], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
module = types.ModuleType("__main__")
sys.modules["__main__"] = module
made = eval(code, module.__dict__)
if inspect.iscoroutine(made):
    asyncio.run(made)
"""
CHILD = f"import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__'); {LEAVE}"


def run_cells(python: str, env: Mapping[str, str], folder: Path) -> str:
    """Run all cells of the notebook in one event loop, as Jupyter does; return what they print."""
    return _output([python, "-c", CELLS, str(EMBED / "notebook.py")], env, folder)


def run_child(python: str, env: Mapping[str, str], folder: Path) -> str:
    """Run the worker with the workflow that has a run as its child; return its answer."""
    return _output([python, "-c", CHILD, str(EMBED / "child.py"), env["TEMPORAL_ADDRESS"]], env, folder)


def _output(command: list[str], env: Mapping[str, str], folder: Path) -> str:
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def service(python: str, env: Mapping[str, str], log: Path) -> Iterator[httpx.Client]:
    """Serve the web service; give a client of it."""
    command = [python, "-m", "uvicorn", "--app-dir", str(EMBED), "--port", "0", "service:app"]
    with log.open("w") as written, subprocess.Popen(command, env=env, stderr=written, stdout=written) as served:
        try:
            while "running on" not in (text := log.read_text()):
                assert served.poll() is None, text
                time.sleep(0.02)
            place = text.partition("running on ")[2].split()[0]
            with httpx.Client(base_url=place, timeout=LONGEST, trust_env=False) as client:
                yield client
        finally:
            served.terminate()


def events_of(client: httpx.Client, run: str, after: int = 0, *, until: str = "ended") -> list[dict[str, Any]]:
    """Return the events that the service sends, up to one of that kind."""
    found = []
    with client.stream("GET", f"/runs/{run}/events", headers={"Last-Event-ID": str(after)}) as sent:
        for line in sent.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
                if found[-1]["kind"] == until:
                    break
    return found


def use_service(client: httpx.Client, run: str) -> dict[str, Any]:
    """Start a run twice, read its events in two goes, approve what it writes, and return its report."""
    for _ in range(2):
        assert client.post(f"/runs/{run}", json={"plan": PLAN}).json() == {"id": run}
    asked = events_of(client, run, until="asked")[-1]
    wrong = client.post(f"/runs/{run}/approvals/page", json={"digest": "0" * 20})
    assert wrong.status_code == 409, wrong.text
    right = client.post(f"/runs/{run}/approvals/page", json={"digest": asked["asks"]["example"]["digest"]})
    assert right.status_code == 200, right.text
    rest = events_of(client, run, asked["number"])
    assert rest[0]["kind"] == "answered"
    assert min(event["number"] for event in rest if event["kind"] not in ("progress", "lost_worker")) > asked["number"]
    assert client.post(f"/runs/{run}/approvals/page", json={"digest": "0" * 20}).status_code == 410
    assert client.get("/runs/nobody/output").status_code == 404
    assert client.post("/runs/wrong", json={"plan": {"nodes": 7}}).status_code == 202
    wrong = client.get("/runs/wrong/output")
    assert (wrong.status_code, "nodes" in wrong.json()["problem"]) == (422, True)
    report: dict[str, Any] = client.get(f"/runs/{run}/output").json()
    assert events_of(client, run, rest[-2]["number"]) == rest[-1:]
    nothing = client.get(f"/runs/{run}/events", headers={"Last-Event-ID": str(rest[-1]["number"])})
    assert nothing.status_code == 204  # so that a browser does not connect again
    return report
