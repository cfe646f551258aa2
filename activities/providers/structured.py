"""JSON of a given schema from a model: asked of the server where it can, in words
where it cannot, and read.
"""

import json
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sennit.activities.providers.errors import SchemaMismatch
from sennit.workflows.plan.planner_format.json_text import (
    FoundJson,
    Unreadable,
    decode_whole,
    find_json,
)

Schema = dict[str, Any]

WRAP = "value"
_KEY = re.compile(r"[\"'\u201d]\w+[\"'\u201d]\s*:")
_EXAMPLE = re.compile(
    r"\b(?:for )?example\b|\bfor instance\b|\be\.g\.|\bmy (?:final )?answer is\b", re.IGNORECASE
)
_FENCE = re.compile(r"```\w*\s*")


def wrapped(schema: Schema) -> Schema:
    """Return a schema whose root is an object, as servers demand: anything else
    becomes its property `value`.
    """
    if schema.get("type") == "object":
        return schema
    inner = {name: part for name, part in schema.items() if name != "$defs"}
    outer: Schema = {
        "type": "object",
        "properties": {WRAP: inner},
        "required": [WRAP],
        "additionalProperties": False,
    }
    if "$defs" in schema:  # references to them begin at the root
        outer["$defs"] = schema["$defs"]
    return outer


def closed_schema(schema: Any) -> Any:
    """Return a schema whose objects allow the properties they name and no others,
    as some servers demand.
    """
    if isinstance(schema, list):
        return [closed_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed: Schema = {}
    if isinstance(schema.get("properties"), dict):
        closed["additionalProperties"] = False
    for name, part in schema.items():
        closed[name] = part
        if name not in ("enum", "const"):  # these hold values, which may look like schemas
            closed[name] = closed_schema(part)
    return closed


def strict_schema(schema: Schema) -> Schema:
    """Return a schema whose objects require all their properties: null is added to the optional
    ones. Optional ones and choices that are no strict schema even so are left out.
    """
    strict = dict(schema)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        required = schema.get("required", ())
        kept: Schema = {}
        for name, part in properties.items():
            part = strict_schema(part)
            if name in required:
                kept[name] = part
            elif is_strict(part):
                kept[name] = {"anyOf": [part, {"type": "null"}]}
        strict["properties"] = kept
        strict["required"] = list(kept)
    if isinstance(schema.get("items"), dict):
        strict["items"] = strict_schema(schema["items"])
    if isinstance(schema.get("anyOf"), list):
        choices = [strict_schema(part) for part in schema["anyOf"]]
        strict["anyOf"] = list(filter(is_strict, choices)) or choices
    if isinstance(schema.get("$defs"), dict):
        strict["$defs"] = {name: strict_schema(part) for name, part in schema["$defs"].items()}
    return strict


def is_strict(schema: Any) -> bool:
    """Whether every object names its properties, requires them all and allows no others."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    named = schema.get("properties")
    if schema.get("type") == "object" or isinstance(named, dict):
        if not isinstance(named, dict):
            return False
        requires_all = sorted(named) == sorted(schema.get("required", ()))
        if not requires_all or schema.get("additionalProperties") is not False:
            return False
    return all(is_strict(part) for name, part in schema.items() if name not in ("enum", "const"))


def schema_instruction(schema: Schema) -> str:
    """Return the instruction for a model whose server cannot be given a schema."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON value that fits this JSON Schema, and with nothing else:\n{text}"


def parse_json(text: str, schema: Schema, *, in_wrap: bool) -> Any:
    """Return the JSON value in a reply: all of it, inside a code fence or tags, or
    what stands between words.

    `in_wrap` says that the server was given `wrapped(schema)`. Raises SchemaMismatch,
    which says where it breaks.
    """
    try:
        value = _value_in(text)
    except Unreadable as error:
        shown = " ".join(text[:1_000].split())[:160]
        problem = f"the model's output is not JSON: {shown!r}"
        if str(error):
            problem += f"; {error}"
        raise SchemaMismatch(problem, retryable=True) from None
    may_be_wrapped = in_wrap and schema.get("type") != "object"
    if may_be_wrapped and isinstance(value, dict) and list(value) == [WRAP]:
        return value[WRAP]
    return value


def _value_in(text: str) -> Any:
    """Return the only JSON value of a reply. Raises Unreadable, without a word if there is none."""
    # A number, a text or a word of JSON stands alone: between words it would be a guess.
    head, _, inside = text.strip().partition("\n")
    whole = text
    if inside.endswith("```") and _FENCE.fullmatch(head):
        whole = inside.removesuffix("```")
    with suppress(Unreadable):
        return decode_whole(whole)

    found = _object_or_list_in(text)
    if found is None:
        raise Unreadable
    around = f"{found.before} {found.behind}"
    opening = "{" if isinstance(found.value, dict) else "["
    if _KEY.search(around) or opening in found.behind or not found.has_words_behind:
        raise Unreadable("more JSON stands beside the first")
    if _EXAMPLE.search(around):
        raise Unreadable("what stands there is an example; write the answer alone")
    return found.value


def _object_or_list_in(text: str) -> FoundJson | None:
    """Return the first object or list of a reply; an object also behind square
    brackets that are words.
    """
    try:
        return find_json(text)
    except Unreadable:
        start = text.find("{")
        if not 0 <= text.find("[") < start:
            raise
        with suppress(Unreadable):
            found = find_json(text[start:])
            if found is None:
                return None
            return replace(found, before=text[:start])
        raise
