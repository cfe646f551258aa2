"""Sennit as an agent of the A2A protocol: its card, and a run behind each task.

A task has the id of its run, and no state of its own that matters: what a run comes to is asked
of the run, also by a server that was started again. Questions and approvals are for people, so
no message answers them: the task is `input-required`, and says by which command and on which
page a person decides.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from importlib.metadata import version
from typing import Any, Final
from uuid import uuid4

from a2a.helpers.proto_helpers import get_message_text, new_text_artifact
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.agent_execution.active_task import TERMINAL_TASK_STATES
from a2a.server.context import ServerCallContext
from a2a.server.events import Event, EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskStore
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    CancelTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.constants import PROTOCOL_VERSION_CURRENT
from a2a.utils.errors import (
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from starlette.applications import Starlette

from sennit.starter.client.errors import (
    InvalidRequest,
    NoServerYet,
    Refused,
    RunNotFound,
    SennitError,
    ServerUnreachable,
)
from sennit.starter.limits import (
    MAX_CONTEXT_ID_CHARACTERS,
    MAX_HISTORY_BYTES,
    MAX_KEPT_TASKS,
    MAX_REPLY_WAIT_SECONDS,
    MAX_REPORTS_AT_ONCE,
    MAX_SERVE_IDLE_SECONDS,
)
from sennit.starter.serve.replies import RunState
from sennit.starter.serve.run_service import Caller, RunService
from sennit.workflows.limits import MAX_AGENTS_ABOVE
from sennit.workflows.plan.language.references import as_text

PATH: Final = "/a2a"
_TEXT: Final = "text/plain"
_STATES: Final = {
    "running": TaskState.TASK_STATE_WORKING,
    "blocked": TaskState.TASK_STATE_INPUT_REQUIRED,
    "done": TaskState.TASK_STATE_COMPLETED,
    "partial": TaskState.TASK_STATE_COMPLETED,
    "failed": TaskState.TASK_STATE_FAILED,
    "cancelled": TaskState.TASK_STATE_CANCELED,
}
AWAY_SECONDS: Final = 5.0
"""Between two looks at a run while the server is away."""
PERSON_SECONDS: Final = 5.0
"""Between two looks at a run that waits for a person, for those who have subscribed to it."""
_FOLLOWED_BY_NOBODY: Final = (
    TaskState.TASK_STATE_INPUT_REQUIRED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_REJECTED,
)
"""States that may be those of who follows a run, and not of the run: it
goes on if that one fails.
"""
_PERSON_ONLY: Final = (
    "A message does not answer this: a person does, by the command or on the page."
)


def agent_card(url: str) -> AgentCard:
    """Return what other agents read of this one, which they reach at that URL."""
    about = (
        "plans the goal as a graph of look-ups, tools and sub-agents that run side by side, and "
        "survives crashes"
    )
    skill = AgentSkill(
        id="ask",
        name="Ask",
        description=f"Reach a goal or answer a question: Sennit {about}",
        tags=["research", "plan", "durable"],
        examples=["Which is longer, the Nile or the Amazon?"],
    )
    return AgentCard(
        name="Sennit",
        description=f"Runs agents durably: it {about}. The text of a message is the goal.",
        version=version("sennit"),
        supported_interfaces=[
            AgentInterface(
                url=url, protocol_binding="JSONRPC", protocol_version=PROTOCOL_VERSION_CURRENT
            )
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=[_TEXT],
        default_output_modes=[_TEXT],
        skills=[skill],
    )


def a2a_application(service: RunService, user: str, url: str) -> Starlette:
    """Return the ASGI application of the agent at that URL. Without a token everybody
    who reaches it is `user`.
    """
    callers = _Callers(user)
    card = agent_card(url)
    handler = _Handler(service, callers, card)
    return Starlette(
        routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, PATH)]
    )


class _Callers:
    """Says for whom a request is made: whose token it has, or the person who runs the server."""

    def __init__(self, user: str) -> None:
        self._user = user

    def of(self, context: ServerCallContext) -> Caller:
        user = context.user
        if user.is_authenticated and user.user_name:
            return Caller(user.user_name, tenant=user.user_name)
        return Caller(self._user)


class RunExecutor(AgentExecutor):
    """Starts a run for the first message of a task, and follows it until it is over
    or waits for a person.
    """

    def __init__(self, service: RunService, callers: _Callers, tasks: "RunTasks") -> None:
        self._service = service
        self._callers = callers
        self._tasks = tasks

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Publish the task and all that becomes of it. Cut off and called again,
        it follows the same run.
        """
        caller = self._callers.of(context.call_context)
        run = context.task_id or ""
        news = TaskNews(run, context.context_id or run, event_queue.enqueue_event)
        if context.current_task is None:
            self._tasks.expect(run)
            await event_queue.enqueue_event(
                _task(run, news.context_id, TaskState.TASK_STATE_SUBMITTED)
            )
            try:
                await self._start(context, caller, run)
            except SennitError as error:
                await news.status(TaskState.TASK_STATE_REJECTED, str(error))
                return
        state = await self._followed(news, caller)
        await self._tell_stop(news, caller, state)

    async def follow_to_end(self, news: "TaskNews", caller: Caller, shown: str) -> None:
        """Tell what becomes of a task until its run is over, also while it waits for a person.
        `shown` is the sentence about its status that is known already.
        """
        while True:
            state = await self._followed(news, caller)
            if state.status != "blocked":
                break
            if _sentence(state) != shown:
                shown = _sentence(state)
                await news.status(_STATES[state.status], shown, _used(state))
            await asyncio.sleep(PERSON_SECONDS)
        await self._tell_stop(news, caller, state)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do nothing: `_Handler` has cancelled the run, and the one who
        follows it tells of its end.
        """

    async def _start(self, context: RequestContext, caller: Caller, run: str) -> None:
        """Start the run, unless it is there: the task's id is the run's, so a message that
        comes twice starts one.
        """
        message = context.message or Message()
        continues = ""
        if message.reference_task_ids:
            continues = message.reference_task_ids[0]
        above = _agents_above(message)
        if above > MAX_AGENTS_ABOVE:
            raise Refused(
                f"{MAX_AGENTS_ABOVE} agents have asked each other for this already: it is a circle"
            )
        await self._service.ask(
            caller, context.get_user_input(), id=run, continues=continues, agents_above=above
        )

    async def _followed(self, news: "TaskNews", caller: Caller) -> RunState:
        """Return how a run stands once it is over or waits for a person, and tell its
        progress until then.
        """
        shown = ""

        async def tell(_: float, line: str) -> None:
            nonlocal shown
            if line != shown:
                shown = line
                await news.status(TaskState.TASK_STATE_WORKING, line)

        state = None
        while state is None or state.status == "running":
            try:
                state = await self._service.status(
                    caller, news.task_id, MAX_REPLY_WAIT_SECONDS, tell
                )
            except ServerUnreachable as away:  # the run goes on with it
                await tell(0.0, str(away))
                await asyncio.sleep(AWAY_SECONDS)
        return state

    async def _tell_stop(self, news: "TaskNews", caller: Caller, state: RunState) -> None:
        for artifact in await _artifacts(self._service, caller, state):
            await news.artifact(artifact)
        await news.status(_STATES[state.status], _sentence(state), _used(state))


class TaskNews:
    """What becomes of a task, for those who hear of it by `publish`."""

    def __init__(
        self, task_id: str, context_id: str, publish: Callable[[Event], Awaitable[None]]
    ) -> None:
        self.task_id = task_id
        self.context_id = context_id
        self._publish = publish

    async def status(
        self, state: TaskState, text: str, metadata: dict[str, Any] | None = None
    ) -> None:
        """Tell the status of the task from now on, with a sentence about it."""
        message = Message(
            role=Role.ROLE_AGENT,
            message_id=str(uuid4()),
            parts=[Part(text=text)],
            task_id=self.task_id,
            context_id=self.context_id,
        )
        status = TaskStatus(state=state, message=message)
        status.timestamp.GetCurrentTime()
        event = TaskStatusUpdateEvent(
            task_id=self.task_id, context_id=self.context_id, status=status
        )
        event.metadata.update(metadata or {})
        await self._publish(event)

    async def artifact(self, artifact: Artifact) -> None:
        """Tell of a whole artifact."""
        await self._publish(
            TaskArtifactUpdateEvent(
                task_id=self.task_id, context_id=self.context_id, artifact=artifact
            )
        )


class _Handler(DefaultRequestHandler):
    """Answers requests as the SDK does. But it cancels a task, and tells what becomes of it, by
    its run, which may be followed by nobody here.
    """

    def __init__(self, service: RunService, callers: _Callers, card: AgentCard) -> None:
        self._tasks = RunTasks(service, callers)
        self._executor = RunExecutor(service, callers, self._tasks)
        super().__init__(
            self._executor, self._tasks, card, interrupted_task_timeout=MAX_SERVE_IDLE_SECONDS
        )
        self._service = service
        self._callers = callers

    async def on_message_send(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> Message | Task:
        await self._tasks.settle_context(params.message, context)
        answer: Message | Task = await super().on_message_send(params, context)
        return answer

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        await self._tasks.settle_context(params.message, context)
        async with aclosing(super().on_message_send_stream(params, context)) as events:
            async for event in events:
                yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Follow the run itself until it is over. The SDK would repeat what it hears from whoever
        follows the run for a message: nobody does while a person is asked, or after a restart.
        """
        task = await self._tasks.get(params.id, context)
        if task is None:
            raise TaskNotFoundError
        if task.status.state in TERMINAL_TASK_STATES:
            name = TaskState.Name(task.status.state)
            raise UnsupportedOperationError(message=f"Task {task.id} is in terminal state: {name}")
        yield task

        events = asyncio.Queue[Event | None]()
        news = TaskNews(task.id, task.context_id, events.put)
        caller = self._callers.of(context)
        shown = get_message_text(task.status.message)
        follower = asyncio.create_task(self._executor.follow_to_end(news, caller, shown))
        follower.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await follower  # raises why the run cannot be followed any more
        finally:
            follower.cancel()

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Cancel the run, and return the task as canceled: the run lets writes in flight
        end, and is over then.
        """
        found = await self._tasks.get(params.id, context)
        if found is None:
            raise TaskNotFoundError
        try:
            await self._service.cancel(self._callers.of(context), params.id)
        except SennitError as error:
            raise TaskNotCancelableError(message=str(error)) from None
        task = Task()
        task.CopyFrom(found)
        task.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_CANCELED))
        return task


class RunTasks(TaskStore):
    """The tasks of this server. One that nobody follows now, or that it has not in
    memory, is as its run stands.
    """

    def __init__(self, service: RunService, callers: _Callers) -> None:
        self._service = service
        self._callers = callers
        self._known = InMemoryTaskStore()
        self._saved: dict[str, ServerCallContext] = {}
        self._expected: dict[str, None] = {}
        self._contexts: dict[str, str] = {}

    def expect(self, task_id: str) -> None:
        """Know that a task begins: until it is saved there is none, although its
        run may be there by then.
        """
        self._expected[task_id] = None

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Keep a task in memory, with the end of its history, and let the one go that was
        saved longest ago if there are too many.
        """
        _shorten(task)
        await self._known.save(task, context)
        self._expected.pop(task.id, None)
        self._saved.pop(task.id, None)
        self._saved[task.id] = context
        if len(self._saved) > MAX_KEPT_TASKS:
            oldest = next(iter(self._saved))
            await self._known.delete(oldest, self._saved.pop(oldest))

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a task of the caller; None for those of others, as if they were not there."""
        found = await self._known.get(task_id, context)
        is_followed = found is not None and found.status.state not in _FOLLOWED_BY_NOBODY
        if is_followed or task_id in self._expected:
            return found
        caller = self._callers.of(context)
        try:
            state = await self._service.status(caller, task_id, 0, _tell_nobody)
        except (RunNotFound, NoServerYet, InvalidRequest):
            return found
        artifacts = await _artifacts(self._service, caller, state)
        context_id = self._contexts.get(task_id, task_id)
        if found is not None:
            context_id = found.context_id
        task = _task(task_id, context_id, _STATES[state.status], state)
        task.artifacts.extend(artifacts)
        if found is None:
            return task
        task.history.extend(found.history)
        if task.status.state == found.status.state:
            task.status.timestamp.CopyFrom(found.status.timestamp)
        else:
            task.status.timestamp.GetCurrentTime()
        return task

    async def settle_context(self, message: Message, context: ServerCallContext) -> None:
        """Have a message to a task name the task's context. The context of a task that this
        server has not begun is the one by which its client calls it. Raises InvalidParamsError.
        """
        if len(message.context_id) > MAX_CONTEXT_ID_CHARACTERS:
            raise InvalidParamsError(
                message=f"contextId has over {MAX_CONTEXT_ID_CHARACTERS} characters"
            )
        if not message.task_id:
            return
        task = await self.get(message.task_id, context)
        if task is None:
            return
        if not message.context_id:
            message.context_id = task.context_id
        elif await self._known.get(task.id, context) is None:
            self._contexts[task.id] = message.context_id
            if len(self._contexts) > MAX_KEPT_TASKS:
                del self._contexts[next(iter(self._contexts))]

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Return the tasks that this server has begun, as they stand; `sennit list` has
        all runs.
        """
        listed = InMemoryTaskStore()
        turns = asyncio.Semaphore(MAX_REPORTS_AT_ONCE)

        async def add(task_id: str) -> None:
            async with turns:
                try:
                    task = await self.get(task_id, context)
                except SennitError:  # nobody can say more now
                    task = await self._known.get(task_id, context)
                if task is not None:
                    await listed.save(task, context)

        own: list[str] = []
        for task_id in list(self._saved):
            if await self._known.get(task_id, context) is not None:
                own.append(task_id)
        await asyncio.gather(*map(add, own))
        return await listed.list(params, context)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        await self._known.delete(task_id, context)


def _shorten(task: Task) -> None:
    """Let the oldest messages of a task go, beyond so many bytes: the task of a run that asks a
    person gets one with every message that nobody answers.
    """
    kept_bytes = 0
    for index in reversed(range(len(task.history))):
        kept_bytes += task.history[index].ByteSize()
        if kept_bytes > MAX_HISTORY_BYTES:
            del task.history[: index + 1]
            return


def _agents_above(message: Message) -> int:
    """Return how many agents have asked each other before this message, as
    far as they pass that on.
    """
    if "sennit" not in message.metadata.fields:
        return 0
    told = message.metadata.fields["sennit"].struct_value.fields["agents_above"].number_value
    if not 0 <= told <= 1_000_000:  # NaN, too
        return 0
    return int(told)


async def _tell_nobody(_: float, __: str) -> None:
    """Nobody waits for progress."""


async def _artifacts(service: RunService, caller: Caller, state: RunState) -> list[Artifact]:
    """Return the answer of a run that has one. Where it is too long, or cannot be read now, it is
    the beginning, and a warning says so.
    """
    if state.answer is None:
        return []
    text = as_text(state.answer)
    if state.answer_is_cut:
        try:
            text = await service.answer(caller, state.run)
        except SennitError as error:
            state.warnings.append(f"the artifact is the beginning of the answer: {error}")
    return [new_text_artifact("answer", text, media_type=_TEXT, artifact_id=f"{state.run}-answer")]


def _task(run: str, context_id: str, status: TaskState, state: RunState | None = None) -> Task:
    task = Task(id=run, context_id=context_id, status=TaskStatus(state=status))
    if state is not None:
        text = Part(text=_sentence(state))
        message = Message(
            role=Role.ROLE_AGENT, message_id=f"{run}-{state.status}", parts=[text], task_id=run
        )
        task.status.message.CopyFrom(message)
        task.metadata.update(_used(state))
    return task


def _sentence(state: RunState) -> str:
    """Return how a run stands, as the agent that waits for it reads it."""
    lines = [state.problem or f"{state.status} after {state.progress}"]
    for question in state.questions:
        asked = question.question
        if question.node:  # the plan as a whole has none
            asked = f"{question.node}: {asked}"
        lines += [asked, question.shown, f"command: {question.command}"]
    if state.questions:
        if state.ui:
            lines.append(f"page: {state.ui}")
        lines.append(_PERSON_ONLY)
    lines += [f"failed: {failure.node}: {failure.error}" for failure in state.failed]
    lines += [f"warning: {warning}" for warning in state.warnings]
    return "\n".join(filter(None, lines))


def _used(state: RunState) -> dict[str, Any]:
    """Return what the run has used, for whoever pays for it."""
    return {"sennit": {"tokens": state.tokens, "cost_usd": state.cost_usd, "status": state.status}}
