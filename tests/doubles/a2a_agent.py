"""An agent of A2A, served by the official SDK over real HTTP, that does what the text of a message says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.constants import PROTOCOL_VERSION_CURRENT
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32


class Agent(AgentExecutor):
    """Notes each message that it reads in `read`, and each task that it was told to cancel in `cancelled`."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.messages: list[Message] = []
        self.cancelled: list[str] = []
        self.heads: list[dict[str, str]] = []
        self.token = ""
        self.url = ""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        self.read.append(text)
        assert context.message is not None
        self.messages.append(context.message)
        word, _, rest = text.partition(" ")
        task, about = context.task_id or "", context.context_id or ""
        if word == "message":
            message = Message(message_id="m", role=Role.ROLE_AGENT, parts=[Part(text=f"at once: {rest}")])
            await event_queue.enqueue_event(message)
            return
        updater = TaskUpdater(event_queue, task, about)
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(Task(id=task, context_id=about, status=status))
        await updater.start_work(updater.new_agent_message([Part(text=f"begins {word}")]))
        await self._end(updater, word, rest, context)

    async def _end(self, updater: TaskUpdater, word: str, rest: str, context: RequestContext) -> None:
        said = updater.new_agent_message([Part(text=f"because of {rest}")])
        if word == "ask" and context.current_task is None:
            await updater.requires_input(updater.new_agent_message([Part(text=f"Which {rest}?")]))
        elif word == "fail":
            await updater.failed(said)
        elif word == "reject":
            await updater.reject(said)
        elif word == "nap":
            await asyncio.sleep(float(rest))
            await updater.add_artifact([Part(text="slept")], name="answer")
            await updater.complete()
        elif word == "pieces":
            for number, piece in enumerate(("one ", "text ", "in pieces")):
                await updater.add_artifact([Part(text=piece)], artifact_id="a", append=number > 0)
            await updater.complete()
        elif word == "files":
            data = Part()
            ParseDict({"count": 3, "share": 0.5, "names": ["a"]}, data.data)
            parts = [Part(raw=PNG, filename="a.png"), Part(raw=b"\x01\x02", media_type="application/x-odd")]
            await updater.add_artifact([*parts, Part(url="https://files.example.com/a"), data], name="files")
            await updater.complete()
        else:
            await updater.add_artifact([Part(text=f"you said {context.get_user_input()}")], name="answer")
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.cancelled.append(context.task_id or "")
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()

    def card(self, *, streaming: bool) -> AgentCard:
        return AgentCard(
            name="Parrot",
            description="Says again what it is told.",
            version="1",
            supported_interfaces=[
                AgentInterface(
                    url=self.url + "/a2a", protocol_binding="JSONRPC", protocol_version=PROTOCOL_VERSION_CURRENT
                )
            ],
            capabilities=AgentCapabilities(streaming=streaming),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="repeat", name="Repeat", description="Repeats a text.", tags=["text"])],
        )


class _Guard:
    """Notes the headers of each request, and answers 401 to those without the agent's token."""

    def __init__(self, inner: ASGIApp, agent: Agent) -> None:
        self._inner = inner
        self._agent = agent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(Request(scope).headers)
        self._agent.heads.append(headers)
        if self._agent.token and headers.get("authorization") != f"Bearer {self._agent.token}":
            await PlainTextResponse("who are you?", 401)(scope, receive, send)
        else:
            await self._inner(scope, receive, send)


@asynccontextmanager
async def agent_server(*, streaming: bool = True) -> AsyncIterator[Agent]:
    """Serve an agent on a free port of loopback."""
    agent = Agent()
    listener = uvicorn.Config("", lifespan="off", log_level="error", host="127.0.0.1", port=0).bind_socket()
    agent.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = agent.card(streaming=streaming)
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), card)
    application = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/a2a")])
    server = uvicorn.Server(uvicorn.Config(_Guard(application, agent), lifespan="off", log_level="error"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield agent
    finally:
        server.should_exit = server.force_exit = True
        await serving
        listener.close()
