"""Tools for tests: they sleep, fail, count and misbehave on demand. Every call leaves a line in a log of calls.

They say that they take 5 seconds, so that only those share an activity whose plan wants it.
"""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any, Literal
from zlib import crc32

import httpx
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sennit.activities.toolbox import Preview, ToolContext, ToolError, tool
from sennit.activities.toolbox.files.difference import difference


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Nap(Frozen):
    seconds: float = 0.0
    value: JsonValue = None


class Rest(BaseModel):
    value: JsonValue


def log_call(context: ToolContext, args: BaseModel | None = None) -> None:
    """Append node, generation, attempt and a digest of the arguments; appends this short are atomic."""
    digest = crc32(args.model_dump_json().encode()) if args is not None else 0
    call = f"{context.run_id} {context.node}~{context.generation} {context.attempt} {os.getpid()} {digest}"
    with (context.cache / "calls.log").open("a") as log:
        log.write(f"{call}\n")


def calls(cache: Path, run: str) -> list[str]:
    """Return `node~generation` of every call of a run, in order."""
    log = cache / "calls.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.split()[1] for line in lines if line.split()[0] == run]


@tool(effect="read", typical="5s")
async def nap(args: Nap, context: ToolContext) -> Rest:
    """Sleep and return a value."""
    log_call(context, args)
    context.progress("napping")
    await asyncio.sleep(args.seconds)
    return Rest(value=args.value)


@tool(effect="read", typical="5s", large=True)
async def volume(args: Nap, context: ToolContext) -> Any:
    """Return a value that programs read in parts."""
    log_call(context)
    return args.value


class Fail(Frozen):
    message: str = "went wrong"
    retryable: bool = False
    unless: str | None = None


@tool(effect="read", typical="5s")
async def fail(args: Fail, context: ToolContext) -> Rest:
    """Fail, unless a file of that name lies in the cache."""
    log_call(context)
    if args.unless and (context.cache / args.unless).exists():
        return Rest(value="recovered")
    raise ToolError(args.message, retryable=args.retryable)


async def _halves(calls: list[Nap]) -> list[Rest | Exception]:
    """Halve numbers together, and say how many: no odd ones, and none at all if one is 13."""
    if any(each.value == 13 for each in calls):
        raise ToolError("13 brings bad luck", retryable=True)
    ends: list[Rest | Exception] = []
    for each in calls:
        assert isinstance(each.value, int)
        odd = each.value % 2
        ends.append(ToolError(f"{each.value} is odd") if odd else Rest(value=[each.value // 2, len(calls)]))
    return ends


@tool(effect="pure", batch=_halves, batch_size=3)
async def half(args: Nap, context: ToolContext) -> Rest:
    """Halve a number, alone."""
    log_call(context)
    assert isinstance(args.value, int)
    return Rest(value=[args.value // 2, 1])


class Flaky(Frozen):
    failures: int = 1


@tool(effect="read", typical="5s")
async def flaky(args: Flaky, context: ToolContext) -> Rest:
    """Fail on the first attempts, then succeed with the attempt."""
    log_call(context)
    if context.attempt <= args.failures:
        raise ToolError("not yet", retryable=True)
    return Rest(value=context.attempt)


class Make(Frozen):
    bytes: int = 0
    kind: str = "text"


@tool(effect="read", typical="5s")
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


@tool(effect="pure", typical="5s")
async def count(args: Count) -> Counted:
    """Return a list of so many items."""
    return Counted(count=args.count, items=[{"n": index} for index in range(args.count)])


class Note(Frozen):
    text: Annotated[str, Field(min_length=1)]


@tool(effect="write")
async def note(args: Note, context: ToolContext) -> Rest:
    """Write a line to a file in the cache."""
    log_call(context)
    with (context.cache / "notes.txt").open("a") as notes:
        notes.write(f"{context.idempotency_key} {args.text}\n")
    return Rest(value=len(args.text))


class Bill(Frozen):
    tokens: int = 0
    cost: float = 0.0
    fails: int = 0


@tool(effect="read", typical="5s")
async def bill(args: Bill, context: ToolContext) -> Rest:
    """Book what a call has used elsewhere, twice the half of it, and fail the first `fails` attempts."""
    log_call(context)
    for _ in range(2):
        context.spent(tokens=args.tokens // 2, cost=args.cost / 2)
    if context.attempt <= args.fails:
        raise ToolError("not yet", retryable=True)
    return Rest(value="paid")


class Publish(Frozen):
    path: Path
    text: str


def _compared(args: Publish) -> Preview:
    old = args.path.read_bytes() if args.path.exists() else None
    return Preview(difference(args.path.name, old, args.text), old.decode() if old is not None else "")


@tool(effect="write", preview=_compared)
async def publish(args: Publish, context: ToolContext) -> Rest:
    """Write a file."""
    log_call(context)
    args.path.write_text(args.text)
    return Rest(value=len(args.text))


class Post(Frozen):
    text: str
    after: Literal["nothing", "hang", "crash", "no json", "refuse", "busy", "late"] = "nothing"
    times: int = 1
    seconds: float = 0.0
    unless: str = ""


@tool(effect="write")
async def post(args: Post, context: ToolContext) -> Any:
    """Write a line to a file in the cache, and then do something odd in the first generations; but nothing odd if the
    file `unless` is there.

    `refuse`, `busy` and, after some time, `late` come before the line is written, and say so.
    """
    log_call(context)
    odd = args.after if context.generation <= args.times else "nothing"
    if args.unless and (context.cache / args.unless).exists():
        odd = "nothing"
    if odd in ("refuse", "busy") and context.attempt <= args.times:
        raise ToolError("not written", retryable=odd == "busy")
    if odd == "late":
        await asyncio.sleep(args.seconds)
        raise ToolError("not written", retryable=False)
    with (context.cache / "posts.txt").open("a") as posts:
        posts.write(f"{context.run_id} {context.node} {args.text}\n")
    await asyncio.sleep(args.seconds)
    if odd == "hang":
        await asyncio.Event().wait()
    if odd == "crash":
        raise RuntimeError("lost the connection")
    return {"not": float("nan")} if odd == "no json" else {"posted": args.text}


@tool(effect="write")
async def sign(args: Note, context: ToolContext) -> Rest:
    """Write a line to a file in the cache, and return nothing, although something else is declared."""
    log_call(context)
    with (context.cache / "posts.txt").open("a") as posts:
        posts.write(f"{context.run_id} {context.node} {args.text}\n")
    return None  # type: ignore[return-value]  # the case under test


def posts(cache: Path, run: str) -> list[str]:
    """Return what `post` has written for a run, in order."""
    file = cache / "posts.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.split(" ", 2)[2] for line in lines if line.split()[0] == run]


class Payment(Frozen):
    amount: int
    seconds: float = 0.0


@tool(effect="write", idempotent=True)
async def pay(args: Payment, context: ToolContext) -> dict[str, int]:
    """Pay at a service that honours idempotency keys: it replays the first answer, whatever else it is asked."""
    log_call(context)
    with (context.cache / "payments.txt").open("a+") as payments:
        payments.seek(0)
        known = dict(line.split() for line in payments)
        payments.write(f"{context.idempotency_key} {args.amount}\n" * (context.idempotency_key not in known))
    await asyncio.sleep(0.0 if context.idempotency_key in known else args.seconds)
    return {"paid": int(known.get(context.idempotency_key, args.amount))}


class Transfer(Frozen):
    text: str
    seconds: float = 0.0


@tool(effect="write")
async def transfer(args: Transfer, context: ToolContext) -> Rest:
    """Transfer at the service that `PAYMENTS_URL` names, which takes so many seconds to answer."""
    log_call(context)
    async with httpx.AsyncClient(timeout=30) as client:
        (await client.post(os.environ["PAYMENTS_URL"], json=args.model_dump())).raise_for_status()
    return Rest(value=args.text)


class Source(Frozen):
    file: str


@tool(effect="read", typical="5s")
async def fetch(args: Source, context: ToolContext) -> Rest:
    """Return the text of a file in the cache: an output that a test can change."""
    log_call(context)
    return Rest(value=(context.cache / args.file).read_text())


class Watched(Frozen):
    name: str


@tool(effect="read", typical="5s")
async def hang(args: Watched, context: ToolContext) -> Rest:
    """Wait until there is a file NODE.end; leave one file when it has begun and another when it was cancelled."""
    log_call(context)
    folder = context.cache / args.name
    folder.mkdir(exist_ok=True)
    (folder / f"{context.node}.begun").touch()
    try:
        while not (folder / f"{context.node}.end").exists():
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        (folder / f"{context.node}.cancelled").touch()
        raise
    return Rest(value=None)


class Awaited(Frozen):
    file: str
    value: JsonValue = None


@tool(effect="read", typical="5s")
async def stay(args: Awaited, context: ToolContext) -> Rest:
    """Return a value as soon as there is a file of that name in the cache."""
    log_call(context, args)
    while not (context.cache / args.file).exists():
        await asyncio.sleep(0.05)
    return Rest(value=args.value)


class Deep(Frozen):
    kind: str
    depth: int = 300


@tool(effect="read", typical="5s")
async def odd(args: Deep, context: ToolContext) -> Any:
    """Return, or raise, something that JSON, a payload or a failure can hardly carry."""
    log_call(context)
    context.progress("progress \ud800")
    if args.kind == "deep":
        value: Any = "bottom"
        for _ in range(args.depth):
            value = [value]
        return value
    if args.kind == "surrogate error":
        raise ToolError("half a pair: \ud800 \x00", retryable=False)
    if args.kind == "long error":
        raise ToolError("x" * 1_000_000, retryable=False)
    if args.kind == "exit":
        raise SystemExit(3)
    values = {
        "surrogate": "\ud800",
        "huge number": 10**5000,
        "infinite": float("inf"),
        "none": None,
        "not json": object(),
        "keys": {1: "a"},
        "quotes": 'a"b\\c\u2028\u0000',
    }
    return values[args.kind]


class Address(Frozen):
    url: str


@tool(effect="read", typical="5s")
async def visit(args: Address, context: ToolContext) -> Rest:
    """Pretend to read a web page: `slow.` hosts take an hour, `down.` hosts fail."""
    log_call(context)
    host = args.url.partition("://")[2]
    if host.startswith("slow."):
        await asyncio.sleep(3600)
    if host.startswith("down."):
        raise ToolError(f"{args.url} answered 503: closed for today", retryable=False)
    return Rest(value=f"what {args.url} says")


class Passage(Frozen):
    text: str


@tool(effect="pure", typical="5s")
def digest(args: Passage) -> Rest:
    """Pretend to say it in fewer words."""
    return Rest(value=args.text[:40])


@tool(effect="read", typical="20ms")
async def glance(args: Nap, context: ToolContext) -> Rest:
    """Do as `nap` does, and say that it is short."""
    log_call(context)
    await asyncio.sleep(args.seconds)
    return Rest(value=args.value)


@tool(effect="read")
async def peek(args: Nap, context: ToolContext) -> Rest:
    """Do as `nap` does, and do not say how long that takes."""
    log_call(context)
    await asyncio.sleep(args.seconds)
    return Rest(value=args.value)
