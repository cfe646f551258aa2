"""Both wire formats as a server speaks them: requests read, replies written, streamed or not.

A stream is given as pairs: the text of an event, and whether it is a token.
"""

import json
from collections.abc import Iterator
from typing import Any

from sennit.activities.providers.model import tokens_of
from sennit.activities.providers.reply_builder import LEAST_SHARE
from sennit.testing.model_rules import Asked, Reply, cut

Json = dict[str, Any]


class BadRequest(Exception):
    """A request that the real server would refuse with 400. The text is its message."""


def text_of(content: Any) -> str:
    """Return the text of a message's content in any of its forms."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    text = ""
    for part in content:
        text += part.get("text") or text_of(part.get("content"))
    return text


def counted(reply: Reply, asked: Asked) -> tuple[int, int]:
    """Return the usage: as the reply says, else a word a token. Of long words it is three bytes a
    token, because Sennit believes no server that counts much less than that.
    """
    if reply.usage:
        return reply.usage
    texts = [reply.text]
    written = len(reply.words)
    for call in reply.calls:
        arguments = json.dumps(call.arguments)
        texts.append(arguments)
        written += len(arguments.split()) + 1
    estimated = tokens_of(*texts)
    if written * LEAST_SHARE < estimated:
        written = estimated
    return len(asked.text.split()), written


def _blocks_of(content: Any) -> list[Json]:
    """Return the blocks of a message of Anthropic's; a text alone is one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content)


def _written(arguments: Any) -> str:
    """Return the arguments of a call as a model writes them; a text stands for itself, so
    that it may be no JSON.
    """
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False)


class OpenAIFormat:
    """Chat completions."""

    def read(self, body: Json, headers: dict[str, str]) -> Asked:
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise BadRequest("messages: must be a non-empty list")
        known_calls: set[str] = set()
        system: list[str] = []
        turns: list[tuple[str, str]] = []
        for message in body["messages"]:
            role = message["role"]
            if role == "tool" and message.get("tool_call_id") not in known_calls:
                raise BadRequest(
                    "messages with role 'tool' must be a response to a preceding message with "
                    "'tool_calls'"
                )
            for call in message.get("tool_calls") or ():
                json.loads(call["function"]["arguments"])
                known_calls.add(call["id"])
            text = text_of(message.get("content"))
            if role == "system":
                system.append(text)
            else:
                turns.append((role, text))
        form = body.get("response_format") or {}
        tools = body.get("tools") or ()
        return Asked(
            format="openai",
            model=body["model"],
            system="\n".join(system),
            turns=tuple(turns),
            tools=tuple(tool["function"]["name"] for tool in tools),
            schema=form.get("json_schema", {}).get("schema"),
            stream=bool(body.get("stream")),
            headers=headers,
            body=body,
        )

    def whole(self, reply: Reply, asked: Asked, number: int) -> Json:
        message: Json = {
            "role": "assistant",
            "content": reply.text or None,
            "refusal": reply.refusal or None,
        }
        if reply.calls:
            message["tool_calls"] = [self._call(reply, index) for index in range(len(reply.calls))]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": self._finish(reply),
            "logprobs": None,
        }
        head = self._head(asked, number, "chat.completion")
        return {**head, "choices": [choice], "usage": self._usage(reply, asked)}

    def stream(self, reply: Reply, asked: Asked, number: int) -> Iterator[tuple[str, bool]]:
        head = self._head(asked, number, "chat.completion.chunk")

        def chunk(delta: Json, finish: str | None = None) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
            return self._event({**head, "choices": [choice]})

        yield chunk({"role": "assistant", "content": "", "refusal": None}), False
        for word in reply.thinking.split():
            yield chunk({"reasoning_content": f"{word} "}), True
        for word in reply.words:
            yield chunk({"content": word}), True
        if reply.refusal:
            yield chunk({"refusal": reply.refusal}), True
        for index in range(len(reply.calls)):
            call = self._call(reply, index)
            arguments = call["function"]["arguments"]
            call["function"]["arguments"] = ""
            yield chunk({"tool_calls": [{"index": index, **call}]}), True
            for piece in cut(arguments, reply.characters or 12):
                yield (
                    chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
                    True,
                )
        yield chunk({}, self._finish(reply)), False
        options = asked.body.get("stream_options") or {}
        if options.get("include_usage") and reply.fault != "no usage":
            yield self._event({**head, "choices": [], "usage": self._usage(reply, asked)}), False
        yield "data: [DONE]\n\n", False

    def error(self, reply: Reply) -> Json:
        kind = reply.code or "invalid_request_error"
        return {
            "error": {
                "message": reply.text,
                "type": kind,
                "param": None,
                "code": reply.code or None,
            }
        }

    def error_event(self, reply: Reply) -> str:
        return self._event(self.error(reply))

    def _event(self, data: Json) -> str:
        return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"

    def _head(self, asked: Asked, number: int, kind: str) -> Json:
        return {
            "id": f"chatcmpl-{number}",
            "object": kind,
            "created": 1_700_000_000,
            "model": asked.model,
        }

    def _call(self, reply: Reply, index: int) -> Json:
        call = reply.calls[index]
        function = {"name": call.name, "arguments": _written(call.arguments)}
        return {"id": call.id or f"call_{index + 1}", "type": "function", "function": function}

    def _finish(self, reply: Reply) -> str:
        if reply.stop == "length":
            return "length"
        if reply.calls:
            return "tool_calls"
        return "stop"

    def _usage(self, reply: Reply, asked: Asked) -> Json:
        read, written = counted(reply, asked)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


class AnthropicFormat:
    """Messages."""

    def read(self, body: Json, headers: dict[str, str]) -> Asked:
        if not isinstance(body.get("max_tokens"), int):
            raise BadRequest("max_tokens: Field required")
        turns: list[tuple[str, str]] = []
        open_calls: set[str] = set()
        known_calls: set[str] = set()
        last_role = ""
        for message in body["messages"]:
            role = message["role"]
            if role == last_role:
                raise BadRequest("messages: roles must alternate")
            last_role = role
            for block in _blocks_of(message["content"]):
                kind = block["type"]
                if kind == "tool_use":
                    if block["id"] in known_calls:
                        raise BadRequest("messages: `tool_use` ids must be unique")
                    known_calls.add(block["id"])
                    open_calls.add(block["id"])
                elif kind == "tool_result":
                    if block["tool_use_id"] not in open_calls:
                        raise BadRequest("unexpected `tool_use_id` found in `tool_result` blocks")
                    open_calls.discard(block["tool_use_id"])
                    turns.append(("tool", text_of(block.get("content"))))
                elif kind == "text":
                    turns.append((role, block["text"]))
                if kind in ("tool_use", "tool_result") and not body.get("tools"):
                    raise BadRequest(
                        "Requests which include `tool_use` or `tool_result` blocks must define "
                        "tools"
                    )
            if role == "user" and open_calls:
                raise BadRequest(
                    "`tool_use` ids were found without `tool_result` blocks immediately after"
                )
        form = (body.get("output_config") or {}).get("format") or {}
        return Asked(
            format="anthropic",
            model=body["model"],
            system=text_of(body.get("system")),
            turns=tuple(turns),
            tools=self._callable(body),
            schema=form.get("schema"),
            stream=bool(body.get("stream")),
            headers=headers,
            body=body,
        )

    def whole(self, reply: Reply, asked: Asked, number: int) -> Json:
        return self._head(asked, number) | {
            "content": list(self._blocks(reply)),
            "stop_reason": self._stop(reply),
            "usage": self._usage(reply, asked),
        }

    def stream(self, reply: Reply, asked: Asked, number: int) -> Iterator[tuple[str, bool]]:
        # The first event has the usage of the request, and the one before the
        # last that of the reply.
        read, written = counted(reply, asked)
        usage: Json = {}
        usage_at_end: Json = {}
        if reply.fault != "no usage":
            usage = {"usage": {"input_tokens": read, "output_tokens": 1}}
            usage_at_end = {"usage": {"output_tokens": written}}
        message = {**self._head(asked, number), "content": [], **usage}
        yield self._event("message_start", message=message), False
        yield self._event("ping"), False
        for index, block in enumerate(self._blocks(reply)):
            empty, deltas = self._streamed(block, reply)
            yield self._event("content_block_start", index=index, content_block=empty), False
            for delta in deltas:
                yield self._event("content_block_delta", index=index, delta=delta), True
            yield self._event("content_block_stop", index=index), False
        delta = {"stop_reason": self._stop(reply), "stop_sequence": None}
        yield self._event("message_delta", delta=delta, **usage_at_end), False
        yield self._event("message_stop"), False

    def error(self, reply: Reply) -> Json:
        return {
            "type": "error",
            "error": {"type": reply.code or "invalid_request_error", "message": reply.text},
        }

    def error_event(self, reply: Reply) -> str:
        return f"event: error\ndata: {json.dumps(self.error(reply))}\n\n"

    def _callable(self, body: Json) -> tuple[str, ...]:
        """Return the tools that the model may call in this turn."""
        choice = body.get("tool_choice") or {}
        if choice.get("type") == "none":
            return ()
        tools = body.get("tools") or ()
        return tuple(tool["name"] for tool in tools)

    def _event(self, kind: str, **fields: Any) -> str:
        data = json.dumps({"type": kind, **fields}, ensure_ascii=False)
        return f"event: {kind}\ndata: {data}\n\n"

    def _head(self, asked: Asked, number: int) -> Json:
        head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": asked.model}
        return head | {"stop_reason": None, "stop_sequence": None}

    def _blocks(self, reply: Reply) -> Iterator[Json]:
        if reply.thinking:
            yield {"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"}
        if reply.text or reply.refusal:
            yield {"type": "text", "text": reply.text or reply.refusal}
        for index, call in enumerate(reply.calls, 1):
            yield {
                "type": "tool_use",
                "id": call.id or f"toolu_{index}",
                "name": call.name,
                "input": call.arguments,
            }

    def _streamed(self, block: Json, reply: Reply) -> tuple[Json, list[Json]]:
        """Return a block as it starts, and the deltas that fill it."""
        if block["type"] == "thinking":
            words = block["thinking"].split()
            deltas = [{"type": "thinking_delta", "thinking": f"{word} "} for word in words]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, deltas
        if block["type"] == "text":
            words = [reply.refusal]
            if reply.text:
                words = reply.words
            return {**block, "text": ""}, [{"type": "text_delta", "text": word} for word in words]
        pieces = cut(_written(block["input"]), reply.characters or 12)
        return {**block, "input": {}}, [
            {"type": "input_json_delta", "partial_json": piece} for piece in pieces
        ]

    def _stop(self, reply: Reply) -> str:
        if reply.refusal:
            return "refusal"
        if reply.stop == "length":
            return "max_tokens"
        if reply.calls:
            return "tool_use"
        return "end_turn"

    def _usage(self, reply: Reply, asked: Asked) -> Json:
        read, written = counted(reply, asked)
        return {"input_tokens": read, "output_tokens": written}


Format = OpenAIFormat | AnthropicFormat
