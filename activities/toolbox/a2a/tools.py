"""The tools of the declared agents: one for each, as a message of A2A goes to an agent and
not to one of its skills.
"""

import asyncio
import logging
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from a2a.types.a2a_pb2 import AgentCard
from pydantic import TypeAdapter

from sennit.activities.http.client import declared_headers
from sennit.activities.http.headers_command import HeadersCommand
from sennit.activities.limits import MAX_CARD_SECONDS, MAX_MESSAGE_CHARACTERS
from sennit.activities.toolbox.a2a.answers import AgentAnswer
from sennit.activities.toolbox.a2a.calls import Agent, Sent, ask, read_card
from sennit.activities.toolbox.a2a.configuration import AgentDeclaration, declared_agents
from sennit.activities.toolbox.configuration import Secrets
from sennit.activities.toolbox.definition import JsonSchema, Tool, ToolContext
from sennit.activities.toolbox.errors import AddressRefused, ToolError, ToolSetupError
from sennit.activities.toolbox.redaction import mask
from sennit.activities.toolbox.server_thread import ServerThread
from sennit.workflows.plan.language.text import one_line

_ARGUMENTS: Final[JsonSchema] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["message"],
    "properties": {
        "message": {"type": "string", "minLength": 1, "description": "what the agent is asked"},
        "data": {"type": "object", "description": "structured data beside the message"},
        "continues": {
            "type": "string",
            "description": "the `task` of an earlier answer, or of a question",
        },
        "may_ask": {
            "type": "boolean",
            "description": (
                "return what the agent asks as an answer that `waits`, which otherwise fails the "
                "call"
            ),
        },
    },
}
_PATIENCE: Final = 15.0
"""Seconds that a call has beside those of its task: for the card, and to
tell the agent of the end.
"""

log = logging.getLogger("a2a.agent")


def a2a_tools(place: Path | str, env: Mapping[str, str]) -> list[Tool]:
    """Return the tool of each agent that a file declares, or of the one agent at a URL.

    An agent that is away has its tool all the same: its card is read again at each call. Waits
    at most 5 s for the cards, and so cannot be called in an event loop. Raises ToolSetupError
    naming what to correct.
    """
    secrets = Secrets(env)
    agents: list[Agent] = []
    for name, declared in declared_agents(place).items():
        agents.append(_agent(name, declared, secrets))
    thread = ServerThread("a2a")
    about = thread.wait(_descriptions(agents))
    return [_tool(agent, text, thread) for agent, text in zip(agents, about, strict=True)]


def _agent(name: str, declared: AgentDeclaration, secrets: Secrets) -> Agent:
    headers = declared_headers(secrets, declared.headers, f"agents.{name}.headers")
    env = secrets.filled(declared.env, f"agents.{name}.env")
    printed = None
    if declared.headers_command is not None:
        printed = HeadersCommand(declared.headers_command, env)
    return Agent(name, declared, headers, printed)


async def _descriptions(agents: Sequence[Agent]) -> list[str]:
    return list(await asyncio.gather(*map(_description, agents)))


async def _description(agent: Agent) -> str:
    """Return what planners read of an agent: what the operator says, or its card. Raises
    ToolSetupError for a URL that must not be asked.
    """
    if agent.declared.description:
        return agent.declared.description
    try:
        async with asyncio.timeout(MAX_CARD_SECONDS):
            return _said_of(await read_card(agent))
    except AddressRefused as problem:
        raise ToolSetupError(f"agents.{agent.name}.url: {problem}") from None
    except TimeoutError:
        log.warning("%s: its card has not come within %g s", agent.name, MAX_CARD_SECONDS)
    except ToolError as problem:
        log.warning("its card cannot be read: %s", problem)
    return "an agent that answers messages; its card could not be read when this worker started"


def _said_of(card: AgentCard) -> str:
    text = f"{card.name}: {card.description}"
    skills = [f"{skill.name}: {skill.description}" for skill in card.skills[:20]]
    if skills:
        text = f"{text} Skills: {'; '.join(skills)}"
    return text


def _tool(agent: Agent, about: str, thread: ServerThread) -> Tool:
    async def call(arguments: dict[str, Any], context: ToolContext) -> AgentAnswer:
        sent = Sent(
            text=arguments["message"],
            data=arguments.get("data"),
            continues=arguments.get("continues", ""),
            may_ask=arguments.get("may_ask", False),
            agents_above=context.agents_above,
            message_id=str(uuid.uuid5(uuid.NAMESPACE_OID, context.idempotency_key)),
        )
        return await thread.start(ask(agent, sent, context.progress))

    declared = agent.declared
    return Tool(
        name=agent.name,
        description=one_line(mask(about), MAX_MESSAGE_CHARACTERS),
        effect=declared.effect,
        timeout=declared.longest + declared.timeout + _PATIENCE,
        resource=declared.resource,
        asks_agents=True,
        schema=_ARGUMENTS,
        output_schema=TypeAdapter(AgentAnswer).json_schema(mode="serialization"),
        function=call,
    )
