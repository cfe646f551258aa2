"""Models whose next turn starts while some of their calls run, against a real server and models behind real HTTP."""

import asyncio
import html
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from doubles.activations import check_reset, recorded_from
from doubles.local_workers import Start
from doubles.runs import approve, board, called, happens, status_of, until
from doubles.tools import posts
from doubles.worker_processes import WorkerProcesses
from temporalio.client import Client

from sennit.activities.definitions import Activities
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.dev.server import DevServer
from sennit.testing.model_rules import Asked, Call, Reply
from sennit.testing.models import ModelServer
from sennit.testing.models import model_server as serving_models
from sennit.workflows.messages import queues
from sennit.workflows.run import drain

BOTH = pytest.mark.parametrize("model_host", ["openai", "anthropic"], indirect=True)


def loop(**fields: Any) -> dict[str, Any]:
    return {"id": "n7", "kind": "llm", "prompt": "How much is it?", "tools": ["hang", "note", "calculate"], **fields}


def held_calls(folder: Path, count: int) -> tuple[Call, ...]:
    """Return calls each of which a test ends when it likes."""
    return tuple(Call("hang", {"name": folder.name}) for _ in range(count))


def add(left: int, right: int) -> Call:
    return Call("calculate", {"expression": f"{left} + {right}"})


def parts(result: str) -> dict[str, str]:
    """Return what a result says of each node, each of which must be alone in a fence."""
    found = {}
    rest = result
    for fence in re.finditer(r"<<<DATA (\w{8}) (\w+)\n(.*?)\nDATA \1>>>", result, re.DOTALL):
        found[fence[2]] = fence[3]
        rest = rest.replace(fence[0], "")
    if rest.strip():
        found[""] = rest.strip()
    return found


def told(asked: Asked) -> list[dict[str, str]]:
    return [parts(result) for result in asked.results]


async def begun(held: Path, *nodes: str) -> None:
    await happens(lambda: all((held / f"{node}.begun").exists() for node in nodes))


def end(held: Path, *nodes: str) -> None:
    for node in nodes:
        (held / f"{node}.end").touch()


def warned(report: dict[str, Any]) -> list[str]:
    """Return the warnings of a run, but for the price that nobody knows."""
    return [warning for warning in report["warnings"] if not warning.startswith("no price")]


def lines(report: dict[str, Any]) -> dict[str, str]:
    return {line["id"]: line["status"] for line in report["nodes"]}


@BOTH
async def test_a_late_result_stands_in_the_message_of_a_call_of_the_later_turn(
    begin: Start, model_server: ModelServer, held: Path
) -> None:
    model_server.on("How much", Reply("Let me see.", calls=held_calls(held, 3)), results=0)
    model_server.on("How much", Reply(calls=(add(1, 1), *held_calls(held, 1))), results=3)
    model_server.on("How much", "Two.", results=5)
    handle = await begin(plan={"nodes": [loop(turn={"quorum": 2})], "answer": "$n7"})
    await begun(held, "n7_t1_1", "n7_t1_2", "n7_t1_3")
    end(held, "n7_t1_3")
    await until(handle, lambda view: status_of(view, "n7_t1_3") == "succeeded")
    assert len(model_server.asked) == 1
    end(held, "n7_t1_1")
    await begun(held, "n7_t2_2")
    view = await until(handle, lambda view: status_of(view, "n7_t2_1") == "succeeded")
    assert status_of(view, "n7_t1_2") == "running"
    assert next(node for node in view["nodes"] if node["id"] == "n7_t1_all")["preview"].startswith("[n7_t1_1 succe")
    assert "n7_t1_2 running" in next(node for node in view["nodes"] if node["id"] == "n7_t1_all")["preview"]
    end(held, "n7_t1_2")
    await until(handle, lambda view: status_of(view, "n7_t1_2") == "succeeded")
    assert len(model_server.asked) == 2, "a call of an earlier turn counts for no quorum"
    end(held, "n7_t2_2")
    report = await handle.result()
    assert (report["status"], report["answer"], warned(report)) == ("done", "Two.", []), report
    value = '{"value": null}'
    _, second, third = model_server.asked
    assert told(second) == [
        {"n7_t1_1": value},
        {"n7_t1_2": "still running"},
        {"n7_t1_3": value, "": "Still running: n7_t1_2"},
    ]
    assert told(third)[:3] == told(second), "what was said stays as it was, so that it can be cached"
    assert told(third)[3:] == [
        {"n7_t2_1": '{"expression": "1 + 1", "value": 2}', "n7_t1_2": value},
        {"n7_t2_2": value},
    ]
    check_wire(third)
    assert lines(report).keys() == {
        *("n7", "n7_t1_1", "n7_t1_2", "n7_t1_3", "n7_t1_all"),
        *("n7_t2", "n7_t2_1", "n7_t2_2", "n7_t2_all", "n7_t3"),
    }
    assert set(lines(report).values()) == {"succeeded"}


def check_wire(asked: Asked) -> None:
    """Nobody but the model speaks after a tool, and each call has one result, in the order of the calls."""
    messages = asked.body["messages"]
    if asked.format == "openai":
        roles = [message["role"] for message in messages if message["role"] != "system"]
        assert re.fullmatch(r"user( assistant( tool)+)+", " ".join(roles))
        wanted = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
        given = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    else:
        assert [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
        blocks = [(message["role"], block) for message in messages for block in message["content"]]
        blocks = [(role, block) for role, block in blocks if isinstance(block, dict)]
        wanted = [block["id"] for _, block in blocks if block["type"] == "tool_use"]
        given = [block["tool_use_id"] for _, block in blocks if block["type"] == "tool_result"]
        for message in messages[2::2]:
            assert {block["type"] for block in message["content"]} == {"tool_result"}
    assert given == wanted


async def test_after_a_time_the_next_turn_starts_with_what_has_ended(
    begin: Start, model_server: ModelServer, held: Path
) -> None:
    model_server.on("How much", Reply(calls=(add(1, 1), *held_calls(held, 2))), results=0)
    model_server.on("How much", Reply(calls=(Call("wait_for", {"calls": ["n7_t1_3"]}),)), results=3)
    model_server.on("How much", "Two.", results=4)
    handle = await begin(plan={"nodes": [loop(turn={"after": "1s"})], "answer": "$n7"})
    await happens(lambda: len(model_server.asked) == 2)
    await until(handle, lambda view: status_of(view, "n7_t2_all") != "absent")
    end(held, "n7_t1_2")
    await until(handle, lambda view: status_of(view, "n7_t1_2") == "succeeded")
    assert len(model_server.asked) == 2, "the model waits for another call"
    end(held, "n7_t1_3")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "Two."), report
    assert told(model_server.asked[1])[1:] == [
        {"n7_t1_2": "still running"},
        {"n7_t1_3": "still running", "": "Still running: n7_t1_2, n7_t1_3"},
    ]
    value = '{"value": null}'
    assert told(model_server.asked[2])[3:] == [{"n7_t1_3": value, "n7_t1_2": value}]
    assert model_server.asked[0].tools == ("calculate", "hang", "note", "wait_for", "cancel_call")


@BOTH
async def test_a_model_cancels_a_call_by_name(begin: Start, model_server: ModelServer, held: Path) -> None:
    model_server.on("How much", Reply(calls=(add(1, 1), *held_calls(held, 1))), results=0)
    gone = (Call("cancel_call", {"call": "n7_t1_2"}), Call("cancel_call", {"call": "n7_t1_1"}))
    model_server.on("How much", Reply(calls=gone), results=2)
    model_server.on("How much", "Two.", results=4)
    handle = await begin(plan={"nodes": [loop(turn="first")], "answer": "$n7"})
    report = await handle.result()
    assert (report["status"], report["answer"], warned(report)) == ("done", "Two.", []), report
    assert lines(report)["n7_t1_2"] == "cancelled"
    await happens((held / "n7_t1_2.cancelled").exists)
    assert told(model_server.asked[2])[2:] == [
        {"n7_t1_2": "cancelled: Cancelled: the model has cancelled it"},
        {"refused": "no call 'n7_t1_1' is running; there are n7_t1_2"},
    ]
    check_wire(model_server.asked[2])


async def test_the_answer_cancels_what_still_runs_and_people_are_told(
    begin: Start, model_server: ModelServer, held: Path
) -> None:
    model_server.on("How much", Reply(calls=(add(1, 1), *held_calls(held, 2))), results=0)
    model_server.on("How much", "Two.", results=3)
    handle = await begin(plan={"nodes": [loop(turn="first")], "answer": "$n7"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "Two."), report
    warning = "`n7` has answered without `n7_t1_2`, `n7_t1_3`: what still ran was cancelled"
    assert warned(report) == [warning]
    assert warning in html.unescape(await board(handle))
    found = lines(report)
    assert (found["n7_t1_2"], found["n7_t1_3"]) == ("cancelled", "cancelled")


async def test_a_write_and_what_asks_a_person_are_awaited(
    begin: Start, model_server: ModelServer, model_host: Activities, held: Path, cache: Path
) -> None:
    model_server.on("How much", Reply(calls=(add(1, 1), Call("note", {"text": "a"}), *held_calls(held, 1))), results=0)
    model_server.on("How much", "Written.", results=3)
    handle = await begin(plan={"nodes": [loop(turn="first")], "answer": "$n7"}, approval="writes")
    await begun(held, "n7_t1_3")
    await until(handle, lambda view: status_of(view, "n7_t1_2") == "waiting")
    assert len(model_server.asked) == 1
    await approve(handle, "n7_t1_2")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "Written."), report
    assert lines(report)["n7_t1_2"] == "succeeded"
    assert called(cache, handle)["n7_t1_2~1"] == 1


async def test_nothing_goes_on_behind_the_last_turn(begin: Start, model_server: ModelServer, held: Path) -> None:
    model_server.on("How much", Reply(calls=(add(1, 1), *held_calls(held, 1))), results=0)
    model_server.on("How much", "Two.", results=2)
    handle = await begin(plan={"nodes": [loop(turn="first", max_turns=2)], "answer": "$n7"})
    await begun(held, "n7_t1_2")
    await until(handle, lambda view: status_of(view, "n7_t1_1") == "succeeded")
    assert len(model_server.asked) == 1
    end(held, "n7_t1_2")
    assert (await handle.result())["answer"] == "Two."
    assert told(model_server.asked[1])[1] == {"n7_t1_2": '{"value": null}'}


async def test_a_late_call_that_failed_and_ran_again_leads_the_turn_on_anew_that_was_told_of_it(
    begin: Start, model_server: ModelServer, cache: Path, held: Path
) -> None:
    late = Call("fetch", {"file": "turn-late.txt"})
    (cache / "turn-late.txt").write_text("old")
    model_server.on("How much", Reply(calls=(late, *held_calls(held, 1))), results=0)
    model_server.on("How much", Reply(calls=(Call("wait_for", {}),)), results=2)
    model_server.on("How much", "Done.", results=3)
    gate = {"id": "g", "kind": "gate", "question": "?", "needs": ["n7"]}
    handle = await begin(plan={"nodes": [loop(tools=["fetch", "hang"], turn="first"), gate], "answer": "$n7"})
    await begun(held, "n7_t1_2")
    await happens(lambda: len(model_server.asked) == 2)
    end(held, "n7_t1_2")
    await until(handle, lambda view: status_of(view, "g") == "waiting")
    (cache / "turn-late.txt").write_text("new")
    await handle.execute_update("retry_node", {"node": "n7_t1_1"})
    await until(handle, lambda view: len(model_server.asked) > 3 and status_of(view, "g") == "waiting")
    await handle.execute_update("answer", {"node": "g", "value": "yes"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "Done."), report
    assert "new" in told(model_server.asked[-1])[0]["n7_t1_1"]


async def test_whoever_skips_the_model_cancels_the_calls_of_all_its_turns(
    begin: Start, model_server: ModelServer, held: Path
) -> None:
    model_server.on("How much", Reply(calls=(add(1, 1), *held_calls(held, 1))), results=0)
    model_server.on("How much", Reply(calls=held_calls(held, 2)), results=2)
    side = {"id": "b", "kind": "tool", "tool": "nap", "args": {"value": 1}}
    handle = await begin(plan={"nodes": [loop(turn="first"), side], "answer": ["$n7", "$b"]})
    await begun(held, "n7_t1_2", "n7_t2_1", "n7_t2_2")
    await handle.execute_update("skip_node", {"node": "n7"})
    report = await handle.result()
    assert report["status"] == "partial", report
    found = lines(report)
    assert [found[name] for name in ("n7", "n7_t1_2", "n7_t2_1", "n7_t2_2")] == ["skipped"] + 3 * ["cancelled"]
    await happens((held / "n7_t1_2.cancelled").exists)


async def test_a_script_says_when_the_turns_of_its_model_start(
    begin: Start, model_server: ModelServer, held: Path
) -> None:
    model_server.on("How much", Reply(calls=(add(1, 1), *held_calls(held, 1))), results=0)
    model_server.on("How much", "Two.", results=2)
    script = """
async def main():
    return await llm("How much is it?", tools=["calculate", "hang"], turn={"quorum": 1})
"""
    handle = await begin(plan={"nodes": [{"id": "p", "kind": "program", "script": script}], "answer": "$p"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "Two."), report
    [warning] = warned(report)
    assert warning.endswith("what still ran was cancelled")


async def test_each_item_of_a_map_has_turns_of_its_own(begin: Start, model_server: ModelServer, held: Path) -> None:
    model_server.on("How much", Reply(calls=(add(1, 1), *held_calls(held, 1))), results=0)
    model_server.on("How much", "Two.", results=2)
    work = {"kind": "llm", "prompt": "How much is $item?", "tools": ["calculate", "hang"], "turn": "first"}
    mapped = {"id": "m", "kind": "map", "over": "$input.names", "do": work}
    inputs = {"names": {"type": "array", "default": ["a", "b"]}}
    handle = await begin(plan={"inputs": inputs, "nodes": [mapped], "answer": "$m"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", ["Two.", "Two."]), report


async def test_a_run_is_reset_to_any_task_while_calls_go_on(
    begin: Start, model_server: ModelServer, held: Path
) -> None:
    """From each task on, what comes is decided as before, however the tasks are joined."""
    model_server.on("How much", Reply(calls=held_calls(held, 3)), results=0)
    model_server.on("How much", Reply(calls=(add(1, 1), Call("wait_for", {}))), results=3)
    model_server.on("How much", "Two.", results=5)
    handle = await begin(plan={"nodes": [loop(turn={"quorum": 2})], "answer": "$n7"})
    await begun(held, "n7_t1_1", "n7_t1_2", "n7_t1_3")
    end(held, *Random(1).sample(["n7_t1_1", "n7_t1_2", "n7_t1_3"], 2))
    await until(handle, lambda view: status_of(view, "n7_t2_1") == "succeeded")
    end(held, "n7_t1_1", "n7_t1_2", "n7_t1_3")
    assert (await handle.result())["answer"] == "Two."
    run = await recorded_from(await handle.fetch_history())
    for place in range(1, len(run.tasks)):
        await check_reset(run, place)


async def test_killed_workers_lose_no_call_and_ask_no_model_twice(
    client: Client, dev_server: DevServer, tmp_path: Path
) -> None:
    """All processes are killed while a call of the first turn goes on beside those of the second."""
    folder = tmp_path / "state" / "index" / "kept"
    async with serving_models(models=("gpt-4o",)) as server:
        server.on("How much", Reply(calls=(add(1, 1), *held_calls(folder, 1))), results=0)
        server.on("How much", Reply(calls=held_calls(folder, 1)), results=2)
        server.on("How much", "Two.", results=3)
        env = {"OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "any", "SENNIT_MODEL": "openai:gpt-4o"}
        processes = WorkerProcesses(dev_server.address, tmp_path / "state", **env)
        processes.start("all")
        plan = {"nodes": [loop(turn="first")], "answer": "$n7"}
        try:
            handle = await client.start_workflow(
                "AgentRun", {"plan": plan}, id="agent-turns-killed", task_queue=queues.WORKFLOW
            )
            run = handle.first_execution_run_id or ""
            await processes.until_called(run, "n7_t1_2", "n7_t2_1")
            processes.kill()
            processes.start("all")
            folder.mkdir(parents=True, exist_ok=True)
            end(folder, "n7_t1_2", "n7_t2_1")
            report = await asyncio.wait_for(handle.result(), 100)
        finally:
            processes.kill()
    assert (report["status"], report["answer"]) == ("done", "Two."), report
    assert len(server.asked) == 3
    said = told(server.asked[-1])
    assert [list(result) for result in said[:2]] == [["n7_t1_1"], ["n7_t1_2", ""]]
    assert "n7_t2_1" in said[2]


async def test_a_straggling_write_is_awaited(begin: Start, model_server: ModelServer, cache: Path) -> None:
    slow = Call("post", {"text": "paid", "seconds": 2.0})
    model_server.on("How much", Reply(calls=(add(1, 1), slow)), results=0)
    model_server.on("How much", "Paid.", results=2)
    plan = {"nodes": [loop(tools=["calculate", "post"], turn="first")], "answer": "$n7"}
    handle = await begin(plan=plan, approval="never")
    report = await handle.result()
    assert (report["status"], report["answer"], warned(report)) == ("done", "Paid.", []), report
    assert posts(cache, handle.first_execution_run_id or "") == ["paid"]
    assert told(model_server.asked[1])[1] == {"n7_t1_2": '{"posted": "paid"}'}


async def test_calls_that_go_on_survive_a_run_that_continues_as_new(
    client: Client, begin: Start, model_server: ModelServer, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (40, drain.SOFT_BOUNDS[1], 5))
    model_server.on("How much", Reply(calls=(add(1, 1), *held_calls(held, 1))), results=0)
    for results in range(2, 7):
        model_server.on("How much", Reply(calls=(add(1, results),)), results=results)
    model_server.on("How much", "Done.", results=7)
    handle = await begin(plan={"nodes": [loop(turn="first")], "answer": "$n7"})
    await happens(lambda: len(model_server.asked) > 1)
    end(held, "n7_t1_2")
    report = await handle.result()
    assert (report["status"], report["answer"], warned(report)) == ("done", "Done.", []), report
    assert (await handle.describe()).run_id != handle.first_execution_run_id
    said = told(model_server.asked[-1])
    assert [result["n7_t1_2"] for result in said if "n7_t1_2" in result] == ["still running", '{"value": null}']


async def test_a_fork_takes_over_a_model_whose_turns_did_not_wait(
    client: Client, begin: Start, model_server: ModelServer, held: Path
) -> None:
    model_server.on("How much", Reply(calls=(add(1, 1), *held_calls(held, 1))), results=0)
    model_server.on("How much", Reply(calls=(Call("cancel_call", {"call": "p_1_t1_2"}),)), results=2)
    model_server.on("How much", "Two.", results=3)
    script = """
async def main():
    return await llm("How much is it?", tools=["calculate", "hang"], turn="first")
"""
    handle = await begin(plan={"nodes": [{"id": "p", "kind": "program", "script": script}], "answer": "$p"})
    assert (await handle.result())["answer"] == "Two."
    asked = len(model_server.asked)
    run = await Sennit(client, local_server(client.service_client.config.target_host, None)).find(handle.id)
    fork = await run.fork(script.replace('turn="first")', 'turn="first") + "!"'))
    report = await fork.result()
    assert (report.status, report.answer, len(model_server.asked)) == ("done", "Two.!", asked)
