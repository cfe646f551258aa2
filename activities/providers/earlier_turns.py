"""Earlier turns of a tool loop as every server takes them.

A model may name a tool that no server allows, or write arguments that are no JSON, and the run
tells it so in the result of the call. But many servers read the turns before a call more strictly
than they read a reply: they refuse the model's own words, and go on refusing them until the loop
fails. So what they would refuse is sent in a form that they take. The transcript keeps the turn as
it came.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sennit.activities.limits import MAX_SENT_NAME
from sennit.activities.providers.model import Message, ModelRequest, ToolRequest, call_id_of

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


def sendable(request: ModelRequest) -> ModelRequest:
    """Return the request with earlier turns that no server refuses for their form."""
    ids = _new_ids(request.messages, request.model)
    messages: list[Message] = []
    for message in request.messages:
        text = message.text
        if message.calls and not text.strip():
            text = ""  # Anthropic's API refuses a text of blanks alone
        calls = tuple(_sendable_call(call, ids) for call in message.calls)
        call_id = ids.get(message.call_id, message.call_id)
        messages.append(replace(message, text=text, calls=calls, call_id=call_id))
    return replace(request, messages=tuple(messages))


def _sendable_call(call: ToolRequest, ids: dict[str, str]) -> ToolRequest:
    """Return a call with a name that servers allow, and with an object as its arguments: vLLM and
    llama.cpp read them with a template that takes nothing else.
    """
    name = _NOT_IN_NAMES.sub("_", call.name)[:MAX_SENT_NAME] or "_"
    arguments = call.arguments
    if not isinstance(arguments, dict):
        arguments = {"arguments": arguments}
    return replace(call, id=ids.get(call.id, call.id), name=name, arguments=arguments)


def _new_ids(messages: Sequence[Message], model: str) -> dict[str, str]:
    """Return new ids for the calls that another model has made, each by the id that it had. Servers
    have rules of their own for them: Mistral wants nine letters and digits, OpenAI takes at most 40
    characters, and Anthropic no colon. A model's own ids go back as they came.
    """
    own: set[str] = set()
    foreign: list[str] = []
    for message in messages:
        names = [call.id for call in message.calls]
        if message.origin in ("", model):
            own.update(names)
        else:
            foreign += names
    new: dict[str, str] = {}
    number = 0
    for name in foreign:
        while call_id_of(number) in own:
            number += 1
        new[name] = call_id_of(number)
        number += 1
    return new
