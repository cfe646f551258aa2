"""The tools of the agent benchmark: each takes a fixed time and gives what the questions say.

Variables: WEFT_BENCH_TOOL_SECONDS (0.4), and WEFT_BENCH_CALLS, a file that gets a line a call.
"""

import asyncio
import json
import os
import time
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from activities.toolbox import tool
from benchmarks.questions import key_of, questions

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
    return await result("fact", args)


@tool(effect="read")
async def find(args: Find) -> Value:
    """Search for the name under which something is listed."""
    return await result("find", args)


@tool(effect="read")
async def compute(args: Compute) -> Value:
    """Calculate."""
    return await result("compute", args)


async def result(name: str, args: BaseModel) -> Value:
    """Take the time of a call, and return the result. Raises KeyError for a call that no question makes."""
    began = time.time()
    key = key_of(name, args.model_dump())
    value = _known()[key]
    await asyncio.sleep(float(os.environ.get("WEFT_BENCH_TOOL_SECONDS", "0.4")))
    if record := os.environ.get("WEFT_BENCH_CALLS"):
        with Path(record).open("a") as calls:
            calls.write(json.dumps([key, began, time.time()]) + "\n")
    return value


@cache
def _known() -> dict[str, Value]:
    """The result of every call; equal calls of several questions must have equal results."""
    known: dict[str, Value] = {}
    for question in questions():
        for call in question.calls:
            key = question.key(call)
            if known.setdefault(key, call.result) != call.result:
                raise ValueError(f"{question.name}: call {call.number} has another result elsewhere")
    return known

