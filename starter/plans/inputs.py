"""`--input name=value`: values read by the type that the plan declares for them."""

import json
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

from starter.client.errors import Refused
from workflows.plan.language.nodes import InputSpec
from workflows.plan.language.text import did_you_mean


def read_inputs(words: Iterable[str], declared: Mapping[str, InputSpec]) -> dict[str, Any]:
    """Return the inputs in `words`; raises Refused for an unknown, repeated, missing or mistyped one."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise Refused(f"--input {word[:60]}: write it as name=value")
        if name not in declared:
            raise Refused(f"--input {name[:60]}: {_unknown(name, declared)}")
        if name in found:
            raise Refused(f"--input {name}: given twice")
        found[name] = read_value(name, text, declared[name].type)
    missing = [name for name, spec in declared.items() if name not in found and "default" not in spec.model_fields_set]
    if missing:
        hints = " ".join(f"--input {name}={declared[name].type.upper()}" for name in missing)
        raise Refused(f"the plan needs {', '.join(missing)}: add {hints}")
    return found


def read_value(name: str, text: str, kind: str) -> Any:
    """Return `text` as a value of the JSON type `kind`; raises Refused."""
    if kind == "string":
        return text
    fits, shape = _KINDS[kind]
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        value = _NOTHING
    if isinstance(value, float) and not isfinite(value):
        value = _NOTHING
    if not fits(value):
        raise Refused(f"--input {name}: {text[:60]!r} is not {shape}")
    return value


_NOTHING = object()


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "integer": (_is_integer, "a whole number"),
    "number": (_is_number, "a number"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "array": (lambda value: isinstance(value, list), 'a JSON list such as ["a", "b"]'),
    "object": (lambda value: isinstance(value, dict), 'a JSON object such as {"a": 1}'),
}


def _unknown(name: str, declared: Mapping[str, InputSpec]) -> str:
    if not declared:
        return "the plan declares no inputs"
    return f"the plan declares no such input{did_you_mean(name, declared)} (declared: {', '.join(declared)})"
