"""Eighty questions on a model server of which one call in five fails, in every way that servers have: all are right."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from doubles.asked_questions import FAULTS, Question, Scripted, questions
from doubles.local_workers import serving
from doubles.model_bench import KEY, QUICK
from temporalio.client import Client, WorkflowFailureError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.llm.models import Models
from sennit.activities.providers.http_provider import HttpProvider
from sennit.activities.providers.openai import OpenAI
from sennit.activities.providers.settings import ModelSettings, Server
from sennit.activities.toolbox import load_tools
from sennit.testing.models import model_server
from sennit.workflows.messages import queues

pytestmark = pytest.mark.timeout(600)
AT_ONCE = 8


@pytest.mark.parametrize("half", [0, 1])
async def test_all_are_right(client: Client, artifacts: Path, cache: Path, tmp_path: Path, half: int) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    every = questions(docs)[half::2]
    scripted = Scripted(every, seed=half, share=0.2)
    async with model_server(key=KEY) as server:
        server.on("", scripted.reply)
        remote = HttpProvider(OpenAI(), Server("openai", server.openai_url, KEY), QUICK)
        settings = ModelSettings.read({"SENNIT_MODEL": "openai:test-model"})
        paths = WorkerPaths(artifacts, cache, None, (Path("/"),))
        models = Models({"openai": remote}, settings)
        async with serving(client, Activities(paths, load_tools([]), models, identity="tests", approval="never")):
            slots = asyncio.Semaphore(AT_ONCE)
            reports = await asyncio.gather(*(ask(client, slots, docs, question) for question in every))
        await models.close()
    lost = [
        (question.goal, report["status"], report["answer"], [line.get("error") for line in report["nodes"]])
        for question, report in zip(every, reports, strict=True)
        if report["status"] != "done" or report["answer"] != f"{question.answer} [1]"
    ]
    assert (len(every), lost, scripted.wrong) == (40, [], [])
    assert sum(scripted.made.values()) >= 15
    assert len(scripted.made) > len(FAULTS) / 3


async def ask(client: Client, slots: asyncio.Semaphore, docs: Path, question: Question) -> Any:
    async with slots:
        request = {"goal": question.goal, "docs": str(docs), "on_failure": "partial"}
        name = f"agent-eighty-{uuid.uuid4().hex[:8]}"
        run = client.execute_workflow("AgentRun", request, id=name, task_queue=queues.WORKFLOW)
        try:
            return await run
        except WorkflowFailureError as error:
            return {"status": "failed", "answer": str(error.cause), "nodes": []}
