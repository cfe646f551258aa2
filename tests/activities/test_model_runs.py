"""Models in real runs: chosen once, retried and replaced by attempt, held back under pressure; keys stay outside."""

import asyncio
import dataclasses
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start, serving, starting
from doubles.model_bench import KEY
from doubles.runs import status_of
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.llm.models import Models
from sennit.activities.providers.limiter import ProviderBusy
from sennit.activities.providers.model import ModelReply, ModelRequest
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.toolbox import load_tools
from sennit.testing.model_limits import CallsAtOnce
from sennit.testing.model_rules import Reply
from sennit.testing.models import ModelServer, model_server
from sennit.workflows.messages import contracts, queues
from sennit.workflows.messages.node_calls import LlmNodeCall

Env = dict[str, str]
Running = Callable[..., AbstractAsyncContextManager[Start]]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server(key=KEY, models=("first", "second")) as found:
        yield found


@pytest.fixture
def env(server: ModelServer) -> Env:
    urls = {"OPENAI_BASE_URL": server.openai_url, "ANTHROPIC_BASE_URL": server.url}
    return urls | {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "SENNIT_MODEL": "openai:first"}


@pytest.fixture
def running(client: Client, artifacts: Path, cache: Path, env: Env) -> Running:
    """Serve all queues with models of this environment and changes to it; gives a way to start runs."""

    @asynccontextmanager
    async def serve(**changes: str) -> AsyncIterator[Start]:
        models = Models.of(ModelSettings.read(env | changes))
        async with serving(client, host_with(models, artifacts, cache)), starting(client) as start:
            yield start
        await models.close()

    return serve


def host_with(models: Models, artifacts: Path, cache: Path) -> Activities:
    paths = WorkerPaths(artifacts, cache, None, (Path("/"),))
    return Activities(paths, load_tools(["doubles.tools"]), models, identity="tests", approval="never")


def plan(*prompts: str, **fields: Any) -> dict[str, Any]:
    """Return a plan of one model call a prompt, side by side."""
    nodes = [{"id": f"n{index}", "kind": "llm", "prompt": prompt, **fields} for index, prompt in enumerate(prompts, 1)]
    return {"nodes": nodes, "answer": {node["id"]: f"${node['id']}" for node in nodes}, "on_failure": "fail"}


async def test_a_model_reads_how_each_of_its_inputs_ended(running: Running, server: ModelServer) -> None:
    server.on("", "The second is missing.")
    calls = [
        {"id": "good", "kind": "tool", "tool": "nap", "args": {"value": "first of two"}},
        {"id": "bad", "kind": "tool", "tool": "fail", "args": {}},
        {"id": "out", "kind": "llm", "prompt": "What is missing?", "inputs": ["bad", "good"]},
    ]
    async with running() as run:
        result = await (await run(goal="g", plan={"nodes": calls, "answer": "$out"})).result()
    assert (result["status"], result["answer"]) == ("done", "The second is missing.")
    assert [line["status"] for line in result["nodes"]] == ["succeeded", "failed", "succeeded"]
    asked = server.asked[-1].text
    assert asked.index("What is missing?") < asked.index("bad, failed:") < asked.index("good, succeeded:")
    assert "first of two" in asked


async def test_a_plan_runs_on_both_providers_and_counts_what_it_used(running: Running, server: ModelServer) -> None:
    server.on("One", Reply(text="first answer", usage=(100, 2)))
    server.on("Two", Reply(text='{"km": 6650}', usage=(200, 3)))
    schema = {"type": "object", "properties": {"km": {"type": "number"}}, "required": ["km"]}
    nodes = plan("One", "Two")
    nodes["nodes"][1] |= {"model": "anthropic:second", "output_schema": schema}
    async with running() as run:
        handle = await run(goal="g", plan=nodes)
        result = await handle.result()
        view = await handle.query("plan")
    assert result["answer"] == {"n1": "first answer", "n2": {"km": 6650}}
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (300, 5)
    queue = {
        event.activity_task_scheduled_event_attributes.activity_id: (
            event.activity_task_scheduled_event_attributes.task_queue.name
        )
        for event in (await handle.fetch_history()).events
        if event.HasField("activity_task_scheduled_event_attributes")
    }
    assert (queue["n1"], queue["n2"]) == ("sennit.llm.openai", "sennit.llm.anthropic")
    assert "no price is known for anthropic:second, openai:first: it counts as 0" in str(view)


async def test_an_attempt_that_the_budget_does_not_cover_is_not_made(running: Running, server: ModelServer) -> None:
    schema = {"type": "object", "properties": {"km": {"type": "number"}}, "required": ["km"]}
    server.on("", Reply(text="no JSON", usage=(900, 80)), Reply(text='{"km": 1}', usage=(20, 2)))
    async with running() as run:
        handle = await run(
            goal="g", plan=plan("Hello", output_schema=schema, on_error="skip"), budget={"tokens": 1_000}
        )
        result = await handle.result()
        costs = await handle.query("costs")
    assert len(server.asked) == 1
    error = str(result["nodes"][0]["error"])
    assert "BudgetExceeded: its prompt takes about" in error
    assert "the budget has 20 left for it" in error
    assert costs["budget"]["tokens"]["spent"] == 980
    assert costs["nodes"][0]["node"] == "n1"
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (900, 80)


@pytest.mark.parametrize(
    ("fields", "wrong", "right", "fault"),
    [
        ({"role": "joiner"}, '{"answer": "cut', '{"answer": "whole"}', "no whole answer: the JSON breaks at line 1"),
        ({"output_schema": {"type": "object", "required": ["km"]}}, "{}", '{"km": 1}', "km"),
    ],
)
async def test_a_model_is_told_what_was_wrong_with_its_reply(
    running: Running, server: ModelServer, fields: dict[str, Any], wrong: str, right: str, fault: str
) -> None:
    server.on("", wrong, right)
    async with running() as run:
        result = await (await run(goal="g", plan=plan("Hello", **fields))).result()
    assert (result["status"], result["nodes"][0].get("attempts", 1), len(server.asked)) == ("done", 2, 2)
    assert "could not be used" not in server.asked[0].text
    assert fault in server.asked[1].text.partition("Your last reply could not be used:")[2]


async def test_a_node_that_was_marked_before_its_worker_died_is_not_charged_twice(
    running: Running, server: ModelServer, artifacts: Path, cache: Path, env: Env
) -> None:
    """The activity of a node that is done, once more: as after a worker that died between the marker and its reply."""
    server.on("", Reply(text="done", usage=(100, 2)))
    async with running() as run:
        handle = await run(goal="g", plan=plan("Hello"))
        await handle.result()
    scheduled = [event.activity_task_scheduled_event_attributes for event in (await handle.fetch_history()).events]
    sent = next(each.input.payloads[0].data for each in scheduled if each.activity_id == "n1")
    again = ActivityEnvironment()
    again.info = dataclasses.replace(
        again.info, attempt=2, activity_type="llm", namespace="default",
        heartbeat_details=["writing", 0, [5, 1, 0, 1], [50, 4096, 0, 1]],
    )  # fmt: skip
    models = Models.of(ModelSettings.read(env))
    host = host_with(models, artifacts, cache)
    reply = await again.run(host.llm()[1], LlmNodeCall.model_validate_json(sent))
    await models.close()
    assert (reply.nodes[0].usage, len(server.asked)) == ((105, 3, 0, 2, 0), 1), "with what an earlier attempt used"


@pytest.mark.timeout(400)
async def test_items_beyond_what_a_server_takes_at_once_fail_none_of_them(
    running: Running, server: ModelServer
) -> None:
    """A map of 200 items, against a server that refuses all but five at a time."""
    count = 200
    limit = CallsAtOnce(Reply("done", first_token=0.05), 5, lambda: server.busy)
    server.on("", limit)
    do = {"kind": "llm", "prompt": "Hello $item"}
    items = {"id": "m", "kind": "map", "over": "$input.items", "max_items": count, "do": do}
    request = {"plan": {"inputs": {"items": {"type": "array"}}, "nodes": [items], "answer": "$m"}}
    async with running() as run:
        result = await (await run(**request, inputs={"items": list(range(count))})).result()
    assert (result["status"], result["answer"]) == ("done", ["done"] * count)
    assert limit.taken == count
    assert limit.taken + limit.refused < 3 * count


async def test_refusals_of_a_busy_provider_use_up_no_attempt(running: Running, server: ModelServer) -> None:
    """Eight calls at once against a server that lets two through: many are put off, none of them fails for it."""

    def answer(asked: Any) -> Reply:
        if server.busy > 2:
            return Reply(status=429, text="slow down", headers={"retry-after-ms": "200"})
        return Reply(text="done", first_token=0.1)

    server.on("", answer)
    async with running() as run:
        handle = await run(goal="g", plan=plan(*["Hello"] * 8, retry={"attempts": 4}))
        async with asyncio.timeout(100):
            result = await handle.result()
    assert set(result["answer"].values()) == {"done"}
    assert max(node.get("attempts", 1) for node in result["nodes"]) <= 4


class PutsOff:
    """A provider that puts each call off again and again."""

    refused = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self.refused < 70:
            self.refused += 1
            raise ProviderBusy("busy", retryable=True, retry_after=0.01)
        return ModelReply("at last", text="at last")

    async def default_model(self) -> str:
        return "openai:any"


async def test_refusals_are_counted_over_many_attempts(client: Client, artifacts: Path, cache: Path) -> None:
    provider = PutsOff()
    models = Models({"openai": provider}, ModelSettings.read({"SENNIT_MODEL": "openai:any"}))
    host = host_with(models, artifacts, cache)
    async with serving(client, host):
        request = {"plan": plan("Hello", retry={"attempts": 1})}
        run = client.execute_workflow("AgentRun", request, id="agent-put-off", task_queue=queues.WORKFLOW)
        result = await asyncio.wait_for(run, 60)
    assert (result["answer"], result["nodes"][0].get("attempts", 1), provider.refused) == ({"n1": "at last"}, 1, 70)


@pytest.mark.parametrize(("attempt", "final"), [(3, False), (20, True)])
async def test_a_plan_that_cannot_be_read_is_not_tried_for_a_day(
    artifacts: Path, host: Activities, attempt: int, final: bool
) -> None:
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=attempt, activity_type=contracts.LLM.name)
    digest = "a" * 40
    (artifacts / environment.info.namespace / "unread" / digest).mkdir(parents=True, exist_ok=True)
    node = next(run for run in host.llm() if run != host.plan)
    with pytest.raises(ApplicationError) as caught:
        await environment.run(node, LlmNodeCall(run="unread", plan=digest, nodes=("n1",)))
    assert (caught.value.type, caught.value.non_retryable) == ("StoreUnavailable", final)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"SENNIT_MODEL": "anthropic", "ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": ""}, "set ANTHROPIC_API_KEY"),
        ({"SENNIT_MODEL": "openai", "OPENAI_API_KEY": "sk-wrong"}, "refuses the key (401); check OPENAI_API_KEY"),
    ],
)
async def test_a_wrong_setup_is_one_sentence_at_once(running: Running, change: Env, sentence: str) -> None:
    async with running(**change) as run:
        handle = await run(goal="Which is longer?")
        with pytest.raises(WorkflowFailureError) as caught:
            async with asyncio.timeout(100):
                await handle.result()
    message = str(caught.value.cause)
    assert sentence in message
    assert "\n" not in message
    assert "sk-wrong" not in message


async def test_a_run_may_name_its_model(running: Running, server: ModelServer) -> None:
    server.on("You plan work", '1. agent("Which?")\n2. answer($1)', times=1)
    server.on("You plan work", '1. llm("Say a word.")\n2. answer($1)')
    server.on("", "The Nile.")
    async with running() as run:
        report = await (await run(goal="Which is longer?", model="openai:second")).result()
        with pytest.raises(WorkflowFailureError) as caught:
            await (await run(goal="Which is longer?", model="mistral:large")).result()
    assert report["status"] == "done"
    assert {asked.model for asked in server.asked} == {"second"}
    forms = "offline, openai:NAME, anthropic:NAME, pydantic-ai:MAKER:NAME"
    offer = f"'mistral:large': is no model; give {forms}, several with commas between"
    assert f"`model`: {offer}" in str(caught.value.cause)


async def test_a_plan_without_model_calls_needs_no_model(running: Running, unused_tcp_port: int) -> None:
    down = {"SENNIT_MODEL": "openai", "OPENAI_BASE_URL": f"http://127.0.0.1:{unused_tcp_port}/v1"}
    async with running(**down) as run:
        nodes = {"nodes": [{"id": "a", "kind": "tool", "tool": "nap", "args": {"value": 1}}], "answer": "$a.value"}
        assert (await (await run(goal="g", plan=nodes)).result())["answer"] == 1


async def test_a_key_is_nowhere_but_in_the_request(
    running: Running, artifacts: Path, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Histories, artifacts, logs and queries of a run whose server repeats the key in its answer's errors."""
    caplog.set_level(logging.DEBUG)
    echo = f"bad call with key {KEY} and Bearer {KEY}"
    server.on("One", Reply(status=400, text=echo))
    server.on("Two", "fine")
    async with running() as run:
        handle = await run(goal="g", plan=plan("One", "Two") | {"on_failure": "partial", "answer": "$n2"})
        await handle.result()
        seen = [(await handle.fetch_history()).to_json(), json.dumps(await handle.query("plan")), caplog.text]
    assert "bad call with key [redacted]" in seen[0]
    stored = [path.read_bytes() for path in artifacts.rglob("*") if path.is_file()]
    assert not [text for text in seen if KEY in text]
    assert not [body for body in stored if KEY.encode() in body]
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_heartbeat_says_how_far_a_call_is(running: Running, server: ModelServer) -> None:
    server.on("", Reply(text="word " * 200, rate=20))
    async with running() as run:
        handle = await run(goal="g", plan=plan("Hello"))
        async with asyncio.timeout(100):
            while True:
                pending = (await handle.describe()).raw_description.pending_activities
                details = [detail.data for each in pending for detail in each.heartbeat_details.payloads]
                if any(b"tokens so far" in detail for detail in details):
                    break
                await asyncio.sleep(0.1)
        assert status_of(await handle.query("plan"), "n1") == "running"


@pytest.mark.parametrize("told", ["setting", "refusal"])
async def test_documents_are_cut_to_the_context_of_the_model(
    running: Running, cache: Path, server: ModelServer, told: str
) -> None:
    (cache / "long.txt").write_text("The Nile is 6,650 km long. " + "It flows north through many lands. " * 2_000)
    words = "This model's maximum context length is 4096 tokens. However, your messages resulted in 23456 tokens."
    server.on(lambda asked: len(asked.text) > 4096 * 3, Reply(status=400, text=words, code="context_length_exceeded"))
    server.on("", "Long.")
    doc = {"id": "doc", "kind": "tool", "tool": "fetch", "args": {"file": "long.txt"}}
    asks = {"id": "n1", "kind": "llm", "prompt": "How long? $doc.value"}
    async with running(**({"SENNIT_CONTEXT": "4096"} if told == "setting" else {})) as run:
        result = await (await run(plan={"nodes": [doc, asks], "answer": "$n1", "on_failure": "fail"})).result()
    assert (result["answer"], [line.get("attempts", 1) for line in result["nodes"]]) == ("Long.", [1, 1])
    assert len(server.asked) == (1 if told == "setting" else 2)
    assert "6,650 km" in server.asked[-1].text
    assert len(server.asked[-1].text) // 3 <= 4096 * 3 // 4, "a quarter is left to the reply"


async def test_a_reply_that_the_servers_own_limit_cuts_is_asked_for_again_with_more_room(
    running: Running, server: ModelServer
) -> None:
    server.on(lambda asked: "max_tokens" not in asked.body, Reply(text="The Nile, which", stop="length", usage=(9, 37)))
    server.on("", Reply(text="The Nile.", usage=(9, 2)))
    async with running() as run:
        result = await (await run(goal="g", plan=plan("Which?"))).result()
    assert result["answer"] == {"n1": "The Nile."}
    assert (result["nodes"][0].get("attempts", 1), result["usage"]["output_tokens"]) == (1, 39)


async def test_a_reply_that_the_limit_of_its_call_cuts_is_asked_for_once(running: Running, server: ModelServer) -> None:
    server.on("", Reply(text="The Nile, which is", stop="length", usage=(9, 5)))
    async with running() as run:
        with pytest.raises(WorkflowFailureError) as caught:
            await (await run(goal="g", plan=plan("Which?", settings={"max_tokens": 5}))).result()
    assert "was cut at 5 tokens; raise `max_tokens`, or ask for less" in str(caught.value.cause)
    assert len(server.asked) == 1


async def test_the_settings_of_a_call_override_those_of_the_run_and_those_of_the_role(
    running: Running, server: ModelServer
) -> None:
    server.on("", "fine")
    roles = "seed = 1\n[worker]\ntemperature = 0.1\ntop_p = 0.1\n[critic]\ntop_p = 0.9"
    nodes = [
        {"id": "a", "kind": "llm", "prompt": "A", "settings": {"temperature": 0.3, "system": "You are terse. $5"}},
        {"id": "b", "kind": "llm", "prompt": "B", "role": "critic"},
    ]
    async with running(SENNIT_MODEL_SETTINGS=roles) as run:
        fields = {"settings": {"temperature": 0.2, "max_tokens": 900}, "goal": "g"}
        result = await (await run(plan={"nodes": nodes, "answer": ["$a", "$b"]}, **fields)).result()
    assert result["status"] == "done"
    asked = {each.turns[-1][1]: each for each in server.asked}
    names = ("seed", "temperature", "top_p", "max_tokens")
    assert [asked["A"].body[name] for name in names] == [1, 0.3, 0.1, 900]
    assert [asked["B"].body[name] for name in names] == [1, 0.2, 0.9, 900]
    assert asked["A"].system.startswith("You are terse. $5\n\n")
    assert asked["A"].system.removeprefix("You are terse. $5") in asked["B"].system, "the rule on data stays"


async def test_a_subagent_and_a_program_have_the_settings_of_their_run(running: Running, server: ModelServer) -> None:
    server.on("You plan work", '1. llm("Hello")\n2. answer($1)')
    server.on("", "Hi.")
    script = 'async def main():\n    return await llm("Once", seed=4) + await llm("Again", system="Be brief.")'
    nodes = [
        {"id": "sub", "kind": "agent", "goal": "Say hello.", "tools": []},
        {"id": "p", "kind": "program", "script": script},
    ]
    async with running() as run:
        fields = {"settings": {"seed": 3, "stop": ["END"]}, "goal": "g"}
        result = await (await run(plan={"nodes": nodes, "answer": ["$sub", "$p"]}, **fields)).result()
    assert result["status"] == "done"
    sent = [(each.body["seed"], each.body.get("stop"), each.turns[-1][1][:5]) for each in server.asked]
    planned, joined = ((3, None, text) for text in ("Plan ", "The g"))
    assert sorted(sent, key=str) == sorted(
        [planned, joined, (3, ["END"], "Hello"), (4, ["END"], "Once"), (3, ["END"], "Again")], key=str
    )


@pytest.mark.parametrize("given", ["plan", "goal", "program"])
async def test_a_budget_of_money_needs_a_price_of_every_model(
    running: Running, server: ModelServer, tmp_path: Path, given: str
) -> None:
    server.on("You plan work", '1. llm("Hello")\n2. answer($1)')
    server.on("", "Hi.")
    script = 'async def main():\n    return await llm("Hello")'
    plans: dict[str, Any] = {
        "plan": {"plan": plan("Hello")},
        "goal": {},
        "program": {"plan": {"nodes": [{"id": "p", "kind": "program", "script": script}], "answer": "$p"}},
    }
    fields = {"goal": "Say hello.", "budget": {"cost_usd": 1.0}, **plans[given]}
    own = tmp_path / "prices.toml"
    async with running() as run:
        with pytest.raises(WorkflowFailureError) as caught:
            await (await run(**fields)).result()
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert "no price is known for openai:first, and the budget limits cost" in str(cause)
    line = str(cause).rpartition(": ")[2]
    assert line == 'openai."first" = [0, 0]'
    assert server.asked == []
    own.write_text(line)
    async with running(SENNIT_PRICES=str(own)) as run:
        result = await (await run(**fields)).result()
    assert (result["status"], result["usage"]["cost_usd"], result["warnings"]) == ("done", 0, [])


SEARCH_LOOP = {
    "nodes": [{"id": "n1", "kind": "llm", "prompt": "Which?", "tools": ["nap"], "max_turns": 3}],
    "answer": "$n1",
    "on_failure": "fail",
}


async def test_tools_are_told_in_words_where_a_server_takes_none(running: Running, server: ModelServer) -> None:
    server.refuse["tools"] = "first does not support tools"
    server.on("<tool_response>", "The Nile.")
    server.on("<tools>", 'I look.\n<tool_call>\n{"name": "nap", "arguments": {"value": "6,650 km"}}\n</tool_call>')
    async with running() as run:
        results = [await (await run(goal="g", plan=SEARCH_LOOP)).result() for _ in range(2)]
    assert [result["answer"] for result in results] == ["The Nile."] * 2
    offered = ["tools" in asked.body for asked in server.asked]  # an attempt that a busy machine repeats asks once more
    assert (offered[0], any(offered[1:]), len(offered) >= 5) == (True, False, True)
    assert "6,650 km" in server.asked[-1].turns[-1][1]
    assert '"name": "nap"' in server.asked[-1].turns[-2][1]
    note = "openai:first takes no tools, so calls are written as text (first does not support tools)"
    assert [note in result["warnings"] for result in results] == [False, True], "known when the second run began"


async def test_what_was_learned_of_a_planner_is_shown_with_its_run(running: Running, server: ModelServer) -> None:
    server.on(lambda asked: bool(asked.system), Reply(status=400, text="System role not supported"))
    server.on("You plan work", '1. llm("Hello")\n2. answer($1)')
    server.on("", "Hi.")
    async with running() as run:
        handle = await run(goal="Say hello.")
        result = await handle.result()
        view = await handle.query("plan")
    note = "openai:first takes no system role, so its instructions stand in the prompt (System role not supported)"
    assert result["warnings"].count(note) == 1
    assert note in view["warnings"]


async def test_a_joiner_is_held_to_its_json_where_a_server_takes_a_schema(
    running: Running, server: ModelServer
) -> None:
    server.on("", Reply(text='{"answer": "Of one.", "evidence": [], "replan": null}'))
    joins = {"nodes": [*plan("One")["nodes"], {"id": "out", "kind": "llm", "role": "joiner", "prompt": "Of $n1"}]}
    async with running() as run:
        for _ in range(2):
            result = await (await run(goal="g", plan=joins | {"answer": "$out"})).result()
            assert result["answer"] == "Of one."
            server.refuse["response_format"] = "This response_format type is unavailable now"
    schemas = [asked.schema for asked in server.asked]
    assert schemas[0] is None
    assert schemas[1]["properties"].keys() == {"answer", "evidence"}  # type: ignore[index]
    assert [schema is not None for schema in schemas] == [False, True, False, True, False]
    assert "JSON Schema" not in server.asked[-1].text


async def test_a_program_says_how_long_a_model_may_be_silent(running: Running, server: ModelServer) -> None:
    server.on("Once", Reply(text="late", first_token=30.0))
    script = """
async def main():
    try:
        return await llm("Once", first_token_timeout=0.3, retry=1)
    except ModelTimeout as error:
        return str(error)
"""
    async with running() as run:
        plan = {"nodes": [{"id": "p", "kind": "program", "script": script}]}
        result = await (await run(plan=plan, goal="g")).result()
    assert "no first piece of the reply in time" in result["answer"]
