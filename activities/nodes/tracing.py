"""What a trace tells of nodes, their attempts and model calls. Without a recorder nothing is told.

The id of a span follows from what the span is of, never from chance. So a node that is told of
twice, because a worker was lost between its end and the server's word on it, is the same span; and
who reads its output can link to it.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from temporalio import activity

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.binding import parse_unit
from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.error_mapping import kind_of, message_of, retryable
from sennit.activities.providers.model import (
    Message,
    ModelReply,
    ModelRequest,
    ProviderError,
    ToolRequest,
)
from sennit.activities.toolbox.redaction import mask
from sennit.workflows.messages.contracts import GROUP, NodeReply
from sennit.workflows.messages.node_calls import ProgramNodeCall
from sennit.workflows.messages.queues import PYDANTIC_AI
from sennit.workflows.plan.language.nodes import JoinNode, MapNode, ToolCall
from sennit.workflows.plan.scheduling.joins import is_manifest
from sennit.workflows.run.subagent import prefix_below

_REASONS = {"end": "stop", "tools": "tool_calls", "length": "length", "pause": "pause"}


@dataclass(slots=True)
class Span:
    """One span of a run, told when it has ended. `id`, `parent` and `links` are 16 hexadecimal
    digits each, times are nanoseconds since 1970. `calls` counts the model calls in it. A recorder
    may keep fewer links, and then says so.
    """

    run: str
    id: str
    parent: str
    name: str
    start: int
    end: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    links: tuple[str, ...] = ()
    error: str | None = None
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """What an attempt is of: the path of its node, what the id of the node's span is made
    of, and the span's name.
    """

    path: str
    key: str
    shown: str


class Recorder(Protocol):
    """Sends spans away; `contents` says whether they may hold what models read and write."""

    contents: bool

    def record(self, span: Span) -> None:
        """Send a span that has ended. Never waits."""
        ...

    def within(self, span: Span) -> AbstractContextManager[None]:
        """Let spans that a tool makes by itself be below this one."""
        ...


_recorder: Recorder | None = None
_current: ContextVar[Span | None] = ContextVar("span", default=None)


def use(recorder: Recorder | None) -> None:
    """Tell this one from now on."""
    global _recorder  # one a process, as with metrics
    _recorder = recorder


def span_id(run: str, place: str = "") -> str:
    """Return the id of the span of a node, by its path with generation; without one
    that of the run itself.

    The name of a sub-agent's artifacts ends with the id of its node above.
    """
    return prefix_below(run, place)[-16:]


@contextmanager
def node(
    context: NodeContext, path: str, refs: Mapping[str, str]
) -> Iterator[Callable[[NodeReply], None]]:
    """Tell of an attempt at a node, and of the node itself if it has come to its end with this one.
    What is yielded is to be told the reply.
    """
    if _recorder is None:
        yield lambda _: None
        return
    call, work = context.call, context.work
    spec = context.spec
    place = path
    if spec.kind == "agent" and spec.key:
        place = path.replace(spec.id, spec.key, 1)
    full_paths = (*call.repeated, *call.nodes)
    repeated = {parse_unit(full_path).path: full_path for full_path in full_paths}
    links: list[str] = []
    for maker in _makers(context, refs):
        links.append(span_id(call.run, repeated.get(maker, maker)))

    name = "attempt"
    about: dict[str, Any] = {
        "sennit.node": context.unit.path,
        "sennit.kind": spec.kind,
        "sennit.generation": context.unit.generation,
    }
    if isinstance(work, ToolCall):
        name = f"execute_tool {work.tool}"
        about |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": work.tool}
    shown = spec.call_site or place  # people know a program's call by its function and line
    # A further advance of a program is a span of its own.
    if isinstance(call, ProgramNodeCall) and call.session:
        place = f"{place}.{call.session}"
        shown = f"{shown}.advance"
    span_place = Place(path, place, shown)
    with _attempt(
        _recorder, call.run, span_place, name, context.attempts, about, tuple(links)
    ) as record:
        yield record


def _makers(context: NodeContext, refs: Mapping[str, str]) -> list[str]:
    """Return these nodes, and in the place of the plan's joins their inputs: joins have no spans.
    Nor has a map whose value is that of its items.
    """
    names = list(refs)
    makers: list[str] = []
    for name in names:  # which grows
        node = context.checked.find(name)
        if isinstance(node, JoinNode):
            names += [source for source in node.inputs if source not in names]
        elif isinstance(node, MapNode) and is_manifest(refs.get(name, "")):
            items = json.loads(refs[name])
            for index, item in enumerate(items):
                if item:
                    makers.append(f"{name}[{index}]")
        else:
            makers.append(name)
    return makers


@contextmanager
def planning(run: str, attempts: Attempts) -> Iterator[None]:
    """Tell of an attempt at a plan, and of the plan if that was the last."""
    if _recorder is None:
        yield
        return
    path = activity.info().activity_id
    place = Place(path, path, path)
    with _attempt(_recorder, run, place, "attempt", attempts, {"sennit.kind": "plan"}, ()):
        yield


@contextmanager
def _attempt(
    recorder: Recorder,
    run: str,
    place: Place,
    name: str,
    attempts: Attempts,
    about: dict[str, Any],
    links: tuple[str, ...],
) -> Iterator[Callable[[NodeReply], None]]:
    info = activity.info()
    # The activity may be that of a group, or of an advance of a program that follows others.
    alone = info.activity_id.partition("@")[0].partition(".")[0] == place.path
    now = time.time_ns()

    # The node itself, which began when it was scheduled, and this attempt at it.
    begun = now
    if alone:
        begun = nanoseconds(info.scheduled_time)
    whole = Span(run, span_id(run, place.key), span_id(run), place.shown, begun)
    whole.attributes = dict(about)
    whole.links = links
    key = f"{info.workflow_run_id}/{info.activity_id}/{info.scheduled_time}"
    key = f"{key}/{place.path}/{info.attempt}"
    attributes = {**about, "sennit.attempt": attempts.number}
    this = Span(run, span_id(run, key), whole.id, name, now, attributes=attributes)
    ended = True

    def note(reply: NodeReply) -> None:
        nonlocal ended
        ended = reply.question is None  # a node that asks goes on once it has its answer

    outer = _current.set(this)
    try:
        with recorder.within(this):
            yield note
    except BaseException as error:
        if isinstance(error, Exception):
            ended = _is_final(error, attempts, alone=alone)
        else:
            ended = not activity.is_worker_shutdown()
        _fail(this, error)
        _fail(whole, error)
        raise
    finally:
        _current.reset(outer)
        this.end = time.time_ns()
        recorder.record(this)
        if ended:
            whole.end = this.end
            recorder.record(whole)


def _is_final(error: BaseException, attempts: Attempts, *, alone: bool) -> bool:
    """Whether a node has failed for good. What was done beside another node
    is tried again, alone.
    """
    info = activity.info()
    if not alone:
        return info.activity_type == GROUP.name and not retryable(error)
    if not retryable(error):
        return True
    policy = info.retry_policy
    if policy is not None and 0 < policy.maximum_attempts <= info.attempt:
        return True
    if isinstance(error, ProviderError) and not error.is_attempt:
        return False
    return attempts.allowed is not None and attempts.number >= attempts.allowed


@contextmanager
def model_call(request: ModelRequest) -> Iterator[Callable[[ModelReply], None]]:
    """Tell of one call of a model, by OpenTelemetry's conventions for generative AI. What is
    yielded is to be told the reply.
    """
    recorder, above = _recorder, _current.get()
    if recorder is None or above is None:
        yield lambda _: None
        return
    above.calls += 1
    name = request.model.removeprefix(f"{PYDANTIC_AI}:")
    provider, _, model = name.partition(":")
    own_id = span_id(above.id, str(above.calls))
    span = Span(above.run, own_id, above.id, f"chat {model or provider}", time.time_ns())
    output_type = "json" if request.output_schema is not None else "text"
    span.attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        # What it was called until 2025: not every reader knows the other.
        "gen_ai.system": provider,
        "gen_ai.request.model": model or provider,
        "gen_ai.output.type": output_type,
        "sennit.role": request.role,
    }
    settings = request.settings
    numbers = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "seed": settings.seed,
        "max_tokens": request.max_output_tokens,
    }
    for name, value in numbers.items():
        if value is not None:
            span.attributes[f"gen_ai.request.{name}"] = value
    if recorder.contents:
        system = _parts(Message("user", mask(request.system)))
        turns = [*request.history, Message("user", request.prompt), *request.messages]
        span.attributes["gen_ai.system_instructions"] = json.dumps(system)
        messages = [_content(turn) for turn in turns]
        span.attributes["gen_ai.input.messages"] = json.dumps(messages)

    def record(reply: ModelReply) -> None:
        reason = _REASONS[reply.stop]
        span.attributes |= {
            "gen_ai.response.model": reply.model or model or provider,
            "gen_ai.response.finish_reasons": [reason],
            "gen_ai.usage.input_tokens": reply.usage.input_tokens,
            "gen_ai.usage.output_tokens": reply.usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": reply.usage.cached_tokens,
            "gen_ai.response.time_to_first_chunk": reply.first_token_ms / 1000,
        }
        if recorder.contents:
            message = Message("assistant", reply.text or str(reply.output), reply.calls)
            said = _content(message)
            span.attributes["gen_ai.output.messages"] = json.dumps(
                [{**said, "finish_reason": reason}]
            )

    try:
        yield record
    except BaseException as error:
        _fail(span, error)
        raise
    finally:
        span.end = time.time_ns()
        recorder.record(span)


def _content(message: Message) -> dict[str, Any]:
    return {"role": message.role, "parts": mask(_parts(message))}


def _parts(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "tool_call_response", "id": message.call_id, "response": message.text}]
    parts: list[dict[str, Any]] = []
    if message.text:
        parts.append({"type": "text", "content": message.text})
    parts += map(_call_part, message.calls)
    return parts


def _call_part(call: ToolRequest) -> dict[str, Any]:
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}


def _fail(span: Span, error: BaseException) -> None:
    span.error = "cancelled"
    span.attributes["error.type"] = "cancelled"
    if isinstance(error, Exception):
        span.error = message_of(error)
        span.attributes["error.type"] = kind_of(error)


def nanoseconds(moment: datetime) -> int:
    """Return a time as spans have it."""
    return int(moment.timestamp() * 1_000_000) * 1000
