"""Updates and queries of every wrong kind: refused with a sentence, and the run is none the worse."""

from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any

import pytest
from doubles.events import failed_tasks
from doubles.runs import approve, call, until
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    RPCError,
    WithStartWorkflowOperation,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import RawValue, WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError

from sennit.workflows.messages import queues
from sennit.workflows.messages.updates import UPDATES

Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]

OF_NODE = [update.name for update in UPDATES if "node" in update.model_fields]
OF_A_NODE = '{"node": "n7"'
BEGINNINGS = {"edit_program": '{"script": "async def main()'}
"""How the example of an update begins, where its node has a default."""

WAITING = {
    "nodes": [
        {"id": "g", "kind": "gate", "question": "How many?", "schema": {"type": "integer"}},
        {"id": "w", "kind": "tool", "tool": "note", "args": {"text": "x"}},
        call("ok", args={"value": 1}),
        call("bad", "fail"),
        call("behind", needs=["bad", "g"]),
    ],
    "answer": ["$ok", "$behind", "$w"],
}
NO_JSON = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b'{"node": '))
UNKNOWN_ENCODING = RawValue(Payload(metadata={"encoding": b"json/protobuf"}, data=b'{"node": "a"}'))
DEEP = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b"[" * 300 + b"]" * 300))


async def refusal(handle: WorkflowHandle[Any, Any], name: str, *args: Any) -> str:
    """Send an update that must be refused; return the sentence."""
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await handle.execute_update(name, args=args)
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "InvalidUpdate"
    return cause.message


@pytest.fixture
async def waiting(start: Start) -> WorkflowHandle[Any, Any]:
    """A run with a node in every state that waits for a person."""
    handle = await start(plan=WAITING)
    await until(handle, lambda view: view["status"] == "blocked")
    return handle


async def test_an_update_of_a_wrong_shape_is_refused_with_an_example(waiting: WorkflowHandle[Any, Any]) -> None:
    for name in OF_NODE:
        example = f"for example {BEGINNINGS.get(name, OF_A_NODE)}"
        shapes: dict[str, Any] = {"nothing": None, "a list": [], "text": "x", "a number": 7, "true or false": True}
        for shape, wrong in shapes.items():
            message = await refusal(waiting, name, wrong)
            assert message.startswith(f"{name} takes one JSON object, not {shape}; {example}")
        assert (await refusal(waiting, name)).startswith(f"{name} takes one JSON object, not nothing; {example}")
        # Without a node: what blocks the run, the plan that waits, and `main`.
        needed = dict.fromkeys(("retry_node", "approve", "reject"), "") | {"edit_program": "; `script` is missing"}
        typo = await refusal(waiting, name, {"nod": "n7"})
        assert typo.startswith(f"{name}: unknown field `nod`")
        assert needed.get(name, "; `node` is missing") in typo
        assert example in typo
        assert f"{name}: `node`: " in await refusal(waiting, name, {"node": 7})
        assert "unknown field `colour`" in await refusal(waiting, name, {"node": "ok", "colour": "red"})
    assert (await refusal(waiting, "finish", [])) == "finish takes one JSON object, not a list; for example {}"


async def test_an_update_with_several_inputs_is_refused(waiting: WorkflowHandle[Any, Any]) -> None:
    several: list[tuple[Any, ...]] = [({},), (None,), ({}, {}), (1, 2, 3)]
    for more, name in product(several, (*OF_NODE, "finish")):
        message = await refusal(waiting, name, {"node": "ok"}, *more)
        assert message.startswith(f"{name} takes one JSON object, not {1 + len(more)} inputs; for example")


async def test_an_update_that_cannot_be_read_is_refused(waiting: WorkflowHandle[Any, Any]) -> None:
    for wrong in (NO_JSON, UNKNOWN_ENCODING, DEEP):
        for name in (*OF_NODE, "finish"):
            message = await refusal(waiting, name, wrong)
            assert message.startswith(f"{name} takes one JSON object, not ")
        assert (await waiting.query("plan", wrong))["status"] == "blocked"
        assert "problem" in await waiting.query("node", wrong)


async def test_an_update_that_does_not_fit_the_run_says_why(waiting: WorkflowHandle[Any, Any]) -> None:
    unfit: list[tuple[str, Any, str]] = [
        ("retry_node", {"node": "zz"}, "there is no node `zz`; `sennit status` and the query `plan` list them"),
        ("retry_node", {"node": "ok[0]"}, "there is no node `ok[0]`"),
        ("retry_node", {"node": "ok\n"}, "`node`: "),
        ("retry_node", {"node": "x" * 100_000}, "`node`: "),
        ("retry_node", {"node": "behind"}, "`behind` is pending; only a node that has ended can be run again"),
        ("retry_node", {"node": "g"}, "`g` is waiting; only a node that has ended can be run again"),
        ("retry_node", {"node": "ok", "repeat_effect": "perhaps"}, "`repeat_effect`: "),
        ("skip_node", {"node": "ok"}, "`ok` is already succeeded"),
        ("answer", {"node": "g"}, "`value` is missing"),
        ("answer", {"node": "g", "value": "many"}, "integer, not"),
        ("answer", {"node": "g", "value": None}, "integer, not"),
        ("answer", {"node": "ok", "value": 1}, "`ok` is succeeded; only a gate"),
        ("answer", {"node": "w", "value": 1}, "`w` is no gate; approve or reject"),
        ("approve", {"node": "g"}, "`g` is a gate: use answer"),
        ("reject", {"node": "g"}, "`g` is a gate: use answer"),
        ("approve", {"node": "bad"}, "`bad` is failed; it does not wait for anybody"),
        ("approve", {"node": "w"}, "`w` is about a write; name what you have read of it with `digest`"),
        ("reject", {"node": "w", "reason": "x" * 501}, "`reason`: "),
        ("finish", {"node": "g"}, "unknown field `node`"),
    ]
    for name, given, why in unfit:
        message = await refusal(waiting, name, given)
        assert why in message
        assert len(message) < 1500


async def test_an_answer_that_is_too_big_is_refused_with_its_size(start: Start) -> None:
    handle = await start(plan={"nodes": [{"id": "g", "kind": "gate", "question": "?"}]})
    await until(handle, lambda view: view["status"] == "blocked")
    for size in (65_537, 900_000):
        message = await refusal(handle, "answer", {"node": "g", "value": "x" * size})
        assert message == f"the answer has {size} characters; at most 65536"
    with pytest.raises(WorkflowUpdateFailedError) as failed:  # too large for a rejection, which repeats the update
        await handle.execute_update("answer", {"node": "g", "value": "x" * 1_900_000})
    assert "wasn't processed" in str(failed.value.cause)
    await handle.execute_update("answer", {"node": "g", "value": "x" * 60_000})
    assert (await handle.result())["answer"] == "x" * 60_000


async def test_an_unknown_update_is_refused_with_the_names_there_are(waiting: WorkflowHandle[Any, Any]) -> None:
    for name in ("edit_node", "retry", "Retry_node", "__init__", "x" * 500):
        message = await refusal(waiting, name, {"node": "ok"})
        assert message.endswith(
            "there are retry_node, skip_node, answer, approve, reject, edit_plan, edit_program, raise_budget, finish"
        )
    with pytest.raises(RPCError):
        await waiting.execute_update("", {"node": "ok"})


async def test_after_every_refusal_the_run_goes_on_to_its_end(waiting: WorkflowHandle[Any, Any]) -> None:
    unfit: list[Any] = [{"nod": "n7"}, {}, None, [], "x", 7, {"node": "zz"}]
    for wrong in unfit:
        for name in (*OF_NODE, "edit_node"):
            await refusal(waiting, name, wrong)
    await waiting.execute_update("answer", {"node": "g", "value": 2})
    await approve(waiting, "w")
    await waiting.execute_update("skip_node", {"node": "bad"})
    report = await waiting.result()
    assert (report["status"], report["answer"]) == ("partial", [{"value": 1}, None, {"value": 1}])


async def test_a_finished_run_refuses_updates_and_answers_queries(start: Start) -> None:
    handle = await start(plan={"nodes": [call("a", args={"value": 1})]})
    await handle.result()
    with pytest.raises(RPCError, match="already completed"):
        await handle.execute_update("retry_node", {"node": "a"})
    view = await handle.query("plan")
    assert (view["status"], view["phase"], view["nodes"][0]["status"]) == ("done", "ended", "succeeded")


async def test_an_update_sent_with_the_start_meets_a_run_without_a_plan(client: Client, workers: None) -> None:
    """It comes in the run's first task, before any activity has ended."""
    begin: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
        "AgentRun",
        {"plan": {"nodes": [call("a", args={"value": 1})]}},
        id="agent-test-with-start",
        task_queue=queues.WORKFLOW,
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
    )
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await client.execute_update_with_start_workflow("retry_node", {"node": "a"}, start_workflow_operation=begin)
    assert "the run is still preparing" in str(refused.value.cause)
    handle: WorkflowHandle[Any, Any] = await begin.workflow_handle()
    assert (await handle.result())["answer"] == {"value": 1}
    assert await failed_tasks(handle) == []


ODD: list[Any] = [
    None,
    [],
    {},
    "x",
    7,
    {"from": "x", "limit": []},
    {"from": -5, "limit": 10**9},
    {"node": 3},
    {"node": "zz"},
]


async def test_a_query_with_any_payload_is_answered(waiting: WorkflowHandle[Any, Any]) -> None:
    payloads: list[list[Any]] = [[], *([odd] for odd in ODD), [{}, {}], [1, 2, 3, 4]]
    for given in payloads:
        view = await waiting.query("plan", args=given)
        assert [node["id"] for node in view["nodes"]] == ["g", "w", "ok", "bad", "behind"]
        assert "problem" in await waiting.query("node", args=given)
        assert (await waiting.query("help", args=given))["updates"].keys() == {update.name for update in UPDATES}
    assert (await waiting.query("node", {"node": "ok"}))["status"] == "succeeded"
    assert (await waiting.query("node", "ok"))["status"] == "succeeded"
    with pytest.raises(WorkflowQueryFailedError, match=r"known queries: .*help node outputs plan"):
        await waiting.query("plans")


async def test_a_query_pages_through_the_nodes(start: Start) -> None:
    handle = await start(plan={"nodes": [call(f"n{index}") for index in range(12)], "answer": "$n0"})
    await handle.result()
    seen: list[str] = []
    following: int | None = 0
    while following is not None:
        page = await handle.query("plan", {"from": following, "limit": 5})
        assert len(page["nodes"]) <= 5
        seen += [node["id"] for node in page["nodes"]]
        following = page["next"]
    assert seen == [f"n{index}" for index in range(12)]


async def test_queries_of_a_run_with_wrong_input_are_answered(start: Start) -> None:
    handle = await start(["wrong"])
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert (await handle.query("plan"))["nodes"] == []
    assert await handle.query("node", {"node": "a"}) == {"problem": "there is no plan yet"}
