"""A reply while it arrives."""

import heapq
import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sennit.activities.limits import MAX_MODEL_CHARACTERS, MAX_REPLY_TOKENS, MAX_TOKEN_BYTES
from sennit.activities.providers import structured
from sennit.activities.providers.call_arguments import CallArguments
from sennit.activities.providers.errors import BadReply, ModelRefused, OutputCut, ReplyCut
from sennit.activities.providers.model import (
    THINKING_TOKENS,
    Message,
    ModelReply,
    ModelRequest,
    Stop,
    ToolRequest,
    parameters_of,
    tokens_of,
)
from sennit.activities.providers.prices import with_cost
from sennit.workflows.plan.language.limits import Usage, tokens_in
from sennit.workflows.plan.language.text import one_line, text_bytes, without_thoughts
from sennit.workflows.plan.planner_format.json_text import Unreadable, decode_whole
from sennit.workflows.plan.planner_format.written_calls import calls_of

LEAST_SHARE = 3
"""A server's count of tokens is believed if it is the estimate divided by this, or more."""
PACE_AFTER = 1.0


@dataclass(slots=True)
class Call:
    """A call of a tool in the making."""

    id: str = ""
    name: str = ""
    arguments: CallArguments = field(default_factory=CallArguments)


@dataclass(slots=True)
class Counts:
    """How a server counts the tokens of a model, beside Sennit's estimates for the same calls. What a server does not
    count, such as a call that was cut off, is estimated with that; before the first count, on the long side.
    """

    read: int = 0
    read_estimated: int = 0
    wrote: int = 0
    wrote_estimated: int = 0

    def learn(self, read: int | None, read_estimated: int, wrote: int | None, wrote_estimated: int) -> None:
        """Take the server's counts of a call that has ended."""
        if read:
            self.read += read
            self.read_estimated += read_estimated
        if wrote:
            self.wrote += wrote
            self.wrote_estimated += wrote_estimated

    def sent(self, estimate: int) -> int:
        """Return about how many tokens the server counts for a prompt."""
        return -(-estimate * self.read // self.read_estimated) if self.read_estimated else estimate

    def written(self, estimate: int) -> int:
        """Return about how many tokens the server counts for what it has written."""
        return -(-estimate * self.wrote // self.wrote_estimated) if self.wrote_estimated else estimate


@dataclass(slots=True)
class ReplyBuilder:
    """Gathers the pieces of one reply; reports each to the request's listeners. `sent` is about how many tokens the
    request has, `wrapped` says that the schema given to the server has the wanted one inside, `is_limited` that the
    call has a limit of its own. `places` are the calls that the server's own indices mean now.
    """

    request: ModelRequest
    sent: int
    wrapped: bool = False
    plans: bool = False
    is_limited: bool = False
    overran: bool = False
    stop: Stop | None = None
    reason: str = ""
    model: str = ""
    refusal: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    kept_tokens: int = 0
    cost: float | None = None
    calls: dict[int, Call] = field(default_factory=dict)
    places: dict[int | None, int] = field(default_factory=dict)
    thinking: dict[int, dict[str, Any]] = field(default_factory=dict)
    is_charged: bool = False
    """Whether the server may charge for the call although it has told nothing of it."""
    counts: Counts = field(default_factory=Counts)
    _text: list[str] = field(default_factory=list)
    _earlier: list[dict[str, Any]] = field(default_factory=list)
    _bytes: int = 0
    _thought: bool = False
    _waiting: list[int] = field(default_factory=list)
    _sent: float = field(default_factory=time.monotonic)
    _first: float | None = None
    _began: float | None = None

    def add_text(self, piece: str) -> None:
        if piece:
            self._arrived(piece)
            self._text.append(piece)
            self.request.on_text(piece)

    def add_call(self, index: int, *, name: str = "", call_id: str = "", arguments: str = "") -> None:
        """Take a piece of the call at `index`."""
        self._arrived(arguments)
        call = self.calls.get(index)
        if call is None:
            call = self.calls[index] = Call()
            heapq.heappush(self._waiting, index)
        call.id = call.id or call_id
        call.name = call.name or name
        call.arguments.add(arguments)
        if self.plans:
            self._pass_on(last=False)

    def _pass_on(self, *, last: bool) -> None:
        """Give the listener each call that is whole now: the next has begun, or its arguments end."""
        while self._waiting:
            place = self._waiting[0]
            call = self.calls[place]
            if not (last or len(self._waiting) > 1 or call.arguments.whole):
                return
            heapq.heappop(self._waiting)
            self.request.on_call(_tool_request(place, call))

    def add_thought(self, piece: str) -> None:
        """Count a piece that is not part of the reply."""
        self._thought |= bool(piece)
        self._report_progress(piece)

    def _arrived(self, piece: str) -> None:
        if self._first is None:
            self._first = time.monotonic()
        self._report_progress(piece)

    def _report_progress(self, piece: str) -> None:
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        self._bytes += text_bytes(piece)
        tokens, seconds = self._bytes // 4, now - self._began
        pace = f", {tokens / seconds:,.0f} a second" if seconds >= PACE_AFTER else ""
        self.request.progress(f"about {tokens:,} tokens so far{pace}")

    def end(self, reason: str, known: Mapping[str, Stop]) -> None:
        """Take the server's word for why the reply ended. One that is not known is no end: the reply counts as cut."""
        self.reason = reason
        self.stop = known.get(reason.lower())

    def close(self) -> None:
        """The server said that nothing more comes. Without a reason the reply is whole."""
        if not self.reason:
            self.stop = self.stop or "end"

    def served_by(self, model: Any) -> None:
        """Take the server's word for which model replies, if that is a name."""
        if isinstance(model, str):
            self.model = one_line(model, MAX_MODEL_CHARACTERS)

    def resume(self, begun: int) -> None:
        """Go on with the reply in another call, which begins with the text and thoughts so far: see `turn`."""
        self._earlier += self._blocks()
        self.thinking, self.stop, self.reason = {}, None, ""
        self.input_tokens, self.output_tokens, self.sent, self._bytes = None, None, begun, 0
        self.cached_tokens, self.kept_tokens = 0, 0

    def learn(self) -> None:
        """Remember how the server has counted this call."""
        self.counts.learn(self.input_tokens, self.sent, self.output_tokens, tokens_in(self._bytes))

    def turn(self) -> Message:
        """Return what has come so far as the assistant's turn."""
        return Message("assistant", "".join(self._text), thinking=(*self._earlier, *self._blocks()))

    def _blocks(self) -> tuple[dict[str, Any], ...]:
        return tuple(self.thinking[index] for index in sorted(self.thinking))

    def is_too_long(self) -> bool:
        """Whether far more has come than was allowed: the server does not heed the limit, and the reply is cut here."""
        limit = self.request.max_output_tokens
        most = MAX_REPLY_TOKENS if limit is None else limit + THINKING_TOKENS
        arrived = self._bytes + MAX_TOKEN_BYTES * len(self.calls)  # a call without arguments has a token too
        if arrived <= MAX_TOKEN_BYTES * most:
            return False
        self.stop, self.overran = "length", True
        return True

    def reply(self) -> ModelReply:
        """Return the finished reply. Raises ModelRefused, OutputCut, ReplyCut, BadReply or SchemaMismatch."""
        text, calls = self._whole()
        if not calls and self.request.role != "planner":
            text, calls = self._written(text)
        if calls and not (self.plans if self.request.role == "planner" else self.request.tools):
            name = calls[0].name
            raise BadReply(f"{self.request.model} asks for the tool {name!r:.80}, and none was offered", retryable=True)
        schema = self.request.output_schema
        if not text and not calls:
            what = "holds a thought and no answer" if self._text else "is empty"
            raise BadReply(f"the reply of {self.request.model} {what}", retryable=True)
        if self.plans and calls:
            self._pass_on(last=self.stop != "length")
            text = written_plan(calls)
        value: Any = text
        if schema is not None and not calls:
            value = structured.parse_json(text, schema, in_wrap=self.wrapped)
        return ModelReply(
            value,
            self.usage(),
            text=text,
            calls=calls,
            thinking=(*self._earlier, *self._blocks()),
            stop="tools" if calls and self.stop != "length" else self.stop or "end",
            model=self.model,
            first_token_ms=round(((self._first or self._sent) - self._sent) * 1000),
        )

    def _whole(self) -> tuple[str, tuple[ToolRequest, ...]]:
        """Return text and calls of a reply that ended as one does; a planner's may be cut at its limit. Raises
        ModelRefused, ReplyCut, OutputCut.
        """
        text, model = self._said(), self.request.model
        for place, call in [*self.calls.items()]:  # a server repeats the name once more at the end
            before = self.calls.get(place - 1)
            if before is not None and not call.id and not call.arguments and call.name == before.name:
                del self.calls[place]
        if self.refusal is not None:
            raise ModelRefused(f"{model} declined to answer: {self.refusal or text or 'without a word'}")
        if self.stop in (None, "pause"):
            why = f"was broken off: {self.reason[:60]!r}" if self.reason else "ended in its middle"
            raise ReplyCut(f"the reply of {model} {why}", retryable=True)
        if self.stop == "length" and (self.request.role != "planner" or not (text or self.plans)):
            raise self._cut(text)
        return text, tuple(_tool_request(index, self.calls[index]) for index in sorted(self.calls))

    def _cut(self, text: str) -> OutputCut:
        """Return the error of a reply that ended at a limit, with what helps."""
        written = self.usage().output_tokens
        tokens, model = f"{written:,} tokens", self.request.model
        if not text and not self.calls and (self._thought or self.thinking or self._text):
            todo = "raise `max_tokens`, or lower `effort`"
            cut = OutputCut(
                f"the whole reply of {model} was thinking: it was cut at {tokens} without an answer; {todo}"
            )
        else:
            begins = f" ({' '.join(text.split())[:80]!r} ...)" if text else ""
            todo = (
                "raise `max_tokens`, or ask for less" if self.is_limited else "its server gives no more; ask for less"
            )
            cut = OutputCut(f"the reply of {model} was cut at {tokens}; {todo}{begins}")
        cut.written, cut.growable = written, not self.overran
        return cut

    def _said(self) -> str:
        """Return the text without thoughts. A planner's has them: its reader drops them, and says if one is open."""
        written = "".join(self._text)
        text = written if self.request.role == "planner" else without_thoughts(written)
        return text if text == written else text.strip()

    def _written(self, text: str) -> tuple[str, tuple[ToolRequest, ...]]:
        """Return (text, calls) of a text that has calls of tools in it, which no answer is. Raises BadReply."""
        tools = {str(entry["name"]): parameters_of(entry) for entry in self.request.tools}
        try:
            words, calls = calls_of(text, tools)
        except Unreadable as error:
            raise BadReply(f"the reply of {self.request.model} is no answer: {error}", retryable=True) from None
        return words, tuple(ToolRequest(f"call_{call.number - 1}", call.name, call.arguments) for call in calls)

    def usage(self) -> Usage:
        """Return what the server counted, and what it says that the call costs. What it did not count, or only as it
        began, is estimated at three bytes a token, and so is a count of less than a third of that.

        Before the first sign of a reply it is a call without tokens.
        """
        is_begun = self._bytes or self.calls or self.input_tokens is not None
        if not is_begun and not self.is_charged:
            return Usage(calls=1)
        turns = (*self.request.history, *self.request.messages)
        asked = (self.request.system, self.request.prompt, *(message.text for message in turns))
        sent = _believed(self.input_tokens, tokens_of(*asked))
        sent = self.counts.sent(self.sent) if self.input_tokens is None else sent
        estimated = tokens_in(self._bytes)
        if self.output_tokens is None:
            estimated = self.counts.written(estimated)
        written = _believed(self.output_tokens, estimated)
        if self.stop is None:
            written = max(written, estimated)
        cached = min(self.cached_tokens, sent)
        used = Usage(sent, written, calls=1, cached_tokens=cached)
        if self.cost is None:
            return with_cost(used, self.request.model, min(self.kept_tokens, sent - cached))
        return used._replace(cost=math.ceil(self.cost * 1_000_000))


def cut_after(reply: ModelReply) -> OutputCut:
    """Return the error of a reply that was taken although it ended at a limit."""
    cut = OutputCut("the reply was cut")
    cut.written, cut.growable = reply.usage.output_tokens, True
    return cut


def _believed(reported: int | None, estimated: int) -> int:
    return estimated if reported is None or reported * LEAST_SHARE < estimated else reported


def written_plan(calls: Iterable[ToolRequest]) -> str:
    """Return the calls of a plan as text, for people and for the model that is shown what was wrong."""
    lines = [{"n": number, "tool": call.name, "arguments": call.arguments} for number, call in enumerate(calls, 1)]
    return json.dumps({"calls": lines}, ensure_ascii=False)


def _tool_request(index: int, call: Call) -> ToolRequest:
    written = str(call.arguments)
    try:
        arguments = decode_whole(written.strip() or "{}")
    except Unreadable:
        arguments = written
    return ToolRequest(call.id or f"call_{index}", call.name, arguments)
