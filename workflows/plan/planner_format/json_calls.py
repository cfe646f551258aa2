"""Calls as JSON: `{"n": 1, "tool": "search", "arguments": {"query": "a"}}` is the line `1. search(query="a")`.

A plan is `{"calls": [...], "answer": {...}}`. `for_each` makes a call for each item of a list. The forms of chat
templates are read too: `name` is `tool`, and `args`, `parameters` and `input` are `arguments`.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from workflows.plan.language.text import format_name, nearest_or_known
from workflows.plan.planner_format.calls import COMMON, Context, InnerCall
from workflows.plan.planner_format.json_text import NoJson, decode, decode_whole
from workflows.plan.planner_format.values import Arguments, CallError

_TOOL = ("tool", "name")
_ARGUMENTS = ("arguments", "args", "parameters", "input")
_ASIDE = ("id", "type", "index", "thought", "reason", "reasoning", "description")
_BEGINS = re.compile(r"\s*\{\s*\"calls\"\s*:\s*\[")
_SIGN = re.compile(r"\\.|[\"{}\[\]]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class JsonCall:
    """One call as it was written; `number` is its line, `fields` is what stands beside its arguments."""

    number: int
    name: str
    arguments: Any
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """All of it, to compare calls by."""
        return repr([self.arguments, self.fields])

    def given(self, context: Context) -> Arguments:
        """Return what the call was given; null stands for an argument that is left out. Raises CallError."""
        for name in self.fields:
            if name not in COMMON:
                hint = nearest_or_known(name, ("n", "tool", "arguments", "for_each"))
                raise CallError(f"{format_name(name)} is no field of a call{hint}")
        arguments = _object(self.arguments)
        if not isinstance(arguments, dict):
            return Arguments([_resolved(arguments, context)], dict(self.fields))
        required = context.tools.get(self.name, {}).get("required") or ()
        kept = {
            key: value for key, value in {**self.fields, **arguments}.items() if value is not None or key in required
        }
        return Arguments([], {key: _resolved(value, context) for key, value in kept.items()})


def calls_in(value: Any) -> list[JsonCall] | None:
    """Return the calls that JSON holds, its answer last; None if it is something else, such as a plan's nodes."""
    listed = value.get("calls") if isinstance(value, dict) else value
    items = listed if isinstance(listed, list) else [value]
    calls = [call_in(item, place) for place, item in enumerate(items, 1)]
    found = [call for call in calls if call is not None]
    if not found or len(found) < len(calls):
        return None
    if isinstance(value, dict) and listed is not None and (answer := value.get("answer")) is not None:
        found.append(JsonCall(1 + max(call.number for call in found), "answer", answer))
    return found


def call_in(item: Any, place: int) -> JsonCall | None:
    """Return the call that an object is, None for anything else. `place` is its line if it names none."""
    if isinstance(item, dict) and isinstance(item.get("function"), dict):
        item = item["function"]
    if not isinstance(item, dict) or "kind" in item:
        return None
    tool = next((key for key in _TOOL if isinstance(item.get(key), str)), "")
    inside = next((key for key in _ARGUMENTS if key in item), "")
    if not tool:
        return None
    number, name, arguments = item.get("n"), item[tool], _object(item.get(inside, {}))
    number = number if isinstance(number, int) and 0 < number < 10**9 else place
    read = {tool, inside, "n", "for_each", *_ASIDE}
    fields = {key: value for key, value in item.items() if key not in read and value is not None}
    if (over := item.get("for_each")) is not None:
        most = {"max_items": fields.pop("max_items")} if "max_items" in fields else {}
        name, arguments = "map", {"over": over, "do": JsonCall(0, name, arguments), **most}
    elif isinstance(arguments, dict) and name == "map" and (do := call_in(arguments.get("do"), 0)) is not None:
        arguments = {**arguments, "do": do}
    return JsonCall(number, name, arguments, fields)


def _object(arguments: Any) -> Any:
    """Return arguments, which some chat templates write as JSON in a text, as an object if they are one."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = decode_whole(arguments)
    except NoJson:
        return arguments
    return value if isinstance(value, dict) else arguments


def _resolved(value: Any, context: Context) -> Any:
    """Return a value with references by line as references by node. Raises CallError."""
    if isinstance(value, str):
        return context.scope.resolve(value)
    if isinstance(value, JsonCall):
        return InnerCall(value.name, value.given(context))
    if isinstance(value, dict):
        return {name: _resolved(item, context) for name, item in value.items()}
    return [_resolved(item, context) for item in value] if isinstance(value, list) else value


class CallStream:
    """Finds the calls of a plan in JSON while it is being written."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._held = ""
        self._text: list[str] = []
        self._count = 0
        self.ended = False

    @classmethod
    def begin(cls, text: str) -> tuple["CallStream", str] | None:
        """Return a stream and what of the text is for it, None if the text does not begin a plan in JSON."""
        found = _BEGINS.match(text)
        return (cls(), text[found.end() :]) if found else None

    def feed(self, piece: str) -> list[JsonCall]:
        """Take the next piece; return the calls that it completes, none after one that is malformed."""
        text, at, calls = self._held + piece, 0, list[JsonCall]()
        begun, self._held = 0, ""
        for found in _SIGN.finditer(text):
            at = found.end()
            sign = found[0]
            if sign == '"' or self._quoted:
                self._quoted ^= sign == '"'
                continue
            if self.ended:
                break
            if sign in "[{":
                begun = found.start() if self._depth == 0 else begun
                self._depth += 1
            elif sign in "]}":
                self._depth -= 1
                self.ended = self._depth < 0
                if self._depth == 0:
                    calls += self._whole("".join((*self._text, text[begun:at])))
                    self._text = []
        if text[at:].endswith("\\"):
            text, self._held = text[:-1], "\\"
        if self._depth > 0 and not self.ended:
            self._text.append(text[begun:])
        return calls

    def _whole(self, text: str) -> list[JsonCall]:
        self._count += 1
        try:
            call = call_in(decode(text)[0], self._count)
        except NoJson:
            call = None
        self.ended = call is None
        return [call] if call is not None else []
