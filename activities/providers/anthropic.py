"""Anthropic's Messages."""

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from sennit.activities.providers import structured
from sennit.activities.providers.call_arguments import CallArguments
from sennit.activities.providers.model import (
    MediaPart,
    Message,
    ModelRequest,
    Stop,
    ToolRequest,
    parameters_of,
)
from sennit.activities.providers.reply_builder import ReplyBuilder
from sennit.activities.providers.returned_fields import GatheredFields
from sennit.activities.providers.settings import Server
from sennit.activities.providers.wire_format import (
    LEAST_THINKING,
    NO_STREAM,
    NO_SYSTEM,
    NO_TOOLS,
    Without,
    count,
)
from sennit.workflows.plan.language.call_settings import Effort

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tools",
    "pause_turn": "pause",
}
_KEPT = {"type": "ephemeral"}
_PLACE = "_place"
"""The field of a kept thought that says behind how much of the turn it stands, if it is
not the beginning. It is not sent.
"""
_LONGEST = (
    (r"claude-3-(opus|sonnet|haiku)", 4_096),
    (r"claude-3-5", 8_192),
    (r"claude-3-7", 64_000),
    (r"claude-opus-4(-[01])?(-\d{8})?\Z", 32_000),
    (r"claude-(opus|sonnet|haiku)-4(-[0-5])?(-\d{8})?\Z", 64_000),
    (r"claude-", 128_000),
)
"""The longest replies of models, in tokens, by their names: every call must name a limit."""
_LONGEST_ELSEWHERE = 32_000
"""That of a model of another maker behind this format."""
_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576}
"""The tokens of thinking that an effort stands for, with models that take no words for it."""
_BY_BUDGET = re.compile(r"claude-(3-7|(opus|sonnet|haiku)-4(-[0-5])?(-\d{8})?\Z)")


class Anthropic:
    """The format. Without an `effort` thinking is left to the model's default; its blocks are kept
    for the next turn of a tool loop.
    """

    path: ClassVar[str] = "/v1/messages"
    models_path: ClassVar[str] = "/v1/models"
    schema: ClassVar[str] = "output_config"
    fields: ClassVar[frozenset[str]] = frozenset(("type", "content"))
    optional: ClassVar[Mapping[str, str]] = {
        "cache_control": "cache_control|cache control",
        "top_p": r"\btop_p\b",
        "temperature": r"temperature(?!.{0,200}\btop_p\b)",
        "effort": (
            r"\beffort\b|thinking\.(type|enabled|adaptive|disabled)|budget_tokens|(support"
            r"|adaptive) thinking"
        ),
        "stop": "stop_sequences",
        "output_config": "output_config|output_format|json_schema",
        "stream": NO_STREAM,
        "system": NO_SYSTEM,
        "tools": NO_TOOLS,
    }
    lacks: ClassVar[tuple[str, ...]] = ("seed",)

    def headers(self, server: Server) -> dict[str, str]:
        headers = {"anthropic-version": "2023-06-01"}
        if server.key:
            headers["x-api-key"] = server.key
        return headers

    def body(self, server: Server, request: ModelRequest, without: Without) -> dict[str, Any]:
        """Return the request."""
        del server
        settings = request.settings
        body: dict[str, Any] = {
            "model": request.model.partition(":")[2],
            "max_tokens": request.max_output_tokens or self.longest(request.model),
            "messages": _messages(request, without),
            "stream": "stream" not in without,
        }
        if request.system:
            body["system"] = request.system
        if "cache_control" not in without:
            _keep_prefix(body, loops=bool(request.callable or request.messages))
        for name in ("temperature", "top_p"):
            if getattr(settings, name) is not None and name not in without:
                body[name] = getattr(settings, name)
        if settings.stop is not None and "stop" not in without:
            body["stop_sequences"] = list(settings.stop)
        if settings.effort is not None and "effort" not in without:
            self._effort(body, settings.effort)
        self._tools(body, request)
        if request.output_schema is not None and self.schema not in without:
            schema = structured.closed_schema(structured.wrapped(request.output_schema))
            body.setdefault("output_config", {})["format"] = {
                "type": "json_schema",
                "schema": schema,
            }
        return body

    def limit_field(self, _: Server, __: Without) -> str:
        return "max_tokens"

    def longest(self, model: str) -> int:
        name = model.partition(":")[2]
        for pattern, tokens in _LONGEST:
            if re.match(pattern, name):
                return tokens
        return _LONGEST_ELSEWHERE

    def _effort(self, body: dict[str, Any], effort: Effort) -> None:
        """Ask for so much thinking. Older models want its tokens, which count as output,
        and newer ones a word.
        """
        if effort == "none":
            body["thinking"] = {"type": "disabled"}
        elif not _BY_BUDGET.match(body["model"]):
            body["thinking"] = {"type": "adaptive"}
            body["output_config"] = {"effort": effort}
        elif body["max_tokens"] > LEAST_THINKING:
            tokens = max(LEAST_THINKING, min(_BUDGETS[effort], body["max_tokens"] // 2))
            body["thinking"] = {"type": "enabled", "budget_tokens": tokens}

    def take(self, reply: ReplyBuilder, data: Any) -> bool:
        """Take an event by its type; unknown ones and pings are signs of life."""
        kind = data.get("type")
        if kind == "message_start":
            message = data.get("message") or {}
            self._usage(reply, message.get("usage") or {})
            reply.served_by(message.get("model"))
        elif kind == "content_block_start":
            self._begin_block(reply, data["index"], data["content_block"])
        elif kind == "content_block_delta":
            self._delta(reply, data["index"], data["delta"])
        elif kind == "message_delta":
            self._usage(reply, data.get("usage") or {})
            self._stop(reply, data["delta"].get("stop_reason"))
        elif kind == "message":  # the whole once more, or in the place of events
            self._repeated(reply, data)
        return bool(kind == "message_stop")

    def _tools(self, body: dict[str, Any], request: ModelRequest) -> None:
        """Name the tools; those of earlier turns must be named even where none
        may be called any more.
        """
        entries = request.callable
        if not entries:
            called: dict[str, None] = {}
            for message in request.messages:
                for call in message.calls:
                    called[call.name] = None
            if called:
                body["tool_choice"] = {"type": "none"}
                entries = tuple({"name": name} for name in called)
        if entries:
            body["tools"] = list(map(_tool, entries))

    def take_whole(self, reply: ReplyBuilder, data: Any) -> None:
        content = data["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for index, block in enumerate(content):
            self._block(reply, index, block)
        self._usage(reply, data.get("usage") or {})
        reply.served_by(data.get("model"))
        self._stop(reply, data.get("stop_reason"))

    def _repeated(self, reply: ReplyBuilder, message: dict[str, Any]) -> None:
        if not reply.begun:
            self.take_whole(reply, message)
            return
        text = ""
        for block in message.get("content") or ():
            if block.get("type") == "text":
                text += block.get("text") or ""
        reply.complete_text(text)
        self._stop(reply, message.get("stop_reason"))

    def _begin_block(self, reply: ReplyBuilder, index: int, block: dict[str, Any]) -> None:
        """Take the beginning of a block. It is empty, or some gateways repeat
        it in the first delta.
        """
        kind = block.get("type")
        text = block.get("text") or block.get("thinking") or ""
        if kind == "tool_use" and block.get("input"):
            text = json.dumps(block["input"], ensure_ascii=False)
        if text:
            reply.begun_blocks[index] = text
        self._block(reply, index, block)

    def _block(self, reply: ReplyBuilder, index: int, block: dict[str, Any]) -> None:
        kind = block["type"]
        if kind == "text":
            reply.add_text(block.get("text") or "")
        elif kind == "tool_use":
            arguments = ""
            if block.get("input"):  # complete here only when nothing is streamed
                arguments = json.dumps(block["input"], ensure_ascii=False)
            call_id = str(block.get("id") or "")
            reply.add_call(index, name=block["name"], call_id=call_id, arguments=arguments)
        elif kind in ("thinking", "redacted_thinking"):
            if reply.begun:
                block = {**block, _PLACE: reply.place}
            reply.thinking[index] = GatheredFields(block)

    def _delta(self, reply: ReplyBuilder, index: int, delta: dict[str, Any]) -> None:
        kind = delta["type"]
        began = reply.begun_blocks.pop(index, "")
        if kind == "text_delta":
            reply.add_text(delta["text"].removeprefix(began))
        elif (
            kind == "input_json_delta" and index in reply.calls
        ):  # others are of calls that the server makes itself
            if delta["partial_json"] and (began or reply.calls[index].arguments.is_empty):
                reply.calls[index].arguments = CallArguments()
            elif began:
                reply.begun_blocks[index] = began
            reply.add_call(index, arguments=delta["partial_json"])
        elif kind in ("thinking_delta", "signature_delta") and index in reply.thinking:
            name = kind.removesuffix("_delta")
            piece = delta[name]
            if name == "thinking":
                piece = piece.removeprefix(began)
            reply.thinking[index].join(name, piece)
            reply.add_thought(delta.get("thinking", ""))

    def _stop(self, reply: ReplyBuilder, reason: str | None) -> None:
        if reason == "refusal":
            reply.refusal = reply.refusal or ""
        if reason:
            reply.end(reason, _STOPS)

    def _usage(self, reply: ReplyBuilder, usage: dict[str, Any]) -> None:
        """Cached input is input: its price is another, but it fills the context as well. The last
        event counts all of it once more; what it leaves out is as the first one has it.
        """
        new = count(usage.get("input_tokens"), None)
        if new is not None:
            kept = count(usage.get("cache_creation_input_tokens"), reply.kept_tokens) or 0
            read = count(usage.get("cache_read_input_tokens"), reply.cached_tokens) or 0
            reply.input_tokens = new + kept + read
            reply.kept_tokens = kept
            reply.cached_tokens = read
        reply.output_tokens = count(usage.get("output_tokens"), reply.output_tokens)


def _keep_prefix(body: dict[str, Any], *, loops: bool) -> None:
    """Have the server keep the beginning of the prompt: the tools and the system prompt, which
    other calls have too, and in a tool loop all turns so far, with which the next one begins.
    """
    if "system" in body:
        body["system"] = [{"type": "text", "text": body["system"], "cache_control": _KEPT}]
    if loops:
        blocks = body["messages"][-1]["content"]
        blocks[-1] = {**blocks[-1], "cache_control": _KEPT}


def _messages(request: ModelRequest, without: Without) -> list[dict[str, Any]]:
    """Return the turns; neighbours of one role are one turn, as the API wants the
    results of parallel calls.
    """
    prompt = request.prompt
    if request.output_schema is not None and Anthropic.schema in without:
        prompt = f"{prompt}\n\n{structured.schema_instruction(request.output_schema)}"
    asked = Message("user", prompt)
    turns: list[dict[str, Any]] = []
    for message in (*request.history, asked, *request.messages):
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        # The provider advises to show images and documents before what is asked of them.
        if message is asked:
            blocks = [*map(_media_block, request.media), *blocks]
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _media_block(media: MediaPart) -> dict[str, Any]:
    source = {"type": "base64", "media_type": media.content_type, "data": media.data}
    if media.kind == "image":
        return {"type": "image", "source": source}
    block = {"type": "document", "source": source}
    if media.name:
        block["title"] = media.name
    return block


def _blocks(message: Message) -> list[dict[str, Any]]:
    shown = [_media_block(media) for media in message.media]
    if message.role == "tool":
        content: Any = message.text
        if shown:
            content = [{"type": "text", "text": message.text}, *shown]
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": content}]
    return [*shown, *_turn_blocks(message)]


def _turn_blocks(message: Message) -> list[dict[str, Any]]:
    """Return the blocks of a turn in their order: the API refuses a thought that no longer stands
    where the model has had it.
    """
    blocks: list[dict[str, Any]] = []
    said = made = 0
    for thought in message.thinking:
        characters, calls = thought.get(_PLACE) or (0, 0)
        blocks += _blocks_between(message, (said, made), (characters, calls))
        said, made = characters, calls
        blocks.append({name: value for name, value in thought.items() if name != _PLACE})
    return blocks + _blocks_between(message, (said, made), (len(message.text), len(message.calls)))


def _blocks_between(
    message: Message, begin: tuple[int, int], end: tuple[int, int]
) -> list[dict[str, Any]]:
    """Return the text and the calls of a turn between two places."""
    text = message.text[begin[0] : end[0]]
    blocks: list[dict[str, Any]] = []
    if text:
        blocks.append({"type": "text", "text": text})
    blocks += map(_call_block, message.calls[begin[1] : end[1]])
    return blocks


def _call_block(call: ToolRequest) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def _tool(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": entry["name"],
        "description": entry.get("description", ""),
        "input_schema": parameters_of(entry),
    }
