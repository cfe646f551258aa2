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
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part.get("text") or text_of(part.get("content")) for part in content)


def counted(reply: Reply, asked: Asked) -> tuple[int, int]:
    """Return the usage: as the reply says, else a word a token. Of long words it is three bytes a token, because Sennit
    believes no server that counts much less than that.
    """
    texts = [reply.text, *(json.dumps(call.arguments) for call in reply.calls)]
    written = len(reply.words) + sum(len(text.split()) + 1 for text in texts[1:])
    estimated = tokens_of(*texts)
    written = estimated if written * LEAST_SHARE < estimated else written
    return reply.usage or (len(asked.text.split()), written)


class OpenAIFormat:
    """Chat completions."""

    def read(self, body: Json, headers: dict[str, str]) -> Asked:
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise BadRequest("messages: must be a non-empty list")
        asked_for: set[str] = set()
        turns: list[tuple[str, str]] = []
        for message in body["messages"]:
            if message["role"] == "tool" and message.get("tool_call_id") not in asked_for:
                raise BadRequest(
                    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
                )
            for call in message.get("tool_calls") or ():
                json.loads(call["function"]["arguments"])
                asked_for.add(call["id"])
            turns.append((message["role"], text_of(message.get("content"))))
        form = body.get("response_format") or {}
        return Asked(
            format="openai",
            model=body["model"],
            system="\n".join(text for role, text in turns if role == "system"),
            turns=tuple(turn for turn in turns if turn[0] != "system"),
            tools=tuple(tool["function"]["name"] for tool in body.get("tools") or ()),
            schema=form.get("json_schema", {}).get("schema"),
            stream=bool(body.get("stream")),
            headers=headers,
            body=body,
        )

    def whole(self, reply: Reply, asked: Asked, number: int) -> Json:
        message: Json = {"role": "assistant", "content": reply.text or None, "refusal": reply.refusal or None}
        if reply.calls:
            message["tool_calls"] = [self._call(reply, index) for index in range(len(reply.calls))]
        choice = {"index": 0, "message": message, "finish_reason": self._finish(reply), "logprobs": None}
        return self._head(asked, number, "chat.completion") | {"choices": [choice], "usage": self._usage(reply, asked)}

    def stream(self, reply: Reply, asked: Asked, number: int) -> Iterator[tuple[str, bool]]:
        def chunk(delta: Json, finish: str | None = None) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
            return self._event(self._head(asked, number, "chat.completion.chunk") | {"choices": [choice]})

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
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), True
        yield chunk({}, self._finish(reply)), False
        if (asked.body.get("stream_options") or {}).get("include_usage") and reply.fault != "no usage":
            head = self._head(asked, number, "chat.completion.chunk")
            yield self._event(head | {"choices": [], "usage": self._usage(reply, asked)}), False
        yield "data: [DONE]\n\n", False

    def error(self, reply: Reply) -> Json:
        code = reply.code or None
        return {"error": {"message": reply.text, "type": code or "invalid_request_error", "param": None, "code": code}}

    def error_event(self, reply: Reply) -> str:
        return self._event(self.error(reply))

    def _event(self, data: Json) -> str:
        return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"

    def _head(self, asked: Asked, number: int, kind: str) -> Json:
        return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_700_000_000, "model": asked.model}

    def _call(self, reply: Reply, index: int) -> Json:
        call = reply.calls[index]
        written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
        function = {"name": call.name, "arguments": written}
        return {"id": call.id or f"call_{index + 1}", "type": "function", "function": function}

    def _finish(self, reply: Reply) -> str:
        return "length" if reply.stop == "length" else "tool_calls" if reply.calls else "stop"

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
        before = ""
        for message in body["messages"]:
            if message["role"] == before:
                raise BadRequest("messages: roles must alternate")
            before = message["role"]
            content = message["content"]
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if block["type"] == "tool_use":
                    if block["id"] in known_calls:
                        raise BadRequest("messages: `tool_use` ids must be unique")
                    known_calls.add(block["id"])
                    open_calls.add(block["id"])
                elif block["type"] == "tool_result":
                    if block["tool_use_id"] not in open_calls:
                        raise BadRequest("unexpected `tool_use_id` found in `tool_result` blocks")
                    open_calls.discard(block["tool_use_id"])
                    turns.append(("tool", text_of(block.get("content"))))
                elif block["type"] == "text":
                    turns.append((message["role"], block["text"]))
                if block["type"] in ("tool_use", "tool_result") and not body.get("tools"):
                    raise BadRequest("Requests which include `tool_use` or `tool_result` blocks must define tools")
            if message["role"] == "user" and open_calls:
                raise BadRequest("`tool_use` ids were found without `tool_result` blocks immediately after")
        form = (body.get("output_config") or {}).get("format") or {}
        return Asked(
            format="anthropic",
            model=body["model"],
            system=text_of(body.get("system")),
            turns=tuple(turns),
            tools=() if (body.get("tool_choice") or {}).get("type") == "none" else self._named(body),
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
        read, written = counted(reply, asked)
        usage = {} if reply.fault == "no usage" else {"usage": {"input_tokens": read, "output_tokens": 1}}
        yield self._event("message_start", message=self._head(asked, number) | {"content": []} | usage), False
        yield self._event("ping"), False
        for index, block in enumerate(self._blocks(reply)):
            empty, deltas = self._streamed(block, reply)
            yield self._event("content_block_start", index=index, content_block=empty), False
            for delta in deltas:
                yield self._event("content_block_delta", index=index, delta=delta), True
            yield self._event("content_block_stop", index=index), False
        counted_end = {} if reply.fault == "no usage" else {"usage": {"output_tokens": written}}
        delta = {"stop_reason": self._stop(reply), "stop_sequence": None}
        yield self._event("message_delta", delta=delta, **counted_end), False
        yield self._event("message_stop"), False

    def error(self, reply: Reply) -> Json:
        return {"type": "error", "error": {"type": reply.code or "invalid_request_error", "message": reply.text}}

    def error_event(self, reply: Reply) -> str:
        return f"event: error\ndata: {json.dumps(self.error(reply))}\n\n"

    def _named(self, body: Json) -> tuple[str, ...]:
        return tuple(tool["name"] for tool in body.get("tools") or ())

    def _event(self, kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n"

    def _head(self, asked: Asked, number: int) -> Json:
        head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": asked.model}
        return head | {"stop_reason": None, "stop_sequence": None}

    def _blocks(self, reply: Reply) -> Iterator[Json]:
        if reply.thinking:
            yield {"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"}
        if reply.text or reply.refusal:
            yield {"type": "text", "text": reply.text or reply.refusal}
        for index, call in enumerate(reply.calls, 1):
            yield {"type": "tool_use", "id": call.id or f"toolu_{index}", "name": call.name, "input": call.arguments}

    def _streamed(self, block: Json, reply: Reply) -> tuple[Json, list[Json]]:
        """Return a block as it starts, and the deltas that fill it."""
        if block["type"] == "thinking":
            parts = [{"type": "thinking_delta", "thinking": f"{word} "} for word in block["thinking"].split()]
            return block | {"thinking": "", "signature": ""}, [
                *parts,
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        if block["type"] == "text":
            words = reply.words if reply.text else [reply.refusal]
            return block | {"text": ""}, [{"type": "text_delta", "text": word} for word in words]
        read = block["input"]
        written = read if isinstance(read, str) else json.dumps(read, ensure_ascii=False)
        pieces = cut(written, reply.characters or 12)
        return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]

    def _stop(self, reply: Reply) -> str:
        if reply.refusal:
            return "refusal"
        return "max_tokens" if reply.stop == "length" else "tool_use" if reply.calls else "end_turn"

    def _usage(self, reply: Reply, asked: Asked) -> Json:
        read, written = counted(reply, asked)
        return {"input_tokens": read, "output_tokens": written}


Format = OpenAIFormat | AnthropicFormat
