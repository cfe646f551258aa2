"""Budgets of tasks on a server: what is spent, what is refused, and what of that a kill, an edit and a fork change."""

import json
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import board, insist, until

from sennit.activities.programs.session import Snapshots
from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer

pytestmark = pytest.mark.timeout(120)

SCRIPT = """
async def look(name: str) -> list:
    found = []
    try:
        for k in range(5):
            found.append(await llm(f"Ask {name} {k}"))
    except BudgetExceeded as error:
        found.append(f"spent: {(await budget_left())['tokens']}")
    return found


async def main() -> list:
    small = task(look, name="small", budget={"tokens": 1_000})
    return await parallel([small, task(look, name="free")])
"""
ANSWER = [["ok", "ok", "spent: 0"], ["ok"] * 5]


def program(script: str) -> dict[str, Any]:
    return {"nodes": [{"id": "main", "kind": "program", "script": script}], "answer": "$main"}


def asked(server: ModelServer, words: str) -> int:
    """How many calls the server got whose prompt has these words."""
    return sum(words in str(each.body["messages"]) for each in server.asked)


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_task_that_has_spent_its_budget_is_refused_and_its_siblings_are_untouched(
    begin: Start, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, is_lost: bool
) -> None:
    """Also where the script's process is lost between all of its steps."""
    if is_lost:
        monkeypatch.setattr(Snapshots, "find", lambda *_: None)
    model_server.on("Ask", Reply("ok", usage=(400, 100)))
    handle = await begin(plan=program(SCRIPT), budget={"tokens": 50_000})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", ANSWER)
    assert asked(model_server, "Ask small") == 2
    assert report["usage"]["input_tokens"] + report["usage"]["output_tokens"] == 7 * 500, "it counts once"
    nodes = {node.get("call_site", ""): node for node in report["nodes"]}
    assert nodes["look#1:13"]["budget"] == {"tokens": {"limit": 1_000, "spent": 1_000, "reserved": 0}}
    assert nodes["look#1:13"]["tokens"] == 1_000
    assert "budget" not in nodes["look#2:14"]
    [refused] = [node for node in report["nodes"] if "BudgetExceeded" in (node.get("error") or "")]
    assert refused["status"] == "handled"
    assert "look#1:13 has used 1,000 tokens of its budget of 1,000 tokens" in refused["error"]
    assert "tokens 1,000 of 1,000" in await board(handle)


async def test_a_prompt_that_does_not_fit_into_what_its_task_has_left_is_not_sent(
    begin: Start, model_server: ModelServer
) -> None:
    model_server.on("Ask", Reply("ok", usage=(400, 100)))
    report = await (await begin(plan=program(SCRIPT.replace("1_000", "1_200")))).result()
    assert report["answer"] == [["ok", "ok", "spent: 200"], ["ok"] * 5]
    [refused] = [node for node in report["nodes"] if "BudgetExceeded" in (node.get("error") or "")]
    assert "and the budget has 200 left for it; raise the budget of the run, or of its task" in refused["error"]


async def test_an_edit_counts_what_it_takes_over_and_a_fork_what_was_paid_before(
    begin: Start, model_server: ModelServer
) -> None:
    """The run parks on a failure that nobody catches. An edit with more budget goes on from there, and makes no call
    again. What has a result is never refused, whatever the budget is by then. A fork pays for nothing, and its task has
    spent what the run before has paid.
    """
    model_server.on("Ask", Reply("ok", usage=(400, 100)))
    parked = SCRIPT.replace("except BudgetExceeded as error", "except ValueError as error")
    handle = await begin(plan=program(parked))
    view = await until(handle, lambda view: bool(view["blocked"]))
    [blocked] = view["blocked"]
    assert "look#1/llm:6 BudgetExceeded: look#1:13 has used 1,000 tokens of its budget of 1,000" in blocked["question"]
    made = len(model_server.asked)

    await insist(handle, "edit_program", {"script": parked.replace("1_000", "1_500")})
    view = await until(handle, lambda view: bool(view["blocked"]) and len(model_server.asked) > made)
    assert "has used 1,500 tokens of its budget of 1,500 tokens" in view["blocked"][0]["question"]
    assert len(model_server.asked) == made + 1, "what was taken over is not made again, and counts"

    await insist(handle, "edit_program", {"script": SCRIPT})
    report = await handle.result()
    known = [["ok"] * 3 + ["spent: 0"], ["ok"] * 5]
    assert report["answer"] == known, "what has a result is not refused"
    assert len(model_server.asked) == made + 1

    fork = await begin(plan=program(SCRIPT), origins=[handle.first_execution_run_id])
    report = await fork.result()
    assert report["answer"] == known
    assert len(model_server.asked) == made + 1
    assert report["usage"].get("input_tokens", 0) == 0, "what is taken over costs nothing"
    nodes = {node.get("call_site", ""): node for node in report["nodes"]}
    assert nodes["look#1:13"]["budget"]["tokens"]["spent"] == 1_500


async def test_a_retry_of_a_refused_call_is_refused_again(begin: Start, model_server: ModelServer) -> None:
    model_server.on("Ask", Reply("ok", usage=(400, 100)))
    script = "async def f():\n    await llm('Ask a')\n    return await llm('Ask b')\n\n\n"
    script += "async def main():\n    return await task(f, budget={'calls': 1})\n"
    handle = await begin(plan=program(script))
    view = await until(handle, lambda view: bool(view["blocked"]))
    [blocked] = view["blocked"]
    await insist(handle, "retry_node", {"node": blocked["node"]})
    view = await until(handle, lambda view: bool(view["blocked"]))
    assert "has used 1 model calls of its budget of 1 model calls" in view["blocked"][0]["question"]
    assert len(model_server.asked) == 1
    await insist(handle, "answer", {"node": blocked["node"], "value": "mine"})
    assert (await handle.result())["answer"] == "mine"


async def test_a_model_with_tools_and_a_sub_agent_are_held_to_the_budget_of_their_task(
    begin: Start, model_server: ModelServer
) -> None:
    """The tool loop ends in its own budget, and the sub-agent's run gets what its task has left."""
    turn = Reply("", calls=(Call("nap", {"value": 1}),), usage=(400, 100))
    model_server.on("Loop", turn)
    plan = {"nodes": [{"id": f"n{n}", "kind": "llm", "prompt": f"Deep {n}"} for n in range(9)], "answer": "$n8"}
    model_server.on("You plan work", Reply(json.dumps(plan), usage=(400, 100)))
    model_server.on("Deep", Reply("deep", usage=(400, 100)))
    script = """
async def deep():
    return await agent("Reach it.", tools=[])


async def main() -> list:
    loop = task(llm, "Loop", tools=["nap"], budget={"calls": 3})
    below = task(deep, budget={"tokens": 2_000})
    return [end["error"] for end in await settled([loop, below])]
"""
    report = await (await begin(plan=program(script), on_failure="partial")).result()
    loop, below = report["answer"]
    assert loop.startswith("BudgetExceeded: llm:7 has used 3 model calls of its budget of 3 model calls")
    assert asked(model_server, "Loop") == 3
    assert "budget is spent" in below
    assert asked(model_server, "Deep") <= 4
