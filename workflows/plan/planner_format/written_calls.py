"""Calls of tools that a model has written as text, in its chat template's way, where the server did not read them.

Read are the ways of Hermes and Qwen (`<tool_call>{...}</tool_call>`), Mistral (`[TOOL_CALLS]...`), Llama
(`<function=name>{...}</function>`, `<|python_tag|>{...}`) and Qwen Coder (`<parameter=name>`). Other ways are known by
their marks, and refused.
"""

import re
from typing import Any

from workflows.plan.language import json_schema
from workflows.plan.language.text import format_value
from workflows.plan.planner_format.calls import Tools
from workflows.plan.planner_format.json_calls import JsonCall, call_in
from workflows.plan.planner_format.json_text import NoJson, decode, decode_whole

_TAGS = r"</?tool_calls?>|</?function_calls?>|<\|/?tool_calls?(?:_begin|_end)?\|>|\[/?TOOL_CALLS\]|<\|python_tag\|>"
_MARK = re.compile(
    rf"(?:^[^\S\n]*(?:{_TAGS}|<\uff5ctool)|(?<!`)(?:{_TAGS})(?=\s*[\[{{<])|^[^\S\n]*<function=)", re.MULTILINE
)
_NOISE = re.compile(rf"(?:\s|{_TAGS}|<\|(?:im_end|eom_id|eot_id)\|>|</s>|```\w*|[,;])+")
_NAME = re.compile(r"(?P<name>[\w.-]{1,80})\s*(?:\[CALL_ID\]\w*\s*)?(?:\[ARGS\]\s*)?(?=\{)")
_FUNCTION = re.compile(r"<function=(?P<name>[\w.-]{1,80})>(?P<body>.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=(?P<name>[\w.-]{1,80})>\n?(?P<text>.*?)\n?</parameter>", re.DOTALL)
_FENCED = re.compile(r"```\w*\s*")
_NAMED = re.compile(r"[\"'](?:name|tool)[\"']\s*:\s*(?=[\"'](?P<name>[\w.-]{1,80})[\"'])")
_REMAINS = re.compile(r"\{\s*[\"'\u201c]|</tool_call|</function")
_HAS_ARGUMENTS = re.compile(r"[\"'](?:arguments|parameters)[\"']\s*:")


def mark_of_call(text: str) -> int | None:
    """Return where in a text the first written call begins, None if there is none. In code, one is only shown."""
    for found in _MARK.finditer(text):
        before = text[: found.start()]
        if before.count("```") % 2 == 0 or _FENCED.fullmatch(before.lstrip()):
            return found.start()
    return None


def calls_of(text: str, tools: Tools) -> tuple[str, list[JsonCall]]:
    """Return (words before, calls) of a whole reply; no calls if it holds none. Raises NoJson; nothing else."""
    begins = mark_of_call(text)
    if begins is None:
        return text, _bare_calls(text, tools)
    if _REMAINS.search(text, 0, begins):
        raise _unreadable(text)
    return text[:begins].strip(), written_calls(text[begins:], tools)[0]


def written_calls(text: str, tools: Tools) -> tuple[list[JsonCall], str]:
    """Return (calls, text behind them) of a text that begins with a mark. Raises NoJson; nothing else."""
    calls, at, why = list[JsonCall](), 0, ""
    while True:
        noise = _NOISE.match(text, at)
        at = noise.end() if noise else at
        try:
            found, at = _next(text, at, tools)
        except NoJson as error:
            found, why = [], f": {error}"
        if not found:
            break
        calls += [JsonCall(len(calls) + place, *call) for place, call in enumerate(found, 1)]
    if why or not calls or _REMAINS.search(text, at) or mark_of_call(text[at:]) is not None:
        raise _unreadable(text, why)
    return calls, text[at:].strip()


def _bare_calls(text: str, tools: Tools) -> list[JsonCall]:
    """Return the calls that a whole text is in JSON without any mark; none if it calls no known tool. Raises NoJson."""
    if not any(found["name"] in tools for found in _NAMED.finditer(text)) or not _HAS_ARGUMENTS.search(text):
        return []
    try:
        value = decode_whole(text)
    except NoJson:
        raise _unreadable(text) from None
    items = value if isinstance(value, list) else [value]
    calls = [call_in(item, place) for place, item in enumerate(items, 1)]
    found = [call for call in calls if call and call.name in tools and not call.fields]
    if len(found) < len(calls):
        raise _unreadable(text)
    return found


def _unreadable(text: str, why: str = "") -> NoJson:
    return NoJson(f"{format_value(text[:80])} looks like a call of a tool, and cannot be read{why}")


def _next(text: str, at: int, tools: Tools) -> tuple[list[tuple[str, Any]], int]:
    """Return the calls that stand at a place, and where they end; none if what stands there is none. Raises NoJson."""
    if (function := _FUNCTION.match(text, at)) is not None:
        name = function["name"]
        return [(name, _arguments(function["body"].strip(), tools.get(name, {})))], function.end()
    named = _NAME.match(text, at)
    start = named.end() if named else at
    if text[start : start + 1] not in ("{", "["):
        return [], at
    value, end = decode(text, start)
    if named:
        return [(named["name"], value)], end
    items = value if isinstance(value, list) else [value]
    calls = [call for item in items if (call := call_in(item, 0)) is not None and not call.fields]
    if not calls or len(calls) < len(items):
        raise NoJson(f"{format_value(text[start:end][:80])} stands where `name` and `arguments` are expected")
    return [(call.name, call.arguments) for call in calls], end


def _arguments(body: str, schema: json_schema.Schema) -> Any:
    """Return arguments that are JSON, or one text each, whose type the tool knows. Raises NoJson."""
    if not body or body.startswith("{"):
        return decode(body)[0] if body else {}
    found, at = {}, 0
    while (parameter := _PARAMETER.match(body, at)) is not None:
        found[parameter["name"]] = _typed(parameter["text"], parameter["name"], schema)
        at = parameter.end()
    if body[at:].strip():
        raise NoJson(f"{format_value(body[at:][:80])} stands where a parameter is expected")
    return found


def _typed(text: str, name: str, schema: json_schema.Schema) -> Any:
    fields = schema.get("properties")
    types = json_schema.types_of(
        fields.get(name) if isinstance(fields, dict) else None, json_schema.definitions(schema)
    )
    if not types or "string" in types:
        return text
    try:
        return decode_whole(text)
    except NoJson:
        return text
