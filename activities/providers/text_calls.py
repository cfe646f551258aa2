"""Tools for a model whose server takes none: told in words, called and answered as text."""

import json
from dataclasses import replace

from sennit.activities.providers.model import Message, ModelRequest, function_of

_HOW = """\
You may call these functions, any number of them in one reply:
<tools>
{tools}
</tools>

Write each call as JSON between two tags, on lines of its own. The results come back to you. Without a call, your reply
is the answer.
<tool_call>
{{"name": "NAME", "arguments": {{...}}}}
</tool_call>"""  # noqa: E501


def in_text(request: ModelRequest) -> ModelRequest:
    """Return a request whose tools, and the calls and results of earlier
    turns, stand in its texts.
    """
    messages: list[Message] = []
    for message in map(_in_text, request.messages):
        if messages and message.role == messages[-1].role == "user":
            earlier = messages.pop()
            shown = (*earlier.media, *message.media)
            message = Message("user", f"{earlier.text}\n{message.text}", media=shown)
        messages.append(message)
    request = replace(request, messages=tuple(messages))
    if not request.callable:
        return request
    tools = [json.dumps(function_of(entry), ensure_ascii=False) for entry in request.callable]
    system = _HOW.format(tools="\n".join(tools))
    if request.system:
        system = f"{request.system}\n\n{system}"
    return replace(request, tools=(), system=system)


def _in_text(message: Message) -> Message:
    if message.role == "tool":
        return Message(
            "user", f"<tool_response>\n{message.text}\n</tool_response>", media=message.media
        )
    parts: list[str] = []
    if message.text:
        parts.append(message.text)
    for call in message.calls:
        body = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
        parts.append(f"<tool_call>\n{body}\n</tool_call>")
    return Message(message.role, "\n".join(parts))
