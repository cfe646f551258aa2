"""What pydantic says of one value, as a sentence for people: what may stand there, and what stood there."""

import re
from typing import Any

from pydantic_core import ErrorDetails

from workflows.plan.language.text import did_you_mean, format_value, printable

_WANTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "dict_type": "an object",
    "tuple_type": "a list",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
_CHOICE = re.compile(r"'([^']*)'")


def fault_of(item: ErrorDetails) -> tuple[str, str]:
    """Return (code, sentence) of an error: `choice`, `type`, `limit` or `value`. The sentence is one printable line."""
    kind, given = item["type"], item["input"]
    if kind == "literal_error":
        return "choice", _choice(given, _CHOICE.findall(str(item["ctx"]["expected"])))
    if kind in _WANTED:
        return "type", f"must be {_WANTED[kind]}, not {format_value(given)}{_unquoted(given, _WANTED[kind])}"
    limit = _limit(kind, item.get("ctx") or {}, given)
    if limit:
        return "limit", limit
    return "value", printable(item["msg"].removeprefix("Value error, "), 300)


def _choice(given: Any, choices: list[str]) -> str:
    near = did_you_mean(given, choices) if isinstance(given, str) else ""
    return f"must be one of {', '.join(choices)}, not {format_value(given)}{near}"


def _unquoted(given: Any, wanted: str) -> str:
    number = wanted.endswith("number") and isinstance(given, str) and given.strip().replace(".", "", 1).isdecimal()
    return "; write it without quotes" if number else ""


def _limit(kind: str, bounds: dict[str, Any], given: Any) -> str:
    if kind in ("too_short", "string_too_short"):
        return "is empty; give at least one" if kind == "too_short" else "is empty; it needs a text"
    if kind in ("too_long", "string_too_long"):
        unit = "characters" if isinstance(given, str) else "items"
        return f"has {len(given):,} {unit}; at most {bounds['max_length']:,}"
    for name, words in (("ge", "greater than or equal to"), ("le", "less than or equal to"), ("gt", "greater than")):
        bound = bounds.get(name)
        if bound is not None:
            edge = f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"
            return f"must be {words} {edge}, not {format_value(given)}"
    return ""
