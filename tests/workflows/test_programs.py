"""Programs on a real server: every call is a node, and what has a result is never called again."""

import asyncio
import json
import uuid
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start, remembered_or_not
from doubles.runs import call, called, happens, insist, until
from temporalio.client import WorkflowUpdateFailedError

from sennit.starter.client.origin import read_origin
from sennit.starter.terminal.render import status_text
from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer
from sennit.workflows.messages.views import RunView
from sennit.workflows.run import drain, engine

MANY = """
async def look(number: int, repaired: str):
    found = await nap(value=number)
    log("looked for", number)
    if number in (3, 7):
        await fail(message=f"no {number}", unless=repaired)
    return found["value"]

async def main(count: int, repaired: str):
    print("begin")
    found = await parallel([task(look, number=number, repaired=repaired) for number in range(count)])
    return sum(found)
"""
ROUNDS = """
async def look(question: str) -> str:
    hits = await nap(value=["a passage on " + question])
    return await llm("Answer from the passages.", question, hits)

async def main(topic: str):
    questions = await llm("Two questions on the topic.", topic, schema=list[str])
    answers = await parallel([task(look, question=question) for question in questions])
    draft = await llm("Write a page.", answers, tools=["calculate"])
    for number in range(3):
        review = await llm("What is wrong?", draft, schema={"good": bool, "faults": list[str]}, role="critic")
        if review["good"]:
            return [draft, number]
        draft = await llm("Mend it.", draft, review["faults"])
    return await ask("Publish anyway?", draft)
"""
CHAIN = """
async def main(count: int):
    total = 0
    for number in range(count):
        total += (await nap(value=number))["value"]
    return total
"""


def program(script: str, **arguments: Any) -> dict[str, Any]:
    nodes = [{"id": "main", "kind": "program", "script": script, "arguments": arguments}]
    return {"nodes": nodes, "answer": "$main"}


def blocked(view: dict[str, Any]) -> bool:
    return bool(view["status"] == "blocked")


async def test_failed_calls_park_the_run_and_only_they_run_again(start: Start, cache: Path) -> None:
    repaired = uuid.uuid4().hex
    handle = await start(plan=program(MANY, count=12, repaired=repaired))
    view = await until(handle, blocked)
    failed = [item["node"] for item in view["blocked"]]
    assert len(failed) == 2, view["blocked"]
    assert all(item["update"] == "retry_node" for item in view["blocked"])
    assert "look#4: looked for 3" in view["log"]
    (cache / repaired).touch()
    before = called(cache, handle)
    for node in failed:
        await insist(handle, "retry_node", {"node": node})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", sum(range(12))), report
    again = called(cache, handle) - before
    assert again == Counter(f"{node}~2" for node in failed)
    assert len(before) == 14
    assert not any(line["id"].endswith("_s2") for line in report["nodes"]), "steps are not shown"
    looked = [f"look#{number + 1}: looked for {number}" for number in range(12)]
    assert sorted(report["log"]) == ["begin", *sorted(looked)]


async def test_an_edit_gives_up_a_join_that_has_failed_with_its_task(start: Start) -> None:
    handle = await start(plan=program(MANY.replace("(3, 7)", "(0,)"), count=1, repaired=uuid.uuid4().hex))
    await until(handle, blocked)
    await insist(handle, "edit_program", {"node": "main", "script": MANY.replace("(3, 7)", "()")})
    report = await asyncio.wait_for(handle.result(), 60)
    assert (report["status"], report["answer"]) == ("done", 0), report
    assert report["log"] == ["begin", "look#1: looked for 0"], "what the old script has logged is not shown"


async def test_a_chain_takes_one_activity_a_call_and_continues_as_new(
    start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (60, drain.SOFT_BOUNDS[1], 100))
    handle = await start(plan=program(CHAIN, count=30))
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", sum(range(30)))
    assert set(called(cache, handle).values()) == {1}
    assert (await handle.describe()).run_id != handle.first_execution_run_id, "it has continued as new"
    shown = await handle.query("script")
    assert (shown["script"], [line["calls"] for line in shown["lines"]]) == (CHAIN, [{"succeeded": 30}])
    kinds = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        async for event in handle.fetch_history_events()
    ]
    assert kinds.count("program") == 0, "each call's activity makes the step behind it"


async def test_a_program_branches_on_what_models_say(begin: Start, model_server: ModelServer, cache: Path) -> None:
    model_server.on("Two questions", json.dumps(["one", "two"]))
    model_server.on("Answer from", "an answer")
    model_server.on("Write a page", Reply("", calls=(Call("calculate", {"expression": "6 * 7"}),)), results=0)
    model_server.on("Write a page", "A page, 42.", results=1)
    model_server.on("What is wrong", json.dumps({"good": False, "faults": ["dull"]}))
    model_server.on("Mend it", "A better page.")
    handle = await begin(plan=program(ROUNDS, topic="tides"))
    view = await until(handle, blocked)
    [asked] = view["blocked"]
    assert "Publish anyway?" in asked["question"]
    assert "A better page." in asked["question"] + asked["shown"]
    await insist(handle, "answer", {"node": asked["node"], "value": "yes"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "yes")
    assert len(model_server.asked) == 1 + 2 + 2 + 3 + 3
    assert "<<<DATA" in next(each.text for each in model_server.asked if "Answer from" in each.text)


async def test_a_program_is_a_node_of_a_plan(start: Start) -> None:
    script = "async def main(items: list[int]):\n    return [(await nap(value=item))['value'] * 2 for item in items]\n"
    nodes = [
        call("list", "nap", args={"value": [1, 2, 3]}),
        {"id": "twice", "kind": "program", "script": script, "arguments": {"items": "$list.value"}},
        call("after", "nap", args={"value": "$twice"}),
        {
            "id": "each",
            "kind": "map",
            "over": "$list.value",
            "do": {"kind": "tool", "tool": "nap", "args": {"value": "$item"}},
        },
    ]
    report = await (await start(plan={"nodes": nodes, "answer": ["$after.value", "$each"]})).result()
    assert report["answer"] == [[2, 4, 6], [{"value": 1}, {"value": 2}, {"value": 3}]]


async def test_a_large_result_stays_out_of_the_script(start: Start) -> None:
    script = """
async def first_two(found: Ref):
    return [await part(found, 0, 2), found]

async def main(items: list):
    found = await volume(value=items)
    [[some, same]] = await parallel([task(first_two, found=found)])
    rest = await nap(value={"rest": same})
    return [found.size, some, rest["value"]["rest"], same]
"""
    report = await (await start(plan=program(script, items=["$$a", 2, 3]))).result()
    assert report["answer"] == [3, ["$a", 2], ["$a", 2, 3], ["$a", 2, 3]], report


async def test_a_run_that_is_full_says_so(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_UNITS", 8)
    handle = await start(plan=program(CHAIN, count=9))
    view = await until(handle, blocked)
    assert "TooManyCalls" in view["blocked"][0]["question"]
    await insist(handle, "finish", {})
    assert (await handle.result())["status"] == "partial"


RACE = """
async def slow(seconds: float):
    await nap(seconds=seconds)
    return (await nap(value=seconds))["value"]

async def main():
    winner = await first([task(slow, seconds=seconds) for seconds in (60.0, 0.0, 60.0)])
    votes = await quorum(2, [task(nap, value=1), task(nap, seconds=60.0), task(nap, value=2)])
    return [winner, [vote["value"] for vote in votes]]
"""


async def test_who_loses_a_race_is_cancelled_with_all_that_it_called(start: Start) -> None:
    report = await (await start(plan=program(RACE))).result()
    assert (report["status"], report["answer"]) == ("done", [0.0, [1, 2]])
    ended = Counter(line["status"] for line in report["nodes"])
    assert set(ended) == {"succeeded", "cancelled"}, report["nodes"]
    assert ended["succeeded"] == 1 + 1 + 2 + 2, "the program, the task that was first, its calls, and two votes"
    assert ended["cancelled"] in (3, 4, 5), "two tasks and a call; what those tasks had called by then"


BY_HAND = """
async def look(number: int):
    try:
        return await fail(message=f"no {number}")
    except RuntimeError:
        return (await nap(value=number))["value"]

async def main(file: str):
    caught = await parallel([task(look, number=7)])
    fact = await llm("Find it.", schema={"found": bool})
    posted = await post(text=file, after="crash")
    last = await fail(message="last")
    return [caught, fact["found"], posted["posted"], last]
"""


async def test_a_person_gives_the_results_of_calls_that_failed(
    begin: Start, model_server: ModelServer, cache: Path
) -> None:
    model_server.on("Find it", Reply("no key", status=401))
    handle = await begin(plan=program(BY_HAND, file=uuid.uuid4().hex), approval="never")
    values: list[Any] = [{"found": True}, {"posted": "by hand"}, None]
    for value in values:
        view = await until(handle, blocked)
        item = view["blocked"][-1]
        assert item["also"] == ["skip_node", "answer"]
        if value == {"found": True}:
            with pytest.raises(WorkflowUpdateFailedError) as refused:
                await insist(handle, "answer", {"node": item["node"], "value": {"found": "yes"}})
            assert "value.found" in str(refused.value.cause)
        assert (await insist(handle, "answer", {"node": item["node"], "value": value})) == f"{item['node']} is answered"
    before = called(cache, handle)
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [[7], True, "by hand", None]), report
    assert called(cache, handle) == before
    assert len(before) == 4, "each tool was called once"


WHILE = """
async def often(name: str, times: int):
    said = []
    while times - len(said) > 0:  # a quote cannot tell how often
        said.append(await llm(f"Say {name} for the {len(said)}th time."))
    return len(said)

async def main(times: int):
    alone = await often("main", times)
    return [alone, *await parallel([task(often, name=name, times=times) for name in ("a", "b")])]
"""


def parked_at(cap: int, view: dict[str, Any]) -> bool:
    return blocked(view) and view["budget"]["calls"]["limit"] == cap


async def test_a_program_parks_at_its_cap_and_goes_on_where_it_was(begin: Start, model_server: ModelServer) -> None:
    model_server.on("Say", "It is said.")
    handle = await begin(plan=program(WHILE, times=3), budget={"calls": 2})
    for cap in (2, 5):  # in a loop of `main`, and in loops of both tasks
        view = await until(handle, partial(parked_at, cap))
        [item] = view["blocked"]
        assert item["question"].startswith(f"the budget is spent (calls {cap} of {cap})")
        assert view["usage"]["calls"] == cap
        await insist(handle, "raise_budget", {"calls": cap + 3 if cap == 2 else 9})
    report = await handle.result()
    assert (report["status"], report["answer"], report["usage"]["calls"]) == ("done", [3, 3, 3], 9)
    attempts = [line.get("attempts", 1) for line in report["nodes"] if line["kind"] == "llm"]
    assert attempts == [1] * 9, "nothing is paid twice"


APPROVED = """
async def main(name: str):
    said = [await llm(f"Say {name} {number}.") for number in range(3)]
    return [len(said), await fail(message="no")]
"""


async def test_a_person_approves_a_program_and_what_it_can_cost(begin: Start, model_server: ModelServer) -> None:
    model_server.on("Say", "It is said.")
    handle = await begin(plan=program(APPROVED, name="Bo"), approve_plan=True, budget={"calls": 2, "tokens": 900})
    view = await until(handle, blocked)
    question = "`main` makes at least 3 model calls; the budget has 2 left; 1 node is ready and waits"
    assert [item["question"] for item in view["blocked"]] == [question]
    assert view["quote"].startswith("calls 4; tokens about 3,0")
    assert "the budget has 900 tokens" in view["warnings"][-1]
    await insist(handle, "raise_budget", {"calls": 5, "tokens": 50_000})

    async def asked(part: str) -> str:
        view = await until(handle, lambda view: blocked(view) and view["blocked"][0]["why"] == "approval")
        [item] = view["blocked"]
        assert (item["node"], view["quote"] in item["shown"], part in item["shown"]) == ("main", True, True), item
        return str(item["example"]["digest"])

    digest = await asked('name: "Bo"')
    assert (await handle.query("plan"))["usage"]["calls"] == 0, "nothing is spent before"
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await insist(handle, "approve", {"node": "main", "digest": digest, "args": {"name": "x"}})
    assert "args can be changed of a write only" in str(refused.value.cause)
    await insist(handle, "approve", {"node": "main", "digest": digest})
    await until(handle, lambda view: blocked(view) and view["blocked"][0]["why"] == "failed")
    repaired = APPROVED.replace("fail(message", "nap(value")
    await insist(handle, "edit_program", {"script": repaired})
    assert await asked("nap(value") != digest, "another script is asked about again"
    await insist(handle, "reject", {"node": "main", "reason": "not yet"})
    view = await until(handle, lambda view: blocked(view) and view["blocked"][0]["why"] == "failed")
    assert "Rejected: not yet" in view["blocked"][0]["question"]
    await insist(handle, "retry_node", {"node": "main"})
    await insist(handle, "approve", {"node": "main", "digest": await asked("nap(value")})
    report = await handle.result()
    assert (report["status"], report["answer"], report["usage"]["calls"]) == ("done", [3, {"value": "no"}], 3)
    assert report["quote"] == view["quote"]


EDITED = """
async def look(number: int):
    return (await nap(value=number))["value"]

async def main(mark: str):
    found = await parallel([task(look, number=number) for number in range(2)])
    written = await note(text=mark)
    greeting = await llm("Greet them.")
    asked = await ask("Go on?")
    last = await WRONG
    return [found, greeting, asked, (await nap(value=last))["value"]]
"""


@remembered_or_not
async def test_an_edited_script_runs_only_what_changed(begin: Start, model_server: ModelServer, cache: Path) -> None:
    model_server.on("Greet them", "Hello.")
    mark = uuid.uuid4().hex
    handle = await begin(plan=program(EDITED.replace("WRONG", 'fail(message="no")'), mark=mark), approval="never")
    view = await until(handle, blocked)
    while view["blocked"][0]["update"] != "retry_node":
        [asked] = view["blocked"]
        await insist(handle, "answer", {"node": asked["node"], "value": "yes"})
        view = await until(handle, lambda view: blocked(view) and view["blocked"][0]["update"] == "retry_node")
    before = called(cache, handle)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await insist(handle, "edit_program", {"script": "async def main(mark: str):\n    return await knap()\n"})
    assert "line 2" in str(refused.value.cause)
    repaired = EDITED.replace("WRONG", "nap(value=6 * 7)").replace('["value"]\n\n', '["value"] * 2\n\n')
    await insist(handle, "edit_program", {"script": repaired})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [[0, 2], "Hello.", "yes", {"value": 42}]), report
    assert len(called(cache, handle) - before) == 2
    shown = await handle.query("script")
    assert shown["script"] == repaired
    known = {line["line"]: line["calls"] | line["tasks"] for line in shown["lines"]}
    assert all(list(counts) == ["succeeded"] for counts in known.values()), shown
    assert sorted(node["kind"] for node in report["nodes"] if node.get("taken_over")) == [
        "gate",
        "llm",
        "tool",
        "tool",
        "tool",
    ]
    assert model_server.asked[1:] == []
    assert (cache / "notes.txt").read_text().count(mark) == 1
    origin = await read_origin(handle._client, handle.id)
    assert origin.plan == program(repaired, mark=mark), "a fork begins with the script that the run had last"
    assert origin.homes == (handle.first_execution_run_id,)


FLYING = """
async def look(number: int, held: str):
    await note(text=str(number))
    await hang(name=held)
    return number

async def main(held: str):
    found = await parallel([task(look, number=number, held=held) for number in range(3)])
    return ["old", found]
"""


async def test_two_edits_at_once_leave_in_flight_what_they_call_again(start: Start, cache: Path, held: Path) -> None:
    handle = await start(plan=program(FLYING, held=held.name), approval="never")
    await happens(lambda: len(list(held.glob("*.begun"))) == 3)
    edits = [insist(handle, "edit_program", {"script": FLYING.replace("old", word)}) for word in ("one", "two")]
    await asyncio.gather(*edits)
    for begun in held.glob("*.begun"):
        begun.with_suffix(".end").touch()
    report = await handle.result()
    assert (report["status"], report["answer"][1]) == ("done", [0, 1, 2])
    assert report["answer"][0] in ("one", "two")
    assert list(called(cache, handle).values()) == [1] * 6


async def test_a_tool_loop_that_an_edit_takes_away_and_another_brings_back_writes_once(
    begin: Start, model_server: ModelServer, cache: Path
) -> None:
    mark = uuid.uuid4().hex
    model_server.on("Note it", Reply("", calls=(Call("note", {"text": mark}),)), results=0)
    model_server.on("Note it", Reply("late", first_token=60), Reply("noted"), results=1)
    loop = 'async def main():\n    return await llm("Note it.", tools=["note"])\n'
    handle = await begin(plan=program(loop), approval="never")
    await happens(lambda: len(model_server.asked) == 2)
    asks = 'async def main(n: str = "x"):\n    return await ask("Go on with {n}?")\n'
    confirmation = await insist(handle, "edit_program", {"script": asks})
    assert [line[:33] for line in confirmation.splitlines()[1:]] == ["warning: line 2: `{n}` stands in "]
    await until(handle, blocked)
    assert len((await handle.query("plan"))["warnings"]) == 1
    await insist(handle, "edit_program", {"script": loop})
    assert (await handle.query("plan"))["warnings"] == [], "of a script that runs no more"
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "noted"), report
    assert (cache / "notes.txt").read_text().count(mark) == 1
    assert len(model_server.asked) == 3, "only the turn that was cut off is asked again"


FORKED = """
async def look(number: int):
    return (await nap(value=number))["value"]

async def main(mark: str):
    await nap(value=2)
    await nap(value=now().microsecond)
    found = await parallel([task(look, number=number) for number in range(2)])
    written = await note(text=mark)
    greeting = await llm("Greet them.", tools=["nap"])
    asked = await ask("Go on?")
    told = await agent("Which is longer, the Nile or the Amazon?")
    last = await WRONG
    return [found, greeting, asked, last["value"]]
"""


async def test_a_fork_makes_only_the_calls_that_changed(begin: Start, model_server: ModelServer, cache: Path) -> None:
    """Whether steps make the calls of the first run and of one of its forks themselves, or not."""
    model_server.on("Greet them", Reply("", calls=(Call("nap", {"value": 1}),)), results=0)
    model_server.on("Greet them", "Hello.", results=1)
    model_server.on("the Nile", "1. nap(value=2)\n2. answer($1)", "The Nile.")
    mark = uuid.uuid4().hex
    plan = program(FORKED.replace("WRONG", 'fail(message="no")'), mark=mark)
    first = await begin(plan={**plan, "fuse": "on"}, approval="never")
    await answer_and_fail(first)
    await insist(first, "finish", {})
    over = await first.result()
    assert over["status"] == "partial"
    assert [line["status"] for line in over["nodes"]].count("failed") == 2, over["nodes"]
    asked, origin = len(model_server.asked), first.first_execution_run_id or ""
    repaired = {"plan": program(FORKED.replace("WRONG", "nap(value=6 * 7)"), mark=mark), "approval": "never"}
    forks = [await begin(**repaired, fuse=fuse, origins=[origin]) for fuse in ("on", "off")]
    await asyncio.gather(*(fork.result() for fork in forks))
    forks.append(await begin(**repaired, origins=[forks[0].first_execution_run_id, origin]))
    for fork, made in zip(forks, (1, 1, 0), strict=True):
        report = await fork.result()
        assert (report["status"], report["answer"]) == ("done", [[0, 1], "Hello.", "yes", 42]), report
        assert called(cache, fork).total() == made
        kinds = Counter(node["kind"] for node in report["nodes"] if node.get("taken_over"))
        assert kinds == {"tool": 6 - made, "llm": 1, "gate": 1, "agent": 1}, report["nodes"]
        assert report["usage"]["calls"] == 0
    assert len(model_server.asked) == asked
    assert (cache / "notes.txt").read_text().count(mark) == 1


async def answer_and_fail(handle: Handle) -> None:
    """Answer what a run asks until a call of it has failed."""
    view = await until(handle, blocked)
    while view["blocked"][0]["update"] != "retry_node":
        [asked] = view["blocked"]
        await insist(handle, "answer", {"node": asked["node"], "value": "yes"})
        view = await until(handle, lambda view: blocked(view) and view["blocked"][0]["update"] == "retry_node")


async def test_a_fork_goes_on_with_a_sub_agent_that_has_failed(
    begin: Start, model_server: ModelServer, cache: Path
) -> None:
    mark = uuid.uuid4().hex
    plan = f'1. note(text="{mark}")\n2. answer($1)'
    model_server.on("Note it", plan, Reply("no", status=400, code="invalid_request_error"), "It is noted.")
    script = 'async def main():\n    return await agent("Note it.")\n'
    first = await begin(plan=program(script), approval="never")
    await until(first, blocked)
    await insist(first, "finish", {})
    assert (await first.result())["status"] == "partial"
    longer = program(script.replace("    return", "    await nap(value=1)\n    return"))
    report = await (await begin(plan=longer, approval="never", origins=[first.first_execution_run_id])).result()
    assert (report["status"], report["answer"]) == ("done", "It is noted."), report
    assert (cache / "notes.txt").read_text().count(mark) == 1
    assert len(model_server.asked) == 3, "it has the plan that it had"


ASKS_AND_SLEEPS = """
import asyncio

async def main():
    return await asyncio.gather(ask("Go on?"), sleep(4))
"""


async def test_a_run_that_sleeps_goes_on_while_a_question_is_open(start: Start) -> None:
    handle = await start(plan=program(ASKS_AND_SLEEPS))
    view = await until(handle, lambda view: bool(view["blocked"]))
    assert view["status"] == "running", "it sleeps, and nobody has to do anything"
    assert status_text(RunView.model_validate(view)) == "running, a question waits"
    view = await until(handle, lambda view: view["status"] != "running")
    assert view["status"] == "blocked", "now it waits for the answer alone"
    await insist(handle, "answer", {"node": view["blocked"][0]["node"], "value": "yes"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", ["yes", None])
    [asleep] = [node for node in report["nodes"] if node["kind"] == "tool"]
    assert asleep["duration_ms"] is None, "it did not take the moment in which it ended"


SIDE_BY_SIDE = """
import asyncio
from datetime import datetime

async def look(number: int, found: list, guard: asyncio.Semaphore):
    async with guard:
        found.append((await nap(value=number))["value"])
        await asyncio.sleep(0.2)
        found.append((await nap(value=number + 10))["value"])

async def main(extra: int):
    found, guard, begun = [], asyncio.Semaphore(2), datetime.now()
    await asyncio.gather(*[look(number, found, guard) for number in range(4)])
    try:
        async with asyncio.timeout(0.3):
            await sleep(3600)
    except TimeoutError:
        found.append("late")
    seconds = (datetime.now() - begun).total_seconds()
    if extra:
        await nap(value=100)
    return [found, str(begun), 0.7 <= seconds < 60]
"""


async def test_an_edit_interleaves_coroutines_as_before_and_keeps_the_time(start: Start, cache: Path) -> None:
    """The question names the order and the time: it is the same one after the edit, and waits on."""
    script = SIDE_BY_SIDE.replace("    if extra:", "    await ask(str(found) + str(begun))\n    if extra:")
    handle = await start(plan=program(script, extra=0))
    [asked] = (await until(handle, blocked))["blocked"]
    before = called(cache, handle)
    edited = script.replace("if extra:", "if not extra:")
    await insist(handle, "edit_program", {"script": edited})
    while (await handle.query("script"))["script"] != edited:
        await asyncio.sleep(0.1)
    await insist(handle, "answer", {"node": asked["node"], "value": "yes"})
    report = await handle.result()
    found, _, is_in_time = report["answer"]
    assert (report["status"], sorted(found[:-1]), found[-1]) == ("done", [0, 1, 2, 3, 10, 11, 12, 13], "late")
    assert is_in_time, report["answer"]
    assert len(called(cache, handle)) == len(before) + 1, "only the new call was made"
    assert set(called(cache, handle).values()) == {1}


GIVEN_UP = """
import asyncio

async def slow():
    return await nap(value=1, seconds=60)

async def main():
    ticket, other = task(slow), task(slow)
    try:
        await asyncio.wait_for(nap(value=2, seconds=60), 0.2)
    except TimeoutError:
        cancel(ticket)
    await sleep(0.2)
    return await ask("Go on?")
"""


async def test_what_a_program_gives_up_is_cancelled_while_it_goes_on(start: Start) -> None:
    handle = await start(plan=program(GIVEN_UP))
    view = await until(handle, lambda view: bool(view["blocked"]))
    assert view["counts"]["cancelled"] == 2, "a call, and that of a task"
    assert view["counts"]["running"] == 1, "the call of the other task"
    await insist(handle, "answer", {"node": view["blocked"][0]["node"], "value": "yes"})
    assert (await handle.result())["answer"] == "yes"


LIMITED = """
async def late(number: int):
    await sleep(3600)

async def look(number: int):
    begun = now()
    await nap(value=number, seconds=0.2)
    return begun.isoformat()

async def main():
    caught = []
    try:
        await nap(value=-1, seconds=60, timeout=0.3)
    except TimeoutError as error:
        caught.append(str(error))
    try:
        await parallel([task(late, number=1)], timeout=0.3)
    except TimeoutError as error:
        caught.append(str(error))
    tickets = [task(late, number=2, timeout=2), task(nap, value=7)]
    for _ in tickets:
        try:
            ticket, value = await next_of(tickets)
            caught.append([tickets.index(ticket), value["value"]])
        except TimeoutError as error:
            caught.append(str(error))
    return [caught, await parallel([task(look, number=number) for number in range(4)], limit=1)]
"""


async def test_calls_expire_and_joins_have_limits(start: Start) -> None:
    report = await (await start(plan=program(LIMITED))).result()
    assert report["status"] == "done", report
    caught, begun = report["answer"]
    assert caught == ["more than 0.3 s", "more than 0.3 s", [1, 7], "more than 2 s"]
    assert begun == sorted(set(begun)), "one after the other"


CLOCKED = """
import uuid

async def look(number: int):
    await nap(value=number)
    return str(now())

async def main():
    begun = str(now())
    await nap(value=begun)
    await sleep(3)
    found = await parallel([task(look, number=number) for number in range(3)])
    told = [begun, found, str(now()), str(uuid.uuid4())]
    await nap(value=told)
    if False:
        await nap(value="new")
    return [told, str(now()), str(uuid.uuid4())]
"""


async def test_a_fork_goes_on_by_the_clock_until_it_makes_a_call_anew(begin: Start, cache: Path) -> None:
    """What is called with the time, or with a UUID, is taken over until then, and no sleep is slept again."""
    first = await begin(plan=program(CLOCKED), approval="never")
    told, at, one = (await first.result())["answer"]
    plan = program(CLOCKED.replace("if False", "if True"))
    fork = await begin(plan=plan, approval="never", origins=[first.first_execution_run_id])
    report = await fork.result()
    assert report["answer"][0] == told, report
    assert called(cache, fork).total() == 1
    assert report["answer"][1] > at
    assert report["answer"][2] not in (one, told[-1])
    [slept] = [node for node in report["nodes"] if node["id"] == "main_2"]
    assert slept["taken_over"]


async def test_a_run_that_sleeps_continues_as_new_and_one_node_ends_all_sleeps_of_a_time(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (60, drain.SOFT_BOUNDS[1], 100))
    script = """
import asyncio

async def doze(number: int):
    await asyncio.sleep(3)
    return number

async def main():
    sleeping = asyncio.create_task(asyncio.sleep(2))
    for number in range(20):
        await nap(value=number)
    await sleeping
    return sum(await asyncio.gather(*[doze(number) for number in range(2000)]))
"""
    handle = await start(plan=program(script))
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", 1999 * 1000), report
    assert len(report["nodes"]) == 1 + 20 + 2
    assert (await handle.describe()).run_id != handle.first_execution_run_id, "it has continued as new while it slept"
