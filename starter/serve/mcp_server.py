"""Sennit as a server of the Model Context Protocol: the tools, prompts and
resources that its clients see.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any, Final

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    MCPServer,
    Resolve,
)
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from sennit.starter.client.errors import RunNotFound, SennitError
from sennit.starter.limits import MAX_REPLY_RUNS, MAX_REPLY_WAIT_SECONDS
from sennit.starter.serve.prompts import plan_prompt, program_prompt
from sennit.starter.serve.replies import Done, OutputPart, PlanCheck, RunList, RunState
from sennit.starter.serve.run_service import Caller, RunService
from sennit.starter.serve.tokens import Tokens
from sennit.starter.terminal.prompt import question
from sennit.workflows.messages.result import BlockedOn, RunStatus
from sennit.workflows.plan.language.text import clean, one_line

_INSTRUCTIONS: Final = """\
Sennit runs agents and plans durably: a run goes on whatever becomes of you or of this server. `ask` and `run_plan`
return at once with the id of a run. Then call `status` until its status is done, partial, failed or cancelled; it waits
for up to a minute. A run that is blocked, or has `questions`, waits for a person. You cannot answer for them: show the
person each question with its command and the link, and call `status` again when they have answered.
"""  # noqa: E501
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_STARTS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False
)
_CANCELS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True)
_NO_ISSUER: Final = "https://tokens.invalid"
"""The SDK wants the address of a server that issues tokens. There is none, and
clients are not told of one.
"""

RunId = Annotated[str, Field(description="the id of a run of yours")]
NodeId = Annotated[
    str, Field(description="a node's id, map[17] for one item, sub.n1 in a sub-agent")
]
NewId = Annotated[
    str,
    Field(
        description="an id of your choice: with it at most one run is started, also if you retry"
    ),
]
Plan = Annotated[
    dict[str, Any] | str | None,
    Field(description="a plan, as an object or as YAML; either this or `program`"),
]
Program = Annotated[
    str, Field(description="a program: a script in Python with `async def main(...)`")
]
Goal = Annotated[str, Field(description="what it shall reach")]
Wait = Annotated[
    int, Field(ge=0, le=MAX_REPLY_WAIT_SECONDS, description="how many seconds to wait for the run")
]


class Reply(BaseModel):
    """What a person types about a question."""

    reply: str = Field(description="your answer; for an approval: yes, or no and why")


def mcp_server(
    service: RunService,
    user: str,
    *,
    tokens: Tokens | None = None,
    trusts_elicitation: bool = False,
) -> MCPServer[Any]:
    """Return a server with all tools, prompts and resources. Without `tokens` everybody
    who reaches it is `user`. With `trusts_elicitation` the answer to an elicitation counts
    as the word of a person.
    """
    auth = None
    if tokens is not None:
        auth = AuthSettings.model_validate({"issuer_url": _NO_ISSUER, "resource_server_url": None})
    server: MCPServer[Any] = MCPServer(
        "sennit",
        title="Sennit",
        instructions=_INSTRUCTIONS,
        version=version("sennit"),
        token_verifier=tokens,
        auth=auth,
        log_level="WARNING",
    )
    tools = _Tools(service, user)
    server.add_tool(tools.ask, annotations=_STARTS)
    server.add_tool(tools.run_plan, annotations=_STARTS)
    server.add_tool(tools.check_plan, annotations=_READS)
    if trusts_elicitation:
        server.add_tool(
            _asking_status(tools),
            name="status",
            description=tools.status.__doc__,
            annotations=_STARTS,
        )
    else:
        server.add_tool(tools.status, annotations=_READS)
    server.add_tool(tools.output, annotations=_READS)
    server.add_tool(tools.retry, annotations=_STARTS)
    server.add_tool(tools.cancel, annotations=_CANCELS)
    server.add_tool(tools.list_runs, name="list", annotations=_READS)

    about = "How to write a plan for a goal, with the tools that there are"
    server.prompt("write_plan", description=about)(tools.write_plan)
    about = "How to write a program for a goal, with all that it can call"
    server.prompt("write_program", description=about)(tools.write_program)
    about = "The report of a run as JSON: how it stands, its nodes, its answer, what it has used"
    server.resource(
        "sennit://runs/{run}/report", name="report", description=about, mime_type="application/json"
    )(tools.report)
    about = "The answer of a run that is over, as text"
    server.resource(
        "sennit://runs/{run}/answer", name="answer", description=about, mime_type="text/plain"
    )(tools.answer)
    return server


class _Tools:
    """The tools, whose docstrings are what models read."""

    def __init__(self, service: RunService, user: str) -> None:
        self.service = service
        self._user = user

    def caller(self) -> Caller:
        """Return for whom this request is made: whose token it has, or the
        person who runs the server.
        """
        token = get_access_token()
        if token is None:
            return Caller(self._user)
        return Caller(token.client_id, tenant=token.client_id)

    async def ask(
        self,
        goal: Annotated[str, Field(description="the question or the task")],
        id: NewId = "",  # noqa: A002
        continues: Annotated[
            str, Field(description="the id of a run whose conversation goes on")
        ] = "",
    ) -> RunState:
        """Start a run for a goal: a model plans it as a graph of look-ups, tools and sub-agents
        that run side by side. Returns at once; `status` says how it gets on.
        """
        with _failures():
            return await self.service.ask(self.caller(), goal, id=id, continues=continues)

    async def run_plan(
        self,
        plan: Plan = None,
        program: Program = "",
        inputs: Annotated[
            dict[str, Any] | None, Field(description="the inputs that the plan declares")
        ] = None,
        id: NewId = "",  # noqa: A002
        title: Annotated[
            str, Field(description="a name for the run, if the plan has no goal")
        ] = "",
    ) -> RunState:
        """Start a run of a plan or a program of yours. It is checked first, and nothing starts if
        anything is wrong. Returns at once; `status` says how it gets on.
        """
        with _failures():
            return await self.service.run_plan(
                self.caller(), plan=plan, program=program, inputs=inputs, id=id, title=title
            )

    async def check_plan(self, plan: Plan = None, program: Program = "") -> PlanCheck:
        """Say everything that is wrong with a plan or a program, with its
        place, and start nothing.
        """
        with _failures():
            return await self.service.check(plan=plan, program=program)

    async def status(
        self, run: RunId, context: Context[Any, Any], wait_seconds: Wait = MAX_REPLY_WAIT_SECONDS
    ) -> RunState:
        """Say how a run stands. Waits for up to a minute, until the run is over, blocked or asks
        something new. What it asks is for the person: show them the question, its command and the
        link. You cannot answer it.
        """
        with _failures():
            return await self.service.status(
                self.caller(), run, wait_seconds, _progress_of(context)
            )

    async def output(
        self,
        run: RunId,
        node: NodeId = "",
        path: Annotated[str, Field(description="only what is there, such as items[0].title")] = "",
        offset: Annotated[
            int, Field(ge=0, description="where in the text to begin: `next_offset` of a part")
        ] = 0,
    ) -> OutputPart:
        """Read the answer of a run that is over, or the output of one of its nodes
        that has ended, as text.
        """
        with _failures():
            return await self.service.output(self.caller(), run, node, path, offset)

    async def retry(self, run: RunId, node: NodeId = "") -> Done:
        """Run a failed node again, or without a node what blocks the run. A write that was made, or
        may have been, is never repeated this way.
        """
        with _failures():
            return await self.service.retry(self.caller(), run, node)

    async def cancel(self, run: RunId) -> Done:
        """Cancel a run: it stops what is running, and lets writes in flight end."""
        with _failures():
            return await self.service.cancel(self.caller(), run)

    async def list_runs(
        self,
        status: Annotated[RunStatus | None, Field(description="only runs with this status")] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_REPLY_RUNS, description="how many")] = 20,
    ) -> RunList:
        """List your runs, the newest first."""
        with _failures():
            return await self.service.list(self.caller(), status, limit)

    async def report(self, run: str) -> str:
        with _failures(ResourceError):
            return (await self.service.report(self.caller(), run)).model_dump_json(indent=2)

    async def answer(self, run: str) -> str:
        with _failures(ResourceError):
            return await self.service.answer(self.caller(), run)

    async def write_plan(self, goal: Goal) -> str:
        with _failures():
            return plan_prompt(goal, await self.service.catalogue())

    async def write_program(self, goal: Goal) -> str:
        with _failures():
            return program_prompt(goal, await self.service.catalogue())


def _asking_status(tools: _Tools) -> Callable[..., Awaitable[RunState]]:
    """Return the tool `status` of a server whose elicitations reach a person: it asks what a
    blocked run waits for, and takes what they type as a terminal does. The digest of a write that
    was shown goes with the approval.
    """
    service = tools.service

    async def asked(run: str, context: Context[Any, Any]) -> BlockedOn | None:
        if not _can_ask(context):
            return None
        with _failures():
            return await service.question(tools.caller(), run)

    async def reply_to(item: Annotated[BlockedOn | None, Resolve(asked)]) -> Elicit[Reply] | None:
        if item is None:
            return None
        return Elicit(_question_text(item), Reply)

    async def status(
        run: RunId,
        context: Context[Any, Any],
        item: Annotated[BlockedOn | None, Resolve(asked)],
        reply: Annotated[ElicitationResult[Reply], Resolve(reply_to)],
        wait_seconds: Wait = MAX_REPLY_WAIT_SECONDS,
    ) -> RunState:
        with _failures():
            if item is not None and isinstance(reply, AcceptedElicitation):
                by = f"{tools.caller().name} by elicitation of {_client_of(context)}"
                await service.decide(run, item, reply.data.reply, by)
            return await service.status(tools.caller(), run, wait_seconds, _progress_of(context))

    return status


def _can_ask(context: Context[Any, Any]) -> bool:
    """Whether the client shows forms to its person."""
    capabilities = context.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    # A client that names no way at all shows forms: the first version of the
    # protocol had no other way.
    elicitation = capabilities.elicitation
    return elicitation.form is not None or elicitation.url is None


def _question_text(item: BlockedOn) -> str:
    """Return a question as a person reads it: what is asked, what it is about, and
    the prompt of a terminal.
    """
    lines = [clean(item.question or item.why)]
    lines += [f"| {line}" for line in clean(item.shown).splitlines()]
    lines.append(question(item).strip())
    return "\n".join(lines)


def _client_of(context: Context[Any, Any]) -> str:
    params = context.session.client_params
    if not params:
        return "an unnamed client"
    client = params.client_info
    return one_line(f"{client.name} {client.version}", 60)


def _progress_of(context: Context[Any, Any]) -> Callable[[float, str], Awaitable[None]]:
    async def tell(seconds: float, message: str) -> None:
        await context.report_progress(seconds, MAX_REPLY_WAIT_SECONDS, message)

    return tell


@contextmanager
def _failures(kind: type[ToolError] | type[ResourceError] = ToolError) -> Iterator[None]:
    """Raise what the client of Sennit refuses as an error that the SDK
    passes on with its sentence.
    """
    try:
        yield
    except RunNotFound as error:
        if kind is ResourceError:
            kind = ResourceNotFoundError  # the protocol has a code for it
        raise kind(clean(str(error))) from None
    except SennitError as error:
        raise kind(clean(str(error))) from None
