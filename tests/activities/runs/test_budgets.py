"""What the operator lets a run spend: defaults for what it does not name, ceilings for what it does, by tenant."""

from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import serving
from doubles.runs import until
from temporalio.client import Client, WorkflowUpdateFailedError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.runs.budgets import BudgetRule, tenant_limits
from sennit.activities.toolbox import Registry
from sennit.workflows.messages import queues
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.plan.language.limits import Limits

DEFAULTS = tenant_limits("tokens=1000,calls=9; acme: tokens=5000")
CEILINGS = tenant_limits("tokens=2000,cost_usd=2")
RULE = BudgetRule(DEFAULTS, CEILINGS)


def request(**fields: Any) -> RunRequest:
    return RunRequest.model_validate({"goal": "g", **fields})


@pytest.mark.parametrize(
    ("fields", "limits", "bounds"),
    [
        ({}, {"tokens": 1000, "calls": 9, "cost_usd": 2.0}, ["tokens 1,000", "calls 9", "cost_usd 2.0"]),
        (
            {"tenant": "acme"},
            {"tokens": 2000, "calls": 9, "cost_usd": 2.0},
            ["tokens 2,000", "calls 9", "cost_usd 2.0"],
        ),
        (
            {"budget": {"tokens": 10, "cost_usd": 9}},
            {"tokens": 10, "calls": 9, "cost_usd": 2.0},
            ["calls 9", "cost_usd 2.0"],
        ),
        ({"budget": {"tokens": 10, "calls": 1, "cost_usd": 1}}, {"tokens": 10, "calls": 1, "cost_usd": 1.0}, []),
    ],
)
def test_a_run_is_bounded_by_what_it_names_or_else_by_its_operator(
    fields: dict[str, Any], limits: dict[str, Any], bounds: list[str]
) -> None:
    budget, sentences = RULE.of(request(**fields))
    assert budget == Limits.model_validate(limits)
    assert sorted(sentence.partition(" at most")[0] for sentence in sentences) == sorted(f"budget: {b}" for b in bounds)


def test_a_tenant_s_own_ceiling_leaves_everybody_s_other_ones() -> None:
    rule = BudgetRule({}, tenant_limits("cost_usd=2,tokens=100; acme: tokens=9000"))
    budget, _ = rule.of(request(tenant="acme", budget={"cost_usd": 900, "tokens": 8000}))
    assert budget == Limits(cost_usd=2.0, tokens=8000)


def test_each_sentence_names_the_variable() -> None:
    _, sentences = BudgetRule(tenant_limits("time=10m"), tenant_limits("nodes=7")).of(request())
    assert sentences == (
        "budget: nodes 7 at most, by SENNIT_BUDGET_MAX of the workers",
        "budget: time 10m at most, by SENNIT_BUDGET_DEFAULT of the workers",
    )


def test_a_sub_agent_has_its_share_of_a_budget_that_is_bounded_already() -> None:
    assert RULE.of(request(depth=1)) == (None, ())


@pytest.mark.parametrize(
    "text", ["tokens", "tokens=x", "tokens=1,tokens=2", "coins=3", ": tokens=1", "a: tokens=1; a: tokens=2", "tokens=0"]
)
def test_what_is_no_limit_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="acme: cost_usd=50"):
        tenant_limits(text)


async def test_a_run_without_a_budget_stops_at_the_default_and_says_by_what(
    client: Client, artifacts: Path, cache: Path
) -> None:
    paths = WorkerPaths(artifacts, cache, None, (Path("/"),))
    host = Activities(paths, Registry([]), identity="tests", budgets=BudgetRule(tenant_limits("nodes=2")))
    nodes = [{"id": f"n{index}", "kind": "llm", "prompt": "Which is longer?"} for index in range(5)]
    plan = {"nodes": nodes, "answer": "$n4", "on_failure": "partial"}
    async with serving(client, host):
        run = client.execute_workflow(
            "AgentRun", {"goal": "g", "plan": plan}, id="agent-bounded", task_queue=queues.WORKFLOW
        )
        result = await run
    assert "budget: nodes 2 at most, by SENNIT_BUDGET_DEFAULT of the workers" in result["warnings"]
    started = [node for node in result["nodes"] if node["status"] in ("done", "succeeded", "failed")]
    assert len(started) <= 2


async def test_a_person_raises_a_budget_to_its_ceiling_and_no_further(
    client: Client, artifacts: Path, cache: Path
) -> None:
    paths = WorkerPaths(artifacts, cache, None, (Path("/"),))
    rule = BudgetRule(tenant_limits("nodes=1"), tenant_limits("nodes=2,tokens=1000000"))
    host = Activities(paths, Registry([]), identity="tests", budgets=rule)
    nodes = [{"id": f"n{index}", "kind": "llm", "prompt": "Which is longer?"} for index in range(5)]
    plan = {"nodes": nodes, "answer": "$n4"}
    async with serving(client, host):
        run = await client.start_workflow(
            "AgentRun", {"goal": "g", "plan": plan}, id="agent-raised", task_queue=queues.WORKFLOW
        )
        blocked = await until(run, lambda view: view["status"] == "blocked")
        assert blocked["blocked"][0]["command"] == "sennit update agent-raised raise_budget nodes=2"
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await run.execute_update("raise_budget", {"nodes": 3})
        assert "nodes may be 2 at most, by SENNIT_BUDGET_MAX" in str(refused.value.cause)

        await run.execute_update("raise_budget", {"nodes": 2})
        spent = await until(run, lambda view: "allows no more" in str(view["blocked"]))
        assert spent["blocked"][0]["command"] == "sennit update agent-raised finish"
        await run.execute_update("finish")
        result = await run.result()
    assert result["status"] == "partial"
