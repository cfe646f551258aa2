"""Somebody completes an activity of a run by hand, with what is no result of it: a node fails, with a sentence.

No workflow task fails for it: the fixture that starts runs sees to that.
"""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from doubles.local_workers import Start, serving, starting
from doubles.resets import reset, scheduled
from doubles.runs import call, insist, until
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from sennit.activities.definitions import Activities
from sennit.workflows.messages.contracts import CALLS
from sennit.workflows.run import drain

SENTENCE = "InvalidResult: its activity was completed with something that is not its result, as if by hand"
RUBBISH: list[Any] = ["junk", None, {"ref": "nope"}, {"nodes": []}, {"nodes": [{}]}, {}]
OTHERS = RUBBISH[-2:]
"""One that is no message at all, and one that is a message which says nothing, or lacks fields."""


class Hand(ClientInterceptor, Interceptor):
    """Gives `result` in the place of activities of the kind `kind`, and the rubbish of place 3 to a node `tool_3`."""

    def __init__(self) -> None:
        self.kind = ""
        self.result: Any = None

    def intercept_activity(self, following: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        hand = self

        class Inbound(ActivityInboundInterceptor):
            async def execute_activity(self, work: ExecuteActivityInput) -> Any:
                info = activity.info()
                numbered = re.match(r"(\w+)_(\d)", info.activity_id)
                if numbered and numbered[1] == info.activity_type:
                    return RUBBISH[int(numbered[2])]
                return hand.result if info.activity_type == hand.kind else await super().execute_activity(work)

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
BEFORE = [call("ok", args={"value": 7}), call("a")]
NODES: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "tool": lambda n: [call(n)],
    "llm": lambda n: [{"id": n, "kind": "llm", "prompt": "Say something"}],
    "join": lambda n: [
        {"id": n, "kind": "join", "inputs": ["a"]},
        call(f"b{n}", when={"ref": f"${n}[0].nothing", "op": "exists"}),  # only the whole value can tell
    ],
    "gate": lambda n: [{"id": n, "kind": "gate", "question": "Which?"}],
    "program": lambda n: [{"id": n, "kind": "program", "script": SCRIPT}],
}
NUMBERED = {kind: [f"{kind}_{place}" for place in range(len(RUBBISH))] for kind in (*NODES, "write")}
RUNS: dict[str, dict[str, Any]] = {
    "prepare": {"plan": {"nodes": [call("a")]}},
    "plan": {"goal": "Look"},
    "check_plan": {"goal": "Look"},
}
CHECKS = ("check_replan", "check_tool_calls", "check_script", "check_answer")
SHARED = ("prepare_agents", "answers")
EARLIER = ("prepare_agent", "agent")
"""Of runs that earlier versions have begun."""
BESIDE = ("prefetch",)
"""Beside the nodes of a run, which goes on whatever becomes of it."""
OTHERWISE = (*SHARED, *EARLIER, *BESIDE, "write", "group", "load_plan", "conclude", "ledger", *CHECKS)


def test_no_kind_of_activity_is_forgotten() -> None:
    assert {each.name for each in CALLS} == {*NODES, *RUNS, *OTHERWISE}


async def test_rubbish_in_the_place_of_nodes(begin: Start) -> None:
    names = [name for kind in NODES for name in NUMBERED[kind]]
    nodes = [*BEFORE, *(node for kind, made in NODES.items() for name in NUMBERED[kind] for node in made(name))]
    plan = {"nodes": nodes, "answer": ["$ok.value", *(f"${name}" for name in names)], "fuse": "off"}
    handle = await begin(plan=plan, on_failure="partial")
    for name in NUMBERED["gate"]:
        await insist(handle, "answer", {"node": name, "value": "this"})
    report = await handle.result()
    errors = {line["id"]: line["error"] for line in report["nodes"] if line["id"] in names}
    assert errors == dict.fromkeys(names, SENTENCE)
    assert (report["status"], report["answer"]) == ("partial", [7, *[None] * len(names)])


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("result", RUBBISH, ids=str)
async def test_rubbish_in_the_place_of_what_sub_agents_share(begin: Start, hand: Hand, kind: str, result: Any) -> None:
    hand.kind, hand.result = kind, result
    nodes = [*BEFORE, *({"id": name, "kind": "agent", "goal": "Look"} for name in ("one", "two"))]
    report = await (
        await begin(plan={"nodes": nodes, "answer": ["$ok.value", "$one", "$two"]}, on_failure="partial")
    ).result()
    errors = {line["id"]: line["error"] for line in report["nodes"] if line["kind"] == "agent"}
    assert errors == {"one": SENTENCE, "two": SENTENCE}
    assert (report["status"], report["answer"]) == ("partial", [7, None, None])


async def test_rubbish_in_the_place_of_a_write(begin: Start) -> None:
    """Nobody knows whether it was made, so it is in doubt."""
    names = NUMBERED["write"]
    plan = {"nodes": [call(name, "post", args={"text": name}) for name in names], "answer": [f"${n}" for n in names]}
    report = await (await begin(plan=plan, approval="never", on_failure="partial")).result()
    doubt = "UnknownOutcome: its activity was completed with something"
    assert [line["error"].startswith(doubt) for line in report["nodes"]] == [True] * len(names)
    assert report["writes"] == [{"node": name, "status": "unknown"} for name in names]
    assert report["status"] == "partial"


async def test_a_page_that_is_none_in_the_place_of_a_step_of_a_program(begin: Start, hand: Hand) -> None:
    page = {"plan": "x", "specs": "junk", "after": "n"}
    hand.kind, hand.result = "program", {"nodes": [{"more": "program", "page": page}]}
    handle = await begin(plan={"nodes": NODES["program"]("n"), "answer": "$n"}, on_failure="partial")
    report = await handle.result()
    assert report["nodes"][0]["error"] == SENTENCE


@pytest.mark.parametrize("kind", RUNS)
async def test_rubbish_in_the_place_of_what_the_run_needs(begin: Start, hand: Hand, kind: str) -> None:
    hand.kind = kind
    for hand.result in OTHERS:
        with pytest.raises(WorkflowFailureError) as failure:
            await (await begin(RUNS[kind])).result()
        assert str(failure.value.cause) == SENTENCE, hand.result


async def test_rubbish_in_the_place_of_a_group(begin: Start, hand: Hand) -> None:
    """Its nodes start again, each alone."""
    hand.kind = "group"
    nodes = [call("a", args={"value": 1}), call("b", args={"value": "$a.value"})]
    for hand.result in OTHERS:
        report = await (await begin(plan={"nodes": nodes, "fuse": "on"})).result()
        assert (report["status"], report["answer"]) == ("done", {"value": 1}), hand.result


async def test_rubbish_in_the_place_of_the_answer(begin: Start, hand: Hand) -> None:
    hand.kind = "conclude"
    for hand.result in OTHERS:
        report = await (await begin(plan={"nodes": [call("a"), call("b")], "answer": ["$a", "$b"]})).result()
        assert report["status"] == "partial", hand.result
        assert SENTENCE in str(report)


async def test_rubbish_in_the_place_of_what_was_written_before_a_reset(
    client: Client, begin: Start, hand: Hand
) -> None:
    hand.kind = "ledger"
    for hand.result in ("junk", {"lines": [{}]}):
        nodes = [call("a"), {"id": "g", "kind": "gate", "question": "Which?"}]
        handle = await begin(plan={"nodes": nodes, "answer": "$g"})
        await until(handle, lambda view: view["status"] == "blocked")
        again = await reset(client, handle, scheduled("a"))
        await insist(again, "answer", {"node": "g", "value": "this"})
        report = await again.result()
        assert (report["status"], report["answer"]) == ("done", "this"), hand.result
        assert f"what was written before the reset is not known: {SENTENCE}" in report["warnings"]


async def test_rubbish_in_the_place_of_a_plan_to_go_on_with(
    begin: Start, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (12, drain.SOFT_BOUNDS[1], 5))
    hand.kind = "load_plan"
    nodes = [call(f"m{index}", args={"value": f"$m{index - 1}.value" if index else 1}) for index in range(4)]
    for hand.result in (*OTHERS, {"plan": "x", "execution_plan": "junk"}):
        with pytest.raises(WorkflowFailureError) as failure:
            await (await begin(plan={"nodes": nodes, "fuse": "off"})).result()
        assert str(failure.value.cause) == SENTENCE, hand.result
