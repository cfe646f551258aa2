"""`sennit serve --a2a`: a real server process, the official client, real runs; and what hostile clients get."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client as Temporal

pytest.importorskip("a2a", reason="needs the extra a2a")
import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.client.errors import A2AClientError
from a2a.helpers.proto_helpers import get_message_text, new_text_message
from a2a.types.a2a_pb2 import CancelTaskRequest, GetTaskRequest, Role, SendMessageRequest, Task, TaskState
from a2a.utils.errors import A2AError
from doubles.callers import ANN, BOB
from doubles.local_workers import serving
from doubles.runs import call
from doubles.serve_process import http_server

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.starter.client.client import Sennit

GATE = {"id": "choice", "kind": "gate", "question": "Which river?", "schema": {"type": "string"}}
ASKS = {"goal": "Pick a river", "nodes": [GATE, call("after", args={"value": "$choice"})], "answer": "$after.value"}
LONG = {"nodes": [call("nap", args={"seconds": 100})], "answer": "$nap.value"}
QUESTION = "Which is longer, the Nile or the Amazon?"
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def serving_runs(client: Temporal, cache: Path, artifacts: Path, docs: Path) -> AsyncIterator[None]:
    paths = WorkerPaths(artifacts, cache, docs, (Path("/"),))
    async with serving(client, Activities(paths, load_tools(["doubles.tools"]), identity="tests")):
        yield


@asynccontextmanager
async def connected(url: str, token: str = "") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(headers=headers, timeout=90, trust_env=False) as http:
        yield await create_client(url.removesuffix("/a2a"), ClientConfig(httpx_client=http))


async def sent(client: Client, text: str, **fields: Any) -> Task:
    """Send a message, and return the task when the stream of its updates has ended."""
    metadata = fields.pop("metadata", {})
    message = new_text_message(text, role=Role.ROLE_USER, **fields)
    message.metadata.update(metadata)
    name = fields.get("task_id", "")
    async for item in client.send_message(SendMessageRequest(message=message)):
        if item.HasField("task"):
            name = item.task.id
    return await client.get_task(GetTaskRequest(id=name))


def said(task: Task) -> str:
    return get_message_text(task.status.message)


async def test_an_agent_reads_the_card_sends_a_message_and_gets_the_answer(
    server_address: str, serving_runs: None, tmp_path: Path
) -> None:
    async with http_server(tmp_path, "--address", server_address, "--http", "0", protocol="--a2a") as url:
        async with httpx.AsyncClient(trust_env=False) as http:
            card = (await http.get(url.removesuffix("/a2a") + "/.well-known/agent-card.json")).json()
        assert (card["name"], [skill["id"] for skill in card["skills"]]) == ("Sennit", ["ask"])
        async with connected(url) as agent:
            kinds = list[str]()
            states = list[int]()
            message = new_text_message(QUESTION, role=Role.ROLE_USER)
            async for item in agent.send_message(SendMessageRequest(message=message)):
                kinds.append(str(item.WhichOneof("payload")))
                if item.HasField("status_update"):
                    states.append(item.status_update.status.state)
                if item.HasField("task"):
                    name = item.task.id
            task = await agent.get_task(GetTaskRequest(id=name))
    assert kinds[0] == "task"
    assert "artifact_update" in kinds
    assert states[-1] == TaskState.TASK_STATE_COMPLETED == task.status.state
    assert [artifact.name for artifact in task.artifacts] == ["answer"]
    assert "Amazon" in task.artifacts[0].parts[0].text


async def test_a_question_is_for_a_person_and_no_message_answers_it(
    client: Temporal, server_address: str, serving_runs: None, tmp_path: Path
) -> None:
    """The server that is asked at the end has not begun the task: it knows it by its run."""
    sennit = Sennit(client)
    run = await sennit.start(plan=ASKS, id="ask-a-person", caller="ann")
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'ann = "{ANN}"\nbob = "{BOB}"\n')
    tokens.chmod(0o600)
    flags = ("--address", server_address, "--http", "0", "--tokens", str(tokens))
    async with http_server(tmp_path, *flags, protocol="--a2a") as url:
        async with connected(url, ANN) as agent:
            for _ in range(2):
                task = await sent(agent, "Danube", task_id=run.id, context_id=run.id)
                assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
                assert "command: sennit answer ask-a-person choice" in said(task)
                assert "A message does not answer this" in said(task)
            await run.answer("choice", "Nile")
            await run.report()
            task = await agent.get_task(GetTaskRequest(id=run.id))
            assert task.status.state == TaskState.TASK_STATE_COMPLETED
            assert task.artifacts[0].parts[0].text == "Nile"
        async with connected(url, BOB) as other:
            with pytest.raises(A2AError):
                await other.get_task(GetTaskRequest(id=run.id))
            with pytest.raises(A2AError):
                await sent(other, "mine", task_id=run.id, context_id=run.id)


async def test_a_circle_of_agents_that_ask_each_other_ends(
    client: Temporal, server_address: str, serving_runs: None, tmp_path: Path
) -> None:
    """What an agent says of those above it goes to the run, which tells it to the agents that it asks; too many are
    rejected.
    """
    flags = ("--address", server_address, "--http", "0")
    async with http_server(tmp_path, *flags, protocol="--a2a") as url, connected(url) as agent:
        tasks = [await sent(agent, QUESTION, metadata={"sennit": {"agents_above": n}}) for n in (4, 6)]
    assert [task.status.state for task in tasks] == [
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_REJECTED,
    ]
    assert "5 agents have asked each other for this already" in said(tasks[1])
    begun = (await client.get_workflow_handle(tasks[0].id).fetch_history()).events[0]
    given = json.loads(begun.workflow_execution_started_event_attributes.input.payloads[0].data)
    assert given["agents_above"] == 4


async def test_a_task_is_canceled(client: Temporal, server_address: str, serving_runs: None, tmp_path: Path) -> None:
    run = await Sennit(client).start(plan=LONG, id="cancel-me", caller="ann")
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'ann = "{ANN}"\n')
    tokens.chmod(0o600)
    flags = ("--address", server_address, "--http", "0", "--tokens", str(tokens))
    async with http_server(tmp_path, *flags, protocol="--a2a") as url, connected(url, ANN) as agent:
        task = await agent.cancel_task(CancelTaskRequest(id=run.id))
    assert task.status.state == TaskState.TASK_STATE_CANCELED
    assert (await run.outcome()).report.status == "cancelled"


async def test_strangers_get_nothing(server_address: str, tokens: Path, tmp_path: Path) -> None:
    flags = ("--address", server_address, "--http", "0", "--tokens", str(tokens))
    async with http_server(tmp_path, *flags, protocol="--a2a") as url:
        async with httpx.AsyncClient(trust_env=False) as http:
            mine = {"authorization": f"Bearer {ANN}", "content-type": "application/json"}
            assert (await http.post(url, json={})).status_code == 401
            assert (
                await http.post(url, content="{}", headers={**mine, "authorization": "Bearer x"})
            ).status_code == 401
            assert (await http.post(url, content="{}", headers={**mine, "host": "evil.example"})).status_code == 421
            evil = {**mine, "origin": "https://evil.example"}
            assert (await http.post(url, content="{}", headers=evil)).status_code == 403
            assert (await http.post(url, content="x" * (10 << 20), headers=mine)).status_code == 413
            assert (await http.post(url, content="{}", headers=mine)).status_code == 200
        with pytest.raises(A2AClientError):
            async with connected(url):
                pass
