"""Calls as JSON: `{"n": 1, "tool": "search", "arguments": {"query": "a"}}` is the line `1. search(query="a")`.

A plan may be `{"calls": [...], "answer": {...}}`. The forms of chat templates are read too: `name` is `tool`, and
`args`, `parameters` and `input` are `arguments`.
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
    r"(?:[\s;,]|```\w*|~~~\w*|[-+*\u2022]\s)*+(?:(?P<number>\d{1,9})[.):\]]*+\s*+(?:(?:```|~~~)\w*\s*+)?+)?+"
    r"(?=\{|\[\s*+(?:[{\]]|\Z))"
)

_FRAMED = re.compile(
    r"[\s\ufeff]*+(?:[*_#]{0,4}[A-Za-z][\w ]{0,30}:[\s*_]*+|<(?:answer|output|json|plan|result|response)>\s*+)?+"
    r"(?:```\w*\s*+|`)?+(?=\[?\s*+\{\s*+[\"'\u201c]?(?:calls|tool_calls|plan|nodes|n|tool)[\"'\u201d]?\s*+:)",
    re.IGNORECASE,
)
_FRAME_ENDS = re.compile(
    r"\A\s*+(?:```|~~~|`)?+\s*+(?:</(?:answer|output|json|plan|result|response)>)?+", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class JsonCall:
    """One call as it was written; `number` is its line, `fields` is what stands beside its arguments."""

    number: int
    name: str
    arguments: Any
    fields: dict[str, Any] = field(default_factory=dict)

    def as_arguments(self, scope: Scope) -> Arguments:
        """Return what the call was given; null stands for an argument that is left out. Raises Unreadable."""
        for name in self.fields:
            if name not in COMMON:
                hint = nearest_or_known(name, ("n", "tool", "arguments"))
                raise Unreadable(f"{format_name(name)} is no field of a call{hint}")
        arguments = _object(self.arguments)
        if not isinstance(arguments, dict):
            return Arguments([_resolved(arguments, scope)], dict(self.fields))
        required = scope.tools.get(self.name, {}).get("required") or ()
        kept = {
            key: value for key, value in {**self.fields, **arguments}.items() if value is not None or key in required
        }
        return Arguments([], {key: _resolved(value, scope) for key, value in kept.items()})


def begins_json(row: str) -> bool:
    """Whether a row begins with an object or a list of them, behind no more than its number or a fence."""
    return _NEXT.match(row) is not None


def frame_before_calls(row: str) -> int:
    """Return how long the label, tag or quote before JSON is in a row that has calls or a plan in it, else 0."""
    framed = _FRAMED.match(row)
    return framed.end() if framed is not None else 0


def calls_or_plan(text: str) -> tuple[list[JsonCall], Any, str]:
    """Return (calls, plan, text behind them) of a text that begins with JSON: all calls of one object or list or of
    several objects, or None and a plan in the plan language. Raises Unreadable; nothing else.
    """
    values, at = list[Any](), 0
    while (found := _NEXT.match(text, at)) is not None:
        value, at = decode(text, found.end())
        number = int(found["number"] or 0)
        if found["number"] and not (isinstance(value, dict) and value.setdefault("n", number) == number):
            raise Unreadable(f"what stands behind the number {number} is not one call with that number")
        values.append(value)
    behind = _FRAME_ENDS.sub("", text[at:]).strip()
    value = values[0] if len(values) == 1 else values
    calls = calls_in(value)
    if len(values) > 1 and calls is None:
        raise Unreadable("it holds several values, and not all of them are calls; write one object")
    if isinstance(value, dict) and isinstance(value.get("plan"), dict):
        value = value["plan"]
    plan = value if isinstance(value, dict) else {"nodes": value}
    return calls or [], None if calls else plan, behind


def calls_in(value: Any) -> list[JsonCall] | None:
    """Return the calls that JSON holds, its answer last; None if it is something else, such as a plan's nodes.

    Raises Unreadable if only some of them have a number.
    """
    listed = value.get("calls", value.get("tool_calls")) if isinstance(value, dict) else value
    items = listed if isinstance(listed, list) else [value]
    calls = [call_in(item, place) for place, item in enumerate(items, 1)]
    found = [call for call in calls if call is not None]
    if not found or len(found) < len(calls):
        return None
    if len({item.get("n") is None for item in items}) > 1:
        raise Unreadable("some calls have their number `n` and others have none; give each call its number")
    if isinstance(value, dict) and listed is not None and (answer := value.get("answer")) is not None:
        found.append(JsonCall(1 + max(call.number for call in found), "answer", answer))
    return found


def call_in(item: Any, place: int) -> JsonCall | None:
    """Return the call that an object is, None for anything else. `place` is its line if it names none."""
    if isinstance(item, dict) and isinstance(item.get("function"), dict):
        item = {"n": item.get("n"), **item["function"]}
    if not isinstance(item, dict) or "kind" in item:
        return None
    tool = next((key for key in _TOOL if isinstance(item.get(key), str)), "")
    inside = next((key for key in _ARGUMENTS if key in item), "")
    if not tool:
        return None
    number, name, arguments = item.get("n"), item[tool], _object(item.get(inside, {}))
    number = number if isinstance(number, int) and 0 < number < 10**9 else place
    read = {tool, inside, "n", *_ASIDE}
    fields = {key: value for key, value in item.items() if key not in read and value is not None}
    if isinstance(arguments, dict) and name == "map" and (do := call_in(arguments.get("do"), 0)) is not None:
        arguments = {**arguments, "do": do}
    return JsonCall(number, name, arguments, fields)


def _object(arguments: Any) -> Any:
    """Return arguments, which some chat templates write as JSON in a text, as an object if they are one."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = decode_whole(arguments)
    except Unreadable:
        return arguments
    return value if isinstance(value, dict) else arguments


def _resolved(value: Any, scope: Scope) -> Any:
    """Return a value with references by line as references by node. Raises Unreadable."""
    if isinstance(value, str):
        return scope.resolve(value)
    if isinstance(value, JsonCall):
        return InnerCall(value.name, value.as_arguments(scope))
    if isinstance(value, dict):
        return {name: _resolved(item, scope) for name, item in value.items()}
    return [_resolved(item, scope) for item in value] if isinstance(value, list) else value
