"""Pydantic's errors as sentences for people, where they wrote it: what may stand in a
field, and what stood there.
"""

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

from sennit.workflows.plan.language.json_schema import typed_value
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.text import (
    did_you_mean,
    format_name,
    format_value,
    nearest_or_known,
    printable,
)
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
_BOUNDS = {"ge": "at least", "le": "at most", "gt": "greater than", "lt": "less than"}


class Frozen(BaseModel):
    """A value that cannot change and refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def wrong_form(value: Any, what: str, forms: str) -> NoReturn:
    """Refuse a value that has none of the forms that it may have."""
    raise PydanticCustomError("form", f"{format_value(value)} is not a {what}; write {forms}")


def by_kind(kinds: Mapping[str, type[BaseModel]]) -> WrapValidator:
    """Read an object as the type of its `kind`. What pydantic makes of a union of types has places
    in its errors that nobody wrote.
    """

    def read(value: Any, union: ValidatorFunctionWrapHandler) -> Any:
        if isinstance(value, dict):
            kind = value.get("kind")
            if isinstance(kind, str) and kind in kinds:
                return kinds[kind].model_validate(value)
        return union(value)

    return WrapValidator(read)


def word_or(
    field: str, words: tuple[str, ...], forms: Mapping[str, type[BaseModel]], text: str
) -> BeforeValidator:
    """Read a field that is one of some words, or an object with one of some names."""
    models = tuple(forms.values())

    def read(value: Any) -> Any:
        if isinstance(value, dict) and len(value) == 1:
            name = next(iter(value))
            if name in forms:
                return forms[name].model_validate(value)
        if isinstance(value, str) and value in words:
            return value
        if isinstance(value, models):
            return value
        wrong_form(value, f"valid `{field}`", text)

    return BeforeValidator(read)


def describe_errors(error: ValidationError, fields: Iterable[str]) -> str:
    """Return the errors on one line: each field with its problem, unknown fields first with
    the nearest of `fields`.
    """
    lines: list[str] = []
    errors = error.errors(include_url=False)
    missing = [item["loc"] for item in errors if item["type"] == "missing"]
    candidates = [name for name in fields if (name,) not in missing]
    for item in errors[:MAX_SHOWN_ERRORS]:
        field = format_name(place_of(item["loc"]) or "input")
        if item["type"] == "missing":
            lines.append(f"{field} is missing")
        elif item["type"] == "extra_forbidden":
            hint = ""
            if len(item["loc"]) == 1:
                hint = did_you_mean(str(item["loc"][-1]), candidates)
            lines.insert(0, f"unknown field {field}{hint}")
        else:
            _, sentence = describe_error(item)
            lines.append(f"{field}: {sentence}")
    return printable("; ".join(lines), 1000)


def first_error(error: ValidationError, known: Collection[str] = ()) -> tuple[str, str]:
    """Return (place, sentence) of the first error, without its value, which may be secret;
    `known` are field names.
    """
    item = error.errors(include_url=False)[0]
    place = place_of(tuple(part for part in item["loc"] if part != "[key]"))
    if item["type"] == "missing":
        sentence = "is missing"
    elif item["type"] == "extra_forbidden":
        sentence = "there is no such field"
        if known:
            sentence += nearest_or_known(place, sorted(known))
    else:
        _, sentence = describe_error(item, with_value=False)
    more = error.error_count() - 1
    if more:
        sentence += f" (and {more} more)"
    return place, sentence


def describe_error(item: ErrorDetails, *, with_value: bool = True) -> tuple[str, str]:
    """Return (code, sentence) of one error: `choice`, `type`, `limit` or `value`. It
    is one printable line.
    """
    kind = item["type"]
    value = item["input"]
    but = ""
    if with_value:
        but = f", not {format_value(value)}"
    if kind == "literal_error":
        choices = _CHOICE.findall(str(item["ctx"]["expected"]))
        listed = ", ".join(choices)
        hint = ""
        if isinstance(value, str):
            hint = did_you_mean(value, choices)
        return "choice", f"must be one of {listed}{but}{hint}"
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
    """Return the hint for a number in quotes. Text that JSON does not take as such a number,
    such as 007 or .5, would be text without them too.
    """
    if not isinstance(value, str):
        return ""
    kinds = {"a whole number": "integer", "a number": "number"}
    kind = kinds.get(wanted)
    if kind is None or isinstance(typed_value(value, frozenset([kind])), str):
        return ""
    return "; write it without quotes"


def _limit(kind: str, bounds: dict[str, Any], value: Any, but: str) -> str:
    if kind == "too_short":
        return "is empty; give at least one"
    if kind == "string_too_short":
        return "is empty; it needs a text"
    if kind in ("too_long", "string_too_long"):
        unit = "items"
        if isinstance(value, str):
            unit = "characters"
        return f"has {len(value):,} {unit}; at most {bounds['max_length']:,}"
    for name, words in _BOUNDS.items():
        bound = bounds.get(name)
        if isinstance(bound, int):
            return f"must be {words} {bound:,}{but}"
        if bound is not None:
            return f"must be {words} {bound:g}{but}"
    return ""
