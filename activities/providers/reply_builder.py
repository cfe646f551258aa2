"""A reply while it arrives."""

import time
from dataclasses import dataclass, field
from typing import Any

from activities.providers import structured
from activities.providers.errors import BadReply, ModelRefused, OutputCut, ReplyCut
from activities.providers.model import THINKING_TOKENS, ModelReply, ModelRequest, Stop, ToolRequest, parameters_of
from activities.providers.prices import with_cost
from workflows.plan.language.limits import Usage
from workflows.plan.language.text import without_thoughts
from workflows.plan.planner_format.json_text import NoJson, decode_whole
from workflows.plan.planner_format.written_calls import calls_of

LONGEST_TOKEN = 8
"""Bytes of a token, on average, in what is written with the longest."""
PACE_AFTER = 1.0


@dataclass(slots=True)
class Call:
    """A call of a tool in the making."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class ReplyBuilder:
    """Gathers the pieces of one reply; reports each to the request's listeners. `sent` is about how many tokens the
    request has, `wrapped` says that the schema given to the server has the wanted one inside.
    """

    request: ModelRequest
    sent: int
    wrapped: bool = False
    stop: Stop | None = None
    refusal: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    calls: dict[int, Call] = field(default_factory=dict)
    thinking: dict[int, dict[str, Any]] = field(default_factory=dict)
    _text: list[str] = field(default_factory=list)
    _bytes: int = 0
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
        call = self.calls.setdefault(index, Call())
        call.id = call.id or call_id
        call.name = call.name or name
        call.arguments += arguments

    def add_thought(self, piece: str) -> None:
        """Count a piece that is not part of the reply."""
        self._report_progress(piece)

    def _arrived(self, piece: str) -> None:
        if self._first is None:
            self._first = time.monotonic()
        self._report_progress(piece)

    def _report_progress(self, piece: str) -> None:
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        self._bytes += len(piece.encode("utf-8", "replace"))
        tokens, seconds = self._bytes // 4, now - self._began
        pace = f", {tokens / seconds:,.0f} a second" if seconds >= PACE_AFTER else ""
        self.request.progress(f"about {tokens:,} tokens so far{pace}")

    def is_too_long(self) -> bool:
        """Whether far more has come than was allowed: the server does not heed the limit, and the reply is cut here."""
        if self._bytes <= LONGEST_TOKEN * (self.request.max_output_tokens + THINKING_TOKENS):
            return False
        self.stop = "length"
        return True

    def reply(self) -> ModelReply:
        """Return the finished reply. Raises ModelRefused, OutputCut, ReplyCut, BadReply or SchemaMismatch."""
        text = self._said()
        calls = tuple(_tool_request(index, self.calls[index]) for index in sorted(self.calls))
        if not calls and self.request.role != "planner":
            text, calls = self._written(text)
        if self.refusal is not None:
            raise ModelRefused(f"{self.request.model} declined to answer: {self.refusal or text or 'without a word'}")
        if self.stop is None:
            raise ReplyCut(f"the reply of {self.request.model} ended in its middle", retryable=True)
        if calls and (not self.request.tools or self.request.role == "planner"):
            name = calls[0].name
            raise BadReply(f"{self.request.model} asks for the tool {name!r:.80}, and none was offered", retryable=True)
        schema = self.request.output_schema
        if self.stop == "length" and (calls or schema is not None or not text):
            cut_at = f"{self.usage().output_tokens:,} tokens"
            raise OutputCut(f"the reply of {self.request.model} was cut at {cut_at}; ask for less")
        if not text and not calls:
            what = "holds a thought and no answer" if self._text else "is empty"
            raise BadReply(f"the reply of {self.request.model} {what}", retryable=True)
        value: Any = text
        if schema is not None and not calls:
            value = structured.parse_json(text, schema, in_wrap=self.wrapped)
        return ModelReply(
            value,
            self.usage(),
            text=text,
            calls=calls,
            thinking=tuple(self.thinking[index] for index in sorted(self.thinking)),
            stop="tools" if calls else self.stop,
            first_token_ms=round(((self._first or self._sent) - self._sent) * 1000),
        )

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
        except NoJson as error:
            raise BadReply(f"the reply of {self.request.model} is no answer: {error}", retryable=True) from None
        return words, tuple(ToolRequest(f"call_{call.number - 1}", call.name, call.arguments) for call in calls)

    def usage(self) -> Usage:
        """Return what the server counted; what it did not, or only as it began, is estimated at three bytes a token.

        Before the first sign of a reply it is a call without tokens.
        """
        if not self._bytes and self.input_tokens is None:
            return Usage(calls=1)
        given = self.sent if self.input_tokens is None else self.input_tokens
        written = self.output_tokens
        if written is None or self.stop is None:
            written = max(written or 0, tokens_in(self._bytes))
        return with_cost(Usage(given, written, calls=1), self.request.model)


def tokens_in(size: int) -> int:
    """Return about how many tokens a text of so many bytes has."""
    return -(-size // 3)


def _tool_request(index: int, call: Call) -> ToolRequest:
    try:
        arguments = decode_whole(call.arguments.strip() or "{}")
    except NoJson:
        arguments = call.arguments
    return ToolRequest(call.id or f"call_{index}", call.name, arguments)
