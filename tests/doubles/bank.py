"""A tool that pays at a service outside, which counts what was really paid, and may refuse at first."""

import os

import httpx
from doubles.tools import log_call
from pydantic import BaseModel, ConfigDict

from sennit.activities.toolbox import ToolContext, ToolError, tool


class Bill(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    account: str
    seconds: float = 0.0
    refusals: int = 0


class Paid(BaseModel):
    text: str


@tool(effect="write", resource="account:{account}")
async def pay_bill(args: Bill, context: ToolContext) -> Paid:
    """Pay a bill at the service that `PAYMENTS_URL` names. It refuses the bill so many times before it takes it, and
    takes so many seconds to answer.
    """
    log_call(context)
    async with httpx.AsyncClient(timeout=30) as client:
        answer = await client.post(os.environ["PAYMENTS_URL"], json=args.model_dump())
    if answer.status_code == httpx.codes.CONFLICT:
        raise ToolError(f"{args.text} was refused, and nothing was paid", retryable=False)
    answer.raise_for_status()
    return Paid(text=args.text)
