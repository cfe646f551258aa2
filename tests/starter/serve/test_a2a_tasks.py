"""What a task of A2A comes to while the server behind it is away or a person is asked, when the agent is started again,
and with an answer that is too long.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

pytest.importorskip("a2a", reason="needs the extra a2a")
import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers.proto_helpers import get_message_text, new_text_message
from a2a.types.a2a_pb2 import (
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError

from sennit.starter.client.errors import NotAllowed, RunNotFound, SennitError, ServerUnreachable
from sennit.starter.client.request import checked_id
from sennit.starter.serve import a2a_server
from sennit.starter.serve.replies import Question, RunState
from sennit.starter.serve.run_service import Caller, RunService

URL = "http://127.0.0.1:1/a2a"
QUESTION = Question(node="choice", why="gate", question="Which river?", command="sennit answer")
BLOCKED = RunState(run="", status="blocked", progress="0 of 1", questions=[QUESTION])
AWAY = ServerUnreachable("the server at 127.0.0.1:7233 does not answer")


class Runs:
    """Stands for the runs of a server: what `status` says one time after the other, the last of it from then on."""

    def __init__(self, *states: RunState | SennitError, starts: SennitError | None = None) -> None:
        self.states = list(states)
        self.starts = starts
        self.names: list[str] = []

    async def ask(
        self,
        caller: Caller,
        goal: str,
        *,
        id: str = "",  # noqa: A002
        continues: str = "",
        agents_above: int = 0,
    ) -> None:
        self.names.append(id)
        if self.starts is not None:
            raise self.starts

    async def status(
        self, caller: Caller, name: str, seconds: float, tell: Callable[[float, str], Awaitable[None]]
    ) -> RunState:
        if checked_id(name) not in self.names:
            raise RunNotFound(f"there is no run {name}")
        state = self.states[0]
        if len(self.states) > 1:
            del self.states[0]
        if isinstance(state, SennitError):
            raise state
        return state.model_copy(update={"run": name})

    async def answer(self, caller: Caller, name: str) -> str:
        raise NotAllowed("the answer has 2,000,000 characters, and a resource at most 1,000,000")


async def connected(runs: Runs) -> Client:
    service = cast("RunService", runs)
    app = a2a_server.a2a_application(service, "ann", URL)
    http = httpx.AsyncClient(transport=httpx.ASGITransport(cast("Any", app)))
    return await create_client(URL.removesuffix("/a2a"), ClientConfig(httpx_client=http))


async def task_of(agent: Client, text: str = "Rivers", **fields: Any) -> Task:
    """Send a message, and return the task when the stream of its updates has ended."""
    name = fields.get("task_id", "")
    message = new_text_message(text, role=Role.ROLE_USER, **fields)
    async for item in agent.send_message(SendMessageRequest(message=message)):
        if item.HasField("task"):
            name = item.task.id
    return await agent.get_task(GetTaskRequest(id=name))


async def test_a_task_goes_on_with_its_run_while_the_server_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a2a_server, "AWAY_SECONDS", 0.0)
    done = RunState(run="", status="done", answer="the Nile")
    task = await task_of(await connected(Runs(AWAY, AWAY, done)))
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert "does not answer" in " ".join(map(get_message_text, task.history))


async def test_what_is_told_of_a_task_that_nobody_could_follow_is_asked_of_its_run() -> None:
    broken, done = SennitError("the store is away"), RunState(run="", status="done", answer="the Nile")
    runs = Runs(broken, done)
    agent = await connected(runs)
    with pytest.raises(Exception, match=r"Internal|store"):
        await task_of(agent)
    task = await agent.get_task(GetTaskRequest(id=runs.names[0]))
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert task.artifacts[0].parts[0].text == "the Nile"


async def test_a_task_that_leaves_the_memory_is_asked_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a2a_server, "MAX_KEPT_TASKS", 2)
    runs = Runs(RunState(run="", status="done", answer="the Nile"))
    agent = await connected(runs)
    for _ in range(4):
        await task_of(agent)
    assert len((await agent.list_tasks(ListTasksRequest())).tasks) == 2
    task = await agent.get_task(GetTaskRequest(id=runs.names[0]))
    assert task.artifacts[0].parts[0].text == "the Nile"


async def test_a_run_that_was_started_although_its_start_failed_is_no_rejected_task() -> None:
    runs = Runs(RunState(run="", status="running", progress="1 of 2"), starts=AWAY)
    task = await task_of(await connected(runs))
    assert task.status.state == TaskState.TASK_STATE_WORKING


async def test_an_answer_that_is_too_long_for_a_task_is_cut_and_says_so() -> None:
    runs = Runs(RunState(run="", status="done", answer="the Nile is", answer_is_cut=True))
    task = await task_of(await connected(runs))
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert task.artifacts[0].parts[0].text == "the Nile is"
    assert "the artifact is the beginning of the answer" in get_message_text(task.status.message)


async def test_a_text_that_is_no_id_names_no_task() -> None:
    agent = await connected(Runs())
    with pytest.raises(TaskNotFoundError):
        await agent.get_task(GetTaskRequest(id="no id at all?"))


async def test_a_task_is_listed_as_it_stands_once_a_person_has_answered() -> None:
    runs = Runs(BLOCKED)
    agent = await connected(runs)
    await task_of(agent)
    await task_of(agent)
    runs.states = [RunState(run="", status="done", answer="the Nile")]
    listed = await agent.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_COMPLETED))
    assert sorted(task.id for task in listed.tasks) == sorted(runs.names)
    runs.states = [AWAY]
    assert len((await agent.list_tasks(ListTasksRequest())).tasks) == 2


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_who_subscribes_to_a_task_hears_what_becomes_of_it_once_a_person_has_answered(
    monkeypatch: pytest.MonkeyPatch, is_restarted: bool
) -> None:
    monkeypatch.setattr(a2a_server, "PERSON_SECONDS", 0.01)
    runs = Runs(BLOCKED)
    agent = await connected(runs)
    task = await task_of(agent)
    if is_restarted:
        agent = await connected(runs)
    runs.states = [BLOCKED, BLOCKED, BLOCKED, RunState(run="", status="done", answer="the Nile")]
    kinds, states = list[str](), list[int]()
    async with asyncio.timeout(20):
        async for item in agent.subscribe(SubscribeToTaskRequest(id=task.id)):
            kinds.append(str(item.WhichOneof("payload")))
            if item.HasField("status_update"):
                states.append(item.status_update.status.state)
    assert kinds == ["task", "artifact_update", "status_update"]
    assert states == [TaskState.TASK_STATE_COMPLETED]


@pytest.mark.parametrize("context", ["", "mine"])
async def test_a_message_to_a_task_may_leave_out_the_context_and_the_agent_may_be_started_again(context: str) -> None:
    runs = Runs(BLOCKED)
    begun = await task_of(await connected(runs), context_id="mine")
    assert begun.context_id == "mine"
    agent = await connected(runs)
    for _ in range(3):
        task = await task_of(agent, "How does it stand?", task_id=begun.id, context_id=context)
        assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert task.context_id == (context or begun.id)


async def test_a_message_to_a_task_that_this_agent_has_begun_may_leave_out_the_context() -> None:
    agent = await connected(Runs(BLOCKED))
    begun = await task_of(agent, context_id="mine")
    for _ in range(3):
        task = await task_of(agent, "How does it stand?", task_id=begun.id)
        assert (task.status.state, task.context_id) == (TaskState.TASK_STATE_INPUT_REQUIRED, "mine")


async def test_what_a_client_sends_is_kept_within_bounds() -> None:
    agent = await connected(Runs(BLOCKED))
    begun = await task_of(agent)
    for _ in range(5):
        task = await task_of(agent, "x" * 50_000, task_id=begun.id)
    assert 50_000 < task.ByteSize() < 80_000
    with pytest.raises(InvalidParamsError, match="contextId has over 255 characters"):
        await task_of(agent, context_id="x" * 256)


async def test_a_question_about_the_whole_plan_names_no_node() -> None:
    about_the_plan = Question(node="", why="plan", question="may this plan run?", command="sennit approve")
    state = BLOCKED.model_copy(update={"questions": [QUESTION, about_the_plan]})
    lines = get_message_text((await task_of(await connected(Runs(state)))).status.message).splitlines()
    assert lines[1:5] == [
        "choice: Which river?",
        "command: sennit answer",
        "may this plan run?",
        "command: sennit approve",
    ]
