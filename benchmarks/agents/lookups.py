"""The tools of the agent benchmark: each takes a fixed time and gives what the questions say.

Variables of the worker: SENNIT_BENCH_SECONDS, and SENNIT_BENCH_CALLS, a file
that gets a line a call.
"""

import asyncio
import json
import os
import time
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.agents.questions import key_of, questions
from sennit.activities.toolbox import tool

Value = str | int | float


class Fact(BaseModel):
    """Which property of what."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    subject: str
    property: str


class Find(BaseModel):
    """What to search for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str


class Compute(BaseModel):
    """Numbers with + - * / ( ) min max."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    expression: str


@tool(effect="read")
async def fact(args: Fact) -> Value:
    """Look up one property of a subject."""
    return await _recorded("fact", args)


@tool(effect="read")
async def find(args: Find) -> Value:
    """Search for the name under which something is listed."""
    return await _recorded("find", args)


@tool(effect="read")
async def compute(args: Compute) -> Value:
    """Calculate."""
    return await _recorded("compute", args)


async def result(name: str, args: BaseModel, seconds: float) -> Value:
    """Take the time of a call, and return the result. Raises KeyError for a call
    that no question makes.
    """
    value = _known()[key_of(name, args.model_dump())]
    await asyncio.sleep(seconds)
    return value


async def _recorded(name: str, args: BaseModel) -> Value:
    began = time.time()
    value = await result(name, args, float(os.environ["SENNIT_BENCH_SECONDS"]))
    with Path(os.environ["SENNIT_BENCH_CALLS"]).open("a") as calls:
        calls.write(json.dumps([key_of(name, args.model_dump()), began, time.time()]) + "\n")
    return value


@cache
def _known() -> dict[str, Value]:
    """The result of every call; equal calls of several questions must have equal results."""
    known: dict[str, Value] = {}
    for question in questions():
        for call in question.calls:
            key = question.key(call)
            if known.setdefault(key, call.result) != call.result:
                raise ValueError(
                    f"{question.name}: call {call.number} has another result elsewhere"
                )
    return known
