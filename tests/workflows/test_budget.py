"""Runs that may spend only so much: they stop where they should, say so, and go on when the limit is raised."""

import json
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import call, insist, until
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from sennit.testing.model_rules import Reply
from sennit.testing.models import ModelServer

TEXT = "The Nile is about 6,650 kilometres long. " * 6


async def test_dollars_bound_the_first_wave_too(begin: Start, model_server: ModelServer) -> None:
    """A first call is expected to take a thousand tokens at $30 a million, so one starts; each costs $0.0075."""
    model_server.models = ("gpt-5.5",)
    model_server.on("Part", Reply("done", usage=(900, 100)))
    nodes = [{"id": f"n{n}", "kind": "llm", "model": "openai:gpt-5.5", "prompt": f"Part {n}"} for n in range(20)]
    handle = await begin(plan={"nodes": nodes, "answer": "$n0"}, budget={"cost_usd": 0.05}, on_failure="partial")
    report = await handle.result()
    assert (report["status"], report["problem"]) == ("partial", "the budget is spent (cost 0.0525 of 0.05)")
    assert len(model_server.asked) == 7, "one call too many at most"


async def test_time_ends_a_run_with_what_there_is(start: Start) -> None:
    nodes = [call("a", args={"value": 1}), call("b", "hang", args={"name": "overtime"})]
    handle = await start(plan={"nodes": nodes, "answer": "$a"}, budget={"time": "1s"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("partial", {"value": 1})


def wide(count: int, prompt: str) -> dict[str, Any]:
    """A map of model calls over so many numbers."""
    do = {"kind": "llm", "model": "openai:test-model", "prompt": f"{prompt} $item"}
    numbers = call("t", args={"value": list(range(count))})
    return {"nodes": [numbers, {"id": "m", "kind": "map", "over": "$t.value", "do": do}], "answer": "$m"}


async def test_a_map_of_dear_calls_exceeds_its_budget_by_one_call_at_most(
    begin: Start, model_server: ModelServer
) -> None:
    """Each call uses 20,000 tokens, although its prompt is short and it asks for a short reply."""
    model_server.on("Dear", Reply("ok", usage=(19_000, 1_000)))
    handle = await begin(plan=wide(60, "Dear"), budget={"tokens": 50_000}, on_failure="partial")
    report = await handle.result()
    assert report["status"] == "partial"
    assert len(model_server.asked) == 3, "60,000 tokens: one call more than the budget has"
    assert "the budget was overspent: 60,000 tokens of 50,000 tokens" in report["warnings"]


async def test_a_reply_is_asked_for_with_what_the_budget_grants_it(begin: Start, model_server: ModelServer) -> None:
    model_server.on("Short", Reply("ok", usage=(400, 100)))
    handle = await begin(plan=wide(8, "Short"), budget={"tokens": 3_000}, on_failure="partial")
    report = await handle.result()
    limits = [asked.body["max_tokens"] for asked in model_server.asked]
    assert max(limits) < 3_000
    assert len(limits) == 6
    assert report["usage"]["input_tokens"] + report["usage"]["output_tokens"] == 3_000


async def test_a_prompt_that_is_more_than_the_budget_has_is_not_sent(begin: Start, model_server: ModelServer) -> None:
    text = call("t", args={"value": "word " * 3_000})
    node = {"id": "a", "kind": "llm", "model": "openai:test-model", "prompt": "Sum this up: $t"}
    handle = await begin(plan={"nodes": [text, node], "answer": "$a"}, budget={"tokens": 2_000}, on_failure="partial")
    report = await handle.result()
    [line] = [line for line in report["nodes"] if line["id"] == "a"]
    assert line["error"].startswith("BudgetExceeded: its prompt takes about 5,"), line["error"]
    assert model_server.asked == []


async def test_a_prompt_that_is_longer_than_was_reserved_is_measured_and_sent(
    begin: Start, model_server: ModelServer
) -> None:
    """The items of the list are not equally long: the longest takes much more than its share of it."""
    model_server.on("Sum", Reply("ok"))
    items = call("t", args={"value": ["short", "short", "word " * 2_000]})
    do = {"kind": "llm", "model": "openai:test-model", "prompt": "Sum this up: $item"}
    nodes = [items, {"id": "m", "kind": "map", "over": "$t.value", "do": do}]
    handle = await begin(plan={"nodes": nodes, "answer": "$m"}, budget={"tokens": 9_000}, on_failure="partial")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", ["ok"] * 3)


async def test_what_cancelled_calls_have_used_is_in_the_report(begin: Start, model_server: ModelServer) -> None:
    """Of each pair the fast call decides the join, and the slow one is cancelled before it has written anything."""
    model_server.on("Slow", Reply("never " * 50, first_token=20.0, usage=(400, 60)))
    model_server.on("Fast", Reply("ok", first_token=1.0, usage=(400, 60)))
    text = "word " * 400
    nodes: list[dict[str, Any]] = []
    for number in range(6):
        for speed in ("Slow", "Fast"):
            prompt = f"{speed} {number}: {text}"
            nodes.append({"id": f"{speed}{number}", "kind": "llm", "model": "openai:test-model", "prompt": prompt})
        join = {"id": f"j{number}", "kind": "join", "policy": "first", "inputs": [f"Slow{number}", f"Fast{number}"]}
        nodes.append(join)
    handle = await begin(
        plan={"nodes": nodes, "answer": [f"$j{number}" for number in range(6)]}, budget={"tokens": 1_000_000}
    )
    report = await handle.result()
    assert report["status"] == "done"
    used = report["usage"]["input_tokens"] + report["usage"]["output_tokens"]
    saw = 6 * 460 + 6 * 400
    assert saw * 0.9 <= used <= saw * 1.1
    assert report["usage"]["calls"] == 12


RACES = """
async def race(n: int):
    text = "word " * 100
    slow = task(llm, f"Slow {n}: {text}", model="openai:test-model")
    return await first([slow, task(llm, f"Fast {n}: {text}", model="openai:test-model")])


async def main():
    return await parallel([task(race, n=n) for n in range(20)])
"""


async def test_calls_that_are_cancelled_while_they_write_cost_what_the_server_wrote(
    begin: Start, model_server: ModelServer
) -> None:
    """Of twenty pairs the fast call wins. The server tells no usage of the slow ones, which have written a part."""
    model_server.on("Slow", Reply("never " * 2_000, rate=50.0))
    model_server.on("Fast", Reply("never " * 40, first_token=2.0))
    nodes = [{"id": "p", "kind": "program", "script": RACES}]
    handle = await begin(plan={"nodes": nodes, "answer": "$p"}, budget={"tokens": 1_000_000})
    report = await handle.result()
    assert report["status"] == "done"
    used = report["usage"]["input_tokens"] + report["usage"]["output_tokens"]
    saw = sum(len(asked.text.split()) for asked in model_server.asked) + sum(model_server.streamed)
    assert saw * 0.9 <= used <= saw * 1.1, (used, saw, model_server.streamed)
    assert report["usage"]["calls"] == len(model_server.asked) == 40
    calls = [node for node in report["nodes"] if node["kind"] == "llm"]
    assert sum(node["tokens"] for node in calls) == used, (
        "each call shows what it has cost, also one that was cancelled"
    )


@pytest.mark.parametrize("fault", ["not json", "cut", "hang"])
async def test_an_attempt_whose_reply_cannot_be_read_is_paid(
    begin: Start, model_server: ModelServer, fault: Any
) -> None:
    model_server.on("Bad", Reply("words " * 20, fault=fault, usage=(1_000, 100)))
    node: dict[str, Any] = {"id": "a", "kind": "llm", "model": "openai:test-model", "prompt": f"Bad {'word ' * 900}"}
    node |= {"retry": {"attempts": 1}, "timeout": "3s"}
    handle = await begin(plan={"nodes": [node], "answer": "$a"}, on_failure="partial")
    report = await handle.result()
    assert report["status"] == "partial"
    assert report["usage"]["input_tokens"] >= 900
    assert report["usage"]["calls"] == 1


def team(model_server: ModelServer, count: int) -> dict[str, Any]:
    """A map of sub-agents, each with a planner's call of 1,000 tokens."""
    model_server.models = ("gpt-5.5",)
    planned = json.dumps({"nodes": [call("n1", args={"value": 1})], "answer": "$n1.value"})
    model_server.on("You plan work", Reply(planned, usage=(900, 100)))
    do = {"kind": "agent", "goal": "Visit $item.", "tools": ["nap"]}
    cities = {"type": "array", "default": [f"City {number}" for number in range(count)]}
    nodes = [{"id": "team", "kind": "map", "over": "$input.cities", "do": do}]
    return {"inputs": {"cities": cities}, "nodes": nodes, "answer": "$team"}


@pytest.mark.parametrize("budget", [{"tokens": 3_000}, {"calls": 3}, {"cost_usd": 0.03}])
async def test_sub_agents_together_spend_no_more_than_the_budget(
    begin: Start, model_server: ModelServer, budget: dict[str, Any]
) -> None:
    plan = team(model_server, 12)
    handle = await begin(plan=plan, model="openai:gpt-5.5", budget=budget, on_failure="partial")
    report = await handle.result()
    assert report["status"] == "partial"
    assert 1 <= len(model_server.asked) <= 4, "one call too many at most"


@pytest.mark.parametrize("budget", [{"tokens": 1_000}, {"calls": 1}, {"cost_usd": 0.0075}])
async def test_one_sub_agent_after_the_other_spends_no_more_than_the_budget(
    begin: Start, model_server: ModelServer, budget: dict[str, Any]
) -> None:
    team(model_server, 0)
    nodes: list[dict[str, Any]] = []
    for number in range(5):
        goal = f"Visit city {number}"
        if nodes:
            goal += f" after $a{number - 1}"
        nodes.append({"id": f"a{number}", "kind": "agent", "goal": goal, "tools": ["nap"]})
    plan = {"nodes": nodes, "answer": "$a4"}
    handle = await begin(plan=plan, model="openai:gpt-5.5", budget=budget, on_failure="partial")
    report = await handle.result()
    assert (report["status"], len(model_server.asked)) == ("partial", 1), "the next one is not asked"


async def test_a_script_whose_sub_agents_have_spent_the_budget_waits(begin: Start, model_server: ModelServer) -> None:
    team(model_server, 0)
    script = """
async def main():
    found = []
    for number in range(5):
        found.append(await agent(f"Visit city {number}", tools=["nap"]))
    return found
"""
    plan = {"nodes": [{"id": "main", "kind": "program", "script": script}], "answer": "$main"}
    handle = await begin(plan=plan, budget={"calls": 2})
    await until(handle, lambda view: view["status"] == "blocked")
    assert len(model_server.asked) == 2
    await insist(handle, "raise_budget", {"calls": 5})
    report = await handle.result()
    assert (report["answer"], len(model_server.asked)) == ([1] * 5, 5)


async def test_a_planner_corrects_its_plan_only_as_far_as_the_budget_goes(
    begin: Start, model_server: ModelServer
) -> None:
    model_server.on("You plan work", Reply('1. unknown("tool")\n2. answer($1)', usage=(900, 100)))
    with pytest.raises(WorkflowFailureError) as failed:
        await (await begin(goal="Visit Rome", budget={"calls": 1})).result()
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == "PlannerFailed"
    assert "The budget has no calls left for a correction." in failed.value.cause.message
    assert len(model_server.asked) == 1


async def test_programs_of_items_that_call_no_model_run_when_the_budget_is_spent(
    begin: Start, model_server: ModelServer
) -> None:
    model_server.on("Slow", Reply("ok", usage=(450, 150)))
    script = "async def main(item):\n    return (await nap(value=item))['value']\n"
    do = {"kind": "program", "script": script, "arguments": {"item": "$item"}}
    nodes = [
        {"id": "asks", "kind": "llm", "model": "openai:test-model", "prompt": "Slow"},
        {"id": "m", "kind": "map", "over": "$input.numbers", "do": do, "needs": ["asks"]},
    ]
    inputs = {"numbers": {"type": "array", "default": [1, 2, 3]}}
    handle = await begin(plan={"inputs": inputs, "nodes": nodes, "answer": "$m"}, budget={"tokens": 550})
    assert (await handle.result())["answer"] == [1, 2, 3]
