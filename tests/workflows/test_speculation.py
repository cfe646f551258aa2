"""Runs that make calls early: what they save, what they leave alone, and that they are replayed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start, remembered_or_not, serving, starting
from doubles.runs import early_calls, insist, until
from doubles.tools import calls
from temporalio.client import Client, WorkflowHandle

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.llm.models import Models
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.toolbox import load_tools
from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer
from sennit.workflows.messages.converter import DATA_CONVERTER
from sennit.workflows.plan.speculation.limits import MAX_ASKED
from sennit.workflows.run import drain

FIRST = Call("nap", {"value": {"next": "the second"}, "seconds": 0.3})
SECOND = Call("nap", {"value": "the second", "seconds": 0.3})
LOOP = {"nodes": [{"id": "m", "kind": "llm", "prompt": "look", "tools": ["nap", "note"]}]}


@pytest.fixture
async def host(model_server: ModelServer, cache: Path, artifacts: Path, docs: Path) -> AsyncIterator[Activities]:
    """The activities of a worker that learns, and lets runs speculate that ask for it."""
    settings = ModelSettings.read(
        {"OPENAI_BASE_URL": model_server.openai_url, "OPENAI_API_KEY": "any", "SENNIT_MODEL": "openai"}
    )
    served = Models.of(settings)
    yield Activities(
        WorkerPaths(artifacts, cache, docs, (Path("/"),)),
        load_tools(["doubles.tools"]),
        served,
        identity="tests",
        approval="never",
        learn="on",
    )
    await served.close()


@pytest.fixture
async def begin(client: Client, host: Activities, cached: int) -> AsyncIterator[Start]:
    """Start a run on these workers; at its end its history is replayed, with its tasks joined, too."""
    async with serving(client, host, cached=cached), starting(client) as start:
        yield start


async def learned(client: Client, begin: Start, plan: dict[str, Any], tenant: str) -> None:
    """Have a run teach what its model asks for."""
    handle = await begin(plan=plan, tenant=tenant)
    await handle.result()
    await client.get_workflow_handle(f"{handle.id}.noted-calls").result()


def asks_in_turn(server: ModelServer, *asked: Call) -> None:
    """Have the model ask for one call after the other, with some time to think, and then answer."""
    for count, call in enumerate(asked):
        server.on("look", Reply("", calls=(call,), first_token=0.5), results=count)
    server.on("look", "it is", results=len(asked))


@remembered_or_not
async def test_a_tool_loop_finds_its_next_call_made_before_the_model_has_asked_for_it(
    begin: Start, client: Client, model_server: ModelServer, cache: Path
) -> None:
    asks_in_turn(model_server, FIRST, SECOND)
    await learned(client, begin, LOOP, "hits")
    handle = await begin(plan=LOOP, tenant="hits", speculate="on")
    report = await handle.result()
    assert report["answer"] == "it is"
    early = report["figures"]["speculation"]
    assert (early["hits"], early["missed"]) == (1, 0)
    assert early["saved_ms"] > 0
    first_run = (await handle.describe()).run_id or ""
    assert len(calls(cache, first_run)) == 2, "the real second call was not made again"
    details = (await handle.query("__temporal_workflow_metadata")).current_details
    assert "made early, 1 of use" in details


async def test_a_run_that_does_not_ask_for_it_calls_nothing_early(
    begin: Start, client: Client, model_server: ModelServer
) -> None:
    asks_in_turn(model_server, FIRST, SECOND)
    await learned(client, begin, LOOP, "quiet")
    handle = await begin(plan=LOOP, tenant="quiet")
    report = await handle.result()
    assert await early_calls(handle) == []
    assert report["figures"].get("speculation") is None


@remembered_or_not
async def test_a_write_in_between_has_the_call_made_again(
    begin: Start, client: Client, model_server: ModelServer, cache: Path
) -> None:
    asks_in_turn(model_server, FIRST, SECOND)
    await learned(client, begin, LOOP, "writes")
    model_server.rules.clear()
    asks_in_turn(model_server, FIRST, Call("note", {"text": "changed"}), SECOND)
    handle = await begin(plan=LOOP, tenant="writes", speculate="on", approval="never")
    early = (await handle.result())["figures"]["speculation"]
    assert (early["hits"], early["wasted"]) == (0, early["calls"])
    first_run = (await handle.describe()).run_id or ""
    assert len(calls(cache, first_run)) >= 4, "both real reads, the write, and what was made early"


async def test_a_model_that_asks_for_something_else_gets_that(
    begin: Start, client: Client, model_server: ModelServer
) -> None:
    asks_in_turn(model_server, FIRST, SECOND)
    await learned(client, begin, LOOP, "others")
    model_server.rules.clear()
    asks_in_turn(model_server, FIRST, Call("nap", {"value": "another one", "seconds": 0.1}))
    handle = await begin(plan=LOOP, tenant="others", speculate="on")
    report = await handle.result()
    early = report["figures"]["speculation"]
    assert (early["hits"], early["missed"]) == (0, 1)
    assert '"another one"' in model_server.asked[-1].text


SECRET = "abc/defghijklmnopqrst"
LONG = "a text of which the reply still writes " * 8


@remembered_or_not
@pytest.mark.parametrize("text", ["first", SECRET])
async def test_a_call_is_made_while_the_reply_that_asks_for_it_still_comes(
    begin: Start, model_server: ModelServer, cache: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Also one with a secret of the worker: it is masked as in the reply, else it would be another call."""
    monkeypatch.setenv("SOME_TOKEN", SECRET)
    asked = (Call("nap", {"value": text, "seconds": 0.5}), Call("nap", {"value": LONG, "seconds": 0.1}))
    model_server.on("look", Reply("", calls=asked, rate=5), results=0)
    model_server.on("look", "it is", results=2)
    handle = await begin(plan=LOOP, tenant="streamed", speculate="on")
    report = await handle.result()
    assert report["answer"] == "it is"
    early = report["figures"]["speculation"]
    assert early["hits"] == early["calls"] >= 1
    assert early["saved_ms"] > 0
    assert len(calls(cache, (await handle.describe()).run_id or "")) == 2, "no call was made twice"


async def test_a_write_of_the_same_reply_has_a_call_made_again_that_was_early(
    begin: Start, model_server: ModelServer
) -> None:
    asked = (Call("nap", {"value": "first", "seconds": 0.1}), Call("note", {"text": LONG}))
    model_server.on("look", Reply("", calls=asked, rate=5), results=0)
    model_server.on("look", "it is", results=2)
    handle = await begin(plan=LOOP, tenant="streamed-writes", speculate="on", approval="never")
    report = await handle.result()
    assert report["answer"] == "it is"
    early = report["figures"]["speculation"]
    assert (early["calls"], early["hits"]) == (1, 0), "the write may have changed what was read, and is never early"
    assert len(await early_calls(handle)) == 1


async def test_of_one_reply_so_many_calls_are_made_early_and_no_more(begin: Start, model_server: ModelServer) -> None:
    asked = [Call("nap", {"value": str(number), "seconds": 0.1}) for number in range(MAX_ASKED + 2)]
    model_server.on("look", Reply("", calls=(*asked, Call("nap", {"value": LONG, "seconds": 0.1})), rate=10), results=0)
    model_server.on("look", "it is", results=len(asked) + 1)
    handle = await begin(plan=LOOP, tenant="streamed-many", speculate="on")
    report = await handle.result()
    assert report["answer"] == "it is"
    early = report["figures"]["speculation"]
    assert early["calls"] == MAX_ASKED
    assert early["hits"] > MAX_ASKED // 2


@pytest.mark.parametrize("speculate", ["off", None])
async def test_a_run_that_does_not_speculate_is_told_of_no_call(
    begin: Start, model_server: ModelServer, speculate: str | None
) -> None:
    asked = (Call("nap", {"value": "first", "seconds": 0.1}), Call("nap", {"value": LONG, "seconds": 0.1}))
    model_server.on("look", Reply("", calls=asked, rate=5), results=0)
    model_server.on("look", "it is", results=2)
    handle = await begin(plan=LOOP, speculate=speculate)
    await handle.result()
    events = [event async for event in handle.fetch_history_events()]
    assert not [event for event in events if event.HasField("workflow_execution_signaled_event_attributes")]


async def test_a_false_word_of_a_call_makes_none(begin: Start, model_server: ModelServer) -> None:
    model_server.on("look", Reply("it is", first_token=1.5))
    handle = await begin(plan=LOOP, tenant="streamed-lies", speculate="on")
    await until(handle, lambda view: view["phase"] == "running")
    true = {"node": "m", "generation": 1, "tool": "nap", "arguments": "0" * 64}
    for lie in (
        {"tool": "note"},  # it writes
        {"tool": "unheard of"},
        {"node": "elsewhere"},
        {"generation": 2},
        {"more": 1},
    ):
        await handle.signal("asked_call", true | lie)
    await handle.signal("asked_call", "text")
    await handle.signal("asked_call", args=[true, true])
    assert await early_calls(handle) == []
    for more in (
        {"arguments": "1" * 64},  # is not stored
        {"arguments": "../../etc/passwd"},
        {"tool": "digest"},  # the model may not call it
    ):
        await handle.signal("asked_call", true | more)
    report = await handle.result()
    assert report["answer"] == "it is"
    early = report["figures"]["speculation"]
    assert (early["calls"], early["wasted"]) == (3, 3)


CHAIN = (
    Call("nap", {"value": {"next": {"next": "the end"}}, "seconds": 0.3}),
    Call("peek", {"value": {"next": "the end"}, "seconds": 0.3}),
    Call("glance", {"value": "the end", "seconds": 0.3}),
)
CHAIN_LOOP = {
    "nodes": [{"id": "m", "kind": "llm", "prompt": "look", "tools": ["nap", "peek", "glance", "digest", "note"]}]
}


async def firsts_of_early_calls(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return what each call that was made early names as the early call that it follows."""
    firsts = []
    async for event in handle.fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == "prefetch":
            [sent] = await DATA_CONVERTER.decode(scheduled.input.payloads)
            firsts.append(sent.get("first", "").rpartition("/")[2])
    return firsts


async def followers_of(handle: WorkflowHandle[Any, Any]) -> list[tuple[str, str, float]]:
    """Return which calls follow which, and how probably, as a run was told when it was prepared."""
    async for event in handle.fetch_history_events():
        ended = event.activity_task_completed_event_attributes
        if ended.result.payloads:
            [prepared] = await DATA_CONVERTER.decode(ended.result.payloads)
            return [
                (follower["first"], follower["second"], follower["probability"])
                for follower in prepared["speculation"]["followers"]
            ]
    return []


async def test_a_run_that_used_early_calls_teaches_the_same_as_one_that_made_none(
    begin: Start, client: Client, model_server: ModelServer
) -> None:
    """Its model asks for each call sooner than the call before would have ended, had it not been made early."""
    asks_in_turn(model_server, *CHAIN)
    await learned(client, begin, CHAIN_LOOP, "taught")
    model_server.rules.clear()
    for count, asked in enumerate(CHAIN):
        model_server.on("look", Reply("", calls=(asked,), first_token=(0, 1.5, 0)[count]), results=count)
    model_server.on("look", "it is", results=len(CHAIN))
    handles = []
    for _ in range(2):
        handle = await begin(plan=CHAIN_LOOP, tenant="taught", speculate="on")
        early = (await handle.result())["figures"]["speculation"]
        assert early["hits"] == 2
        await client.get_workflow_handle(f"{handle.id}.noted-calls").result()
        handles.append(handle)
    assert await followers_of(handles[1]) == await followers_of(handles[0])


@remembered_or_not
async def test_behind_a_call_that_only_a_pattern_expects_nothing_begins_before_the_model_has_asked_for_it(
    begin: Start, client: Client, model_server: ModelServer, cache: Path
) -> None:
    asks_in_turn(model_server, *CHAIN)
    await learned(client, begin, CHAIN_LOOP, "chains")
    handle = await begin(plan=CHAIN_LOOP, tenant="chains", speculate="on")
    report = await handle.result()
    assert report["answer"] == "it is"
    assert await firsts_of_early_calls(handle) == ["", ""]
    early = report["figures"]["speculation"]
    assert (early["calls"], early["hits"], early["missed"]) == (2, 2, 0)
    assert len(calls(cache, (await handle.describe()).run_id or "")) == 3, "no call was made twice"


@remembered_or_not
async def test_a_chain_begins_behind_a_call_of_a_reply_that_still_comes(
    begin: Start, client: Client, model_server: ModelServer, cache: Path
) -> None:
    asks_in_turn(model_server, *CHAIN)
    await learned(client, begin, CHAIN_LOOP, "streamed-chains")
    model_server.rules.clear()
    asked = (CHAIN[0], Call("digest", {"text": LONG}))
    model_server.on("look", Reply("", calls=asked, rate=5), results=0)
    model_server.on("look", Reply("", calls=(CHAIN[1],)), results=2)
    model_server.on("look", Reply("", calls=(CHAIN[2],)), results=3)
    model_server.on("look", "it is", results=4)
    handle = await begin(plan=CHAIN_LOOP, tenant="streamed-chains", speculate="on")
    report = await handle.result()
    assert report["answer"] == "it is"
    firsts = await firsts_of_early_calls(handle)
    assert firsts[:3] == ["", "1", "2"], "all three, before the digest is whole"
    early = report["figures"]["speculation"]
    assert early["hits"] == early["calls"] >= 3
    first_run = (await handle.describe()).run_id or ""
    assert len(calls(cache, first_run)) == 3, "each was made once, and a digest is not logged"


async def test_a_write_between_the_calls_of_a_chain_has_them_made_again(
    begin: Start, client: Client, model_server: ModelServer, cache: Path
) -> None:
    asks_in_turn(model_server, *CHAIN)
    await learned(client, begin, CHAIN_LOOP, "written-chains")
    model_server.rules.clear()
    asks_in_turn(model_server, CHAIN[0], Call("note", {"text": "changed"}), *CHAIN[1:])
    handle = await begin(plan=CHAIN_LOOP, tenant="written-chains", speculate="on", approval="never")
    report = await handle.result()
    assert report["answer"] == "it is"
    assert report["figures"]["speculation"]["hits"] == 1, "behind the real second call, the third was made early again"


def behind_a_gate(tool: str, **args: Any) -> dict[str, Any]:
    """Return a plan of two branches that a person decides on."""
    gate = {"id": "g", "kind": "gate", "question": "Which?"}
    yes = {"ref": "$g", "op": "eq", "value": "yes"}
    nodes: list[dict[str, Any]] = [gate]
    for name, when in (("y", yes), ("n", {"not": yes})):
        call = {"id": name, "kind": "tool", "tool": tool, "args": {**args, "text": f"of {name}"}, "when": when}
        nodes.append(call)
    return {"nodes": nodes, "answer": {"y": "$y", "n": "$n"}}


@remembered_or_not
async def test_both_branches_behind_a_gate_are_made_while_a_person_thinks(begin: Start) -> None:
    handle = await begin(plan=behind_a_gate("digest"), speculate="on")
    await until(handle, lambda view: bool(view["blocked"]))
    while len(await early_calls(handle)) < 2:
        await asyncio.sleep(0.05)
    await insist(handle, "answer", {"node": "g", "value": "yes"})
    report = await handle.result()
    early = report["figures"]["speculation"]
    assert (early["calls"], early["hits"], early["wasted"]) == (2, 1, 1)


async def test_a_fork_finds_by_its_key_what_an_early_call_has_given(begin: Start, cache: Path) -> None:
    plan = behind_a_gate("digest")
    handle = await begin(plan=plan, speculate="on")
    await until(handle, lambda view: bool(view["blocked"]))
    while len(await early_calls(handle)) < 2:
        await asyncio.sleep(0.05)
    await insist(handle, "answer", {"node": "g", "value": "yes"})
    await handle.result()
    origin = (await handle.describe()).run_id or ""
    fork = await begin(plan=plan, speculate="on", origins=(origin,))
    await until(fork, lambda view: bool(view["blocked"]) or view["status"] == "done")
    assert await early_calls(fork) == [], "a fork takes over what there is"
    view = await until(fork, lambda view: True)
    if view["blocked"]:
        await insist(fork, "answer", {"node": "g", "value": "yes"})
    assert (await fork.result())["answer"]["y"]


async def test_a_run_that_continues_as_new_goes_on_making_calls_early_and_counts_all(
    begin: Start, client: Client, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [Call("nap", {"value": {"next": f"the {place}"}, "seconds": 0.3}) for place in range(3)]
    seconds = [Call("nap", {"value": f"the {place}", "seconds": 0.3}) for place in range(3)]
    asks_in_turn(model_server, *(call for pair in zip(pairs, seconds, strict=True) for call in pair))
    await learned(client, begin, LOOP, "continued")
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (80, drain.SOFT_BOUNDS[1], 5))
    handle = await begin(plan=LOOP, tenant="continued", speculate="on")
    report = await handle.result()
    assert report["answer"] == "it is"
    assert report["run_id"] != handle.first_execution_run_id, "it has continued as new"
    early = report["figures"]["speculation"]
    assert early["calls"] >= 3
    assert early["hits"] >= 1
