"""Tools of a list that are nested too deep to be read, found without reading them.

The JSON reader of the SDK refuses a message of more than some 200 levels, and with it
every tool of the server.
"""

import re
from dataclasses import dataclass
from typing import Final

from sennit.activities.limits import MAX_RESULT_LEVELS

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]]', re.DOTALL)
_NAME: Final = re.compile(rb'"name"\s*:\s*"([^"\\]{1,200})"')
_KEY_LEVEL: Final = 2  # of `tools`, a field of the result, which is a field of the message
_TOOL_LEVEL: Final = 4
_LEVELS: Final = _TOOL_LEVEL + 1 + MAX_RESULT_LEVELS
"""A schema is a field of its tool."""


@dataclass(slots=True)
class _ToolText:
    """Where in a message a tool stands, and its deepest level."""

    start: int
    end: int = 0
    deepest: int = _TOOL_LEVEL


def without_deep_tools(message: bytes) -> tuple[bytes, list[str]]:
    """Return a message without the tools that are nested too deep, and their names; any
    other message as it is.

    Takes time that is linear in the length of the message, whatever that holds.
    """
    tools, array_start, array_end = _tools_in(message)
    if all(tool.deepest <= _LEVELS for tool in tools):
        return message, []
    kept: list[bytes] = []
    names: list[str] = []
    for tool in tools:
        text = message[tool.start : tool.end]
        if tool.deepest > _LEVELS:
            names.append(_name_in(text))
        else:
            kept.append(text)
    return message[:array_start] + b",".join(kept) + message[array_end:], names


def _tools_in(message: bytes) -> tuple[list[_ToolText], int, int]:
    """Return the tools of a list, and where the inside of their array begins and ends."""
    tools: list[_ToolText] = []
    level = array_start = array_end = 0
    in_array = False
    key = b""
    for token in _TOKEN.finditer(message):
        sign = token[0]
        if sign in (b"{", b"["):
            level += 1
            if sign == b"[" and level == _KEY_LEVEL + 1 and key == b'"tools"':
                in_array, array_start = True, token.end()
            elif in_array and level == _TOOL_LEVEL:
                tools.append(_ToolText(token.start()))
            elif in_array and tools:
                tools[-1].deepest = max(tools[-1].deepest, level)
        elif sign in (b"}", b"]"):
            if in_array and level == _TOOL_LEVEL:
                tools[-1].end = token.end()
            elif in_array and level == _KEY_LEVEL + 1:
                in_array, array_end = False, token.start()
            level -= 1
        elif level == _KEY_LEVEL:
            key = sign
    is_whole = array_end >= array_start and all(tool.end for tool in tools)
    if not is_whole:
        tools = []
    return tools, array_start, array_end


def _name_in(tool: bytes) -> str:
    name = _NAME.search(tool)
    return name[1].decode("utf-8", "replace") if name else "without a name"
