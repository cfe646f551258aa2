"""`sennit serve --mcp`: a real server process, the official client, real runs; and what hostile clients get."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client as Temporal

pytest.importorskip("mcp", reason="needs the extra mcp")
from doubles.local_workers import serving
from doubles.runs import call
from doubles.serve_process import http_client, http_server, stdio
from mcp import Client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent, TextResourceContents

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.starter.client.client import Sennit

GATE = {"id": "choice", "kind": "gate", "question": "Which river?", "schema": {"type": "string"}}
ASKS = {"goal": "Pick a river", "nodes": [GATE, call("after", args={"value": "$choice"})], "answer": "$after.value"}
NAPS = {"nodes": [call("nap", args={"seconds": 3, "value": "rested"})], "answer": "$nap.value"}
LONG = {"nodes": [call("nap", args={"seconds": 100})], "answer": "$nap.value"}
WRITES = {"nodes": [call("write", "post", args={"text": "once"})], "answer": "$write"}
FAILS = {"nodes": [call("bad", "fail", args={"unless": "mended"}, retry={"attempts": 1})], "answer": "$bad.value"}
TOOLS = ["ask", "run_plan", "check_plan", "status", "output", "retry", "cancel", "list"]
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def host(cache: Path, artifacts: Path, docs: Path) -> Activities:
    """Workers that ask before they write, as those of an operator do."""
    paths = WorkerPaths(artifacts, cache, docs, (Path("/"),))
    return Activities(paths, load_tools(["doubles.tools"]), identity="tests")


@pytest.fixture
async def serving_runs(client: Temporal, host: Activities) -> AsyncIterator[None]:
    async with serving(client, host):
        yield


@asynccontextmanager
async def connected(way: str, place: Path, address: str, *flags: str, **options: Any) -> AsyncIterator[Client]:
    """Give a client that has started the server, or has come to it over HTTP, in the newest or an older protocol."""
    flags = ("--address", address, *flags)
    if way == "stdio":
        async with Client(stdio(place, *flags), **options) as found:
            yield found
        return
    mode = "legacy" if way == "http of 2025" else "auto"
    async with http_server(place, *flags, "--http", "0") as url, http_client(url, mode=mode, **options) as found:
        yield found


async def done(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool gives; it must not fail."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, text_of(found)
    assert isinstance(found.structured_content, dict)
    return found.structured_content


async def settled(client: Client, run: str) -> dict[str, Any]:
    """Ask how a run stands until it is over or blocked, as an agent does: one reply waits for a minute at most, and a
    busy machine may need longer.
    """
    while (state := await done(client, "status", run=run))["status"] == "running":
        pass
    return state


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Return why a tool fails; it must."""
    found = await client.call_tool(tool, arguments)
    assert found.is_error, text_of(found)
    return text_of(found)


def text_of(found: CallToolResult) -> str:
    return "".join(block.text for block in found.content if isinstance(block, TextContent))


@pytest.mark.parametrize("way", ["stdio", "http", "http of 2025"])
async def test_an_agent_starts_a_run_meets_its_question_and_reads_the_output(
    way: str, server_address: str, client: Temporal, serving_runs: None, tmp_path: Path
) -> None:
    async with connected(way, tmp_path, server_address) as agent:
        assert [tool.name for tool in (await agent.list_tools()).tools] == TOOLS
        started = await done(agent, "run_plan", plan=ASKS)
        assert started["status"] == "running"
        name = started["run"]

        asked = await settled(agent, name)
        assert asked["status"] == "blocked"
        (question,) = asked["questions"]
        assert question["question"] == "Which river?"
        assert question["command"].startswith(f"sennit answer {name} choice")
        assert question["command"].endswith(f"--address {server_address}")

        # A person answers, with the command or the library. The agent has no way to.
        run = await Sennit(client).find(name)
        waiting = asyncio.create_task(run.answer("choice", "Rhine"))
        await waiting
        ended = await settled(agent, name)
        assert (ended["status"], ended["answer"], ended["questions"]) == ("done", "Rhine", [])
        assert await done(agent, "output", run=name) == {"text": "Rhine", "characters": 5, "next_offset": None}
        assert (await done(agent, "output", run=name, node="after", path="value"))["text"] == "Rhine"

        resource = (await agent.read_resource(f"sennit://runs/{name}/report")).contents[0]
        assert isinstance(resource, TextResourceContents)
        assert json.loads(resource.text)["answer"] == "Rhine"
        listed = await done(agent, "list")
        assert (listed["runs"][0]["run"], listed["runs"][0]["status"]) == (name, "done")


async def test_progress_comes_while_the_agent_waits(server_address: str, serving_runs: None, tmp_path: Path) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with connected("stdio", tmp_path, server_address) as agent:
        name = (await done(agent, "run_plan", plan=NAPS))["run"]
        looked = await done(agent, "status", run=name, wait_seconds=0)
        assert looked["status"] == "running"
        found = await agent.call_tool("status", {"run": name}, progress_callback=note)
        assert found.structured_content is not None
        assert found.structured_content["answer"] == "rested"
    seconds = [progress for progress, _, _ in told]
    assert seconds == sorted(set(seconds))
    assert {total for _, total, _ in told} == {60}
    assert any(message == "running: 0 of 1 node, 1 running" for _, _, message in told)


async def test_an_id_starts_one_run_and_wrong_plans_none(
    server_address: str, serving_runs: None, tmp_path: Path
) -> None:
    async with connected("stdio", tmp_path, server_address) as agent:
        first = await done(agent, "run_plan", plan=NAPS, id="mine-once")
        assert first["run"] == "mine-once"
        assert (await done(agent, "run_plan", plan=NAPS, id="mine-once"))["run"] == "mine-once"
        assert "they differ in plan" in await refused(agent, "run_plan", plan=LONG, id="mine-once")
        assert [each["run"] for each in (await done(agent, "list"))["runs"]].count("mine-once") == 1

        wrong = "nodes:\n- {id: a, kind: tool, tool: nap, args: {value: $b}}\n"
        checked = await done(agent, "check_plan", plan=wrong)
        (problem,) = checked["problems"]
        assert problem.startswith("plan:2: nodes[0].args.value: `$b` refers to no node")
        assert problem in await refused(agent, "run_plan", plan=wrong)
        assert "give either `plan` or `program`" in await refused(agent, "run_plan")
        assert (await done(agent, "check_plan", program="async def main():\n    return 1\n"))["problems"] == []
        checked = await done(agent, "check_plan", program="async def main():\n    return open('x')\n")
        assert checked["problems"][0].startswith("program:2: ")


async def test_an_agent_retries_and_cancels(
    server_address: str, serving_runs: None, cache: Path, tmp_path: Path
) -> None:
    async with connected("stdio", tmp_path, server_address) as agent:
        name = (await done(agent, "run_plan", plan=FAILS))["run"]
        blocked = await settled(agent, name)
        assert (blocked["status"], blocked["failed"][0]["node"]) == ("blocked", "bad")
        assert "went wrong" in blocked["failed"][0]["error"]
        (cache / "mended").touch()
        try:
            await done(agent, "retry", run=name)
            assert (await settled(agent, name))["answer"] == "recovered"
        finally:
            (cache / "mended").unlink()

        name = (await done(agent, "run_plan", plan=LONG))["run"]
        await done(agent, "cancel", run=name)
        assert (await settled(agent, name))["status"] == "cancelled"
        assert "is over" in await refused(agent, "cancel", run=name)


async def test_there_is_no_tool_by_which_a_model_approves_or_answers(
    server_address: str, client: Temporal, serving_runs: None, tmp_path: Path
) -> None:
    """Neither by name, nor through those that there are, nor as a client that says it can ask a person."""

    async def yes(_: Any, params: ElicitRequestParams) -> ElicitResult:
        raise AssertionError("nobody is asked unless the operator trusts the client")

    async with connected("stdio", tmp_path, server_address, elicitation_callback=yes) as agent:
        name = (await done(agent, "run_plan", plan=WRITES))["run"]
        asked = await done(agent, "status", run=name)
        assert asked["questions"][0]["command"].startswith(f"sennit approve {name} write --digest ")
        for tool in ("approve", "answer", "reject", "skip", "finish", "update"):
            assert "Unknown tool" in await refused(agent, tool, run=name, node="write")
        assert "write" in await refused(agent, "retry", run=name, node="write")
        assert (await done(agent, "status", run=name))["status"] == "blocked"
        await done(agent, "cancel", run=name)


@pytest.mark.parametrize(
    ("way", "plan", "replies", "status"),
    [
        ("stdio", WRITES, ["yes"], "done"),
        ("http", WRITES, ["yes"], "done"),
        ("http of 2025", WRITES, ["yes"], "done"),
        ("http", ASKS, ["Danube"], "done"),
        ("stdio", WRITES, ["no wrong text"], "failed"),
        ("http of 2025", WRITES, [], "blocked"),
    ],
)
async def test_an_elicitation_is_a_persons_word_where_the_operator_trusts_the_client(
    way: str,
    plan: dict[str, Any],
    replies: list[str],
    status: str,
    server_address: str,
    client: Temporal,
    serving_runs: None,
    tmp_path: Path,
) -> None:
    shown: list[str] = []

    async def person(_: Any, params: ElicitRequestParams) -> ElicitResult:
        shown.append(params.message)
        return (
            ElicitResult(action="accept", content={"reply": replies[0]}) if replies else ElicitResult(action="decline")
        )

    flags = ("--trust-elicitation", "--on-failure", "fail")
    async with connected(way, tmp_path, server_address, *flags, elicitation_callback=person) as agent:
        name = (await done(agent, "run_plan", plan=plan))["run"]
        found = await done(agent, "status", run=name)
        if not shown:  # the run had not asked yet when the call began
            assert found["status"] == "blocked"
            found = await done(agent, "status", run=name)
        assert found["status"] == status

    if plan is WRITES:
        assert "once" in shown[0]
    run = await Sennit(client).find(name)
    decisions = [event async for event in run.events(follow=False, texts=False) if event.kind == "answered"]
    assert (len(shown), len(decisions)) == (1, len(replies))
    by = [each.by for each in decisions]
    assert all("by elicitation of mcp" in each for each in by if plan is WRITES), by
    assert await identities(client, name) == (["elicitation"] if replies else [])
    await run.cancel()


async def identities(client: Temporal, name: str) -> list[str]:
    """Return in which way each update of a run has come, as its history has it."""
    found = []
    async for event in client.get_workflow_handle(name).fetch_history_events():
        if event.HasField("workflow_execution_update_accepted_event_attributes"):
            meta = event.workflow_execution_update_accepted_event_attributes.accepted_request.meta
            found.append("elicitation" if "by elicitation of" in meta.identity else meta.identity)
    return found
