"""Somebody completes an activity of a run by hand, with what is no result of it: a node fails, with a sentence.

No workflow task fails for it: the fixture that starts runs sees to that.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from doubles.local_workers import Start, serving, starting
from doubles.runs import call, insist, until
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from sennit.activities.definitions import Activities
from sennit.workflows.messages.contracts import CALLS
from sennit.workflows.run import drain

pytestmark = pytest.mark.server
SENTENCE = "InvalidResult: its activity was completed with something that is not its result, as if by hand"
RUBBISH = [
    pytest.param("junk", id="text"),
    pytest.param(None, id="null"),
    pytest.param({"ref": "nope"}, id="other fields"),
    pytest.param({"nodes": []}, id="no reply"),
    pytest.param({"nodes": [{}]}, id="an empty reply"),
    pytest.param({}, id="nothing"),
]


class Hand(ClientInterceptor, Interceptor):
    """Gives `result` in the place of activities of the kind `kind`."""

    def __init__(self) -> None:
        self.kind = ""
        self.result: Any = None

    def intercept_activity(self, following: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        hand = self

        class Inbound(ActivityInboundInterceptor):
            async def execute_activity(self, work: ExecuteActivityInput) -> Any:
                info = activity.info()
                if info.activity_type == hand.kind and info.activity_id != "ok":
                    return hand.result
                return await super().execute_activity(work)

        return Inbound(following)


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
async def begin(client: Client, host: Activities, hand: Hand) -> AsyncIterator[Start]:
    """Start a run on workers some of whose activities end by hand."""
    config = client.config()
    config["interceptors"] = [hand]
    by_hand = Client(**config)
    async with serving(by_hand, host), starting(by_hand) as start:
        yield start


SCRIPT = 'async def main():\n    return (await nap(value=1))["value"]\n'
NODES: dict[str, list[dict[str, Any]]] = {
    "tool": [call("n")],
    "llm": [{"id": "n", "kind": "llm", "prompt": "Say something"}],
    "join": [
        call("a"),
        {"id": "n", "kind": "join", "inputs": ["a"]},
        call("b", when={"ref": "$n[0].nothing", "op": "exists"}),  # only the whole value can tell
    ],
    "map": [
        call("list", "count", args={"count": 2}),
        {"id": "n", "kind": "map", "over": "$list.items", "do": {"kind": "tool", "tool": "nap"}},
    ],
    "gate": [{"id": "n", "kind": "gate", "question": "Which?"}],
    "program": [{"id": "n", "kind": "program", "script": SCRIPT}],
    "prepare_agent": [{"id": "n", "kind": "agent", "goal": "Look"}],
    "agent": [{"id": "n", "kind": "agent", "goal": "Look"}],
}
RUNS: dict[str, dict[str, Any]] = {
    "prepare": {"plan": {"nodes": [call("a")]}},
    "plan": {"goal": "Look"},
    "check_plan": {"goal": "Look"},
}
CHECKS = ("check_replan", "check_tool_calls", "check_script", "check_answer")
OTHERWISE = ("write", "group", "load_plan", "conclude", *CHECKS)


def test_no_kind_of_activity_is_forgotten() -> None:
    assert {each.name for each in CALLS} == {*NODES, *RUNS, *OTHERWISE}


@pytest.mark.parametrize("result", RUBBISH)
@pytest.mark.parametrize("kind", NODES)
async def test_rubbish_in_the_place_of_a_node(begin: Start, hand: Hand, kind: str, result: Any) -> None:
    hand.kind, hand.result = kind, result
    plan = {"nodes": [call("ok", args={"value": 7}), *NODES[kind]], "answer": ["$ok.value", "$n"]}
    handle = await begin(plan=plan, on_failure="partial")
    if kind == "gate":
        await insist(handle, "answer", {"node": "n", "value": "this"})
    report = await handle.result()
    errors = {line["id"]: line["error"] for line in report["nodes"]}
    assert (report["status"], report["answer"], errors["n"]) == ("partial", [7, None], SENTENCE)


@pytest.mark.parametrize("result", RUBBISH)
async def test_rubbish_in_the_place_of_a_write(begin: Start, hand: Hand, result: Any) -> None:
    """Nobody knows whether it was made, so it is in doubt."""
    hand.kind, hand.result = "write", result
    write = call("n", "post", args={"text": "paid"})
    report = await (await begin(plan={"nodes": [write]}, approval="never", on_failure="partial")).result()
    assert report["nodes"][0]["error"].startswith("UnknownOutcome: its activity was completed with something")
    assert (report["status"], report["writes"]) == ("partial", [{"node": "n", "status": "unknown"}])


async def test_a_page_that_is_none_in_the_place_of_a_step_of_a_program(begin: Start, hand: Hand) -> None:
    page = {"plan": "x", "specs": "junk", "after": "n"}
    hand.kind, hand.result = "program", {"nodes": [{"more": "program", "page": page}]}
    handle = await begin(plan={"nodes": NODES["program"], "answer": "$n"}, on_failure="partial")
    report = await handle.result()
    assert report["nodes"][0]["error"] == SENTENCE


@pytest.mark.parametrize("result", RUBBISH)
@pytest.mark.parametrize("kind", RUNS)
async def test_rubbish_in_the_place_of_what_the_run_needs(begin: Start, hand: Hand, kind: str, result: Any) -> None:
    hand.kind, hand.result = kind, result
    with pytest.raises(WorkflowFailureError) as failure:
        await (await begin(RUNS[kind])).result()
    assert str(failure.value.cause) == SENTENCE


@pytest.mark.parametrize("result", RUBBISH)
async def test_rubbish_in_the_place_of_a_group(begin: Start, hand: Hand, result: Any) -> None:
    """Its nodes start again, each alone."""
    hand.kind, hand.result = "group", result
    nodes = [call("a", args={"value": 1}), call("b", args={"value": "$a.value"})]
    report = await (await begin(plan={"nodes": nodes, "fuse": "on"})).result()
    assert (report["status"], report["answer"]) == ("done", {"value": 1})


@pytest.mark.parametrize("result", RUBBISH)
async def test_rubbish_in_the_place_of_the_answer(begin: Start, hand: Hand, result: Any) -> None:
    hand.kind, hand.result = "conclude", result
    report = await (await begin(plan={"nodes": [call("a"), call("b")], "answer": ["$a", "$b"]})).result()
    assert report["status"] == "partial"
    assert SENTENCE in str(report)


@pytest.mark.parametrize("result", [*RUBBISH, pytest.param({"plan": "x", "execution_plan": "junk"}, id="no plan")])
async def test_rubbish_in_the_place_of_a_plan_to_go_on_with(
    begin: Start, hand: Hand, result: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (40, drain.SOFT_BOUNDS[1], 5))
    hand.kind, hand.result = "load_plan", result
    nodes = [call(f"n{index}", args={"value": f"$n{index - 1}.value" if index else 1}) for index in range(12)]
    with pytest.raises(WorkflowFailureError) as failure:
        await (await begin(plan={"nodes": nodes, "fuse": "off"})).result()
    assert str(failure.value.cause) == SENTENCE


async def test_the_client_of_the_server_completes_a_call(client: Client, begin: Start) -> None:
    plan = {"nodes": [call("n", args={"seconds": 60})], "answer": "$n"}
    handle = await begin(plan=plan, on_failure="partial")
    await until(handle, lambda view: any(line["status"] == "running" for line in view["nodes"]))
    await client.get_async_activity_handle(workflow_id=handle.id, run_id=None, activity_id="n").complete("junk")
    report = await handle.result()
    assert report["nodes"][0]["error"] == SENTENCE
