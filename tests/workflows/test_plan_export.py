"""The plan of a real run, as a file: whoever wrote it, it starts another run as it is."""

import json
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import call, insist, until
from temporalio.client import Client

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import InvalidRequest, NotEnded
from sennit.starter.plans.plan_text import plan_text
from sennit.starter.plans.yaml_text import YamlText
from sennit.testing.models import ModelServer

pytestmark = pytest.mark.timeout(100)
PLANNER, JOINER = "You plan work", "You put results together"
PLAN = {
    "inputs": {"city": {}, "unit": {"default": "km"}},
    "nodes": [call("look", args={"value": "$input.city in $input.unit"}), call("more", args={"value": "$look.value"})],
    "answer": "$more.value",
}


@pytest.fixture
def sennit(client: Client, begin: Start) -> Sennit:
    return Sennit(client, local_server(client.service_client.config.target_host, None))


async def exported(sennit: Sennit, run: str) -> dict[str, Any]:
    """Return what is in the file."""
    found = await sennit.find(run)
    return dict(YamlText(plan_text(await found.plan())).data)


async def test_the_values_that_were_typed_in_become_those_by_default(begin: Start, sennit: Sennit) -> None:
    handle = await begin(plan=PLAN, inputs={"city": "Rome"})
    report = await handle.result()
    plan = await exported(sennit, handle.id)
    assert plan["inputs"] == {"city": {"default": "Rome"}, "unit": {"default": "km"}}
    again = await begin(plan=plan)
    assert (await again.result())["answer"] == report["answer"] == "Rome in km"
    other = await begin(plan=plan, inputs={"city": "Lima"})
    assert (await other.result())["answer"] == "Lima in km"


async def test_a_planner_s_plan_is_kept_with_what_it_has_added(
    begin: Start, sennit: Sennit, model_server: ModelServer
) -> None:
    model_server.on(PLANNER, '1. nap(value="6,650 km")\n2. answer("Compare", $1)')
    lines = '3. nap(value="3,650 km")\n4. answer("Compare", $1, $3)'
    more = json.dumps({"replan": {"why": "one is missing", "nodes": lines}})
    model_server.on(JOINER, more, '{"answer": "the Nile"}')
    handle = await begin(goal="Nile or Ob?", max_replans=1)
    report = await handle.result()
    assert report["answer"] == "the Nile", report
    plan = await exported(sennit, handle.id)
    names = {node["id"] for node in plan["nodes"]}
    assert names == {line["id"] for line in report["nodes"]}
    assert len(names) == 4
    model_server.on(JOINER, '{"answer": "the Nile again"}')
    again = await begin(plan=plan)
    assert (await again.result())["status"] == "done"


async def test_a_program_has_the_script_that_it_was_given_last(begin: Start, sennit: Sennit) -> None:
    old = 'async def main():\n    await fail(message="no")\n'
    new = 'async def main():\n    return await nap(value="yes")\n'
    handle = await begin(plan={"nodes": [{"id": "main", "kind": "program", "script": old}]})
    await until(handle, lambda view: bool(view["status"] == "blocked"))
    await insist(handle, "edit_program", {"script": new})
    await handle.result()
    plan = await exported(sennit, handle.id)
    assert [node["script"] for node in plan["nodes"]] == [new]


async def test_a_run_without_a_plan_says_so(begin: Start, sennit: Sennit) -> None:
    handle = await begin(plan={"nodes": [call("a", "no_such_tool")]})
    found = await sennit.find(handle.id)
    with pytest.raises(InvalidRequest):
        await found.report()
    with pytest.raises(NotEnded, match="the run has no plan yet"):
        await found.plan()
