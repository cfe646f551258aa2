"""The schemas that a plan brings itself: every keyword must be one that `json_schema.py` knows, and mean what it says.

A keyword that nothing checks would be a promise nobody keeps, and so would a pattern that the engine cannot take; both
are refused before the run.
"""

from collections.abc import Callable, Iterator
from typing import Any

from sennit.workflows.plan.language.dag import first_cycle
from sennit.workflows.plan.language.json_schema import TYPES, Violation, compile_pattern
from sennit.workflows.plan.language.problems import Where
from sennit.workflows.plan.language.text import did_you_mean, format_name, format_names, format_value
from sennit.workflows.plan.limits import MAX_CHECKED_PATTERN_CHARACTERS, MAX_JSON_LEVELS

_NOTES = ("$schema", "$id", "$comment", "title", "description", "default", "examples", "format", "deprecated")


def unknown_keywords(schema: Any, where: Where = (), *, defs: Any = None) -> Iterator[Violation]:
    """Yield (path, sentence) for each keyword that no check would look at, and for each that is malformed.

    `defs` are the definitions of the whole schema, those of `schema` itself when left out.
    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield where, f"a schema is an object such as {{type: string}}, not {format_value(schema)}"
        return
    if defs is None:
        defs = schema.get("$defs") if isinstance(schema.get("$defs"), dict) else {}
        yield from _circular(defs, where)
    for name, value in schema.items():
        if name in _NOTES:
            continue
        check = _CHECKS.get(name)
        if check is None:
            yield (*where, name), f"schema keyword {format_name(name)} is not supported{did_you_mean(name, _CHECKS)}"
        elif (wrong := check(value)) is not None:
            yield (*where, name), f"{format_name(name)} {wrong}"
        else:
            yield from _inside(name, value, (*where, name), defs)


def is_known(keyword: str, value: Any) -> bool:
    """Whether a check looks at this keyword of a schema, or could."""
    return keyword in _NOTES or (keyword in _CHECKS and _CHECKS[keyword](value) is None)


def _inside(name: str, value: Any, where: Where, defs: Any) -> Iterator[Violation]:
    if name in ("properties", "$defs"):
        for key, part in value.items():
            yield from unknown_keywords(part, (*where, key), defs=defs)
    elif name in ("anyOf", "oneOf", "allOf"):
        for index, part in enumerate(value):
            yield from unknown_keywords(part, (*where, index), defs=defs)
    elif name in ("items", "additionalProperties"):
        yield from unknown_keywords(value, where, defs=defs)
    elif name == "$ref" and (not value.startswith("#/$defs/") or value.removeprefix("#/$defs/") not in defs):
        yield where, f"{format_value(value)} is not in `$defs`; write #/$defs/NAME, with one of {format_names(defs)}"


def _circular(defs: dict[str, Any], where: Where) -> Iterator[Violation]:
    """Yield a definition that refers to itself: no value could ever be judged by it."""
    names = {name: position for position, name in enumerate(defs)}
    cycle = first_cycle([[names[ref] for ref in _same_value(part, 0) if ref in names] for part in defs.values()])
    if cycle is not None:
        name = list(defs)[cycle[0]]
        yield (*where, "$defs", name), f"{format_name(name)} refers to itself; say what it is"


def _same_value(schema: Any, level: int) -> Iterator[str]:
    """Yield the definitions that judge the very value which `schema` judges."""
    if not isinstance(schema, dict) or level > MAX_JSON_LEVELS:
        return
    if isinstance(schema.get("$ref"), str):
        yield schema["$ref"].rpartition("/")[2]
    for name in ("anyOf", "oneOf", "allOf"):
        for part in schema[name] if isinstance(schema.get(name), list) else ():
            yield from _same_value(part, level + 1)


def _types(value: Any) -> str | None:
    kinds = value if isinstance(value, list) and value else [value]
    for kind in kinds:
        if not isinstance(kind, str) or kind not in TYPES:
            near = did_you_mean(kind, TYPES) if isinstance(kind, str) else ""
            return f"is one of {', '.join(TYPES)}, not {format_value(kind)}{near}"
    return None


def _pattern(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > MAX_CHECKED_PATTERN_CHARACTERS:
        return f"is a regular expression of at most {MAX_CHECKED_PATTERN_CHARACTERS} characters"
    try:
        compile_pattern(value)
    except ValueError as error:
        return str(error)
    return None


def _shape(kinds: tuple[type, ...], words: str) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        good = isinstance(value, kinds) and (isinstance(value, bool) <= (bool in kinds))
        return None if good else f"must be {words}, not {format_value(value)}"

    return check


def _list_of(kinds: tuple[type, ...], words: str) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        good = isinstance(value, list) and value and all(isinstance(item, kinds) for item in value)
        return None if good else f"must be a list of {words}, not {format_value(value)}"

    return check


def _required(value: Any) -> str | None:
    good = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return None if good else f"must be a list of names, not {format_value(value)}"


def _count(value: Any) -> str | None:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return None if good else f"must be a whole number from 0, not {format_value(value)}"


def _anything(_: Any) -> None:
    return None


_schema = _shape((dict, bool), "a schema")
_schemas = _list_of((dict, bool), "schemas")
_objects = _shape((dict,), "an object")
_number = _shape((int, float), "a number")
_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "type": _types,
    "enum": _list_of((object,), "values"),
    "const": _anything,
    "anyOf": _schemas,
    "oneOf": _schemas,
    "allOf": _schemas,
    "$ref": _shape((str,), "text"),
    "$defs": _objects,
    "properties": _objects,
    "required": _required,
    "additionalProperties": _schema,
    "items": _schema,
    "pattern": _pattern,
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), _count),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
}
