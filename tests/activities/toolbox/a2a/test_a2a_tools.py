"""Agents of A2A as tools: the official SDK's own server over real HTTP, and servers that do what none should."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from sennit.activities.http import addresses
from sennit.activities.toolbox import Tool, ToolArgumentError, ToolContext, ToolSetupError
from sennit.activities.toolbox.errors import (
    A2aCredentialsRefused,
    A2aFailed,
    A2aNeedsInput,
    A2aUnavailable,
    UnknownOutcome,
)

pytest.importorskip("a2a", reason="needs the extra a2a")
from doubles.a2a_agent import Agent, agent_server
from doubles.raw_server import EVENTS, RawServer, Script, raw_server

from sennit.activities.toolbox.a2a.tools import a2a_tools

ABOUT = "an agent for tests"


def json_script(value: Any, status: int = 200) -> Script:
    return Script([json.dumps(value).encode()], status, "application/json")


@pytest.fixture(params=[True, False], ids=["streams", "is polled"])
async def agent(request: pytest.FixtureRequest) -> AsyncIterator[Agent]:
    async with agent_server(streaming=request.param) as served:
        yield served


async def declared(folder: Path, url: str, env: dict[str, str] | None = None, **fields: Any) -> Tool:
    """Return the tool of one agent, which only reads if nothing else is said."""
    path = folder / "agents.json"
    path.write_text(json.dumps({"agents": {"parrot": {"url": url, "effect": "read", **fields}}}))
    [tool] = await asyncio.to_thread(a2a_tools, path, env or {})
    return tool


async def test_an_agent_is_a_tool_with_the_words_of_its_card(agent: Agent, tmp_path: Path) -> None:
    tool = await declared(tmp_path, agent.url)
    assert (tool.name, tool.effect) == ("parrot", "read")
    assert tool.description == "Parrot: Says again what it is told. Skills: Repeat: Repeats a text."


async def test_a_url_alone_is_an_agent_that_writes(agent: Agent) -> None:
    [tool] = await asyncio.to_thread(a2a_tools, agent.url, {})
    assert (tool.name, tool.effect) == ("agent", "write")


async def test_a_message_comes_back_as_the_text_of_the_artifact(
    agent: Agent, tmp_path: Path, context: ToolContext, reports: list[str]
) -> None:
    tool = await declared(tmp_path, agent.url)
    answer = await tool.call({"message": "hello", "data": {"k": [1, None]}}, context)
    assert answer["text"] == "you said hello"
    assert answer["task"]
    assert not answer["truncated"]
    assert agent.read == ["hello"]
    assert [part.WhichOneof("content") for part in agent.messages[0].parts] == ["text", "data"]
    assert any("completed" in line for line in reports)


async def test_the_id_of_a_message_is_that_of_its_call_in_every_attempt(
    agent: Agent, tmp_path: Path, context: ToolContext
) -> None:
    tool = await declared(tmp_path, agent.url)
    for _ in range(2):
        await tool.call({"message": "hello"}, context)
    assert len({message.message_id for message in agent.messages}) == 1


async def test_a_message_says_how_many_agents_have_asked_each_other_and_ends_a_circle(
    agent: Agent, tmp_path: Path, context: ToolContext
) -> None:
    tool = await declared(tmp_path, agent.url)
    await tool.call({"message": "hello"}, replace(context, agents_above=2))
    assert MessageToDict(agent.messages[0].metadata) == {"sennit": {"agents_above": 3}}
    with pytest.raises(A2aFailed, match="parrot: 5 agents have asked each other for this already"):
        await tool.call({"message": "hello"}, replace(context, agents_above=5))
    assert agent.read == ["hello"]


async def test_an_answer_without_a_task_is_the_output(agent: Agent, tmp_path: Path, context: ToolContext) -> None:
    tool = await declared(tmp_path, agent.url)
    assert (await tool.call({"message": "message hi"}, context))["text"] == "at once: hi"


async def test_pieces_of_an_artifact_are_one_text(agent: Agent, tmp_path: Path, context: ToolContext) -> None:
    tool = await declared(tmp_path, agent.url)
    assert (await tool.call({"message": "pieces"}, context))["text"] == "one text in pieces"


async def test_files_links_and_data_come_beside_the_text(agent: Agent, tmp_path: Path, context: ToolContext) -> None:
    tool = await declared(tmp_path, agent.url)
    answer = await tool.call({"message": "files"}, context)
    assert answer["data"] == [{"count": 3, "share": 0.5, "names": ["a"]}]
    assert answer["links"] == ["https://files.example.com/a"]
    assert [(file["media"], file["name"]) for file in answer["media"]] == [("image/png", "a.png")]
    assert answer["left_out"] == ["application/x-odd, 2 bytes"]


async def test_a_question_of_an_agent_fails_a_call_that_does_not_expect_one(
    agent: Agent, tmp_path: Path, context: ToolContext
) -> None:
    tool = await declared(tmp_path, agent.url)
    with pytest.raises(
        A2aNeedsInput, match=r"parrot: its task .* asks: Which river\?; a call with `may_ask`"
    ) as caught:
        await tool.call({"message": "ask river"}, context)
    assert not caught.value.retryable


async def test_a_question_is_answered_by_a_call_that_continues_its_task(
    agent: Agent, tmp_path: Path, context: ToolContext
) -> None:
    tool = await declared(tmp_path, agent.url)
    asked = await tool.call({"message": "ask river", "may_ask": True}, context)
    assert (asked["text"], asked["waits"]) == ("Which river?", True)
    answer = await tool.call({"message": "the Nile", "continues": asked["task"]}, context)
    assert (answer["text"], answer["waits"]) == ("you said the Nile", False)
    assert [message.task_id for message in agent.messages] == [asked["task"]] * 2


async def test_a_task_that_has_ended_is_referred_to(agent: Agent, tmp_path: Path, context: ToolContext) -> None:
    tool = await declared(tmp_path, agent.url)
    before = await tool.call({"message": "hello"}, context)
    after = await tool.call({"message": "and then", "continues": before["task"]}, context)
    assert after["task"] != before["task"]
    assert list(agent.messages[1].reference_task_ids) == [before["task"]]
    assert agent.messages[1].context_id == agent.messages[0].context_id


@pytest.mark.parametrize("word", ["fail", "reject"])
async def test_a_task_that_fails_is_in_no_doubt(agent: Agent, tmp_path: Path, context: ToolContext, word: str) -> None:
    tool = await declared(tmp_path, agent.url, effect="write")
    with pytest.raises(A2aFailed, match="because of the weather") as caught:
        await tool.call({"message": f"{word} the weather"}, context)
    assert not caught.value.retryable


async def test_a_task_that_nobody_knows_is_named_before_anything_is_sent(
    agent: Agent, tmp_path: Path, context: ToolContext
) -> None:
    tool = await declared(tmp_path, agent.url, effect="write")
    with pytest.raises(A2aFailed, match="does not know the task"):
        await tool.call({"message": "hello", "continues": "t-9"}, context)
    assert agent.read == []


@pytest.mark.parametrize(("effect", "error"), [("write", UnknownOutcome), ("read", A2aUnavailable)])
async def test_a_task_without_an_end_is_cancelled_at_the_agent(
    agent: Agent, tmp_path: Path, context: ToolContext, effect: str, error: type[Exception]
) -> None:
    tool = await declared(tmp_path, agent.url, effect=effect, longest="2s")
    with pytest.raises(error, match=r"parrot: no end within 2 s of its task"):
        await tool.call({"message": "nap 60"}, context)
    assert len(agent.cancelled) == len(agent.read) == 1


async def test_a_cancelled_call_cancels_the_task_at_the_agent(
    agent: Agent, tmp_path: Path, context: ToolContext, reports: list[str]
) -> None:
    tool = await declared(tmp_path, agent.url)
    calling = asyncio.create_task(tool.call({"message": "nap 60"}, context))
    while not reports:
        await asyncio.sleep(0.05)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    while not agent.cancelled:
        await asyncio.sleep(0.05)
    assert len(agent.read) == 1


async def test_a_silent_stream_is_left_and_the_task_looked_at(
    tmp_path: Path, context: ToolContext, reports: list[str]
) -> None:
    """The answer takes longer than a stream may be silent: no message goes out again, and the answer comes."""
    async with agent_server() as agent:
        tool = await declared(tmp_path, agent.url, effect="write", timeout="1s")
        assert (await tool.call({"message": "nap 3"}, context))["text"] == "slept"
    assert agent.read == ["nap 3"]


async def test_refused_credentials_are_named_and_nothing_is_repeated(
    agent: Agent, tmp_path: Path, context: ToolContext
) -> None:
    agent.token = "first-token"
    headers = {"Authorization": "Bearer $TOKEN"}
    tool = await declared(tmp_path, agent.url, {"TOKEN": "first-token"}, headers=headers, effect="write")
    assert (await tool.call({"message": "hello"}, context))["text"] == "you said hello"
    agent.token = "second-token"
    with pytest.raises(A2aCredentialsRefused, match=r"refuses the credentials \(401\); renew") as caught:
        await tool.call({"message": "hello"}, context)
    assert not caught.value.retryable
    assert agent.read == ["hello"]


async def test_a_command_prints_headers_anew_when_they_are_refused(
    agent: Agent, tmp_path: Path, context: ToolContext
) -> None:
    (tmp_path / "token").write_text("first-token")
    code = "import pathlib, sys; print('{\"Authorization\": \"Bearer ' + pathlib.Path(sys.argv[1]).read_text() + '\"}')"
    command = [sys.executable, "-c", code, str(tmp_path / "token")]
    agent.token = "first-token"
    tool = await declared(tmp_path, agent.url, headers_command=command, effect="write")
    await tool.call({"message": "hello"}, context)
    agent.token = "second-token"
    (tmp_path / "token").write_text("second-token")
    await tool.call({"message": "again"}, context)
    assert agent.read == ["hello", "again"]


async def test_an_agent_that_is_away_has_its_tool_and_nothing_was_sent(tmp_path: Path, context: ToolContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    tool = await declared(tmp_path, f"http://127.0.0.1:{port}", effect="write")
    assert "could not be read" in tool.description
    with pytest.raises(A2aUnavailable, match="parrot: ") as caught:
        await tool.call({"message": "hello"}, context)
    assert caught.value.retryable


@pytest.mark.parametrize("script", [json_script({}, 404), json_script({}, 500), json_script([]), json_script({})])
async def test_an_agent_whose_card_cannot_be_read_is_away(tmp_path: Path, context: ToolContext, script: Script) -> None:
    async with raw_server(script) as server:
        tool = await declared(tmp_path, server.url, effect="write")
        with pytest.raises(A2aUnavailable, match="parrot: "):
            await tool.call({"message": "hello"}, context)
    assert not any(server.asked)


async def test_an_agent_of_an_unknown_version_is_away(tmp_path: Path, context: ToolContext) -> None:
    card = card_of(HERE, version="next")
    async with raw_server(lambda body, _: card(server, body)) as server:
        tool = await declared(tmp_path, server.url, effect="write")
        with pytest.raises(A2aUnavailable, match="parrot: its card cannot be used: "):
            await tool.call({"message": "hello"}, context)
    assert not any(server.asked)


DEEP: dict[str, Any] = {}
for _ in range(150):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"message": "a\ud800"}, "parrot: message: A2A cannot carry it: 'utf-8' codec"),
        ({"message": "a", "data": {"names": ["a\ud800"]}}, "parrot: data: A2A cannot carry it: 'utf-8' codec"),
        ({"message": "a", "data": DEEP}, "parrot: data: A2A cannot carry it: Message too deep"),
        ({"message": "a", "data": {"order": {"ids": [2**53 + 1]}}}, "may arrive as another one, .*: 9007199254740993"),
        ({"message": "a", "data": {"n": 10**400}}, "may arrive as another one"),
    ],
)
async def test_what_a_message_cannot_carry_is_refused_before_it_goes_out(
    tmp_path: Path, context: ToolContext, said: dict[str, Any], problem: str
) -> None:
    """A write that fails otherwise asks a person whether it was made."""
    async with agent_server() as agent:
        tool = await declared(tmp_path, agent.url, effect="write")
        with pytest.raises(ToolArgumentError, match=problem):
            await tool.call(said, context)
        await tool.call({"message": "hello", "data": {"n": 2**53, "yes": True}}, context)
    assert agent.read == ["hello"]


async def test_requests_go_to_the_address_that_was_admitted(
    tmp_path: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's resolver does not know the name: whoever looked it up once more would fail, or go elsewhere."""

    async def resolve(host: str, port: int) -> list[str]:
        assert host == "agents.example.com"
        return ["127.0.0.1"]

    monkeypatch.setattr(addresses, "resolve", resolve)
    card = card_of("http://agents.example.com:{port}")
    async with raw_server(lambda body, _: card(server, body)) as server:
        tool = await declared(tmp_path, f"http://agents.example.com:{port_of(server)}")
        assert (await tool.call({"message": "hello"}, context))["text"] == "fine"


def port_of(server: RawServer) -> str:
    return server.url.rpartition(":")[2]


def card_of(url: str, sends: Script | None = None, *, streaming: bool = False, version: str = "1.0") -> Any:
    """Return how a server answers whose card names that URL: with a message, or with what `sends` says."""
    done = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "fine"}]}}

    def answer(server: RawServer, body: dict[str, Any]) -> Script:
        if not body:
            here = url.format(port=port_of(server))
            card = {
                "name": "Odd",
                "description": ABOUT,
                "version": "1",
                "supportedInterfaces": [{"url": here, "protocolBinding": "JSONRPC", "protocolVersion": version}],
                "capabilities": {"streaming": streaming},
                "defaultInputModes": [],
                "defaultOutputModes": [],
                "skills": [],
            }
            return json_script(card)
        if sends is not None:
            return sends
        return json_script({"jsonrpc": "2.0", "id": body["id"], "result": done})

    return answer


HERE = "http://127.0.0.1:{port}"
WORKING = {"task": {"id": "t1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}


def event(result: dict[str, Any]) -> bytes:
    return f"data: {json.dumps({'jsonrpc': '2.0', 'id': '1', 'result': result})}\n\n".encode()


def status(state: str) -> dict[str, Any]:
    return {"statusUpdate": {"taskId": "t1", "contextId": "c", "status": {"state": state}}}


def artifact_of(task: str, text: str, *, append: bool = False) -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": task, "contextId": "c", "artifact": artifact, "append": append}}


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "not a url", "http://[::1"]
)
async def test_a_card_leads_to_no_other_origin(tmp_path: Path, context: ToolContext, url: str) -> None:
    """Neither messages nor credentials go where a card points: only to the host and port that are declared."""
    card = card_of(url)
    async with raw_server(lambda body, _: card(server, body)) as server:
        tool = await declared(tmp_path, server.url, effect="write", headers={"Authorization": "Bearer abcdefgh"})
        with pytest.raises(A2aUnavailable, match="names no JSON-RPC interface at the declared host and port"):
            await tool.call({"message": "hello"}, context)
    assert not any(server.asked)


SILENT = Script([b"data: "], kind=EVENTS)
ODD: dict[str, Script] = {
    "ends at once": Script([], kind=EVENTS),
    "ends in the middle": SILENT,
    "is no JSON": Script([b"data: {not json\n\n"], kind=EVENTS),
    "is no answer of the protocol": Script([b'data: {"jsonrpc": "2.0", "id": "1", "result": 7}\n\n'], kind=EVENTS),
    "has fields of other types": Script([event({"task": {"id": [], "status": 4}})], kind=EVENTS),
    "is nested deep": Script([b"data: " + b"[" * 100_000 + b"\n\n"], kind=EVENTS),
    "never ends an event": Script([b"data: " + b"x" * 1_000_000] + [b"x" * 1_000_000] * 17, kind=EVENTS),
    "is an event of 17 MiB": Script([b'data: "' + b"x" * 17_900_000 + b'"\n\n'], kind=EVENTS),
    "is packed": Script([b"\x1f\x8b"], kind=EVENTS, headers={"content-encoding": "gzip"}),
    "is an error of the server": json_script({"jsonrpc": "2.0", "id": "1", "error": {"code": -32603, "message": "x"}}),
    "is the status 500": json_script({"detail": "broken"}, 500),
    "is empty JSON": json_script({}),
}


@pytest.mark.parametrize("name", ODD)
async def test_an_answer_that_tells_nothing_leaves_a_write_in_doubt(
    tmp_path: Path, context: ToolContext, name: str
) -> None:
    card = card_of(HERE, ODD[name], streaming=True)
    async with raw_server(lambda body, _: card(server, body)) as server:
        tool = await declared(tmp_path, server.url, effect="write", timeout="2s", longest="10s")
        with pytest.raises(UnknownOutcome, match=r"parrot: .*whether it took effect is not known"):
            await tool.call({"message": "hello"}, context)
    assert len([body for body in server.asked if body]) == 1


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (json_script({"jsonrpc": "2.0", "id": "1", "error": {"code": -32602, "message": "no such skill"}}), A2aFailed),
        (json_script({"detail": "not here"}, 404), A2aFailed),
        (Script([b""], 302, headers={"location": "http://127.0.0.1:1/"}), A2aFailed),
        (json_script({"detail": "slower"}, 429), A2aUnavailable),
        (json_script({"detail": "no"}, 403), A2aCredentialsRefused),
    ],
)
async def test_a_message_that_is_refused_is_in_no_doubt(
    tmp_path: Path, context: ToolContext, script: Script, error: type[Exception]
) -> None:
    card = card_of(HERE, script, streaming=True)
    async with raw_server(lambda body, _: card(server, body)) as server:
        tool = await declared(tmp_path, server.url, effect="write")
        with pytest.raises(error):
            await tool.call({"message": "hello"}, context)
    assert len([body for body in server.asked if body]) == 1


async def test_a_task_is_looked_at_after_its_stream_broke(tmp_path: Path, context: ToolContext) -> None:
    """The agent is also away for a while: it is asked again, and told nothing twice."""
    parts = [{"text": "the end"}]
    task = {"id": "t1", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
    whole = {**task, "artifacts": [{"artifactId": "a", "parts": parts}]}
    looks = 0

    def answer(body: dict[str, Any], _: int) -> Script:
        nonlocal looks
        if body.get("method") != "GetTask":
            stream = Script([event(WORKING), event(status("TASK_STATE_WORKING")), b"data: {"], kind=EVENTS)
            return card_of(HERE, stream, streaming=True)(server, body)  # type: ignore[no-any-return]
        looks += 1
        if looks < 3:
            return json_script({"detail": "away"}, 503)
        return json_script({"jsonrpc": "2.0", "id": body["id"], "result": whole})

    async with raw_server(answer) as server:
        tool = await declared(tmp_path, server.url, effect="write")
        assert (await tool.call({"message": "hello"}, context))["text"] == "the end"
    assert [body["method"] for body in server.asked if body].count("SendStreamingMessage") == 1


async def test_a_task_that_is_forgotten_is_in_doubt(tmp_path: Path, context: ToolContext) -> None:
    def answer(body: dict[str, Any], _: int) -> Script:
        if body.get("method") != "GetTask":
            return card_of(HERE, Script([event(WORKING)], kind=EVENTS), streaming=True)(server, body)  # type: ignore[no-any-return]
        error = {"code": -32001, "message": "no such task"}
        return json_script({"jsonrpc": "2.0", "id": body["id"], "error": error})

    async with raw_server(answer) as server:
        tool = await declared(tmp_path, server.url, effect="write")
        with pytest.raises(UnknownOutcome, match="does not know its task t1 any more"):
            await tool.call({"message": "hello"}, context)


async def test_what_a_stream_says_of_other_tasks_is_left_alone(tmp_path: Path, context: ToolContext) -> None:
    other = {"statusUpdate": {"taskId": "t2", "contextId": "c", "status": {"state": "TASK_STATE_FAILED"}}}
    piece, mine = artifact_of("t2", "X"), artifact_of("t1", "Y")
    events = [event(each) for each in (WORKING, other, piece, mine, status("TASK_STATE_COMPLETED"))]
    card = card_of(HERE, Script(events, kind=EVENTS), streaming=True)
    async with raw_server(lambda body, _: card(server, body)) as server:
        tool = await declared(tmp_path, server.url)
        assert (await tool.call({"message": "hello"}, context))["text"] == "Y"


async def test_a_flood_of_pieces_is_cut(tmp_path: Path, context: ToolContext) -> None:
    """Each piece is small and there is no end of them: 16 MiB are kept, and the answer says that there was more."""
    piece = event(artifact_of("t1", "x" * 1_000_000, append=True))
    events = [event(WORKING), *[piece] * 20, event(status("TASK_STATE_COMPLETED"))]
    card = card_of(HERE, Script(events, kind=EVENTS), streaming=True)
    async with raw_server(lambda body, _: card(server, body)) as server:
        tool = await declared(tmp_path, server.url)
        answer = await tool.call({"message": "hello"}, context)
    assert answer["truncated"]
    assert len(answer["text"]) == 1_000_000


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"url": "ftp://a"}, "url"),
        ({"url": "http://me:pw@a"}, "user name or password"),
        ({"url": "http://a", "effects": {}}, "effects"),
        ({"url": "http://a", "headers": {"Authorization": "$NOT_SET"}}, "the variable NOT_SET is not set"),
        ({"url": "http://a", "env": {"A": "b"}}, "env is for headers_command"),
    ],
)
def test_a_declaration_that_is_wrong_is_named(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    path = tmp_path / "agents.json"
    path.write_text(json.dumps({"agents": {"parrot": fields}}))
    with pytest.raises(ToolSetupError, match=problem):
        a2a_tools(path, {})


async def test_a_metadata_service_is_no_agent() -> None:
    with pytest.raises(ToolSetupError, match=r"agents\.agent\.url: .*metadata service"):
        await asyncio.to_thread(a2a_tools, "http://169.254.169.254/agent", {})


async def test_a_call_without_a_message_is_refused(tmp_path: Path, context: ToolContext) -> None:
    tool = await declared(tmp_path, "http://127.0.0.1:1", description=ABOUT)
    with pytest.raises(ToolArgumentError):
        await tool.call({}, context)
