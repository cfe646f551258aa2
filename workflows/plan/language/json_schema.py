"""The part of JSON Schema that plans use: checks values that may still hold references.

It knows type, enum, const, anyOf, oneOf, allOf, $ref into $defs, properties, required,
additionalProperties, items, minItems, maxItems, minLength, maxLength, pattern, minimum, maximum and
their exclusive forms. `oneOf` is read as `anyOf`. A schema may come from anywhere: what makes no
sense in it is ignored, and no schema makes a check fail or take long: all that it does is counted
in steps. `checking/schemas.py` is strict about the schemas in a plan.

Patterns run in the Rust engine of pydantic-core, never in `re`: it has no backtracking, so a match
takes time in proportion to the text and to the size of the pattern, and both are bounded.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any, NamedTuple

from pydantic_core import SchemaError, SchemaValidator, core_schema

from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.language.problems import Where
from sennit.workflows.plan.language.schema_keywords import TYPES, Schema
from sennit.workflows.plan.language.text import (
    did_you_mean,
    format_name,
    format_names,
    format_value,
    nearest_or_known,
    printable,
)
from sennit.workflows.plan.limits import (
    MAX_KEPT_PATTERNS_BYTES,
    MAX_PATTERN_CHARACTERS,
    MAX_PATTERN_SIZE_CHARACTERS,
    MAX_SCHEMA_LEVELS,
    MAX_SCHEMA_STEPS,
)

_LIMITING = frozenset(
    (
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "pattern",
    )
)
"""The keywords that `_Check._limits` reads."""
Violation = tuple[Where, str]
OnText = Callable[[Where, str, Schema], Iterator[Violation] | None]

_VALUES_A_STEP, _STEPS_A_NAME = 10, 10
"""What comparing with the values of a schema costs, and looking for a
similar name among so many.
"""
_MAX_TYPES = 500
_MAX_TYPE_LEVELS = 16
_MAX_FOLLOWED = 16
"""How many `$ref` are followed from one place."""
_CLASS_CHARACTERS = 20
"""What a class of Unicode counts in a pattern, in characters."""
_COUNT = re.compile(r"\{([0-9,]*)\}")
_UNICODE_CLASS = re.compile(r"\\[wWdDpP]")
_RANGES = (
    ("minimum", lt, "at least"),
    ("maximum", gt, "at most"),
    ("exclusiveMinimum", le, "must be above"),
    ("exclusiveMaximum", ge, "must be below"),
)


class _TooMuch(Exception):
    """The check takes more steps than it may."""


def violations(
    value: Any,
    schema: Schema,
    where: Where = (),
    *,
    on_text: OnText | None = None,
    steps: int = MAX_SCHEMA_STEPS,
) -> Iterator[Violation]:
    """Yield (path, sentence) for everything in `value` that violates `schema`.

    `on_text` may take over a string: it returns an iterator when the string holds
    references, else None. A value that takes more than `steps` to check, or goes 100 levels
    deep, is a violation of its own.
    """
    check = _Check(definitions(schema), on_text, steps)
    try:
        yield from check.violations(value, schema, where, 0)
    except _TooMuch:
        yield where, f"cannot be checked in {steps:,} steps; make the value or its schema simpler"


def definitions(schema: Any) -> dict[str, Any]:
    """Return what `$ref` in a schema may point to."""
    return _object(schema, "$defs") or _object(schema, "definitions")


def resolve(schema: Any, defs: dict[str, Any]) -> Schema:
    """Follow `$ref` into `$defs`, a bounded number of times; what is not a schema says nothing."""
    for _ in range(_MAX_FOLLOWED):
        if not isinstance(schema, dict):
            return {}
        name = schema.get("$ref")
        if not isinstance(name, str):
            return schema
        schema = defs.get(name.rpartition("/")[2], {})
    if isinstance(schema, dict):
        return schema
    return {}


def types_of(schema: Any, defs: dict[str, Any]) -> frozenset[str]:
    """Return the JSON types a schema allows; empty when it says nothing."""
    return _types(schema, defs, [_MAX_TYPES], 0)


def choices_of(schema: Schema) -> list[Any]:
    return _list(schema, "anyOf") or _list(schema, "oneOf")


def _types(schema: Any, defs: dict[str, Any], steps: list[int], level: int) -> frozenset[str]:
    schema = resolve(schema, defs)
    steps[0] -= 1
    if steps[0] < 0 or level > _MAX_TYPE_LEVELS:
        return frozenset()
    kinds = schema.get("type")
    if isinstance(kinds, str):
        kinds = [kinds]
    if isinstance(kinds, list):
        return frozenset(kind for kind in kinds if kind in _NAMES)

    values = _list(schema, "enum")
    if not values and "const" in schema:
        values = [schema["const"]]
    if values:
        return frozenset(map(type_of, values))

    # All parts of `allOf` hold, so that the first says enough.
    choices = choices_of(schema) or _list(schema, "allOf")[:1]
    allowed = [_types(choice, defs, steps, level + 1) for choice in choices]
    if not all(allowed):
        return frozenset()
    return frozenset().union(*allowed)


_NAMES = tuple(TYPES)


def type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    for name, kinds in TYPES.items():
        if isinstance(value, kinds):
            return name
    return "object"


def typed_value(text: str, types: frozenset[str] = frozenset()) -> Any:
    """Return what somebody typed: JSON where it is JSON of one of these types, or of any if there
    are none, else the text itself.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and not isfinite(value):
        return text
    if not types:
        return value
    # In Python, true is a number.
    if isinstance(value, bool) and "boolean" not in types:
        return text
    for name in types:
        if isinstance(value, TYPES[name]):
            return value
    return text


def wrong_argument(name: str, value: Any, known: Mapping[str, list[str]]) -> str | None:
    """Return why a tool that takes the `known` arguments, each with its JSON types, does not
    take this one; or None.
    """
    if name not in known:
        return f"has no argument {format_name(name)}{nearest_or_known(name, known)}"
    types = known[name]
    kind = type_of(value)
    is_number = kind == "integer" and "number" in types
    if not types or kind in types or is_number:
        return None
    wanted = " or ".join(types)
    return f"takes as {format_name(name)} {wanted}, and this is {kind}"


class _Check:
    """One check of one value."""

    def __init__(self, defs: dict[str, Any], on_text: OnText | None, steps: int) -> None:
        self._defs = defs
        self._on_text = on_text
        self._steps = steps
        self._patterns: dict[str, SchemaValidator | None] = {}

    def violations(self, value: Any, schema: Any, where: Where, level: int) -> Iterator[Violation]:
        self._spend(1)
        if level > MAX_SCHEMA_LEVELS:
            raise _TooMuch
        if schema is False:
            yield where, "is not allowed here"
            return
        schema = resolve(schema, self._defs)
        on_text = self._on_text
        taken_over = on_text(where, value, schema) if on_text and isinstance(value, str) else None
        if taken_over is not None:
            yield from taken_over
            return

        # Of alternatives that all fail, only the nearest is told, and nothing beside it.
        for part in _list(schema, "allOf"):
            yield from self.violations(value, part, where, level + 1)
        choices = choices_of(schema)
        if choices:
            wrong = self._no_choice(value, choices, where, level)
            if wrong:
                yield wrong
                return

        # A value of a wrong type has no limits, pattern or parts to check.
        sentence = self._wrong_type(value, schema)
        if sentence:
            yield where, sentence
            return
        if not _LIMITING.isdisjoint(schema):
            for sentence in self._limits(value, schema):
                yield where, sentence
        if isinstance(value, dict):
            yield from self._fields(value, schema, where, level)
        elif isinstance(value, list | tuple):
            yield from self._items(value, schema, where, level)

    def _spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise _TooMuch

    def _limits(self, value: Any, schema: Schema) -> Iterator[str]:
        yield from _limits(value, schema)
        pattern = schema.get("pattern")
        if isinstance(value, str) and isinstance(pattern, str):
            yield from self._mismatch(value, pattern)

    def _mismatch(self, value: str, pattern: str) -> Iterator[str]:
        """Match a text. What it costs is counted in steps, as if nothing were cached: a
        replay must come as far.
        """
        size = min(pattern_size(pattern), MAX_PATTERN_SIZE_CHARACTERS)
        if pattern not in self._patterns:
            self._spend(20 * size)
            self._patterns[pattern] = _compiled_or_none(pattern)
        compiled = self._patterns[pattern]
        if compiled is None:
            return
        if len(value) > MAX_PATTERN_CHARACTERS:
            yield (
                f"has {len(value):,} characters; a text with a `pattern` has at most "
                f"{MAX_PATTERN_CHARACTERS:,}"
            )
            return
        self._spend(size * len(value) // 200)
        if not compiled.isinstance_python(value):
            yield f"{format_value(value)} does not match {printable(pattern, 200)}"

    def _no_choice(
        self, value: Any, choices: list[Any], where: Where, level: int
    ) -> Violation | None:
        """Return what keeps a value from fitting any alternative: its type, else the
        first fault of the nearest.
        """
        faults: list[list[Violation]] = []
        for choice in choices:
            found = list(self.violations(value, choice, where, level + 1))
            if not found:
                return None
            faults.append(found)
        kinds = self._types({"anyOf": choices})
        if kinds and not _is_any(value, kinds):
            wanted = " or ".join(sorted(kinds))
            return where, f"wanted {wanted}, not {format_value(value)}"

        # The nearest is of the value's type, if any is, and has the fewest faults.
        of_its_type = []
        for choice, found in zip(choices, faults, strict=True):
            if _is_any(value, self._types(choice)):
                of_its_type.append(found)
        nearest = min(of_its_type or faults, key=len)
        return nearest[0]

    def _fields(
        self, value: dict[str, Any], schema: Schema, where: Where, level: int
    ) -> Iterator[Violation]:
        properties = _object(schema, "properties")
        required = _list(schema, "required")
        self._spend(len(required) // _VALUES_A_STEP)
        for name in required:
            if isinstance(name, str) and name not in value:
                self._spend(1)
                yield where, f"{format_name(name)} is missing"
        extra = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in properties:
                yield from self.violations(item, properties[name], (*where, name), level + 1)
            elif extra is False:
                self._spend(_STEPS_A_NAME * len(properties))
                sentence = f"{format_name(name)} is unknown{nearest_or_known(name, properties)}"
                yield (*where, name), sentence
            elif isinstance(extra, dict):
                yield from self.violations(item, extra, (*where, name), level + 1)

    def _items(
        self, value: Sequence[Any], schema: Schema, where: Where, level: int
    ) -> Iterator[Violation]:
        of_items = schema.get("items")
        if isinstance(of_items, dict | bool):
            for index, item in enumerate(value):
                inside = (*where, index)
                yield from self.violations(item, of_items, inside, level + 1)

    def _wrong_type(self, value: Any, schema: Schema) -> str | None:
        if "const" in schema:
            self._spend(_count_values(schema["const"]) // _VALUES_A_STEP)
            if not equal(value, schema["const"]):
                return f"must be {format_value(schema['const'])}, not {format_value(value)}"
        values = schema.get("enum")
        if isinstance(values, list):
            self._spend(_count_values(values) // _VALUES_A_STEP)
            if not any(equal(value, allowed) for allowed in values):
                return (
                    "must be one of "
                    f"{format_names(values, 10, format_value)}{self._not(value, values)}"
                )
        kinds = schema.get("type")
        if isinstance(kinds, str):
            if _is(value, kinds):
                return None
            kinds = [kinds]
        else:
            kinds = [kind for kind in _list(schema, "type") if isinstance(kind, str)]
        self._spend(len(kinds) // _VALUES_A_STEP)
        if not kinds or _is_any(value, kinds):
            return None
        return f"wanted {' or '.join(kinds)}, not {format_value(value)}"

    def _not(self, value: Any, allowed: list[Any]) -> str:
        """Return what a value is in the place of what is allowed, with the
        nearest of that for a text.
        """
        names = [name for name in allowed if isinstance(name, str)]
        self._spend(_STEPS_A_NAME * len(names))
        hint = ""
        if isinstance(value, str):
            hint = did_you_mean(value, names)
        return f", not {format_value(value)}{hint}"

    def _types(self, schema: Schema) -> frozenset[str]:
        steps = [_MAX_TYPES]
        types = _types(schema, self._defs, steps, 0)
        self._spend(_MAX_TYPES - steps[0])
        return types


def equal(one: Any, other: Any) -> bool:
    """JSON equality: 1 is 1.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return False
        return all(equal(item, other[key]) for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        return all(map(equal, one, other))
    return bool(one == other)


def _is_any(value: Any, kinds: Iterable[str]) -> bool:
    return any(_is(value, kind) for kind in kinds)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean" or kind not in TYPES
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES.get(kind, (object,)))


def _count_values(value: Any) -> int:
    """Return how many values a JSON value is made of: so many are compared at most."""
    count = 0
    pending = [value]
    while pending:
        count += 1
        pending += parts_of(pending.pop())
    return count


def parts_of(value: Any) -> Collection[Any]:
    """Return the values directly inside a JSON value; a text, a number, true,
    false and null have none.
    """
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value
    return ()


def _limits(value: Any, schema: Schema) -> Iterator[str]:
    if isinstance(value, str):
        yield from _wrong_length(
            len(value), _bound(schema, "minLength"), _bound(schema, "maxLength"), "characters"
        )
    elif isinstance(value, list | tuple):
        yield from _wrong_length(
            len(value), _bound(schema, "minItems"), _bound(schema, "maxItems"), "items"
        )
    elif isinstance(value, int | float) and not isinstance(value, bool):
        for name, breaks, words in _RANGES:
            bound = _bound(schema, name)
            if bound is not None and breaks(value, bound):
                yield f"is {format_value(value)}; {words} {bound}"


def _wrong_length(length: int, least: float | None, most: float | None, unit: str) -> Iterator[str]:
    if least is not None and length < least:
        yield f"has {length} {unit}; at least {least}"
    if most is not None and length > most:
        yield f"has {length} {unit}; at most {most}"


def compile_pattern(pattern: str) -> SchemaValidator:
    """Return a pattern whose `isinstance_python` searches a text. Raises ValueError with
    what is wrong with it.
    """
    if pattern_size(pattern) > MAX_PATTERN_SIZE_CHARACTERS:
        raise ValueError(
            "is too large with its counted repeats written out; bound the text with maxLength "
            "instead"
        )
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError as error:
        reason = str(error).strip().rpartition("error: ")[2]
        raise ValueError(
            f"is no regular expression of Rust's syntax: {printable(reason)}"
        ) from None


def _compiled_or_none(pattern: str) -> SchemaValidator | None:
    return _COMPILED.get_or_make(pattern, lambda: _compiled(pattern)).validator


class _Compiled(NamedTuple):
    """A pattern with what finds it in a text; nothing does if it is no regular expression."""

    pattern: str
    validator: SchemaValidator | None


def _compiled(pattern: str) -> _Compiled:
    validator = None
    with suppress(ValueError):
        validator = compile_pattern(pattern)
    return _Compiled(pattern, validator)


def _compiled_bytes(compiled: _Compiled) -> int:
    """Return what a compiled pattern takes after it was used: at most 2.9 KB for each character
    were measured, with the repeats written out, and up to 40 KB beside that.
    """
    size = min(pattern_size(compiled.pattern), MAX_PATTERN_SIZE_CHARACTERS)
    return 65_536 + 4_096 * size


_COMPILED = BoundedCache[str, _Compiled](MAX_KEPT_PATTERNS_BYTES, _compiled_bytes)


def pattern_size(pattern: str) -> int:
    """Return how many characters a pattern has with its counted repeats written out, or more. A
    class of Unicode such as `\\w` counts as 20.
    """
    if len(pattern) > MAX_PATTERN_SIZE_CHARACTERS:
        return len(pattern)
    bare = "".join(pattern.split())
    classes = len(_UNICODE_CLASS.findall(bare))
    weight = 1
    if classes:
        weight = _CLASS_CHARACTERS
    size = len(bare) + weight * classes
    copies = 1
    for repeat in _COUNT.finditer(bare):
        bounds = [int(number or 0) for number in repeat[1].split(",")]
        most = max(bounds)
        # A repeat of a group, or of a repeat, copies all of it; # may begin a comment, which
        # hides what is repeated.
        repeated = bare[repeat.start() - 1]
        if "#" in bare or repeated in ")}?+*":
            copies *= max(most, 1)
        else:
            size += weight * most
    return size * copies


def _bound(schema: Schema, name: str) -> float | None:
    bound = schema.get(name)
    if isinstance(bound, int | float) and not isinstance(bound, bool):
        return bound
    return None


def _object(schema: Any, name: str) -> dict[str, Any]:
    if not isinstance(schema, dict):
        return {}
    value = schema.get(name)
    if isinstance(value, dict):
        return value
    return {}


def _list(schema: Schema, name: str) -> list[Any]:
    value = schema.get(name)
    if isinstance(value, list):
        return value
    return []
