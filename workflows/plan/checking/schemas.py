"""The schemas that a plan brings itself: every keyword must be one that `json_schema.py` knows,
and mean what it says.

A keyword that nothing checks would be a promise nobody keeps, and so would a pattern that the
engine cannot take; both are refused before the run.
"""

from collections.abc import Iterator
from typing import Any

from sennit.workflows.plan.language.dag import first_cycle
from sennit.workflows.plan.language.json_schema import Violation, compile_pattern, violations
from sennit.workflows.plan.language.problems import Where
from sennit.workflows.plan.language.schema_keywords import CHOICES, KEYWORDS, SCHEMA, Schema
from sennit.workflows.plan.language.text import format_name, format_names, format_value
from sennit.workflows.plan.limits import MAX_JSON_LEVELS

_SCHEMA_OF_SCHEMAS: Schema = {
    **SCHEMA,
    "$defs": {
        "schema": {
            "type": ["object", "boolean"],
            "properties": KEYWORDS,
            "additionalProperties": False,
        }
    },
}


def unknown_keywords(schema: Any, where: Where = ()) -> Iterator[Violation]:
    """Yield (path, sentence) for each keyword that no check would look at, and for
    each that is malformed.
    """
    is_wrong = False
    for path, sentence in violations(schema, _SCHEMA_OF_SCHEMAS):
        is_wrong = True
        if sentence.startswith("`"):
            sentence = f"schema keyword {sentence.replace('is unknown', 'is not supported', 1)}"
        yield (*where, *path), sentence
    if not is_wrong and isinstance(schema, dict):
        defs = schema.get("$defs", {})
        yield from _circular(defs, where)
        yield from _meaningless(schema, where, defs)


def _meaningless(schema: Any, where: Where, defs: dict[str, Any]) -> Iterator[Violation]:
    """Yield the references and patterns that say nothing, in a schema of the right form."""
    if not isinstance(schema, dict):
        return
    if "pattern" in schema:
        try:
            compile_pattern(schema["pattern"])
        except ValueError as error:
            yield (*where, "pattern"), f"`pattern` {error}"
    if "$ref" in schema:
        known = [f"#/$defs/{name}" for name in defs]
        if schema["$ref"] not in known:
            sentence = (
                f"{format_value(schema['$ref'])} is not in `$defs`; write #/$defs/NAME, with one "
                "of "
            )
            yield (*where, "$ref"), sentence + format_names(defs)
    for name in ("items", "additionalProperties"):
        yield from _meaningless(schema.get(name), (*where, name), defs)
    for name in ("properties", "$defs"):
        for key, part in schema.get(name, {}).items():
            yield from _meaningless(part, (*where, name, key), defs)
    for name in CHOICES:
        for index, part in enumerate(schema.get(name, ())):
            yield from _meaningless(part, (*where, name, index), defs)


def _circular(defs: dict[str, Any], where: Where) -> Iterator[Violation]:
    """Yield a definition that refers to itself: no value could ever be judged by it."""
    names = list(defs)
    places = {name: place for place, name in enumerate(names)}
    refers_to = []
    for part in defs.values():
        followed = [places[name] for name in _same_value(part, 0) if name in places]
        refers_to.append(followed)
    cycle = first_cycle(refers_to)
    if cycle is not None:
        name = names[cycle[0]]
        sentence = f"{format_name(name)} refers to itself; say what it is"
        yield (*where, "$defs", name), sentence


def _same_value(schema: Any, level: int) -> Iterator[str]:
    """Yield the definitions that judge the very value which `schema` judges."""
    if not isinstance(schema, dict) or level > MAX_JSON_LEVELS:
        return
    if "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2]
    for name in CHOICES:
        for part in schema.get(name, ()):
            yield from _same_value(part, level + 1)
