"""An agent of pydantic-ai as a tool: `SENNIT_TOOLS=pydantic_ai_agent SENNIT_TOOLS_PATH=examples/tools`.

The agent runs as one call of a node: with the node's timeout and attempts, and with what it spends in the run's budget.
"""

import os
from typing import Literal

from pydantic import BaseModel
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.messages import ModelResponse

from sennit import ToolContext, tool


class Triage(BaseModel):
    """What the agent has made of a letter."""

    urgency: Literal["low", "high"]
    about: str


TURNS = 10


def agent() -> Agent[None, Triage]:
    """Return the agent. It is made for each call, as its client belongs to the event loop of the call."""
    model = f"openai-chat:{os.environ['TRIAGE_MODEL']}"
    return Agent(model, output_type=Triage, instructions="Say how urgent a letter is, and what it is about.", retries=2)


@tool(effect="read", timeout="2m")
async def triage(letter: str, context: ToolContext) -> Triage:
    """Say how urgent a letter is, and what it is about."""
    async with agent().iter(letter, usage_limits=UsageLimits(request_limit=TURNS)) as run:
        booked = 0
        async for _ in run:
            # What each turn has used is booked at once, so that it counts also if a later one fails.
            used = run.usage.total_tokens
            context.spent(tokens=used - booked)
            booked = used
    assert run.result is not None
    for message in run.result.new_messages():
        if isinstance(message, ModelResponse):
            context.spent(cost=_dollars(message))
    return run.result.output


def _dollars(message: ModelResponse) -> float:
    """Return what a reply has cost, 0 if nobody knows the price of its model."""
    try:
        return float(message.cost().total_price)
    except LookupError:
        return 0.0
