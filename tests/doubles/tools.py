"""Tools for tests: they sleep, fail, count and misbehave on demand. Every call leaves a line in a log of calls."""

import asyncio
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue

from activities.toolbox import ToolContext, ToolError, tool


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Nap(Frozen):
    seconds: float = 0.0
    value: JsonValue = None


class Rest(BaseModel):
    value: JsonValue


def log_call(context: ToolContext) -> None:
    """Append node, generation and attempt; appends this short are atomic."""
    with (context.cache / "calls.log").open("a") as log:
        log.write(f"{context.run_id} {context.node}~{context.generation} {context.attempt} {os.getpid()}\n")


def calls(cache: Path, run: str) -> list[str]:
    """Return `node~generation` of every call of a run, in order."""
    log = cache / "calls.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.split()[1] for line in lines if line.split()[0] == run]


@tool(effect="read")
async def nap(args: Nap, context: ToolContext) -> Rest:
    """Sleep and return a value."""
    log_call(context)
    context.progress("napping")
    await asyncio.sleep(args.seconds)
    return Rest(value=args.value)


class Fail(Frozen):
    message: str = "went wrong"
    retryable: bool = False
    unless: str | None = None


@tool(effect="read")
async def fail(args: Fail, context: ToolContext) -> Rest:
    """Fail, unless a file of that name lies in the cache."""
    log_call(context)
    if args.unless and (context.cache / args.unless).exists():
        return Rest(value="recovered")
    raise ToolError(args.message, retryable=args.retryable)


class Flaky(Frozen):
    failures: int = 1


@tool(effect="read")
async def flaky(args: Flaky, context: ToolContext) -> Rest:
    """Fail on the first attempts, then succeed with the attempt."""
    log_call(context)
    if context.attempt <= args.failures:
        raise ToolError("not yet", retryable=True)
    return Rest(value=context.attempt)


class Make(Frozen):
    bytes: int = 0
    kind: str = "text"


@tool(effect="read")
async def make(args: Make) -> Any:
    """Return something big, or something that is no JSON."""
    if args.kind == "nan":
        return {"value": float("nan")}
    return {"text": "x" * args.bytes}


class Count(Frozen):
    count: int = 3


class Counted(BaseModel):
    count: int
    items: list[dict[str, int]]


@tool(effect="pure")
async def count(args: Count) -> Counted:
    """Return a list of so many items."""
    return Counted(count=args.count, items=[{"n": index} for index in range(args.count)])


class Note(Frozen):
    text: str


@tool(effect="write")
async def note(args: Note, context: ToolContext) -> Rest:
    """Write a line to a file in the cache."""
    log_call(context)
    with (context.cache / "notes.txt").open("a") as notes:
        notes.write(f"{context.idempotency_key} {args.text}\n")
    return Rest(value=len(args.text))
