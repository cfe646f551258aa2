"""A reply while it arrives."""

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sennit.activities.limits import (
    MAX_BLANKS,
    MAX_MODEL_CHARACTERS,
    MAX_REPLY_TOKENS,
    MAX_TOKEN_BYTES,
)
from sennit.activities.providers import structured, surrogates
from sennit.activities.providers.call_arguments import CallArguments
from sennit.activities.providers.errors import BadReply, ModelRefused, OutputCut, ReplyCut
from sennit.activities.providers.model import (
    THINKING_TOKENS,
    Message,
    ModelReply,
    ModelRequest,
    Stop,
    ToolRequest,
    call_id_of,
    parameters_of,
    tokens_of,
)
from sennit.activities.providers.prices import with_cost
from sennit.activities.providers.returned_fields import GatheredFields
from sennit.workflows.plan.language.limits import Usage, tokens_in
from sennit.workflows.plan.language.text import (
    one_line,
    text_bytes,
    without_frame,
    without_thoughts,
)
from sennit.workflows.plan.planner_format.json_text import Unreadable, decode, decode_whole
from sennit.workflows.plan.planner_format.written_calls import asked_in, calls_of, left_of_calls

LEAST_SHARE = 3
"""A server's count of tokens is believed if it is the estimate divided by this, or more."""
PACE_AFTER = 1.0
PROGRESS_SECONDS = 0.1
LEAST_REPEATED = 16
"""Characters of a last piece that is taken for all pieces once more: shorter ones
may be alike by chance.
"""
LEAST_CUT_PROMPT = 1_000
"""Tokens of a prompt, estimated, from which on a far lower count of the server is reported."""
LEAST_BLANK_PIECES = 32
"""Pieces of blanks from which on they count as silence, however short they are: a few
stand before a long pause.
"""
_BLANKS = " \t\r\n\v\f\x00\u00a0\u200b\u200c\u200d\u2060\u3000\ufeff"
_NO_REASON = frozenset(
    ("", "null", "none", "unspecified", "finish_reason_unspecified", "in_progress", "not_finished")
)
"""What some servers write where the reply goes on."""
_ALONE = "half of a character came without the other, and is shown as \ufffd"


@dataclass(slots=True)
class Call:
    """A call of a tool in the making."""

    id: str = ""
    name: str = ""
    arguments: CallArguments = field(default_factory=CallArguments)
    is_told: bool = False
    """Whether the request's listener has it: as soon as its arguments are whole."""
    fields: GatheredFields = field(default_factory=GatheredFields)


@dataclass(slots=True)
class Counts:
    """How a server counts the tokens of a model, beside Sennit's estimates for the same calls. What
    a server does not count, such as a call that was cut off, is estimated with that; before the
    first count, on the long side.
    """

    read: int = 0
    read_estimated: int = 0
    wrote: int = 0
    wrote_estimated: int = 0

    def learn(
        self, read: int | None, read_estimated: int, wrote: int | None, wrote_estimated: int
    ) -> None:
        """Take the server's counts of a call that has ended."""
        if read:
            self.read += read
            self.read_estimated += read_estimated
        if wrote:
            self.wrote += wrote
            self.wrote_estimated += wrote_estimated

    def sent(self, estimate: int) -> int:
        """Return about how many tokens the server counts for a prompt."""
        if not self.read_estimated:
            return estimate
        return _divided_up(estimate * self.read, self.read_estimated)

    def written(self, estimate: int) -> int:
        """Return about how many tokens the server counts for what it has written."""
        if not self.wrote_estimated:
            return estimate
        return _divided_up(estimate * self.wrote, self.wrote_estimated)


@dataclass(slots=True)
class BlankRun:
    """The blanks with which a reply ends so far: how many there are, in how many
    pieces, and since when.
    """

    characters: int = 0
    pieces: int = 0
    since: float = 0.0

    def take(self, piece: str) -> None:
        """Take the next piece of the reply."""
        end = piece.rstrip(_BLANKS)
        if end or not self.pieces:
            self.characters, self.pieces, self.since = 0, 0, time.monotonic()
        if len(end) < len(piece):
            self.characters += len(piece) - len(end)
            self.pieces += 1

    def is_endless(self, idle: float) -> bool:
        """Whether nothing else is to be expected: there are too many, or they came for as
        long as silence may last.
        """
        if self.characters > MAX_BLANKS:
            return True
        return self.pieces >= LEAST_BLANK_PIECES and time.monotonic() - self.since > idle


@dataclass(slots=True)
class ReplyBuilder:
    """Gathers the pieces of one reply; reports each to the request's listeners. `sent` is about how
    many tokens the request has, `wrapped` says that the schema given to the server has the wanted
    one inside, `is_limited` that the call has a limit of its own, `limit` what it was sent with,
    and `is_granted` that its budget sets that. `places` are the calls that the server's own indices
    mean now, `choice` is the index of the only choice that is read. `closed` says that the server
    has sent its last event. `unreasoned` says that this server never gives a reason for an end.
    """

    request: ModelRequest
    sent: int
    wrapped: bool = False
    is_limited: bool = False
    limit: int | None = None
    is_granted: bool = False
    overran: bool = False
    unreasoned: bool = False
    stop: Stop | None = None
    reason: str = ""
    closed: bool = False
    heard: bool = False
    model: str = ""
    refusal: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    kept_tokens: int = 0
    cost: float | None = None
    choice: int | None = None
    calls: dict[int, Call] = field(default_factory=dict)
    places: dict[Any, int] = field(default_factory=dict)
    thinking: dict[int, GatheredFields] = field(default_factory=dict)
    is_charged: bool = False
    """Whether the server may charge for the call although it has told nothing of it."""
    counts: Counts = field(default_factory=Counts)
    notes: dict[str, None] = field(default_factory=dict)
    begun_blocks: dict[int, str] = field(default_factory=dict)
    """Of Anthropic's blocks, the text with which each has begun until its first delta came."""
    _blanks: BlankRun = field(default_factory=BlankRun)
    _text: list[str] = field(default_factory=list)
    _half: str = ""
    _thought: bool = False
    _goes_on: bool = False
    _ended_early: bool = False
    _beside: bool = False
    in_event: bool = False
    """Whether the event that is read now has brought a piece of the reply."""
    _earlier: list[dict[str, Any]] = field(default_factory=list)
    _bytes: int = 0
    _sent: float = field(default_factory=time.monotonic)
    _first: float | None = None
    _began: float | None = None
    _reported: float = 0.0

    @property
    def begun(self) -> bool:
        """Whether anything of the reply itself has come."""
        return bool(self._text or self.calls)

    @property
    def place(self) -> list[int]:
        """How many characters of text have come, and how many calls."""
        return [sum(map(len, self._text)), len(self.calls)]

    @property
    def in_progress(self) -> bool:
        """Whether a piece of the reply, or of a thought before it, has come."""
        return self._bytes > 0

    def add_text(self, piece: str) -> None:
        if not piece:
            return
        self._arrived(piece)
        self._blanks.take(piece)
        size = len(piece)
        if self._half or not piece.isascii():
            size = text_bytes(piece)
            piece = self._with_whole_characters(piece)
        self._text.append(piece)
        self.request.on_text(piece)
        self._report_progress(size)

    def _with_whole_characters(self, piece: str) -> str:
        """Return a piece with the half of a character that the one before has left,
        without the half at its end.
        """
        piece = f"{self._half}{piece}"
        self._half = ""
        if surrogates.ends_in_half(piece):
            self._half = piece[-1]
            piece = piece[:-1]
        return self._joined(piece)

    def _joined(self, text: str) -> str:
        text, alone = surrogates.joined(text)
        if alone:
            self.notes[_ALONE] = None
        return text

    def is_repeated(self, piece: str) -> bool:
        """Whether a last piece is no more than all pieces before it once more."""
        return len(piece) >= LEAST_REPEATED and len(self._text) > 1 and piece == "".join(self._text)

    def drop_repeated(self) -> None:
        """Leave out a last piece that is no more than all pieces before it once more."""
        if not self._text:
            return
        last = self._text.pop()
        if not self.is_repeated(last):
            self._text.append(last)

    def complete_text(self, whole: str) -> None:
        """Take a whole message behind its pieces: what it has beyond them is new. Raises
        BadReply if it is another.
        """
        written = "".join(self._text)
        if whole.startswith(written):
            self.add_text(whole[len(written) :])
        elif whole.strip() and whole.strip() != written.strip():
            raise BadReply(
                f"{self.request.model} sent a text in pieces, and another one as a whole",
                retryable=True,
            )

    def has_call(self, call_id: str, name: str, arguments: str) -> bool:
        """Whether a call has come: by its id, or alike."""
        for call in self.calls.values():
            if call_id and call.id == call_id:
                return True
            if call.name == name and str(call.arguments) == arguments:
                return True
        return False

    def add_call(
        self, index: int, *, name: str = "", call_id: str = "", arguments: str = ""
    ) -> None:
        """Take a piece of the call at `index`."""
        news = arguments
        if index not in self.calls:
            news = arguments or name
        self._arrived(news)
        call = self.calls.setdefault(index, Call())
        call.id = call.id or call_id
        call.name = call.name or name
        call.arguments.add(arguments)
        self._blanks.take(arguments or name)
        self._report_progress(text_bytes(arguments))
        if self.request.on_call is not None:
            self._tell_call(index, call, self.request.on_call)

    def _tell_call(self, index: int, call: Call, tell: Callable[[ToolRequest], None]) -> None:
        """Tell a call once its arguments are whole. Some servers send an empty
        object before the true ones.
        """
        if call.is_told or not call.arguments.whole or call.arguments.is_empty:
            return
        call.is_told = True
        requests, _ = _tool_requests(index, call)
        for request in requests:
            tell(request)

    def add_thought(self, piece: str) -> None:
        """Count a piece that is not part of the reply."""
        if piece:
            self._thought = True
            self._blanks.take(piece)
            self._report_progress(text_bytes(piece))

    def _arrived(self, piece: str) -> None:
        if self._first is None:
            self._first = time.monotonic()
        self.in_event = self.in_event or bool(piece)
        if self.reason and piece.strip():
            self._goes_on = self._ended_early = True

    def _report_progress(self, size: int) -> None:
        """Count the bytes of a piece, and tell now and then how far the reply is."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
        self._bytes += size
        if now - self._reported >= PROGRESS_SECONDS:
            self._reported = now
            self._tell_progress(now)

    def _tell_progress(self, now: float) -> None:
        tokens = self._bytes // 4
        seconds = now - (self._began or now)
        words = f"about {tokens:,} tokens so far"
        if seconds >= PACE_AFTER:
            words += f", {tokens / seconds:,.0f} a second"
        self.request.progress(words)

    def end(self, reason: str, known: Mapping[str, Stop]) -> None:
        """Take the server's word for why the reply ended. One that is not known is no end:
        the reply counts as cut.

        Some servers give a reason with every piece, so a reason counts until the reply goes
        on. The limit counts whatever follows it, and the first of two reasons counts where
        nothing came between them.
        """
        word = reason.strip().lower().removeprefix("finishreason.")
        if word in _NO_REASON or self.stop == "length":
            return
        if self.reason and not self._goes_on and known.get(word) != "length":
            return
        self.reason, self.stop = reason, known.get(word)
        self._goes_on, self._beside = False, self.in_event

    def close(self) -> None:
        """The server has sent its last event."""
        self.closed = True

    @property
    def may_go_on(self) -> bool:
        """Whether more may come in spite of a reason: a piece stood beside it or has come behind
        one, or another call may follow.
        """
        if not self.reason or not self.begun:
            return True
        return self._ended_early or self._beside or bool(self.calls) or self.stop == "tools"

    @property
    def ended(self) -> bool:
        """Whether the server has said that the reply is whole, so that an end of the
        connection is no loss.
        """
        return bool(self.reason) and not self._ended_early

    def served_by(self, model: Any) -> None:
        """Take the server's word for which model replies, if that is a name."""
        if isinstance(model, str) and model != self.model:  # it is in every event
            self.model = one_line(model, MAX_MODEL_CHARACTERS)

    def resume(self, begun: int) -> None:
        """Go on with the reply in another call, which begins with the text and
        thoughts so far: see `turn`.
        """
        self._earlier += self._blocks()
        self.thinking = {}

        # The other call ends by itself, and its server counts by itself.
        self.stop = None
        self.reason = ""
        self.closed = False
        self._ended_early = False
        self._goes_on = False
        self._beside = False
        self.input_tokens = None
        self.output_tokens = None
        self.cached_tokens = 0
        self.kept_tokens = 0
        self.sent = begun
        self._bytes = 0

    def learn(self) -> None:
        """Remember how the server has counted this call."""
        self.counts.learn(self.input_tokens, self.sent, self.output_tokens, tokens_in(self._bytes))

    def turn(self) -> Message:
        """Return what has come so far as the assistant's turn."""
        return Message("assistant", "".join(self._text), thinking=(*self._earlier, *self._blocks()))

    def _blocks(self) -> tuple[dict[str, Any], ...]:
        return tuple(self.thinking[index].value() for index in sorted(self.thinking))

    def is_too_long(self) -> bool:
        """Whether far more has come than was allowed: the server does not heed the limit, and
        the reply is cut here.
        """
        most = MAX_REPLY_TOKENS
        if self.request.max_output_tokens is not None:
            most = self.request.max_output_tokens + THINKING_TOKENS
        # A call without arguments has a token too.
        arrived = self._bytes + MAX_TOKEN_BYTES * len(self.calls)
        if arrived <= MAX_TOKEN_BYTES * most:
            return False
        self.stop = "length"
        self.overran = True
        return True

    def check_blanks(self, idle: float) -> None:
        """Raise BadReply if nothing but blanks comes any more, for more than `idle`
        seconds or without an end.
        """
        if self._blanks.is_endless(idle):
            count = f"{self._blanks.characters:,} blanks"
            wrong = f"goes on with blanks and nothing else, and was ended after {count}"
            raise BadReply(f"the reply of {self.request.model} {wrong}", retryable=True)

    def reply(self) -> ModelReply:
        """Return the finished reply. Raises ModelRefused, OutputCut, ReplyCut,
        BadReply or SchemaMismatch.
        """
        self._finish()
        text, calls = self._whole()
        model = self.request.model
        if not calls and self.request.role != "planner":
            text, calls = self._written(text)
        if calls and not self.request.callable:
            name = calls[0].name
            raise BadReply(
                f"{model} asks for the tool {name!r:.80}, and none was offered", retryable=True
            )
        if self.stop == "tools" and not calls and self.request.callable:
            raise BadReply(
                f"{model} ended its reply to call a tool, and called none", retryable=True
            )
        if not calls and is_blank(text):
            has_thought = self._thought or self.thinking or not all(map(is_blank, self._text))
            what = "holds a thought and no answer" if has_thought else "is empty"
            raise BadReply(f"the reply of {model} {what}", retryable=True)
        schema = self.request.output_schema
        value: Any = text
        if schema is not None and not calls:
            value = structured.parse_json(text, schema, in_wrap=self.wrapped)
        self._note_cut_prompt()
        for note in self.notes:
            self.request.progress(note)

        # Servers do not agree on what a reply with calls ends with: calls are
        # calls, unless they were cut.
        stop: Stop = self.stop or "end"
        if calls and stop != "length":
            stop = "tools"
        waited = (self._first or self._sent) - self._sent
        return ModelReply(
            value,
            self.usage(),
            text=text,
            calls=calls,
            thinking=surrogates.joined_within((*self._earlier, *self._blocks())),
            stop=stop,
            origin=model,
            model=self.model,
            first_token_ms=round(waited * 1000),
            warnings=tuple(self.notes),
        )

    def _finish(self) -> None:
        """Take what no further piece has completed, and report the progress
        that was not yet told.
        """
        if self._bytes:
            self._tell_progress(time.monotonic())
        if self._half:
            self._text.append(self._joined(self._half))
            self._half = ""

    def _note_cut_prompt(self) -> None:
        """Note that the server has counted far fewer tokens than were sent: servers with a short
        context cut prompts and do not say so.
        """
        if self.input_tokens is None:
            return
        sent = self._prompt_tokens()
        share: float = LEAST_SHARE
        # As long as a context: it looks cut.
        if self.input_tokens > 0 and self.input_tokens % 1024 == 0:
            share /= 2
        if sent >= LEAST_CUT_PROMPT and self.input_tokens * share < sent:
            # A run keeps equal warnings once: servers cut all prompts to one
            # length, whatever was sent.
            counted = (
                f"{self.request.model} counted only {self.input_tokens:,} tokens of a longer prompt"
            )
            todo = (
                "its server may have cut the prompt; give the model a longer context, or set "
                "SENNIT_CONTEXT"
            )
            self.notes[f"{counted}: {todo}"] = None

    def _prompt_tokens(self) -> int:
        """Return about how many tokens the texts of the request have."""
        request = self.request
        texts = [message.text for message in (*request.history, *request.messages)]
        return tokens_of(request.system, request.prompt, *texts)

    def _whole(self) -> tuple[str, tuple[ToolRequest, ...]]:
        """Return text and calls of a reply that ended as one does; a planner's may be cut at its
        limit. Raises ModelRefused, ReplyCut, OutputCut, BadReply.
        """
        text = self._said()
        model = self.request.model
        for place, call in [*self.calls.items()]:  # a server repeats the name once more at the end
            before = self.calls.get(place - 1)
            if (
                before is not None
                and not call.id
                and not call.arguments
                and call.name == before.name
            ):
                del self.calls[place]
        if self.refusal is not None:
            raise ModelRefused(
                f"{model} declined to answer: {self.refusal or text or 'without a word'}"
            )
        why = self._breach()
        if why:
            raise ReplyCut(f"the reply of {model} {why}", retryable=True)
        if self.stop == "length" and (self.request.role != "planner" or not text):
            raise self._cut(text)
        return text, self._requests()

    def _breach(self) -> str:
        """Return why the reply is no whole one, "" if it is one."""
        if self.reason and self.stop in (None, "pause"):
            return f"was broken off: {self.reason[:60]!r}"
        if self._ended_early and not self.closed:
            return "ended in its middle"
        if self.stop is None and not self.closed:
            return "ended in its middle"
        if self.stop is None and not self.unreasoned:
            return "came without a reason why it ends, so that it may be half of one"
        return ""

    def _requests(self) -> tuple[ToolRequest, ...]:
        """Return the calls that were made. Raises BadReply where a call
        that writes is not plain.
        """
        effects = {entry["name"]: entry.get("effect") for entry in self.request.callable}
        requests: list[ToolRequest] = []
        for place in sorted(self.calls):
            call = self.calls[place]
            meant, alone = _tool_requests(self._calls_before + len(requests), call)
            if alone:
                self.notes[_ALONE] = None
            is_plain = not alone and len(meant) == 1 and not is_repeated(str(call.arguments))
            if effects.get(call.name) == "write" and not is_plain:
                what = "half of a character" if alone else "more than one object of arguments"
                raise BadReply(
                    f"{self.request.model} calls {call.name} with {what}; call it again",
                    retryable=True,
                )
            requests += meant
        return tuple(requests)

    def _cut(self, text: str) -> OutputCut:
        """Return the error of a reply that ended at a limit, with what helps."""
        written = self.usage().output_tokens
        tokens = f"{written:,} tokens"
        model = self.request.model
        if not text and not self.calls and (self._thought or self.thinking or self._text):
            todo = "raise `max_tokens`, or lower `effort`"
            problem = (
                f"the whole reply of {model} was thinking: it was cut at {tokens} without an "
                f"answer; {todo}"
            )
        else:
            problem = f"the reply of {model} was cut at {tokens}; {self._todo_after_cut()}"
            if text:
                begins = " ".join(text[:400].split())
                problem += f" ({begins[:80]!r} ...)"
        cut = OutputCut(problem)
        cut.written = written
        cut.limit = self.limit
        cut.growable = not self.overran and not self.is_granted
        return cut

    def _todo_after_cut(self) -> str:
        """Return what helps where a reply was cut."""
        limit = self.request.max_output_tokens
        if self.overran and limit is not None:
            heedless = (
                f"it was ended here, far above its limit of {limit:,} tokens, which its server "
                "does not heed"
            )
            return f"{heedless}; raise `max_tokens`, or ask for less"
        if self.overran:
            return "it was ended here, for no model's reply is that long; ask for less"
        if self.is_limited:
            return "raise `max_tokens`, or ask for less"
        return "its server gives no more; ask for less"

    def _said(self) -> str:
        """Return the text without thoughts. A planner's has them: its reader drops them,
        and says if one is open.
        """
        written = "".join(self._text)
        if self.request.role == "planner":
            return written
        text = without_thoughts(without_frame(written))
        if text == written:
            return text
        return text.strip()

    def _written(self, text: str) -> tuple[str, tuple[ToolRequest, ...]]:
        """Return (text, calls) of a text that has calls of tools in it, which no
        answer is. Raises BadReply.
        """
        tools = {str(entry["name"]): parameters_of(entry) for entry in self.request.tools}
        try:
            words, calls = calls_of(text, tools)
            if not calls:
                _check_words(words, tools)
        except Unreadable as error:
            raise BadReply(
                f"the reply of {self.request.model} is no answer: {error}", retryable=True
            ) from None
        requests: list[ToolRequest] = []
        for number, call in enumerate(calls, self._calls_before):
            requests.append(ToolRequest(call_id_of(number), call.name, call.arguments))
        return words, tuple(requests)

    @property
    def _calls_before(self) -> int:
        """How many calls the turns before this reply have: no id is given to two of a loop."""
        return sum(len(message.calls) for message in self.request.messages)

    def usage(self) -> Usage:
        """Return what the server counted, and what it says that the call costs. What it did not
        count, or only as it began, is estimated at three bytes a token, and so is a count of
        less than a third of that.

        Before the first event of a reply it is a call without tokens. Of a stream that was cut,
        it is what came of it.
        """
        is_begun = self._bytes or self.calls or self.input_tokens is not None
        if not is_begun and not self.is_charged:
            return Usage(calls=1)

        # Estimates are corrected by how this server has counted other calls.
        if self.input_tokens is None:
            sent = self.counts.sent(self.sent)
        else:
            sent = _believed(self.input_tokens, self._prompt_tokens())
        estimated = tokens_in(self._bytes)
        if self.output_tokens is None:
            estimated = self.counts.written(estimated)
            written = estimated
        else:
            written = _believed(self.output_tokens, estimated)
        if self.stop is None:
            written = max(written, estimated)
        cached = min(self.cached_tokens, sent)
        used = Usage(sent, written, calls=1, cached_tokens=cached)
        if self.cost is None:
            return with_cost(used, self.request.model, min(self.kept_tokens, sent - cached))
        return used._replace(cost=math.ceil(self.cost * 1_000_000))


def cut_after(reply: ModelReply, limit: int | None) -> OutputCut:
    """Return the error of a reply that was taken although it ended at a limit."""
    cut = OutputCut("the reply was cut")
    cut.written = reply.usage.output_tokens
    cut.limit = limit
    cut.growable = True
    return cut


def _divided_up(tokens: int, share: int) -> int:
    """Return a quotient, rounded up."""
    return -(-tokens // share)


def _check_words(words: str, tools: Mapping[str, Any]) -> None:
    """Raise Unreadable for a text without a call that asks for one in words, or
    holds what is left of one.
    """
    asked = asked_in(words, tools)
    if asked:
        raise Unreadable(
            f"it asks for {asked} in words; call it as a tool, or write the answer alone"
        )
    if tools:
        left = left_of_calls(words, tools)
        if left:
            raise Unreadable(f"it holds {left}; call a tool as one, or write the answer alone")


def _believed(reported: int, estimated: int) -> int:
    """Return what a server reports, unless that is much less than what was estimated."""
    if reported * LEAST_SHARE < estimated:
        return estimated
    return reported


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: space, and characters without a form such
    as the zero-width space.
    """
    return not any(char.isprintable() and not char.isspace() for char in text)


def is_repeated(arguments: str) -> bool:
    """Whether the arguments of a call are several objects."""
    return len(_objects_in(arguments)) > 1


def _tool_requests(number: int, call: Call) -> tuple[list[ToolRequest], int]:
    """Return the calls that one call of the server means, and how many halves of a
    character stood alone in it.

    Servers that mix up their indices write the arguments of two calls into one: two different
    objects are two calls, and two equal ones are one that was sent twice. Arguments that cannot be
    read come as the model wrote them.
    """
    text, alone = surrogates.joined_in_json(str(call.arguments))
    call.name, alone_in_name = surrogates.joined(call.name)
    first_id, alone_in_id = surrogates.joined(call.id or call_id_of(number))
    alone += alone_in_name + alone_in_id
    objects = _objects_in(text)
    if not objects:
        return [ToolRequest(first_id, call.name, _arguments_in(text), call.fields.value())], alone
    different = {json.dumps(arguments, sort_keys=True): arguments for arguments in objects}
    requests: list[ToolRequest] = []
    for place, arguments in enumerate(different.values()):
        call_id = first_id
        if place > 0 and call.id:
            call_id = f"{first_id}_{place + 1}"
        elif place > 0:
            call_id = call_id_of(number + place)
        requests.append(ToolRequest(call_id, call.name, arguments, call.fields.value()))
    return requests, alone


def _objects_in(text: str) -> list[dict[str, Any]]:
    """Return the objects that a text consists of, one behind the other; none if
    anything else is in it.
    """
    objects: list[dict[str, Any]] = []
    at = 0
    text = text.strip()
    while at < len(text):
        try:
            value, at = decode(text, at)
        except Unreadable:
            return []
        if not isinstance(value, dict):
            return []
        objects.append(value)
        while at < len(text) and text[at].isspace():
            at += 1
    return objects


def _arguments_in(text: str) -> Any:
    """Return the arguments of a call as JSON, also where the server has encoded them
    twice; else as written.
    """
    try:
        arguments = decode_whole(text.strip() or "{}")
        if isinstance(arguments, str):
            arguments = decode_whole(arguments)
    except Unreadable:
        return text
    return arguments
