"""OpenAI's chat completions, as they are served by OpenAI, vLLM, Ollama,
llama.cpp and most gateways.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sennit.activities.providers import structured
from sennit.activities.providers.call_arguments import CallArguments, is_object
from sennit.activities.providers.model import (
    MediaPart,
    Message,
    ModelRequest,
    Stop,
    ToolRequest,
    function_of,
)
from sennit.activities.providers.reply_builder import Call, ReplyBuilder
from sennit.activities.providers.returned_fields import GatheredFields
from sennit.activities.providers.settings import Server
from sennit.activities.providers.wire_format import (
    NO_SCHEMA,
    NO_STREAM,
    NO_SYSTEM,
    NO_TOOLS,
    Without,
    count,
    price,
)

_STOPS: dict[str, Stop] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "stop_sequence", "end_turn", "complete"), "end"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), "tools"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), "length"),
}
"""Of OpenAI, and of the engines and gateways that pass on their own words. `abort`, `error`,
`repetition`, `insufficient_system_resource` and whatever comes later are no end of a reply.
"""
_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
_FILTERS = ("content_filter", "safety", "prohibited_content", "blocklist", "spii")
"""Of OpenAI, and of Gemini, whose endpoint in this format passes on its own words. Its `RECITATION`
may be another one the next time, so that it is no refusal.
"""
_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop",
    "seed": "seed",
    "effort": "reasoning_effort",
}
"""How the format calls a setting."""
_MESSAGE_FIELDS = frozenset(
    (
        "role",
        "content",
        "tool_calls",
        "function_call",
        "refusal",
        "name",
        "annotations",
        "audio",
        "logprobs",
    )
)
_CALL_FIELDS = frozenset(("id", "type", "index", "function", "name", "arguments"))
_TEXT_PARTS = ("text", "output_text")


class OpenAI:
    """The format. Servers differ in what they leave out and what they refuse;
    every known way is read.
    """

    path: ClassVar[str] = "/chat/completions"
    fields: ClassVar[frozenset[str]] = frozenset(
        ("choices", "usage", "x_groq", "prompt_filter_results")
    )
    models_path: ClassVar[str] = "/models"
    schema: ClassVar[str] = "response_format"
    optional: ClassVar[Mapping[str, str]] = {
        "stream_options": "stream_options|include_usage",
        "seed": r"\bseed\b",
        "top_p": r"\btop_p\b",
        "temperature": r"temperature(?!.{0,200}\btop_p\b)",
        "effort": r"reasoning.?effort|\beffort\b",
        "stop": r"\bstop\b",
        "max_tokens": "max_tokens|max_completion_tokens",
        "response_format": NO_SCHEMA,
        "stream": NO_STREAM,
        "system": NO_SYSTEM,
        "tools": NO_TOOLS,
    }
    lacks: ClassVar[tuple[str, ...]] = ()

    def headers(self, server: Server) -> dict[str, str]:
        if not server.key:
            return {}
        return {"authorization": f"Bearer {server.key}"}

    def body(self, server: Server, request: ModelRequest, without: Without) -> dict[str, Any]:
        """Return the request. OpenAI's own server wants `max_completion_tokens`, others know
        `max_tokens` alone; either is exchanged for the other once it was refused.
        """
        body: dict[str, Any] = {
            "model": request.model.partition(":")[2],
            "messages": _messages(request, without),
            "stream": "stream" not in without,
        }
        if request.max_output_tokens is not None:
            body[self.limit_field(server, without)] = request.max_output_tokens
        for name, value in request.settings.model_dump(include=set(_SETTINGS)).items():
            if name not in without:
                body[_SETTINGS[name]] = value
        if body["stream"] and "stream_options" not in without:
            body["stream_options"] = {"include_usage": True}
        if request.callable:
            body["tools"] = [
                {"type": "function", "function": function_of(entry)} for entry in request.callable
            ]
        if request.output_schema is not None and self.schema not in without:
            schema = structured.wrapped(request.output_schema)
            # It holds replies to strict schemas alone.
            if request.form is not None and server.official:
                schema = structured.strict_schema(schema)
            form = {"name": "output", "schema": schema, "strict": structured.is_strict(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body

    def limit_field(self, server: Server, without: Without) -> str:
        wants_other = "max_tokens" in without
        if server.official != wants_other:
            return "max_completion_tokens"
        return "max_tokens"

    def longest(self, _model: str) -> int | None:
        return None

    def take(self, reply: ReplyBuilder, data: Any) -> bool:
        """Take a chunk. The stream ends with `[DONE]`, which is no JSON and never comes here."""
        self._usage(reply, data.get("usage"))
        groq = data.get("x_groq")
        if isinstance(groq, dict):
            self._usage(reply, groq.get("usage"))
        reply.served_by(data.get("model"))
        for choice in data.get("choices") or ():
            # One choice was asked for. Its index is 0, with some servers another one, or
            # another than its thought's.
            index = choice.get("index") or 0
            if reply.choice is None or not reply.begun:
                reply.choice = index
            if index == reply.choice:
                self._choice(reply, choice)
        return False

    def take_whole(self, reply: ReplyBuilder, data: Any) -> None:
        """Take a completion; its message has the form of a chunk's delta."""
        self.take(reply, {**data, "choices": data["choices"]})

    def _choice(self, reply: ReplyBuilder, choice: dict[str, Any]) -> None:
        """Take a piece of the reply. The last one may hold the whole message
        beside it, or in its place.
        """
        self._usage(reply, choice.get("usage"))
        delta, message = choice.get("delta"), choice.get("message")
        reason = choice.get("finish_reason")
        if delta and reason and reply.is_repeated(_text_in(delta)):
            message, delta = delta, None
        if delta:
            self._message(reply, delta)
        if message and reply.begun:
            self._repeated(reply, message)
        elif message:
            self._message(reply, message)
        if reason and not message and not _text_in(delta or {}):
            reply.drop_repeated()
        self._stop(reply, reason)

    def _message(self, reply: ReplyBuilder, message: dict[str, Any]) -> None:
        reply.add_text(_text_in(message))
        thought = message.get("reasoning_content") or message.get("reasoning")
        if thought and not isinstance(thought, str):
            thought = json.dumps(thought)
        if thought:
            reply.add_thought(thought)
        self._fields(reply, message)
        if message.get("refusal"):
            reply.refusal = f"{reply.refusal or ''}{message['refusal']}"
        pieces = message.get("tool_calls") or ()
        for number, piece in enumerate(pieces):
            # Several without an index are known by their places in the list.
            if len(pieces) > 1 and piece.get("index") is None:
                piece = {**piece, "index": ("place", number)}
            self._call(reply, piece)
        function = message.get("function_call")  # as servers had it before there were tools
        if function:
            self._call(reply, {"index": "function", "function": function})

    def _repeated(self, reply: ReplyBuilder, message: dict[str, Any]) -> None:
        """Take what the whole message has beyond the pieces that have come before it."""
        reply.complete_text(_text_in(message))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or call
            arguments = _written(function["arguments"])
            if not reply.has_call(_id_in(call), function.get("name") or "", arguments):
                self._call(reply, {**call, "index": ("repeated", call.get("index"))})

    def _fields(self, reply: ReplyBuilder, message: dict[str, Any]) -> None:
        """Keep what else the server has sent with the turn: it may want that back."""
        if _MESSAGE_FIELDS.issuperset(message):
            return
        for name, value in message.items():
            if name not in _MESSAGE_FIELDS and value:
                reply.thinking.setdefault(0, GatheredFields()).add(name, value)

    def _call(self, reply: ReplyBuilder, piece: dict[str, Any]) -> None:
        """Take a piece of a call. Servers that give no index, or one index to all calls, begin each
        with its name, and with an id of its own or once the arguments of the one before are whole.
        """
        function = piece.get("function") or piece
        name = function.get("name") or ""
        call_id = _id_in(piece)
        arguments = _written(function.get("arguments") or "")
        index = piece.get("index")

        # The call that a piece of this index has gone to so far.
        place = reply.places.get(index)
        if call_id and (place is None or reply.calls[place].id != call_id):
            # An id says more than an index, which some servers leave out or give to all calls.
            place = _place_of(reply, call_id, name, place)
        if place is None and reply.calls and not (call_id or name):
            latest = max(reply.calls)
            if not reply.calls[latest].arguments:
                place = latest  # a call has begun at one index, and its arguments come at the next

        # The piece goes on with that call, or begins another one.
        if place is None:
            place = len(reply.calls)
        else:
            begun = reply.calls[place]
            if _is_rest_of_name(reply.request, begun, name):
                begun.name += name
            elif name and _is_another(begun, name, call_id, arguments):
                place = len(reply.calls)
            elif arguments and begun.arguments.is_empty:  # a gateway has begun with an empty object
                begun.arguments = CallArguments()
        reply.places[index] = place
        reply.places[None] = place  # a piece without an index goes on with the call before it
        reply.add_call(place, name=name, call_id=call_id, arguments=arguments)
        for key, value in piece.items():
            if key not in _CALL_FIELDS and value and piece is not function:
                reply.calls[place].fields.add(key, value)

    def _stop(self, reply: ReplyBuilder, reason: str | None) -> None:
        if reason and reason.lower() in _FILTERS:
            reply.refusal = reply.refusal or "stopped by the server's content filter"
        if reason:
            reply.end(reason, _STOPS)

    def _usage(self, reply: ReplyBuilder, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        reply.input_tokens = count(usage.get("prompt_tokens"), reply.input_tokens)
        reply.output_tokens = count(usage.get("completion_tokens"), reply.output_tokens)
        reply.cost = price(usage.get("cost"), reply.cost)
        reply.cached_tokens = _cached(usage, reply.cached_tokens)
        if reply.output_tokens is None or reply.input_tokens is None:
            return

        # Some servers leave thoughts out of what they count as output: then there are more of
        # them, or the sum is more.
        whole = count(usage.get("total_tokens"), 0) or 0
        thoughts = 0
        details = usage.get("completion_tokens_details")
        if isinstance(details, dict):
            thoughts = count(details.get("reasoning_tokens"), 0) or 0
        written = reply.output_tokens
        if thoughts > written:
            written += thoughts
        reply.output_tokens = max(written, whole - reply.input_tokens)


def _cached(usage: dict[str, Any], before: int) -> int:
    """Return how much of the prompt came out of the cache: as OpenAI says it, Moonshot or
    DeepSeek.
    """
    cached = count(usage.get("cached_tokens"), None)
    details = usage.get("prompt_tokens_details")
    if isinstance(details, dict):
        cached = count(details.get("cached_tokens"), cached)
    if cached is None:
        cached = count(usage.get("prompt_cache_hit_tokens"), before)
    return cached or 0


def _messages(request: ModelRequest, without: Without) -> list[dict[str, Any]]:
    prompt = request.prompt
    if request.output_schema is not None and OpenAI.schema in without:
        prompt = f"{prompt}\n\n{structured.schema_instruction(request.output_schema)}"
    messages: list[dict[str, Any]] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    messages += [_turn(turn, without) for turn in request.history]
    asked: dict[str, Any] = {"role": "user", "content": prompt}
    if request.media:
        asked["content"] = [{"type": "text", "text": prompt}, *map(_part, request.media)]
    messages.append(asked)
    messages += _later(request.messages, without)
    return messages


def _later(messages: Sequence[Message], without: Without) -> list[dict[str, Any]]:
    """Return the turns after the prompt. The result of a tool is text in this format, so what is to
    be seen of the results of one turn is shown by a user behind them.
    """
    turns: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            turns.append(_turn(message, without))
            if message.media:
                shown.append(
                    {"type": "text", "text": f"What the call {message.call_id} has returned:"}
                )
                shown += map(_part, message.media)
            continue
        if shown:
            turns.append({"role": "user", "content": shown})
            shown = []
        turns.append(_turn(message, without))
    if shown:
        turns.append({"role": "user", "content": shown})
    return turns


def _part(media: MediaPart) -> dict[str, Any]:
    """Return media as a part of a turn: a file is a PDF alone, and sound has its
    format instead of its type.
    """
    if media.kind == "audio":
        return {
            "type": "input_audio",
            "input_audio": {"data": media.data, "format": _SOUNDS[media.content_type]},
        }
    url = f"data:{media.content_type};base64,{media.data}"
    if media.kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": media.name or "document.pdf", "file_data": url}}


def _turn(message: Message, without: Without) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    turn: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.media:
        turn["content"] = [{"type": "text", "text": message.text}, *map(_part, message.media)]
    for fields in message.thinking:
        turn |= _sent_fields(fields, without)
    if message.calls:
        turn["tool_calls"] = [_called(call, without) for call in message.calls]
    return turn


def _sent_fields(fields: Mapping[str, Any], without: Without) -> dict[str, Any]:
    """Return the fields that a server has given and is sent again."""
    return {name: value for name, value in fields.items() if name not in without}


def _called(call: ToolRequest, without: Without) -> dict[str, Any]:
    function = {"name": call.name, "arguments": _written(call.arguments)}
    fields = _sent_fields(call.fields, without)
    return {"id": call.id, "type": "function", "function": function, **fields}


def _text_in(message: dict[str, Any]) -> str:
    """Return the text of a message: of a list of parts, what is neither a
    thought nor of another kind.
    """
    content = message.get("content")
    if isinstance(content, list):
        text = ""
        for part in content:
            if isinstance(part, dict) and part.get("type", "text") in _TEXT_PARTS:
                text += part.get("text") or ""
        return text
    if isinstance(content, dict):  # JSON that the server has read already
        return json.dumps(content, ensure_ascii=False)
    return content or ""


def _id_in(piece: dict[str, Any]) -> str:
    """Return the id of a call, which some servers give as a number."""
    return str(piece.get("id") or "")


def _place_of(reply: ReplyBuilder, call_id: str, name: str, place: int | None) -> int | None:
    """Return where a call with this id and name has come already, else the `place` of its index:
    some servers send it once more at another index.
    """
    for known, call in reply.calls.items():
        if call.id == call_id and name in ("", call.name):
            return known
    return place


def _is_rest_of_name(request: ModelRequest, call: Call, name: str) -> bool:
    """Whether a name goes on with the one that a call has so far, which is no tool's."""
    if not name or call.arguments:
        return False
    known = [entry["name"] for entry in request.callable]
    if call.name in known:
        return False
    return f"{call.name}{name}" in known


def _is_another(call: Call, name: str, call_id: str, arguments: str) -> bool:
    """Whether a piece with a name begins another call than this one. Some servers repeat the name
    with each piece, and some give each piece an id of its own.
    """
    if call_id and call_id == call.id:
        return False
    if not call.name:  # the name comes behind what the call began with
        return bool(call_id and call.id) or bool(arguments and call.arguments.whole)
    if name != call.name:
        return True
    if call_id and call.id:
        return not call.arguments or call.arguments.whole
    if call.arguments.is_empty:  # a gateway may begin so, and the arguments come behind it
        return is_object(arguments)
    return call.arguments.whole


def _written(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False)
