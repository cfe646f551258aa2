"""What starts a run: every wrong input ends it at once with a sentence, whatever it is, and never wedges it."""

import base64
import json
import uuid
import zlib
from typing import Any

import pytest
from doubles.events import activities, failed_tasks
from doubles.local_workers import Handle, Start
from doubles.runs import call
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from sennit.workflows.messages import queues

EXAMPLE = 'for example {"goal": "Which is longer, the Nile or the Amazon?"}'
ONE = {"nodes": [call("a", args={"value": 1})]}


async def failure(handle: Handle) -> ApplicationError:
    """Return the error that a run ended with."""
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert isinstance(failed.value.cause, ApplicationError)
    return failed.value.cause


async def begin(client: Client, *args: Any) -> Handle:
    """Start a run with any number of inputs."""
    return await client.start_workflow(
        "AgentRun", args=args, id=f"agent-test-{uuid.uuid4().hex[:8]}", task_queue=queues.WORKFLOW
    )


def raw(body: bytes, encoding: bytes = b"json/plain") -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding}, data=body))


WRONG: list[tuple[tuple[Any, ...], str]] = [
    ((), "a run takes one JSON object, not nothing; "),
    (({"plan": ONE}, {}), "a run takes one JSON object, not 2 inputs; "),
    ((raw(b'{"goal": '),), "a run takes one JSON object, not something that is no JSON or nested too deep; "),
    ((raw(b'{"goal": "\\ud800"}'),), "a run takes one JSON object, not something that is no JSON"),
    ((raw(b'{"goal": "x"}', b"json/protobuf"),), "a run takes one JSON object, not something that is no JSON"),
    ((raw(b'{"plan": ' + b"[" * 300 + b"]" * 300 + b"}"),), "nested too deep; "),
    ((raw(b'{"goal": "x"}', b"binary/plain"),), "a run takes one JSON object, not bytes; "),
    (({"plan": ONE, "window": 0},), "`window`: "),
    (({"plan": ONE, "carry": {"home": "x"}},), "`carry.run_context` is missing"),
    (({"goal": "x", **{f"wrong{index}": 1 for index in range(2000)}},), "unknown field `wrong"),
]


async def test_a_wrong_input_is_refused_for_what_is_wrong_with_it(client: Client, workers: None) -> None:
    for inputs, why in WRONG:
        handle = await begin(client, *inputs)
        error = await failure(handle)
        assert (error.type, error.non_retryable) == ("InvalidRequest", True), why
        assert why in error.message
        assert len(error.message) < 1500, why
        if why.endswith("; "):
            assert error.message.endswith(EXAMPLE)
        assert (await failed_tasks(handle), await activities(handle)) == ([], []), why


async def test_a_request_of_nearly_two_mebibytes_is_refused_with_its_size(client: Client, workers: None) -> None:
    for size in (1_992_294, 2_097_000):
        plan = {"nodes": [call("a", args={"value": "x" * size})]}
        handle = await begin(client, {"plan": plan})
        error = await failure(handle)
        assert error.type == "InvalidRequest"
        assert error.message.startswith(f"the request has {str(size)[0]},{str(size)[1:4]},")
        assert "`map`" in error.message
        assert await failed_tasks(handle) == []


async def test_a_request_of_a_mebibyte_runs(start: Start) -> None:
    handle = await start(plan={"nodes": [call("a", args={"value": "x" * 1_048_576}), call("b", needs=["a"])]})
    assert (await handle.result())["status"] == "done"


PROBLEMS = [
    ({"nodes": [call("a", "read_output", args={"node": "x"})]}, "there is no tool `read_output`"),
    ({"nodes": [call("a", "nosuch")]}, "nosuch"),
    ({}, "nodes"),
]


async def test_a_wrong_plan_ends_the_run_with_a_list_of_its_problems(start: Start) -> None:
    for plan, word in PROBLEMS:
        error = await failure(await start(plan=plan))
        assert (error.type, error.non_retryable) == ("InvalidPlan", True), word
        (problems,) = error.details
        assert isinstance(problems, list)
        assert error.message == "\n".join(problems)
        assert any(word in problem for problem in problems), problems


async def test_a_plan_with_ten_thousand_problems_names_forty_of_them(start: Start) -> None:
    nodes = [call(f"n{index}", "nosuch") for index in range(2_000)]
    error = await failure(await start(plan={"nodes": nodes, "answer": "$n0"}))
    assert len(error.details[0]) == 41
    assert error.details[0][-1].startswith("... and ")


def packed(body: bytes) -> str:
    return base64.b64encode(zlib.compress(body, 9)).decode()


NO_PACKED_PLAN = {
    "empty": "",
    "surrogate": packed(b'{"nodes": [{"id": "a", "kind": "tool", "tool": "nap", "args": {"value": "\\ud800"}}]}'),
    "infinite": packed(b'{"nodes": [{"id": "a", "kind": "tool", "tool": "nap", "args": {"value": 1e999}}]}'),
    "torn": packed(json.dumps(ONE).encode())[:-8],
}


async def test_a_packed_plan_that_is_none_is_an_invalid_plan(start: Start) -> None:
    bomb = packed(b" " * 100_000_000)
    for kind, text in [*NO_PACKED_PLAN.items(), ("bomb", bomb)]:
        handle = await start(plan_packed=text)
        error = await failure(handle)
        assert error.type == "InvalidPlan", kind
        assert len(error.message) < 1000, kind
        assert len(await activities(handle)) == 1, kind


NOT_SERVED: list[tuple[dict[str, Any], str, str]] = [
    ({"plan": ONE, "tools": ["nosuch"]}, "InvalidPlan", "unknown tool `nosuch`; known: "),
    ({"plan": ONE, "tools": ["count"]}, "InvalidPlan", "nap"),
    ({"plan": ONE, "inputs": {"city": "Rome"}}, "InvalidPlan", "city"),
    ({"plan": {**ONE, "inputs": {"city": {}}}}, "InvalidPlan", "city"),
    ({"plan": ONE, "docs": "/no/such/folder"}, "DocsNotFound", "/no/such/folder"),
    ({"goal": "x", "docs": "relative"}, "DocsNotFound", "relative"),
    ({"goal": "\U0001f409" * 8_000}, "OfflineCannot", "the goal has no word to search for"),
]


async def test_what_the_worker_cannot_serve_is_named(start: Start) -> None:
    for request, kind, why in NOT_SERVED:
        error = await failure(await start(request))
        assert error.type == kind, why
        assert why in error.message


ODD_GOALS = ["\x00\x1b[31m", "$a ${b.c} $$ $1 `**|<script>alert(1)</script>"]


async def test_what_the_rules_cannot_tell_ends_partial(start: Start, docs: Any) -> None:
    for goal in ODD_GOALS:
        report = await (await start({"goal": goal, "docs": str(docs)})).result()
        assert report["status"] == "partial", goal
        assert "I cannot tell that" in report["answer"], goal
        handle = await start({"goal": goal, "plan": ONE})
        assert (await handle.result())["status"] == "done", goal
        assert (await handle.query("plan"))["goal"] == goal[:2000]
