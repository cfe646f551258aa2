"""Calls as JSON: `{"n": 1, "tool": "search", "arguments": {"query": "a"}}` is the line
`1. search(query="a")`.

A plan may be `{"calls": [...], "answer": {...}}`. The forms of chat templates are read too: `name`
is `tool`, and `args`, `parameters` and `input` are `arguments`.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from sennit.workflows.plan.language.text import format_name, nearest_or_known
from sennit.workflows.plan.planner_format.calls import COMMON, InnerCall
from sennit.workflows.plan.planner_format.json_text import Unreadable, decode, decode_whole
from sennit.workflows.plan.planner_format.values import Arguments, Scope

_TOOL = ("tool", "name", "tool_name", "function")
_ARGUMENTS = ("arguments", "args", "parameters", "input")
_ASIDE = ("id", "tool_call_id", "type", "index", "thought", "reason", "reasoning", "description")
_NEXT = re.compile(
    r"(?:[\s;,]|```\w*|~~~\w*|[-+*\u2022]\s)*+(?:(?P<number>\d{1,9})[.):\]]*+\s*+(?:(?:```"
    r"|~~~)\w*\s*+)?+)?+"
    r"(?=\{|\[\s*+(?:[{\]]|\Z))"
)

_FRAMED = re.compile(
    r"[\s\ufeff]*+(?:[*_#]{0,4}[A-Za-z][\w ]{0,30}:[\s*_]*+|<(?:answer|output|json|plan|result"
    r"|response)>\s*+)?+"
    r"(?:```\w*\s*+|`)?+(?=\[?\s*+\{\s*+[\"'\u201c]?(?:calls|tool_calls|plan|nodes|n"
    r"|tool)[\"'\u201d]?\s*+:)",
    re.IGNORECASE,
)
_FRAME_ENDS = re.compile(
    r"\A\s*+(?:```|~~~|`)?+\s*+(?:</(?:answer|output|json|plan|result|response)>)?+", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class JsonCall:
    """One call as it was written; `number` is its line, `fields` is what
    stands beside its arguments.
    """

    number: int
    name: str
    arguments: Any
    fields: dict[str, Any] = field(default_factory=dict)

    def as_arguments(self, scope: Scope) -> Arguments:
        """Return what the call was given; null stands for an argument that is left
        out. Raises Unreadable.
        """
        for name in self.fields:
            if name not in COMMON:
                hint = nearest_or_known(name, ("n", "tool", "arguments"))
                raise Unreadable(f"{format_name(name)} is no field of a call{hint}")
        arguments = _object(self.arguments)
        if not isinstance(arguments, dict):
            return Arguments([_resolved(arguments, scope)], dict(self.fields))
        required = scope.tools.get(self.name, {}).get("required") or ()
        by_name = {}
        for key, value in {**self.fields, **arguments}.items():
            if value is not None or key in required:
                by_name[key] = _resolved(value, scope)
        return Arguments([], by_name)


def begins_json(row: str) -> bool:
    """Whether a row begins with an object or a list of them, behind no more than
    its number or a fence.
    """
    return _NEXT.match(row) is not None


def frame_before_calls(row: str) -> int:
    """Return how long the label, tag or quote before JSON is in a row that has calls
    or a plan in it, else 0.
    """
    frame = _FRAMED.match(row)
    if frame is None:
        return 0
    return frame.end()


def calls_or_plan(text: str) -> tuple[list[JsonCall], Any, str]:
    """Return (calls, plan, text behind them) of a text that begins with JSON: all calls of one
    object or list or of several objects, or None and a plan in the plan language. Raises
    Unreadable; nothing else.
    """
    # Values follow each other, each with the number of its line or without one.
    values: list[Any] = []
    position = 0
    while True:
        lead = _NEXT.match(text, position)
        if lead is None:
            break
        value, position = decode(text, lead.end())
        if lead["number"]:
            number = int(lead["number"])
            if not isinstance(value, dict) or value.setdefault("n", number) != number:
                raise Unreadable(
                    f"what stands behind the number {number} is not one call with that number"
                )
        values.append(value)
    behind = _FRAME_ENDS.sub("", text[position:]).strip()

    # Several values are calls; one may be a plan, or have a plan or calls in it.
    value = values[0] if len(values) == 1 else values
    calls = calls_in(value)
    if len(values) > 1 and calls is None:
        raise Unreadable("it holds several values, and not all of them are calls; write one object")
    if calls:
        return calls, None, behind
    if not isinstance(value, dict):
        return [], {"nodes": value}, behind
    if isinstance(value.get("plan"), dict):
        return [], value["plan"], behind
    return [], value, behind


def calls_in(value: Any) -> list[JsonCall] | None:
    """Return the calls that JSON holds, its answer last; None if it is something else,
    such as a plan's nodes.

    Raises Unreadable if only some of them have a number.
    """
    listed = value
    if isinstance(value, dict):
        listed = value.get("calls", value.get("tool_calls"))
    items = [value]
    if isinstance(listed, list):
        items = listed
    calls: list[JsonCall] = []
    for place, item in enumerate(items, 1):
        call = call_in(item, place)
        if call is None:
            return None
        calls.append(call)
    if not calls:
        return None
    numbered = 0
    for item in items:
        if item.get("n") is not None:
            numbered += 1
    if 0 < numbered < len(items):
        raise Unreadable(
            "some calls have their number `n` and others have none; give each call its number"
        )

    # The answer of an object with calls is the last of them.
    if isinstance(value, dict) and listed is not None:
        answer = value.get("answer")
        if answer is not None:
            last = max(call.number for call in calls)
            calls.append(JsonCall(last + 1, "answer", answer))
    return calls


def call_in(item: Any, place: int) -> JsonCall | None:
    """Return the call that an object is, None for anything else. `place` is its
    line if it names none.
    """
    if isinstance(item, dict) and isinstance(item.get("function"), dict):
        item = {"n": item.get("n"), **item["function"]}
    if not isinstance(item, dict) or "kind" in item:
        return None
    tool_key = _tool_key(item)
    if not tool_key:
        return None
    name = item[tool_key]
    arguments_key = _arguments_key(item)
    arguments = _object(item.get(arguments_key, {}))

    # What a map does for each item is a call itself.
    if name == "map" and isinstance(arguments, dict):
        do = call_in(arguments.get("do"), 0)
        if do is not None:
            arguments = {**arguments, "do": do}
    number = item.get("n")
    if not isinstance(number, int) or not 0 < number < 10**9:
        number = place
    fields = {}
    for key, value in item.items():
        is_read = key in (tool_key, arguments_key, "n", *_ASIDE)
        if not is_read and value is not None:
            fields[key] = value
    return JsonCall(number, name, arguments, fields)


def _tool_key(item: dict[str, Any]) -> str:
    """Return the field in which a call names its tool, "" if there is none."""
    for key in _TOOL:
        if isinstance(item.get(key), str):
            return key
    return ""


def _arguments_key(item: dict[str, Any]) -> str:
    """Return the field with the arguments of a call, "" if there is none."""
    for key in _ARGUMENTS:
        if key in item:
            return key
    return ""


def _object(arguments: Any) -> Any:
    """Return arguments, which some chat templates write as JSON in a text, as an
    object if they are one.
    """
    if not isinstance(arguments, str):
        return arguments
    try:
        value = decode_whole(arguments)
    except Unreadable:
        return arguments
    if not isinstance(value, dict):
        return arguments
    return value


def _resolved(value: Any, scope: Scope) -> Any:
    """Return a value with references by line as references by node. Raises Unreadable."""
    if isinstance(value, str):
        return scope.resolve(value)
    if isinstance(value, JsonCall):
        return InnerCall(value.name, value.as_arguments(scope))
    if isinstance(value, dict):
        return {name: _resolved(item, scope) for name, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, scope) for item in value]
    return value
