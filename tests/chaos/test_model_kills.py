"""The llm worker dies by SIGKILL while models write. Nothing is paid twice but the calls that were cut off, which are
charged at the most that they may have cost.
"""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from chaos.budget import most
from doubles.runs import status_of, until
from doubles.worker_processes import WorkerProcesses
from temporalio.client import Client, WorkflowHandle

from sennit.starter.dev.server import DevServer
from sennit.testing.model_rules import Asked, Call, Reply
from sennit.testing.models import ModelServer, model_server
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import connect

pytestmark = pytest.mark.chaos
LIMIT = 100.0
AMPLE = {"tokens": 100_000}
THOUGHTS = "".join(f"Thought: step {index} needs some care\n" for index in range(45))
PLAN = f'1. nap(value="a")\n2. nap(value="$1.value")\n3. nap(value="c", seconds=30)\n{THOUGHTS}'
SLOWLY = " ".join(f"word{index}" for index in range(300))


def scripted(model: ModelServer) -> None:
    """Plans and answers for every goal below. Slow replies take some ten seconds: they overlap on a busy machine."""
    model.on("You plan work.*Steady", Reply(PLAN.replace(", seconds=30", "") + "4. answer($2, $3)", rate=40))
    model.on("You put results together.*Steady", "It is c.")
    model.on("You plan work.*Fickle", Reply(f"{PLAN}4. answer($3)", rate=40), '1. nap(value="b")\n2. answer($1)')
    model.on("You put results together.*Fickle", "It is b.")
    model.on("Say it quickly", "quick")
    model.on("Say it slowly", Reply(SLOWLY, rate=30))
    model.on("How much", Reply("", calls=(Call("calculate", {"expression": "6 * 7"}),)), results=0)
    model.on("How much", Reply("It is 42.", first_token=10.0), results=1)


def kind_of(asked: Asked) -> str:
    """Return which of the calls a request is."""
    words = ("Steady", "Fickle", "Say it quickly", "Say it slowly", "How much")
    word = next(word for word in words if word in asked.text)
    who = {"You plan": "plan ", "You put": "join "}.get(asked.system[:8].strip(), "")
    return f"{who}{word} {len(asked.results)}" if word == "How much" else f"{who}{word}"


async def begin(client: Client, name: str, **request: Any) -> WorkflowHandle[Any, Any]:
    return await client.start_workflow("AgentRun", request, id=f"agent-model-{name}", task_queue=queues.WORKFLOW)


async def test_calls_that_were_cut_off_are_the_only_ones_paid_again(dev_server: DevServer, tmp_path: Path) -> None:
    """In the middle of a plan whose first nodes have run, of a node's reply, and of a tool loop's second turn."""
    client = await connect(dev_server.address)
    nodes = [{"id": "quick", "kind": "llm", "prompt": "Say it quickly"},
             {"id": "slow", "kind": "llm", "prompt": "Say it slowly: $quick"}]  # fmt: skip
    loop = [{"id": "n7", "kind": "llm", "prompt": "How much is it?", "tools": ["calculate"]}]
    async with model_server() as model:
        scripted(model)
        processes = WorkerProcesses(dev_server.address, tmp_path / "state", OPENAI_BASE_URL=model.openai_url)
        try:
            (doomed, *_) = processes.start("llm", "workflow", "tools")
            steady, fickle = (
                await begin(client, "steady", goal="Steady?"),
                await begin(client, "fickle", goal="Fickle?"),
            )
            await processes.until_called(steady.first_execution_run_id or "", "n1", "n2")
            await processes.until_called(fickle.first_execution_run_id or "", "n1", "n2", "n3")
            paid_run = await begin(client, "paid", plan={"nodes": nodes, "answer": ["$quick", "$slow"]}, budget=AMPLE)
            turns = await begin(client, "turns", plan={"nodes": loop, "answer": "$n7"})
            await until(paid_run, lambda view: status_of(view, "slow") == "running")
            await until(turns, lambda view: status_of(view, "n7_t2") == "running")
            while model.busy < 4:
                await asyncio.sleep(0.02)
            processes.kill(doomed)
            processes.start("llm")
            runs = (steady, fickle, paid_run, turns)
            reports = await asyncio.wait_for(asyncio.gather(*(run.result() for run in runs)), LIMIT)
            ledger = (await paid_run.query("costs"))["budget"]["tokens"]
        finally:
            processes.kill()
    paid = Counter(map(kind_of, model.asked))
    cut = ("plan Steady", "plan Fickle", "Say it slowly", "How much 1")
    assert paid == dict.fromkeys(cut, 2) | dict.fromkeys(
        ("Say it quickly", "How much 0", "join Steady", "join Fickle"), 1
    )
    assert Counter(processes.calls(steady.first_execution_run_id or "")) == {"n1~1": 1, "n2~1": 1, "n3~1": 1}
    redone = Counter(processes.calls(fickle.first_execution_run_id or ""))
    assert redone == {"n1~1": 2, "n2~1": 1, "n3~1": 1}, "the second plan is another, and n3 was cancelled"
    first = {kind_of(asked): index for index, asked in reversed(list(enumerate(model.asked)))}
    charged = [sum(tokens) for tokens in model.billed]
    for kind in cut:
        charged[first[kind]] = most(model.asked[first[kind]])
        assert charged[first[kind]] > sum(model.billed[first[kind]])
    used = [report["usage"]["input_tokens"] + report["usage"]["output_tokens"] for report in reports]
    assert sum(used) == sum(charged)
    assert ledger["spent"] == used[runs.index(paid_run)] > most(model.asked[first["Say it slowly"]])
    assert [report["answer"] for report in reports] == ["It is c.", "It is b.", ["quick", SLOWLY], "It is 42."]
