"""Runs that ask an agent of A2A, with a real server of each."""

import asyncio
import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from temporalio.client import Client

pytest.importorskip("a2a", reason="needs the extra a2a")
from doubles.a2a_agent import agent_server
from doubles.local_workers import serving
from doubles.runs import call, insist, until
from doubles.stores import store_in

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.activities.toolbox.a2a.tools import a2a_tools
from sennit.workflows.messages import queues


async def test_a_person_answers_what_an_agent_asks(client: Client, tmp_path: Path) -> None:
    async with agent_server() as agent:
        declared = {"agents": {"parrot": {"url": agent.url, "effect": "read"}}}
        (tmp_path / "agents.json").write_text(json.dumps(declared))
        tools = await asyncio.to_thread(a2a_tools, tmp_path / "agents.json", {})
        paths = WorkerPaths(store_in(tmp_path / "a"), tmp_path / "i", None, ())
        host = Activities(paths, load_tools(["doubles.tools"], offered=tools), identity="tests")
        waits = {"ref": "$asked.waits", "op": "eq", "value": True}
        nodes = [
            call("asked", "parrot", args={"message": "ask river", "may_ask": True}),
            {"id": "choice", "kind": "gate", "question": "$asked.text", "when": waits},
            call("told", "parrot", args={"message": "$choice", "continues": "$asked.task"}),
        ]
        async with serving(client, host):
            given = {"plan": {"nodes": nodes, "answer": "$told.text"}, "agents_above": 1}
            handle = await client.start_workflow("AgentRun", given, id="agent-asks", task_queue=queues.WORKFLOW)
            view = await until(handle, lambda view: bool(view["status"] == "blocked"))
            assert "Which river?" in json.dumps(view)
            await insist(handle, "answer", {"node": "choice", "value": "the Nile"})
            report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "you said the Nile")
    assert agent.read == ["ask river", "the Nile"]
    passed_on = [MessageToDict(message.metadata) for message in agent.messages]
    assert passed_on == [{"sennit": {"agents_above": 2}}] * 2
