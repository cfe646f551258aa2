"""What runs leave for those to come: which calls they made, and where the arguments of each came from."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start, serving, starting
from temporalio.client import Client

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.llm.models import Models
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.storage.learned import LearnedStore, Learning
from sennit.activities.toolbox import load_tools
from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer
from sennit.workflows.plan.learning.trajectory import Trajectory, read_trajectory

PLAN: dict[str, Any] = {
    "goal": "Rest twice",
    "nodes": [
        {"id": "a", "kind": "tool", "tool": "nap", "args": {"value": "the first secret"}},
        {"id": "b", "kind": "tool", "tool": "nap", "args": {"value": "$a.value"}},
        {"id": "c", "kind": "tool", "tool": "nap", "args": {"value": "then ${b.value}"}, "needs": ["a"]},
        {"id": "d", "kind": "tool", "tool": "fail", "args": {"message": "no"}, "on_error": "skip", "needs": ["c"]},
    ],
    "answer": "$c",
}


@pytest.fixture
async def learning(model_server: ModelServer, cache: Path, artifacts: Path, docs: Path) -> AsyncIterator[Activities]:
    """The activities of a worker that learns, with what runs say, and whose models a test plays."""
    settings = ModelSettings.read(
        {"OPENAI_BASE_URL": model_server.openai_url, "OPENAI_API_KEY": "any", "SENNIT_MODEL": "openai"}
    )
    served = Models.of(settings)
    yield Activities(
        WorkerPaths(artifacts, cache, docs, (Path("/"),)),
        load_tools(["doubles.tools"]),
        served,
        identity="tests",
        approval="never",
        learn="full",
        plan_hints=True,
    )
    await served.close()


@pytest.fixture
async def learn(client: Client, learning: Activities, cached: int) -> AsyncIterator[Start]:
    """Start a run on workers that learn."""
    async with serving(client, learning, cached=cached), starting(client) as begin:
        yield begin


async def noted(client: Client, run: str) -> int:
    """Wait until a run is noted, and return how many calls were."""
    return int(await client.get_workflow_handle(f"{run}.noted-calls").result())


async def trajectory_of(host: Activities, client: Client, run: str) -> Trajectory:
    """Return what lies in the store of a run that is noted."""
    first_run = (await client.get_workflow_handle(run).describe()).run_id
    async for each in host.store.list_objects(client.namespace, "learned"):
        if each.name.endswith(f".{first_run}.run"):
            body = await host.store.marked(each.run_prefix, each.name.removeprefix("done/"))
            found = read_trajectory(body or b"")
            assert found is not None
            assert b"secret" not in (body or b"")
            return found
    raise AssertionError(f"{run} is not noted")


async def read(host: Activities, client: Client, tenant: str) -> Learning:
    return await LearnedStore(host.store).read(client.namespace, tenant)


async def test_a_plan_tells_by_its_references_where_arguments_came_from(
    learn: Start, learning: Activities, client: Client
) -> None:
    handle = await learn(plan=PLAN, tenant="plans")
    assert (await handle.result())["status"] == "done"
    assert await noted(client, handle.id) == 4
    run = await trajectory_of(learning, client, handle.id)

    first, second, third, fourth = run.calls
    assert [call.name for call in run.calls] == ["nap", "nap", "nap", "fail"]
    assert [(each.origin, each.call, each.path) for each in second.sources] == [("output", 0, "value")]
    assert [(each.origin, each.call, each.path) for each in third.sources] == [("text", 1, "value")]
    assert (first.sources[0].origin, first.sources[0].mark is not None) == ("constant", True)
    assert (third.uses, third.after) == ((1,), (0,))
    assert (fourth.after, fourth.failure, fourth.attempts) == ((2,), "verification", 1)
    assert run.plan is not None
    assert run.plan.lines[2] == '3. nap(value="… ${2.value}", needs=[$1])'

    known = await read(learning, client, "plans")
    assert (known.fresh, known.ignored, known.with_values) == (1, 0, 1)
    assert (await read(learning, client, "others")).fresh == 0


async def test_a_tool_loop_tells_it_by_equal_values(
    learn: Start, learning: Activities, client: Client, model_server: ModelServer
) -> None:
    asks = Reply("", calls=(Call("nap", {"value": "a long value"}),))
    model_server.on("look", asks, results=0)
    model_server.on("look", asks, results=1)
    model_server.on("look", "it is", results=2)
    plan = {"nodes": [{"id": "m", "kind": "llm", "prompt": "look", "tools": ["nap"]}]}
    handle = await learn(plan=plan, tenant="loops")
    assert (await handle.result())["answer"] == "it is"
    assert await noted(client, handle.id) == 5
    run = await trajectory_of(learning, client, handle.id)
    calls = [call for call in run.calls if call.kind == "tool"]
    assert [(each.origin, each.path) for each in calls[0].sources] == [("constant", "")]
    assert [(each.origin, each.path) for each in calls[1].sources] == [("output", "value")]


async def test_a_program_tells_it_by_equal_values(learn: Start, learning: Activities, client: Client) -> None:
    script = """
async def main():
    first = await nap(value="a long value")
    return await nap(value=first["value"])
"""
    plan = {"nodes": [{"id": "p", "kind": "program", "script": script}]}
    handle = await learn(plan=plan, tenant="programs")
    await handle.result()
    assert await noted(client, handle.id) == 2
    first, second = (await trajectory_of(learning, client, handle.id)).calls
    assert first.sources[0].origin == "constant"
    assert [(each.origin, each.call, each.path) for each in second.sources] == [("output", 0, "value")]


async def test_the_next_planner_reads_the_plan_of_the_last_run_with_its_tools(
    learn: Start, client: Client, model_server: ModelServer
) -> None:
    model_server.on("You plan work", '1. nap(value="the secret")\n2. nap(value=$1.value)\n3. answer($2)')
    model_server.on("You put results together", "It is.")
    goal = f"Is it a secret {uuid.uuid4().hex}?"
    first = await learn(goal=goal, tenant="planned")
    assert (await first.result())["status"] == "done"
    assert await noted(client, first.id) == 3
    assert "earlier_runs" not in model_server.asked[0].text
    await (await learn(goal=goal, tenant="planned")).result()
    told = next(asked.text for asked in model_server.asked[1:] if "You plan work" in asked.system)
    assert '1. nap(value="…")\n2. nap(value=${1.value})' in told
    assert "the secret" not in told.partition("earlier_runs")[2]
