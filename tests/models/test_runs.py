"""Whole runs whose models are behind a real server that is full, slow, killed or too small for what is asked."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start, serving, starting
from doubles.runs import happens, insist, until
from models.llama import FREE_SECONDS, MODEL, Llama
from models.test_calls import ENDLESS, REPEAT, closed
from temporalio.client import Client, WorkflowFailureError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.llm.models import Models
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.toolbox import load_tools
from sennit.workflows.plan.language.json_schema import violations

pytestmark = [pytest.mark.server, pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[2]
KM = closed(km={"type": "number"})


@pytest.fixture
async def run(
    client: Client, artifacts: Path, cache: Path, llama: Llama, request: pytest.FixtureRequest
) -> AsyncIterator[Start]:
    """Start runs on workers whose models are on the server; the parameter may be how planners write."""
    env = {"OPENAI_BASE_URL": llama.openai_url, "SENNIT_MODEL": MODEL}
    env["SENNIT_PLAN_FORMAT"] = getattr(request, "param", "auto")
    models = Models.of(ModelSettings.read(env))
    paths = WorkerPaths(artifacts, cache, None, (Path("/"),))
    host = Activities(paths, load_tools(["doubles.tools"]), models, identity="tests", approval="never")
    async with serving(client, host), starting(client) as begin:
        yield begin
    await models.close()


def plan(*nodes: dict[str, Any], on_failure: str = "fail") -> dict[str, Any]:
    """Return a plan of model calls, with the last one's output as its answer."""
    named = [{"id": f"n{number}", "kind": "llm", **node} for number, node in enumerate(nodes, 1)]
    return {"nodes": named, "answer": f"${named[-1]['id']}", "on_failure": on_failure}


async def test_workers_and_joiners_keep_to_their_schemas(run: Start) -> None:
    """More of them at once than the server has slots."""
    rivers = [{"prompt": f"How long is the {name}?", "output_schema": KM} for name in ("Nile", "Ob", "Inn")]
    joiner = {"role": "joiner", "prompt": "Sum up.", "inputs": ["n1", "n2", "n3"], "output_schema": KM}
    result = await (await run(goal="g", plan=plan(*rivers, joiner))).result()
    assert result["status"] == "done", result
    assert list(violations(result["answer"], KM)) == []
    assert result["usage"]["calls"] == 4


ROUNDS = """
async def length(river: str) -> float:
    return (await llm("How long is it?", river, schema={"km": float}))["km"]

async def main(rivers: list[str]):
    found = await parallel([task(length, river=river) for river in rivers])
    rounds = 0
    while rounds < 3:
        rounds += 1
        if (await llm("Are these all?", rivers, found, schema={"good": bool}, role="critic"))["good"]:
            break
    return {"found": found, "rounds": rounds}
"""


async def test_a_program_branches_on_what_the_model_says(run: Start) -> None:
    node = {"id": "main", "kind": "program", "script": ROUNDS, "arguments": {"rivers": ["Nile", "Ob", "Inn"]}}
    result = await (await run(goal="g", plan={"nodes": [node], "on_failure": "fail"})).result()
    assert result["status"] == "done", result
    assert [type(km) in (int, float) for km in result["answer"]["found"]] == [True] * 3
    assert result["usage"]["calls"] == 3 + result["answer"]["rounds"] <= 6


SHORT = {"type": "string", "maxLength": 30}
BOUNDED = {
    "schema=list[str]": f"schema={ {'type': 'array', 'items': SHORT, 'minItems': 2, 'maxItems': 2} }",
    'schema={"good": bool, "faults": list[str]}': f"schema={closed(good={'type': 'boolean'}, faults=SHORT)}",
    "k=5": "k=1",
    ", hits)": f", hits, schema={SHORT})",
    ", answers)": f", answers, schema={SHORT})",
    '["faults"])': f'["faults"], schema={SHORT})',
}
"""Without bounds so small a model never ends a list or a page."""


async def test_a_page_on_a_topic_is_written_to_its_end(run: Start) -> None:
    """Either its critic finds it good, or a person is asked after three rounds."""
    script = (ROOT / "examples" / "programs" / "topic.py").read_text()
    for wide, bounded in BOUNDED.items():
        assert wide in script
        script = script.replace(wide, bounded)
    node = {"id": "main", "kind": "program", "script": script, "arguments": {"topic": "rivers"}}
    docs = str(ROOT / "examples" / "corpus" / "rivers")
    handle = await run(plan={"nodes": [node], "answer": "$main", "on_failure": "fail"}, docs=docs)
    view = await until(handle, lambda view: view["status"] in ("blocked", "done", "failed"), limit=300)
    if view["blocked"]:
        [asked] = view["blocked"]
        assert "Three rounds did not do" in asked["question"]
        await insist(handle, "answer", {"node": asked["node"], "value": "publish"})
    result = await handle.result()
    assert result["status"] == "done", result
    assert isinstance(result["answer"], str)
    assert result["usage"]["calls"] in (5, 7, 9, 10)


async def test_a_model_calls_tools_and_has_the_last_word(run: Start) -> None:
    schema = {"type": "string", "maxLength": 20}
    loop = {"prompt": REPEAT, "tools": ["calculate"], "max_turns": 2, "output_schema": schema}
    result = await (await run(goal="g", plan=plan(loop))).result()
    assert result["status"] == "done", result
    assert list(violations(result["answer"], schema)) == []
    assert "calculate" in str(result["nodes"]), result["nodes"]


async def test_what_is_too_long_for_the_model_fails_at_once(run: Start) -> None:
    handle = await run(goal="g", plan=plan({"prompt": "word " * 3_000}))
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert "ContextTooLong: the call is too long for openai:smollm2" in str(failed.value.cause)
    (node,) = (await handle.query("plan"))["nodes"]
    assert (node["status"], node.get("attempts", 1)) == ("failed", 1)


async def test_a_cancelled_run_leaves_its_server_free(run: Start, llama: Llama) -> None:
    stopped = llama.stopped()
    handle = await run(goal="g", plan=plan({"prompt": ENDLESS}, {"prompt": ENDLESS}))
    await llama.until_busy(2)
    llama.pause(3.0)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    await happens(lambda: llama.stopped() == stopped + 2, limit=FREE_SECONDS)
    await llama.until_busy(0)


async def test_a_run_goes_on_when_its_server_was_killed_and_is_back(run: Start, llama: Llama) -> None:
    """What the cut replies had is charged; nobody has to do anything."""
    names = {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 12, "maxItems": 12}
    rivers = [{"prompt": f"Name rivers in {name}.", "output_schema": names} for name in ("Asia", "Africa", "Europe")]
    joined = {"prompt": "Sum up $n1 $n2 $n3", "output_schema": KM}
    handle = await run(goal="g", plan=plan(*rivers, joined, on_failure="park"))
    await llama.until_busy(2)
    llama.kill()
    await until(handle, lambda view: "cannot be reached" in str(view), limit=FREE_SECONDS)
    await llama.start()
    result = await handle.result()
    assert result["status"] == "done", result
    assert {node["status"] for node in result["nodes"]} == {"succeeded"}
    assert result["usage"]["calls"] > 4


@pytest.mark.parametrize("run", ["lines", "program"], indirect=True)
async def test_a_question_ends_in_an_answer_or_names_what_was_wrong(run: Start) -> None:
    """What so small a model plans is nonsense as a rule; then nothing is told as an answer."""
    handle = await run(goal="What is 6 times 7?", tools=["calculate"], on_failure="fail")
    ended: Any = (await asyncio.gather(handle.result(), return_exceptions=True))[0]
    if isinstance(ended, WorkflowFailureError):
        assert re.search(r"line \d|cut off|no plan|too long", str(ended.cause)), ended.cause
    else:
        assert ended["answer"]
        assert "succeeded" in {node["status"] for node in ended["nodes"]}, ended
