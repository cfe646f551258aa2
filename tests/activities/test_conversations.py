"""Conversations: a chain of runs, each of which is given the turns before it as messages with roles."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start, serving, starting
from doubles.model_bench import KEY
from temporalio.client import Client, WorkflowFailureError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.llm.models import Models
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.toolbox import load_tools
from sennit.testing.model_rules import Asked, Reply
from sennit.testing.models import ModelServer, model_server

PLAN = '1. llm("Think of $goal")\n2. answer($1)'
SPELLS = '1. llm("Is this well spelt? $goal")\n2. answer($1)'


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server(key=KEY, models=("first",)) as found:
        yield found


@pytest.fixture
async def run(
    request: pytest.FixtureRequest, client: Client, artifacts: Path, cache: Path, server: ModelServer
) -> AsyncIterator[Start]:
    """Serve all queues with a model, whose context may be given, and give a way to start runs."""
    provider, context = getattr(request, "param", ("openai", ""))
    urls = {"OPENAI_BASE_URL": server.openai_url, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
    env = {**urls, "OPENAI_API_KEY": KEY, "SENNIT_MODEL": f"{provider}:first", "SENNIT_CONTEXT": context}
    models = Models.of(ModelSettings.read(env))
    paths = WorkerPaths(artifacts, cache, None, (Path("/"),))
    host = Activities(paths, load_tools(["doubles.tools"]), models, identity="tests", approval="never")
    async with serving(client, host), starting(client) as start:
        yield start
    await models.close()


def of(role: str, server: ModelServer) -> list[Asked]:
    """Return the calls of a role, in order, by the words of its system prompt."""
    words = {"planner": "You plan work", "joiner": "You put results together", "worker": "You do one step"}
    return [asked for asked in server.asked if words[role] in asked.system]


def turns(asked: Asked) -> list[tuple[str, str]]:
    """Return (role, text) of the turns before the prompt."""
    return [(role, text) for role, text, *_ in asked.turns[:-1]]


async def ask(run: Start, goal: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    handle = await run(goal=goal, **fields)
    return handle.id, await handle.result()


async def refused(run: Start, server: ModelServer, **fields: Any) -> str:
    """Return why a run is refused, which has asked no model."""
    calls = len(server.asked)
    with pytest.raises(WorkflowFailureError) as caught:
        await ask(run, "And then?", **fields)
    assert len(server.asked) == calls, "nothing is spent"
    return str(caught.value.cause)


@pytest.mark.parametrize("run", [("openai", ""), ("anthropic", "")], indirect=True, ids=["openai", "anthropic"])
async def test_a_chat_over_three_runs(run: Start, server: ModelServer) -> None:
    server.on("You plan work", SPELLS)
    server.on("You do one step", "Yes.")
    server.on("You put results", "The Nile has 6,650 km.", "The Amazon has 6,400 km.", "The Nile, by 250 km.")
    first, _ = await ask(run, "How long is the Nile?")
    second, result = await ask(run, "And the Amazon?", continues=first)
    assert result["answer"] == "The Amazon has 6,400 km."
    _, result = await ask(run, "Which is longer?", continues=second)
    assert result["answer"] == "The Nile, by 250 km."
    before = [
        ("user", "How long is the Nile?"),
        ("assistant", "The Nile has 6,650 km."),
        ("user", "And the Amazon?"),
        ("assistant", "The Amazon has 6,400 km."),
    ]
    for role in ("planner", "worker", "joiner"):
        assert [turns(asked) for asked in of(role, server)] == [[], before[:2], before], role
    asked = of("planner", server)
    assert "The goal goes on with the conversation" not in asked[0].turns[-1][1]
    assert "The goal goes on with the conversation" in asked[1].turns[-1][1]
    assert "Today is " in asked[0].turns[-1][1]


async def test_a_conversation_goes_on_when_the_artifacts_of_its_beginning_are_gone(
    run: Start, server: ModelServer, artifacts: Path, client: Client
) -> None:
    server.on("You plan work", PLAN)
    server.on("You put results", "Seven.", "Eight.", "Nine.")
    first, _ = await ask(run, "What is six and one?")
    second, _ = await ask(run, "And one more?", continues=first)
    forget(artifacts, client, await first_run(client, first))
    _, result = await ask(run, "And one more?", continues=second)
    assert (result["answer"], len(turns(of("joiner", server)[-1]))) == ("Nine.", 4)
    forget(artifacts, client, await first_run(client, second))
    assert f"the turns before {second} are gone; start a new conversation" in await refused(
        run, server, continues=second
    )


async def first_run(client: Client, name: str) -> str:
    found = await client.get_workflow_handle(name).describe()
    return found.raw_description.workflow_execution_info.first_run_id


def forget(artifacts: Path, client: Client, prefix: str) -> None:
    """Delete what a run has stored, as `sennit gc` does."""
    [folder] = [path for path in artifacts.rglob(prefix) if path.is_dir()]
    shutil.rmtree(folder)


async def test_a_run_that_cannot_be_continued_is_named_before_anything_is_spent(
    run: Start, server: ModelServer
) -> None:
    server.on("You plan work", PLAN)
    server.on("You put results", "Seven.")
    gate = {"nodes": [{"id": "g", "kind": "gate", "question": "Well?"}]}
    waiting = await run(goal="Wait", plan=gate)
    mine, _ = await ask(run, "What is six and one?", tenant="acme")
    failed = await run(plan={"nodes": [{"id": "f", "kind": "tool", "tool": "fail"}], "on_failure": "fail"})
    with pytest.raises(WorkflowFailureError):
        await failed.result()
    assert "there is no run agent-none-00000000" in await refused(run, server, continues="agent-none-00000000")
    assert f"{mine} is no run of this tenant" in await refused(run, server, continues=mine)
    assert f"{mine} is no run of this tenant" in await refused(run, server, continues=mine, tenant="other")
    assert f"{waiting.id} still runs" in await refused(run, server, continues=waiting.id)
    assert f"{failed.id} has no answer to go on from" in await refused(run, server, continues=failed.id)
    await waiting.cancel()


async def test_turns_that_no_run_has_kept_come_with_the_request(run: Start, server: ModelServer) -> None:
    server.on("You plan work", PLAN)
    server.on("You put results", "Seven.")
    history = [{"role": "user", "content": f"My key is {KEY}."}, {"role": "assistant", "content": "Noted."}]
    await ask(run, "What is it?", history=history)
    [said, noted] = turns(of("joiner", server)[-1])
    assert KEY not in said[1], "it is stored without secrets of the worker"
    assert noted == ("assistant", "Noted.")


@pytest.mark.parametrize("run", [("openai", "4096")], indirect=True)
async def test_a_conversation_that_fills_the_context_is_summed_up_once_and_people_are_told(
    run: Start, server: ModelServer
) -> None:
    server.on("You shorten conversations", Reply(text="They spoke of rivers.", usage=(500, 5)))
    server.on("You plan work", Reply(text=SPELLS, usage=(500, 5)))
    server.on("You do one step", Reply(text="Yes.", usage=(500, 5)))
    server.on("You put results", Reply(text="Seven.", usage=(500, 5)))
    long = [
        {"role": role, "content": f"{role} {number} " * 100} for number in range(8) for role in ("user", "assistant")
    ]
    _, result = await ask(run, "What now?", history=long)
    summed = [asked for asked in server.asked if "You shorten conversations" in asked.system]
    for role in ("planner", "joiner", "worker"):
        kept = turns(of(role, server)[-1])
        assert kept[0][1].startswith("What was said before, in short:\nThey spoke of rivers.")
        assert kept[-1] == ("assistant", long[-1]["content"])
        assert len(kept) < len(long)
    assert len(summed) >= 1
    assert result["usage"]["calls"] == len(server.asked), "every call is counted"
    assert any("were summed up" in warning for warning in result["warnings"])
    assert len({asked.turns[-1][1] for asked in summed}) == len(summed), "none is made twice"


@pytest.mark.parametrize("run", [("openai", "4096")], indirect=True)
async def test_a_conversation_is_summed_up_within_the_budget(run: Start, server: ModelServer) -> None:
    """A summary takes 700 tokens, and what they leave of 2,000 is too little for the call itself."""
    server.on("You shorten conversations", Reply(text="They spoke of rivers.", usage=(690, 10)))
    server.on("", "never asked")
    long = [{"role": role, "content": f"{role} {n} " * 100} for n in range(8) for role in ("user", "assistant")]
    plan = {"nodes": [{"id": "n", "kind": "llm", "prompt": "$goal"}], "on_failure": "fail"}
    handle = await run(goal="What now?", plan=plan, history=long, budget={"tokens": 2_000})
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert "BudgetExceeded" in str(caught.value.cause)
    assert all("You shorten conversations" in asked.system for asked in server.asked)
    spent = (await handle.query("costs"))["budget"]["tokens"]["spent"]
    assert 0 < spent == 700 * len(server.asked) <= 2_000


async def test_messages_and_instructions_of_a_call_reach_its_model(run: Start, server: ModelServer) -> None:
    server.on("Never joke", Reply(text="Fine."))
    example = [{"role": "user", "content": "2+2 costs $1"}, {"role": "assistant", "content": "4"}]
    call = {"id": "n", "kind": "llm", "prompt": "3+3", "messages": example, "instructions": "Never joke."}
    plan = {"nodes": [call, {"id": "m", "kind": "llm", "prompt": "Never joke"}], "answer": ["$n", "$m"]}
    _, result = await ask(run, "", plan=plan, instructions="Be brief.")
    assert result["status"] == "done"
    by_prompt = {asked.turns[-1][1]: asked for asked in server.asked}
    assert turns(by_prompt["3+3"]) == [("user", "2+2 costs $1"), ("assistant", "4")]
    assert by_prompt["3+3"].system.endswith("Be brief.\n\nNever joke.")
    assert by_prompt["Never joke"].system.endswith("Be brief.")
