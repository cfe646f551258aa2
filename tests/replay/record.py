"""Records the histories that `test_replay.py` replays: all of them, or those named on the command line.

    PYTHONPATH=.:tests .venv/bin/python tests/replay/record.py [NAME ...]

Until the tag 0.1.0 a change to workflow code may change what is replayed: record the histories anew, which overwrites
them. From that tag on a saved history is never recorded again, because it stands for runs that are still going on
somewhere. A change that no longer replays one must then be guarded by `workflow.patched`.

`early-before-chains.json` stands for such runs already: it was recorded when nothing was called early behind an early
call, and is not recorded here.
"""

import asyncio
import json
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from doubles.local_workers import serving
from doubles.runs import approve, call, until
from doubles.stores import store_in
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.llm.models import Models
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.runs.quota import QuotaRule, quota_limits
from sennit.activities.toolbox import load_tools
from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer
from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer, model_server
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import connect
from sennit.workflows.messages.quota import QUOTA_ID
from sennit.workflows.run import drain

HISTORIES = Path(__file__).parent / "histories"
OF_QUOTA = HISTORIES / "quota"
Handle = WorkflowHandle[Any, Any]


async def _to_the_end(handle: Handle) -> None:
    await handle.result()


async def _retry_after_a_failure(handle: Handle) -> None:
    await until(handle, lambda view: view["status"] == "blocked")
    await handle.execute_update("retry_node", {"node": "b"})
    await until(handle, lambda view: view["status"] == "blocked")
    await handle.execute_update("skip_node", {"node": "b"})
    await handle.result()


async def _answer_the_gate(handle: Handle) -> None:
    await until(handle, lambda view: view["status"] == "blocked")
    await handle.execute_update("answer", {"node": "g", "value": 3})
    await handle.result()


async def _approve_and_reject(handle: Handle) -> None:
    await until(handle, lambda view: len(view["blocked"]) == 2)
    await approve(handle, "w")
    await handle.execute_update("reject", {"node": "v", "reason": "no"})
    await handle.result()


async def _answer_below(handle: Handle) -> None:
    await until(handle, lambda view: view["status"] == "blocked")
    run = (await handle.query("plan"))["blocked"][0]["run"]
    child = handle._client.get_workflow_handle(run)
    await child.execute_update("answer", {"node": "g", "value": "yes"})
    await handle.result()


async def _cancel(handle: Handle) -> None:
    await until(handle, lambda view: view["counts"].get("succeeded") == 1)
    await handle.cancel()
    try:
        await handle.result()
    except WorkflowFailureError:
        return


async def _skip_the_loop(handle: Handle) -> None:
    await until(handle, lambda view: view["counts"].get("waiting") == 1)
    await handle.execute_update("skip_node", {"node": "n7"})
    await handle.result()


async def _raise_the_budget(handle: Handle) -> None:
    await until(handle, lambda view: view["status"] == "blocked")
    await handle.execute_update("raise_budget", {"calls": 20})
    await handle.result()


def _layers(layers: int, width: int) -> list[dict[str, Any]]:
    return [
        call(f"n{layer}_{place}", needs=[f"n{layer - 1}_{place}"] if layer else [])
        for layer in range(layers)
        for place in range(width)
    ]


Shape = tuple[dict[str, Any], Callable[[Handle], Awaitable[None]]]
TWICE = {
    "id": "m",
    "kind": "map",
    "over": "$list.items",
    "do": {"kind": "tool", "tool": "nap", "args": {"value": "$item.n"}},
}
SHAPES: dict[str, Shape] = {
    "chain": (
        {"nodes": [call(f"n{i}", args={"value": f"$n{i - 1}.value" if i else 1}) for i in range(6)]},
        _to_the_end,
    ),
    "wide": (
        {"nodes": [*(call(f"n{i}") for i in range(60)),
                   {"id": "j", "kind": "join", "inputs": [f"n{i}" for i in range(60)]}]},
        _to_the_end,
    ),
    "failed-and-retried": (
        {"nodes": [call("a"), call("b", "fail", needs=["a"]), call("c", needs=["a"]), call("d", needs=["b"]),
                   {"id": "j", "kind": "join", "inputs": ["c", "d"], "policy": "settled"}],
         "answer": {"j": "$j", "d": "$d"}},
        _retry_after_a_failure,
    ),
    "gate": (
        {"nodes": [{"id": "g", "kind": "gate", "question": "How many?", "schema": {"type": "integer"}},
                   call("n", args={"value": "$g"})]},
        _answer_the_gate,
    ),
    "writes": (
        {"nodes": [call("w", "note", args={"text": "x"}),
                   call("v", "note", args={"text": "y"}, on_error={"fallback": None}),
                   {"id": "j", "kind": "join", "inputs": ["w", "v"]}]},
        _approve_and_reject,
    ),
    "map-and-condition": (
        {"nodes": [call("list", "count", args={"count": 7}), TWICE,
                   call("few", when={"ref": "$list.count", "op": "lt", "value": 5}),
                   {"id": "j", "kind": "join", "inputs": ["m", "few"], "policy": "settled"}]},
        _to_the_end,
    ),
    "first-wins": (
        {"nodes": [call("slow", args={"seconds": 20}), call("fast", args={"value": 1}),
                   {"id": "j", "kind": "join", "inputs": ["slow", "fast"], "policy": "first"}, call("n", needs=["j"])]},
        _to_the_end,
    ),
    "deadline": (
        {"nodes": [call("slow", args={"seconds": 20}), call("fast", args={"value": 1}),
                   {"id": "j", "kind": "join", "inputs": ["slow", "fast"], "policy": "settled", "deadline": "500ms"}]},
        _to_the_end,
    ),
    "fused": (
        {"nodes": [call("a"), call("b", needs=["a"]), call("c", needs=["b"]), call("x"), call("y", "fail"),
                   {"id": "j", "kind": "join", "inputs": ["c", "x", "y"], "policy": "settled"}],
         "fuse": "on"},
        _to_the_end,
    ),
    "partial": (
        {"nodes": [call("a", "fail"), call("b", args={"value": "$a"}), call("c", args={"value": 2})],
         "answer": {"b": "$b", "c": "$c"}, "on_failure": "partial"},
        _to_the_end,
    ),
    "locks-and-priorities": (
        {"nodes": [*(call(f"n{i}", locks=[{"name": "l"}], priority=5 - i) for i in range(4)),
                   {"id": "j", "kind": "join", "inputs": [f"n{i}" for i in range(4)]}]},
        _to_the_end,
    ),
    "cancelled": ({"nodes": [call("a"), call("b", args={"seconds": 20}), call("c", needs=["a", "b"])]}, _cancel),
    "continued-as-new": (
        {"nodes": [*_layers(12, 3), {"id": "j", "kind": "join", "inputs": [f"n11_{place}" for place in range(3)]}]},
        _to_the_end,
    ),
}  # fmt: skip


def _agent(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": "agent", "goal": "Streamed?", **fields}


PLANNER, JOINER = "You plan work.*", "You put results together.*"
THOUGHTS = "".join(f"Thought: step {index} needs care\n" for index in range(12))
REQUESTS: dict[str, Shape] = {
    "streamed": ({"goal": "Streamed?", "approval": "never"}, _to_the_end),
    "mended": ({"goal": "Mended?"}, _to_the_end),
    "kept": ({"goal": "Kept?"}, _to_the_end),
    "skipped-loop": (
        {"plan": {"nodes": [{"id": "n7", "kind": "llm", "prompt": "Skipped", "tools": ["nap", "note"]}, call("a")],
                  "answer": ["$n7", "$a"]}},
        _skip_the_loop,
    ),
    "replanned": ({"goal": "Replanned?", "budget": {"calls": 20}}, _to_the_end),
    "tool-loop": (
        {"plan": {"nodes": [{"id": "n7", "kind": "llm", "prompt": "How much?", "tools": ["calculate"]}]}},
        _to_the_end,
    ),
    "sub-agents": (
        {"plan": {"nodes": [_agent("one"), _agent("two", tools=["nap", "note"])], "answer": ["$one", "$two"]},
         "budget": {"tokens": 90_000}, "approval": "never"},
        _to_the_end,
    ),
    "team": (
        {"plan": {"inputs": {"names": {"type": "array", "default": ["a", "b", "c"]}},
                  "nodes": [{"id": "team", "kind": "map", "over": "$input.names",
                             "do": {"kind": "agent", "goal": "Streamed? $item", "tools": ["nap", "note"]}}],
                  "answer": "$team"},
         "budget": {"tokens": 90_000}, "approval": "never"},
        _to_the_end,
    ),
    "failed-below": (
        {"plan": {"nodes": [_agent("sub") | {"goal": "Unplanned?"}, call("a")], "answer": ["$sub", "$a"]},
         "budget": {"tokens": 90_000}, "on_failure": "partial"},
        _to_the_end,
    ),
    "waiting-request": ({"goal": "Waiting?", "max_replans": 2}, _to_the_end),
    "asked-below": ({"plan": {"nodes": [_agent("sub") | {"goal": "Outer?"}]}, "tenant": "acme"}, _answer_below),
    "raised-budget": (
        {"plan": {"nodes": [{"id": f"n{i}", "kind": "llm", "prompt": "Say it"} for i in range(5)], "answer": "$n0"},
         "budget": {"calls": 2}},
        _raise_the_budget,
    ),
    "rate": (
        {"plan": {"nodes": [{"id": f"n{i}", "kind": "llm", "model": "anthropic:test-model", "prompt": "Say it"}
                            for i in range(6)], "answer": "$n0"}},
        _to_the_end,
    ),
}  # fmt: skip
"""Shapes of runs with models, whole requests each."""
RATES = "anthropic=2"
QUEUED = "queued"


def _script(model: ModelServer) -> None:
    model.on(f"{PLANNER}Streamed", Reply(f'1. nap(value="a")\n2. note(text="x")\n{THOUGHTS}3. answer($1, $2)', rate=40))
    wrong = Reply(f'1. nap(value="a", seconds=9)\n{THOUGHTS}2. naap()\n3. answer($1)', rate=40)
    model.on(f"{PLANNER}Mended", wrong, '1. nap(value="b")\n2. answer($1)')
    wrong = Reply(f'1. nap(value="a")\n2. nap(value="$1", seconds=4)\n3. nap()\n{THOUGHTS}4. naap()', rate=40)
    model.on(
        f"{PLANNER}Kept",
        wrong,
        '1. nap(value="b")\n2. nap(value="a")\n3. nap(value="$2", seconds=4)\n4. answer($1, $3)',
    )
    model.on("Skipped", Reply(calls=(Call("nap", {"seconds": 20}), Call("note", {"text": "x"}))))
    model.on(f"{PLANNER}Replanned", '1. nap(value="a")\n2. fail("gone")\n3. answer($1, $2)')
    again, more = '4. nap(value=\\"a\\")\\n5. answer($4)', '4. nap(value=\\"b\\")\\n5. answer($1, $4)'
    model.on(f"{JOINER}Replanned", *(f'{{"replan": {{"why": "more", "nodes": "{nodes}"}}}}' for nodes in (again, more)),
             "Both.")  # fmt: skip
    model.on(f"{PLANNER}Outer", '{"nodes": [{"id": "in", "kind": "agent", "goal": "Inner?"}], "answer": "$in"}')
    model.on(f"{PLANNER}Inner", '{"nodes": [{"id": "g", "kind": "gate", "question": "Which?"}], "answer": "$g"}')
    model.on(f"{PLANNER}Approved", '1. nap(value="a")\n2. answer($1)')
    replans = (f'{{"replan": {{"why": "more", "nodes": "3. nap(value={name})\\n4. answer($1, $3)"}}}}' for name in "78")
    model.on(f"{JOINER}Approved", *replans, "Both.")
    model.on(f"{PLANNER}Unplanned", "It is fine.")
    model.on(f"{PLANNER}Waiting", '1. llm("Look it up", tools=["calculate"])\n2. nap(value="a")\n3. answer($2)')
    request = '{"replan": {"why": "more", "nodes": "4. map($1.items, nap(value=$item.n))\\n5. answer($2, $4)"}}'
    model.on(f"{JOINER}Waiting", request, "Both.")
    model.on("Look it up", Reply(calls=(Call("calculate", {"expression": "6 * 7"}),), first_token=2), results=0)
    model.on("Look it up", "42", results=1)
    model.on(JOINER, "Fine.")
    model.on("How much", Reply(calls=(Call("calculate", {"expression": "6 * 7"}),)), results=0)
    model.on("How much", "42", results=1)
    model.on("You sum up material", "It goes on.")
    model.on("How long", "Long.")
    model.on("Say it", "it")


async def record(client: Client, name: str) -> None:
    """Run one shape and save its history, or the histories of its chain and of its sub-agents."""
    request, drive = REQUESTS.get(name) or ({"plan": SHAPES[name][0]}, SHAPES[name][1])
    ident = f"agent-{name}-{uuid.uuid4().hex[:8]}"
    handle = await client.start_workflow("AgentRun", request, id=ident, task_queue=queues.WORKFLOW)
    await drive(handle)
    for old in HISTORIES.glob(f"{name}*.json"):
        if old.stem.removeprefix(name).lstrip("-").isdecimal() or old.stem == name:
            old.unlink()
    runs = [run async for run in client.list_workflows(f"WorkflowId STARTS_WITH '{ident}'")]
    for number, run in enumerate(sorted(runs, key=lambda run: run.start_time), 1):
        handle = client.get_workflow_handle(run.id, run_id=run.run_id)
        await save(handle, HISTORIES / (f"{name}.json" if len(runs) == 1 else f"{name}-{number}.json"))


async def save(handle: Handle, path: Path) -> None:
    """Save the history of a workflow as it is now."""
    history = await handle.fetch_history()
    text = json.dumps(json.loads(history.to_json()), indent=1).replace(f"{Path.cwd()}/", "")  # in stack traces
    path.write_text(text + "\n")


async def record_quota(client: Client) -> None:
    """Have a run wait for its place until another one ends; save its history, and that of the quota."""
    gate = {"nodes": [{"id": "g", "kind": "gate", "question": "How many?", "schema": {"type": "integer"}}]}
    runs = list[Handle]()
    for name in ("first", "second"):
        ident = f"agent-{name}-{uuid.uuid4().hex[:8]}"
        runs.append(await client.start_workflow("AgentRun", {"plan": gate}, id=ident, task_queue=queues.WORKFLOW))
        await until(runs[-1], lambda view: view["status"] == "blocked" or view["phase"] == "queued")
    for run in runs:
        await _answer_the_gate(run)
    await save(runs[1], HISTORIES / f"{QUEUED}.json")
    quota = client.get_workflow_handle(QUOTA_ID)
    first = client.get_workflow_handle(QUOTA_ID, run_id=(await quota.describe()).run_id)
    await quota.signal("upgrade")
    while (await first.describe()).status != WorkflowExecutionStatus.CONTINUED_AS_NEW:
        await asyncio.sleep(0.1)
    await save(first, OF_QUOTA / "line.json")


async def main(names: list[str]) -> None:
    """Record the named shapes, by default all of them."""
    OF_QUOTA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        binary = await obtain(pinned_only=True)
        server = DevServer(binary, place / "t.db", place / "server.log", port=0, headless=True)
        await server.start()
        try:
            client = await connect(server.address)
            places = WorkerPaths(store_in(place / "artifacts"), place / "index", None, (Path("/"),))
            async with model_server() as model:
                _script(model)
                urls = {"OPENAI_BASE_URL": model.openai_url, "ANTHROPIC_BASE_URL": model.url}
                models = Models.of(ModelSettings.read({**urls, "SENNIT_RATES": RATES}))
                host = Activities(places, load_tools(["doubles.tools"]), models, identity="recorder", approval="never")
                async with serving(client, host):
                    for name in names or [*SHAPES, *REQUESTS]:
                        drain.SOFT_BOUNDS = (60 if name == "continued-as-new" else 20_000, *drain.SOFT_BOUNDS[1:])
                        if name != QUEUED:
                            await record(client, name)
                if not names or QUEUED in names:
                    host = Activities(
                        places,
                        load_tools(["doubles.tools"]),
                        identity="recorder",
                        quota=QuotaRule(quota_limits("runs=1")),
                    )
                    async with serving(client, host):
                        await record_quota(client)
                await models.close()
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
