"""Plans that run while they are written: over real HTTP, at a real model's pace."""

import json
from pathlib import Path
from typing import Any

import pytest
from doubles.events import activity_positions
from doubles.local_workers import Start
from doubles.runs import call, status_of, until
from doubles.tools import calls

from sennit.testing.model_rules import Reply
from sennit.testing.models import ModelServer

PLANNER, JOINER = "You plan work", "You put results together"
LINES = '1. nap(value="a")\n2. nap(value="$1")\n3. note(text="x")\n'
THOUGHTS = "".join(f"Thought: step {index} needs care\n" for index in range(12))


def slow(text: str, **fields: Any) -> Reply:
    """Some two seconds of writing."""
    return Reply(text, rate=40, **fields)


async def test_nodes_start_while_the_planner_writes(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, slow(LINES + THOUGHTS + "4. answer($2, $3)"))
    model_server.on(JOINER, "Both.")
    handle = await begin(goal="What is a?", approval="never")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "Both."), report
    events = await activity_positions(handle)
    assert events["n1"] < events["n2"] < events["run:plan done"] < events["n4"]
    assert events["n2 done"] < events["run:plan done"], "it has run by the time the plan is whole"
    assert events["n3"] > events["run:plan done"], "what writes waits for the whole plan"
    assert report["usage"]["calls"] == 2


async def test_a_corrected_plan_replaces_its_streamed_beginning(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, slow(LINES + THOUGHTS + '4. naap("b")\n5. answer($2)'), '1. nap(value="b")\n2. answer($1)')
    model_server.on(JOINER, "It is b.")
    handle = await begin(goal="What is b?")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "It is b."), report
    assert [line["id"] for line in report["nodes"]] == ["n1", "n2"]
    events = await activity_positions(handle)
    assert "n1" in events
    assert "n1@2" in events, "the id of an activity must not repeat within a run"
    page = await handle.query("events")
    plans = [(event["nodes"], event.get("status", "")) for event in page["events"] if event["kind"] == "planned"]
    assert plans[-1] == (2, "replaced")
    assert plans[0][1] == ""


async def test_reads_of_a_thought_are_cancelled_and_counted(
    begin: Start, model_server: ModelServer, cache: Path
) -> None:
    """The chat template has written the opening tag: only its end tells that the first lines are a thought."""
    thought = f'1. nap(seconds=60)\n2. nap(value="a")\n3. note(text="x")\n{THOUGHTS}so it is.</think>'
    model_server.on(PLANNER, slow(f'{thought}1. nap(value="b")\n2. answer($1)'))
    model_server.on(JOINER, "It is b.")
    handle = await begin(goal="What is t?", approval="never")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "It is b."), report
    assert [line["id"] for line in report["nodes"]] == ["n1", "n2"]
    assert calls(cache, handle.first_execution_run_id or "").count("n1~1") == 2, "once in the thought"
    assert (await handle.query("costs"))["wasted"]["nodes"] == 2
    assert len(model_server.asked) == 2, "no repair"


async def test_a_call_that_is_denied_makes_the_plan_unread_and_its_reads_waste(
    begin: Start, model_server: ModelServer, cache: Path
) -> None:
    first = f'1. nap(seconds=60)\n{THOUGHTS}2. Do not call note(text="no")\n3. answer($1)'
    model_server.on(PLANNER, slow(first), '1. nap(value="b")\n2. answer($1)')
    model_server.on(JOINER, "It is b.")
    handle = await begin(goal="What is u?", approval="never")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "It is b."), report
    assert sorted(calls(cache, handle.first_execution_run_id or "")) == ["n1~1", "n1~1"], "no note"
    assert (await handle.query("costs"))["wasted"]["nodes"] == 1
    assert "looks like a call of note; write it as a line, 2. note(...)" in model_server.asked[1].text


async def test_what_a_corrected_plan_shares_with_its_beginning_runs_once(
    begin: Start, model_server: ModelServer, cache: Path
) -> None:
    """What has ended is found again under other ids, a model call too; what still ran is cancelled and runs again."""
    lines = '1. nap(value="a")\n2. nap(value="$1")\n3. nap(value="c")\n4. llm("Say it")\n5. nap(seconds=60)\n'
    corrected = [call("n1", args={"value": "b"}), call("n2", args={"value": "a"}), call("n3", args={"value": "$n2"}),
              {"id": "n4", "kind": "llm", "prompt": "Say it"}, call("n5")]  # fmt: skip
    answer = ["$n1", "$n3", "$n4", "$n5"]
    model_server.on(
        PLANNER, slow(lines + 2 * THOUGHTS + '6. naap("b")'), json.dumps({"nodes": corrected, "answer": answer})
    )
    model_server.on("Say it", "It.")
    handle = await begin(goal="What is e?", budget={"calls": 4})
    report = await handle.result()
    values = [{"value": "b"}, {"value": {"value": "a"}}, "It.", {"value": None}]
    assert (report["status"], report["answer"]) == ("done", values), report
    first = ["n1~1", "n2~1", "n3~1", "n5~1"]
    assert sorted(calls(cache, handle.first_execution_run_id or "")) == sorted([*first, "n1~1", "n5~1"])
    assert (len(model_server.asked), report["usage"]["calls"]) == (3, 3), "two of the planner, one of the node"
    costs = await handle.query("costs")
    assert costs["wasted"]["nodes"] == 2, "n3 and n5 of the beginning"
    assert costs["budget"]["calls"]["spent"] == 3


async def test_a_corrected_plan_tests_what_has_run(begin: Start, model_server: ModelServer, cache: Path) -> None:
    """Facts that only the new plan asks for, of what had ended."""
    nodes = [call("x", "count", args={"count": 3}), call("y", args={"value": 7})]
    nodes += [{"id": "m", "kind": "map", "over": "$x.items", "do": {"kind": "tool", "tool": "nap", "args": {}}}]
    nodes += [call("z", args={"value": 1}, when={"ref": "$y.value", "op": "eq", "value": 7})]
    model_server.on(PLANNER, slow(f'1. count(3)\n2. nap(value=7)\n{THOUGHTS}3. naap()'),
                    json.dumps({"nodes": nodes, "answer": {"m": "$m", "z": "$z"}}))  # fmt: skip
    handle = await begin(goal="How many?")
    report = await handle.result()
    assert (report["status"], len(report["answer"]["m"])) == ("done", 3), report
    assert report["answer"]["z"] == {"value": 1}
    assert sorted(calls(cache, handle.first_execution_run_id or "")) == ["m[0]~1", "m[1]~1", "m[2]~1", "n2~1", "z~1"]


async def test_a_planner_that_fails_after_a_beginning_ends_the_run(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, slow(LINES + THOUGHTS + '4. naap("b")'), "no plan any more")
    handle = await begin(goal="What is c?")
    with pytest.raises(Exception, match="failed") as failed:
        await handle.result()
    assert "the reply holds no plan" in str(failed.value.__cause__)


async def test_a_condition_on_something_too_large_goes_back_to_the_planner(
    begin: Start, model_server: ModelServer
) -> None:
    test = 'when={"ref": "$1.text", "op": "eq", "value": "x"}'
    model_server.on(
        PLANNER,
        slow(f"1. make(bytes=900)\n{THOUGHTS}2. nap({test})\n3. answer($2)"),
        "1. make(bytes=900)\n2. answer($1)",
    )
    model_server.on(JOINER, "Large.")
    report = await (await begin(goal="How large?")).result()
    assert (report["status"], report["answer"]) == ("done", "Large."), report
    assert "a condition tests `$n1`, but `text` is 900 bytes" in model_server.asked[1].text


async def test_a_signal_that_is_no_beginning_is_ignored(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, slow(LINES + THOUGHTS + "4. answer($2)"))
    model_server.on(JOINER, "Fine.")
    handle = await begin(goal="What is d?", approval="never")
    draft = {"run": handle.first_execution_run_id, "attempt": 7, "sequence": 2, "plan": "none", "execution_plan": "x"}
    for junk in (None, "x", [1], {"attempt": 1}, draft):
        await handle.signal("plan_draft", junk)
    await until(handle, lambda view: status_of(view, "n1") == "succeeded")
    await handle.signal("plan_draft", {**draft, "attempt": 1, "sequence": 1})
    assert (await handle.result())["answer"] == "Fine."


async def test_a_whole_plan_that_cannot_run_goes_back_though_its_beginning_runs(
    begin: Start, model_server: ModelServer
) -> None:
    """The lines can be read, and the whole continues the beginning; only checking it finds the fault."""
    model_server.on(
        PLANNER, slow(LINES + THOUGHTS + '4. nap(seconds="long")\n5. answer($2, $4)'), "1. nap()\n2. answer($1)"
    )
    model_server.on(JOINER, "It is so.")
    handle = await begin(goal="Is it so?")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "It is so."), report
    assert "nap: wanted number" in model_server.asked[1].text
