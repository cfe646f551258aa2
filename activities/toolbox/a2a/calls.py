"""One message to an agent, and the task that comes of it, until the task is settled.

A message goes out once. If its answer is lost, the task is looked at by its id, which repeats
nothing. Where no id has come, nobody knows whether the agent has read the message: then only a call
that may be repeated is tried again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Final

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
    TaskNotFoundError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from google.protobuf.json_format import ParseDict, ParseError

from sennit.activities.http.client import HttpError
from sennit.activities.http.headers_command import CommandFailed, HeadersCommand
from sennit.activities.http.pinned import has_origin, pinned_client
from sennit.activities.toolbox.a2a.answers import (
    SETTLED,
    WAITING,
    AgentAnswer,
    Artifacts,
    answer_of_message,
    text_of,
)
from sennit.activities.toolbox.a2a.configuration import AgentDeclaration
from sennit.activities.toolbox.errors import (
    A2aCredentialsRefused,
    A2aFailed,
    A2aUnavailable,
    HttpStatusError,
    ToolArgumentError,
    ToolError,
    UnknownOutcome,
)
from sennit.workflows.limits import MAX_AGENTS_ABOVE
from sennit.workflows.plan.language.text import one_line, printable

_FIRST_LOOK, _LAST_LOOK = 0.5, 10.0
"""Seconds between two looks at a task that no stream tells of: they grow."""
_CANCEL_SECONDS: Final = 5.0
"""For which an agent that is told to cancel a task may take."""
_REFUSALS: Final = (
    ContentTypeNotSupportedError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
    TaskNotFoundError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
"""Errors of the protocol by which an agent says that it has done nothing."""
_LARGEST_WHOLE: Final = 2**53
"""Up to which each whole number is a float, too."""
_UNREADABLE: Final = (ParseError, ValueError, TypeError, KeyError, AttributeError, RuntimeError)
"""What the SDK raises of an answer that is none of the protocol."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A declared agent, with the secrets of its declaration filled in."""

    name: str
    declared: AgentDeclaration
    headers: Mapping[str, str]
    printed: HeadersCommand | None

    @property
    def is_repeatable(self) -> bool:
        """Whether a message may go out again when its answer is lost."""
        return self.declared.effect != "write"


@dataclass(frozen=True, slots=True)
class Sent:
    """What a call says. `continues` is the id of an earlier task, or nothing; `message_id` is equal
    in all attempts; `may_ask` whether a question of the agent is an answer; `agents_above` how many
    agents have asked each other before.
    """

    text: str
    data: Mapping[str, Any] | None
    continues: str
    message_id: str
    may_ask: bool
    agents_above: int


class _Lost(Exception):
    """Nobody here knows what has become of the message. `may_help` says whether another
    attempt may bring more.
    """

    def __init__(self, message: str, *, may_help: bool = True) -> None:
        super().__init__(message)
        self.may_help = may_help


async def read_card(agent: Agent) -> AgentCard:
    """Return what an agent says of itself. Raises A2aUnavailable,
    A2aCredentialsRefused, and AddressRefused.
    """
    async with _client_of(agent) as http:
        return await _card(agent, http)


async def ask(agent: Agent, sent: Sent, progress: Callable[[str], None]) -> AgentAnswer:
    """Send a message and return what comes of it. A cancellation is passed on to the agent.

    Raises ToolArgumentError, A2aUnavailable, A2aCredentialsRefused and AddressRefused where the
    agent has not read the message; A2aFailed and A2aNeedsInput where the agent has answered so; and
    for a lost answer UnknownOutcome, or A2aUnavailable if the message may be repeated. Each begins
    with the agent's name.
    """
    try:
        return await _Call(agent, sent, progress).answer()
    except _Lost as lost:
        problem = str(lost)
        if not agent.is_repeatable:
            raise UnknownOutcome(
                f"{agent.name}: {problem}; whether it took effect is not known"
            ) from None
        if lost.may_help:
            raise A2aUnavailable(f"{agent.name}: {problem}", retryable=True) from None
        raise A2aFailed(f"{agent.name}: {problem}") from None


class _Call:
    """One message, and what is known of its task."""

    def __init__(self, agent: Agent, sent: Sent, progress: Callable[[str], None]) -> None:
        self._agent = agent
        self._sent = sent
        self._progress = progress
        self._task = Task()
        self._artifacts = Artifacts()
        self._pause = _FIRST_LOOK

    async def answer(self) -> AgentAnswer:
        """Return the output. Raises as `ask` does, and _Lost."""
        longest = self._agent.declared.longest
        async with _client_of(self._agent) as http:
            # Until here nothing was said: whatever goes wrong, the call may be tried again.
            client, message = await self._prepared(http)
            try:
                async with asyncio.timeout(longest):
                    return await self._exchanged(client, message)
            except TimeoutError:
                await self._cancel(client)
                raise _Lost(f"no end within {longest:g} s{self._which}") from None
            except asyncio.CancelledError:
                await self._cancel(client)
                raise

    @property
    def _which(self) -> str:
        return f" of its task {printable(self._task.id, 200)}" if self._task.id else ""

    @property
    def _is_settled(self) -> bool:
        return self._task.status.state in SETTLED

    async def _prepared(self, http: Any) -> tuple[Client, Message]:
        agent = self._agent
        patience = agent.declared.timeout
        try:
            async with asyncio.timeout(patience):
                card = await _card(agent, http)
                config = ClientConfig(httpx_client=http, polling=True)
                try:
                    client = ClientFactory(config).create(card)
                except _UNREADABLE as error:
                    raise A2aUnavailable(
                        f"{agent.name}: its card cannot be used: {one_line(str(error))}"
                    ) from None
                return client, await self._message(client)
        except TimeoutError:
            raise A2aUnavailable(
                f"{agent.name}: no answer within {patience:g} s", retryable=True
            ) from None

    async def _message(self, client: Client) -> Message:
        """Return the message. One that continues a task goes to that task if it waits for one, and
        else refers to it: a task that has ended takes no message.
        """
        sent = self._sent
        if sent.agents_above >= MAX_AGENTS_ABOVE:
            raise A2aFailed(
                f"{self._agent.name}: {MAX_AGENTS_ABOVE} agents have asked each other for this "
                "already"
            )
        message = Message(
            message_id=sent.message_id, role=Role.ROLE_USER, parts=_parts(self._agent, sent)
        )
        # Agents that pass this on, as Sennit does, end a circle of agents that ask each other.
        message.metadata.update({"sennit": {"agents_above": sent.agents_above + 1}})
        if sent.continues:
            try:
                earlier = await client.get_task(GetTaskRequest(id=sent.continues, history_length=0))
            except (A2AError, HttpError, ToolError, CommandFailed, *_UNREADABLE) as error:
                raise _unsent(self._agent, error) from None
            message.context_id = earlier.context_id
            if earlier.status.state in WAITING:
                message.task_id = earlier.id
            else:
                message.reference_task_ids.append(earlier.id)
        return message

    async def _exchanged(self, client: Client, message: Message) -> AgentAnswer:
        """Send the message, and follow its task until that is settled."""
        stream = client.send_message(SendMessageRequest(message=message))
        assert isinstance(stream, AsyncGenerator)
        try:
            async with aclosing(stream):
                async for event in stream:
                    if event.HasField("message") and not self._task.id:
                        return answer_of_message(event.message)
                    self._hear(event)
                    if self._is_settled:
                        break
        except (A2AError, HttpError, ToolError, CommandFailed, *_UNREADABLE) as error:
            # A task that is known can be looked at, whatever has become of the stream.
            if not self._task.id:
                raise _unanswered(self._agent, error) from None

        if not self._is_settled and not self._task.id:
            raise _Lost("it has ended its answer before it named a task", may_help=False)
        while not self._is_settled:
            await self._look(client)
        try:
            return self._artifacts.answer(self._task, may_ask=self._sent.may_ask)
        except ToolError as error:
            raise type(error)(f"{self._agent.name}: {error}") from None

    def _hear(self, event: StreamResponse) -> None:
        """Note what a stream says of the task. What it says of other tasks is left alone."""
        if event.HasField("task"):
            self._see(event.task)
        elif event.HasField("status_update") and self._is_mine(event.status_update.task_id):
            self._task.id = event.status_update.task_id
            self._set_status(event.status_update.status)
        elif event.HasField("artifact_update") and self._is_mine(event.artifact_update.task_id):
            self._artifacts.take(event.artifact_update)

    def _is_mine(self, task_id: str) -> bool:
        return self._task.id in ("", task_id)

    def _see(self, task: Task) -> None:
        if not self._is_mine(task.id):
            return
        self._task.id = task.id
        self._artifacts.begin(task.artifacts)
        self._set_status(task.status)

    @property
    def _shown_id(self) -> str:
        """The id of the task, as people see it."""
        return printable(self._task.id, 60)

    def _set_status(self, status: TaskStatus) -> None:
        self._task.status.CopyFrom(status)
        state = TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()
        said = one_line(text_of(status.message.parts)[:200])
        self._progress(f"task {self._shown_id} {state} {said}".rstrip())

    async def _look(self, client: Client) -> None:
        """Look at the task after a pause. An agent that is away meanwhile is
        asked again. Raises _Lost.
        """
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 1.5, _LAST_LOOK)
        try:
            self._see(await client.get_task(GetTaskRequest(id=self._task.id, history_length=0)))
        except TaskNotFoundError:
            raise _Lost(
                f"it does not know its task {printable(self._task.id, 200)} any more"
            ) from None
        except HttpError as error:
            if error.cause in ("size", "encoding"):
                raise _Lost(str(error), may_help=False) from None
            self._progress(f"task {self._shown_id} cannot be looked at now: {error}")
        except (A2AError, ToolError, CommandFailed, *_UNREADABLE) as error:
            self._progress(
                f"task {self._shown_id} cannot be looked at now: {one_line(str(error))[:200]}"
            )

    async def _cancel(self, client: Client) -> None:
        """Tell the agent that nobody waits for the task any more, if it can be told."""
        if not self._task.id or self._is_settled:
            return
        with suppress(A2AError, HttpError, ToolError, CommandFailed, TimeoutError, *_UNREADABLE):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await client.cancel_task(CancelTaskRequest(id=self._task.id))


def _parts(agent: Agent, sent: Sent) -> list[Part]:
    """Return what a message says. Raises ToolArgumentError for what the protocol
    cannot carry as it is.
    """
    field = "message"
    try:
        parts = [Part(text=sent.text)]
        if sent.data is not None:
            field = "data"
            _check_numbers(sent.data)
            parts.append(Part())
            ParseDict(dict(sent.data), parts[-1].data)
    except _UNREADABLE as error:
        problem = f"A2A cannot carry it: {one_line(str(error))[:200]}"
        raise ToolArgumentError(problem, tool=agent.name, field=field) from None
    return parts


def _check_numbers(value: Any) -> None:
    """Raise ValueError for a whole number that would arrive as another one: all
    numbers of A2A are floats.
    """
    if isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        raise ValueError(
            f"a number above 2^53 may arrive as another one, give it as a text: {value}"
        )
    parts: Iterable[Any] = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list):
        parts = value
    for part in parts:
        _check_numbers(part)


def _client_of(agent: Agent) -> Any:
    return pinned_client(
        agent.declared.url, agent.headers, agent.printed, silence=agent.declared.timeout
    )


async def _card(agent: Agent, http: Any) -> AgentCard:
    """Return the card, with those interfaces alone that are where the operator
    says that the agent is.
    """
    try:
        card = await A2ACardResolver(http, agent.declared.url).get_agent_card()
    except (A2AError, HttpError, ToolError, CommandFailed, *_UNREADABLE) as error:
        raise _unsent(agent, error) from None
    interfaces = [each for each in card.supported_interfaces if each.protocol_binding == "JSONRPC"]
    admitted = [each for each in interfaces if has_origin(each.url, agent.declared.url)]
    if not admitted:
        urls = [printable(each.url, 100) for each in interfaces[:3]]
        named = ", ".join(urls) or "none"
        raise A2aUnavailable(
            f"{agent.name}: its card names no JSON-RPC interface at the declared host and port (it "
            f"names {named}); declare the URL that the agent itself answers at"
        )
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(admitted)
    return card


def _unsent(agent: Agent, error: Exception) -> ToolError:
    """Return the error of a call whose message has not gone out: what was
    asked before it only reads.
    """
    refused = _refused_by_name(agent, error)
    if refused is not None:
        return refused
    if isinstance(error, TaskNotFoundError):
        return A2aFailed(f"{agent.name}: it does not know the task that this call continues")
    if isinstance(error, _REFUSALS):
        return A2aFailed(
            f"{agent.name}: it does not show the task that this call continues: "
            f"{one_line(str(error))}"
        )
    wait = error.retry_after if isinstance(error, HttpStatusError) else None
    said = one_line(str(error)) or type(error).__name__
    return A2aUnavailable(f"{agent.name}: {said}", retryable=True, retry_after=wait)


def _unanswered(agent: Agent, error: Exception) -> Exception:
    """Return the error of a call whose message has gone out, and has had no
    answer that names a task.
    """
    known = _certain(agent, error)
    if known is not None:
        return known
    if isinstance(error, HttpError) and not error.sent:
        return A2aUnavailable(f"{agent.name}: {error}", retryable=True)
    is_lost = isinstance(error, HttpError | HttpStatusError)
    is_unreadable = getattr(error, "cause", "") in ("size", "encoding")
    may_help = is_lost and not is_unreadable
    return _Lost(one_line(str(error)) or type(error).__name__, may_help=may_help)


def _certain(agent: Agent, error: Exception) -> ToolError | None:
    """Return the error of a message that the agent has certainly not taken, None
    if that is not certain.
    """
    refused = _refused_by_name(agent, error)
    if refused is not None:
        return refused
    if isinstance(error, HttpStatusError) and error.status in (425, 429):
        return A2aUnavailable(
            f"{agent.name}: {error}", retryable=True, retry_after=error.retry_after
        )
    if isinstance(error, HttpStatusError) and error.status < 500 and error.status != 408:
        return A2aFailed(f"{agent.name}: it refuses the message: {error}")
    if isinstance(error, _REFUSALS):
        return A2aFailed(f"{agent.name}: it refuses the message: {one_line(str(error))}")
    return None


def _refused_by_name(agent: Agent, error: Exception) -> ToolError | None:
    """Return the error of a request whose credentials are refused, or whose address
    is; None for any other.
    """
    if isinstance(error, CommandFailed):
        return A2aCredentialsRefused(f"{agent.name}: {error}")
    if isinstance(error, HttpStatusError) and error.status in (401, 403):
        todo = (
            "renew what `headers` names and restart the worker, or declare a `headers_command` "
            "that prints them"
        )
        return A2aCredentialsRefused(
            f"{agent.name}: it refuses the credentials ({error.status}); {todo}"
        )
    if isinstance(error, ToolError) and not isinstance(error, HttpStatusError):
        return error
    return None
