"""Pydantic's errors as sentences for people, where they wrote it: what may stand in a field, and what stood there."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NoReturn

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.text import did_you_mean, format_name, format_value, nearest_or_known, printable
from sennit.workflows.plan.limits import MAX_SHOWN_ERRORS

_TYPES = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "an object",
    "tuple_type": "a list",
    "list_type": "a list",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
_CHOICE = re.compile(r"'([^']*)'")


class Frozen(BaseModel):
    """A value that cannot change and refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def wrong_form(value: Any, what: str, forms: str) -> NoReturn:
    """Refuse a value that has none of the forms that it may have."""
    raise PydanticCustomError("form", f"{format_value(value)} is not a {what}; write {forms}")


def by_kind(kinds: Mapping[str, type[BaseModel]]) -> WrapValidator:
    """Read an object as the type of its `kind`. What pydantic makes of a union of types has places in its errors that
    nobody wrote.
    """

    def read(value: Any, union: ValidatorFunctionWrapHandler) -> Any:
        kind = value.get("kind") if isinstance(value, dict) else None
        model = kinds.get(kind) if isinstance(kind, str) else None
        return union(value) if model is None else model.model_validate(value)

    return WrapValidator(read)


def word_or(field: str, words: tuple[str, ...], forms: Mapping[str, type[BaseModel]], text: str) -> BeforeValidator:
    """Read a field that is one of some words, or an object with one of some names."""

    def read(value: Any) -> Any:
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in forms:
            return forms[next(iter(value))].model_validate(value)
        is_read = value in words if isinstance(value, str) else isinstance(value, tuple(forms.values()))
        return value if is_read else wrong_form(value, f"valid `{field}`", text)

    return BeforeValidator(read)


def describe_errors(error: ValidationError, fields: Iterable[str]) -> str:
    """Return the errors on one line: each field with its problem, unknown fields first with the nearest of `fields`."""
    lines: list[str] = []
    errors = error.errors(include_url=False)
    missing = [item["loc"] for item in errors if item["type"] == "missing"]
    others = [name for name in fields if (name,) not in missing]
    for item in errors[:MAX_SHOWN_ERRORS]:
        field = format_name(place_of(item["loc"]) or "input")
        if item["type"] == "extra_forbidden":
            hint = did_you_mean(str(item["loc"][-1]), others) if len(item["loc"]) == 1 else ""
            lines.insert(0, f"unknown field {field}{hint}")
        elif item["type"] == "missing":
            lines.append(f"{field} is missing")
        else:
            lines.append(f"{field}: {describe_error(item)[1]}")
    return printable("; ".join(lines), 1000)


def first_error(error: ValidationError, known: Collection[str] = ()) -> tuple[str, str]:
    """Return (place, sentence) of the first error, without its value, which may be secret; `known` are field names."""
    first = error.errors(include_url=False)[0]
    place = place_of(tuple(part for part in first["loc"] if part != "[key]"))
    if first["type"] == "missing":
        sentence = "is missing"
    elif first["type"] == "extra_forbidden":
        sentence = f"there is no such field{nearest_or_known(place, sorted(known)) if known else ''}"
    else:
        sentence = describe_error(first, with_value=False)[1]
    more = error.error_count() - 1
    return place, f"{sentence} (and {more} more)" if more else sentence


def describe_error(item: ErrorDetails, *, with_value: bool = True) -> tuple[str, str]:
    """Return (code, sentence) of one error: `choice`, `type`, `limit` or `value`. It is one printable line."""
    kind, value = item["type"], item["input"]
    but = f", not {format_value(value)}" if with_value else ""
    if kind == "literal_error":
        choices = _CHOICE.findall(str(item["ctx"]["expected"]))
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        return "choice", f"must be one of {', '.join(choices)}{but}{hint}"
    if kind == "form":
        return "form", item["msg"]
    if kind in _TYPES:
        return "type", f"must be {_TYPES[kind]}{but}{_unquoted(value, _TYPES[kind])}"
    if kind == "string_pattern_mismatch":
        return "value", f"must match {item['ctx']['pattern']}{but}"
    limit = _limit(kind, item.get("ctx") or {}, value, but)
    if limit:
        return "limit", limit
    return "value", printable(item["msg"].removeprefix("Value error, "), 300)


def _unquoted(value: Any, wanted: str) -> str:
    number = wanted.endswith("number") and isinstance(value, str) and value.strip().replace(".", "", 1).isdecimal()
    return "; write it without quotes" if number else ""


def _limit(kind: str, bounds: dict[str, Any], value: Any, but: str) -> str:
    if kind in ("too_short", "string_too_short"):
        return "is empty; give at least one" if kind == "too_short" else "is empty; it needs a text"
    if kind in ("too_long", "string_too_long"):
        unit = "characters" if isinstance(value, str) else "items"
        return f"has {len(value):,} {unit}; at most {bounds['max_length']:,}"
    for name, words in (("ge", "at least"), ("le", "at most"), ("gt", "greater than"), ("lt", "less than")):
        bound = bounds.get(name)
        if bound is not None:
            edge = f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"
            return f"must be {words} {edge}{but}"
    return ""
