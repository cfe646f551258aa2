"""Replans above a set size: their node waits for a person, over real HTTP and a real server."""

import json
from typing import Any

import pytest
from doubles.local_workers import Handle, Start
from doubles.runs import insist, status_of, until
from temporalio.client import WorkflowUpdateFailedError

from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer

PLANNER, JOINER = "You plan work", "You put results together"
PLAN = '1. nap(value="6,650 km long")\n2. answer("Which?", $1)'
LINES = r'"3. nap(value=\"a\")\n4. nap(value=\"b\")\n5. nap(value=\"c\")\n6. answer($1, $3, $4, $5)"'
MORE_NODES = f'{{"replan": {{"why": "the page on the Amazon is gone", "nodes": {LINES}}}}}'
ANSWER = '{"answer": "The Nile."}'


def blocked(view: dict[str, Any]) -> bool:
    return bool(view["status"] == "blocked")


async def calls_spent(handle: Handle) -> int:
    costs = await handle.query("costs")
    spent: int = costs["budget"]["calls"]["spent"]
    return spent


async def test_an_approved_replan_is_added_and_costs_no_other_call(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, PLAN)
    model_server.on(JOINER, MORE_NODES, ANSWER)
    handle = await begin(goal="Which is longer?", approve_replans_above=3, budget={"calls": 10})
    view = await until(handle, blocked)
    assert (status_of(view, "n2"), view["counts"]) == ("waiting", {"waiting": 1, "succeeded": 1})
    [item] = view["blocked"]
    assert (item["node"], item["why"], item["update"]) == ("n2", "replan", "approve")
    assert item["question"] == (
        "may it add 4 more nodes, about 1,001 tokens? the page on the Amazon is gone: "
        'n3 nap "a"; n4 nap "b"; n5 nap "c"; and 1 more'
    )
    assert item["command"] == f"sennit approve {handle.id} n2"
    assert (await calls_spent(handle), len(model_server.asked)) == (2, 2)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("retry_node", {"node": "n2"})
    assert "`n2` asks for more nodes; reject asks its model again" in str(refused.value.cause)
    assert await insist(handle, "approve", {"node": "n2"}) == "the nodes that n2 asks for are added"
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "The Nile.")
    assert [line["id"] for line in report["nodes"]] == ["n1", "n2", "n3", "n4", "n5", "n6"]
    assert [line.get("attempts", 1) for line in report["nodes"]] == [1] * 6
    assert await calls_spent(handle) == report["usage"]["calls"] == len(model_server.asked) == 3


SCRIPT = """
async def main():
    first = await nap(value="one")
    return await llm("Is it long?", first, tools=["nap"])
"""


async def test_a_run_whose_program_has_called_something_may_be_replanned(
    begin: Start, model_server: ModelServer
) -> None:
    """The program's calls, the tool loop in it and the tool loop beside it are there when the joiner asks for more."""
    plan = {
        "nodes": [
            {"id": "p", "kind": "program", "script": SCRIPT},
            {"id": "n1", "kind": "llm", "prompt": "How much?", "tools": ["nap"]},
            {"id": "n2", "kind": "llm", "role": "joiner", "prompt": "Which?", "inputs": ["p", "n1"]},
        ],
        "answer": "$n2",
    }
    model_server.on(PLANNER, json.dumps(plan))
    for question, value in (("Is it long?", "two"), ("How much?", "three")):
        model_server.on(question, Reply("", calls=(Call("nap", {"value": value}),)), results=0)
        model_server.on(question, f"As {value}.", results=1)
    more = r'"3. nap(value=\"four\")\n4. answer($p, $n1, $3)"'
    model_server.on(JOINER, f'{{"replan": {{"why": "it is not enough", "nodes": {more}}}}}', ANSWER)
    report = await (await begin(goal="Which is longer?")).result()
    assert (report["status"], report["answer"]) == ("done", "The Nile.")
    assert [line["id"] for line in report["nodes"]] == [
        "p", "p_1", "p_2", "p_2_t1_1", "p_2_t1_all", "p_2_t2", "n1", "n1_t1_1", "n1_t1_all", "n1_t2", "n2", "n3", "n4",
    ]  # fmt: skip


async def test_a_rejected_replan_goes_back_to_its_joiner(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, PLAN)
    model_server.on(JOINER, MORE_NODES, "Not known.")
    handle = await begin(goal="Which is longer?", approve_replans_above=0, max_replans=1, budget={"calls": 10})
    await until(handle, blocked)
    answer = await insist(handle, "reject", {"node": "n2", "reason": "one page is enough"})
    assert answer == "the nodes that n2 asks for are refused, and its model is asked again"
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "Not known.")
    assert [line["id"] for line in report["nodes"]] == ["n1", "n2"]
    assert "a person rejected these nodes (4): one page is enough" in model_server.asked[-1].text
    assert "add to the plan" not in model_server.asked[-1].text, "it has no request left"
    assert await calls_spent(handle) == report["usage"]["calls"] == 3
