"""The JSON schema of a plan in JSON, built from a run's tools, for servers that hold a reply to a schema.

It says the form, and of arguments what the form of JSON is: that values fit is checked later. Descriptions stand in
the prompt. Wherever a value is no text, a reference may stand too.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from workflows.plan.language import json_schema
from workflows.plan.planner_format.calls import FORMS

Schema = dict[str, Any]

MOST_BYTES = 32 * 1024
_LEVELS, _MOST_PARTS = 4, 60
"""Of an argument's schema, which may refer to itself."""
_SHORT = 40
_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}
_REFERENCE: Schema = {"type": "string", "pattern": r"^[$]([0-9]+|goal|item|input)([.][A-Za-z0-9_]+|\[[0-9]+\])*$"}


def plan_schema(catalogue: Sequence[Schema]) -> Schema:
    """Return the schema; as much of the tools' own as fits into 32 KB, their names and arguments first."""
    for levels in range(_LEVELS, -1, -1):
        schema = _shared(_plan(catalogue, levels))
        if size_of(schema) <= MOST_BYTES:
            break
    return schema


def size_of(schema: Schema) -> int:
    """Return how many bytes a schema has on the wire."""
    return len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode())


def _plan(catalogue: Sequence[Schema], levels: int) -> Schema:
    tools = [entry for entry in catalogue if entry["name"] not in FORMS]
    named = {"type": "array", "items": {"enum": [entry["name"] for entry in tools]}}
    forms: dict[str, Schema] = {
        "llm": _closed({"prompt": _TEXT, "output_schema": _OBJECT}, ["prompt"]),
        "join": _closed({"inputs": _listed(_REFERENCE), "policy": {"enum": ["first"]}}),
    }
    if tools:
        looped = {"prompt": _TEXT, "output_schema": _OBJECT, "tools": named, "max_turns": {"type": "integer"}}
        forms["llm"] = _closed(looped, ["prompt"])
        forms["agent"] = _closed({"goal": _TEXT, "tools": named}, ["goal"])
    calls = [_call(str(entry["name"]), _arguments(entry.get("schema"), levels)) for entry in tools]
    calls += [_call(name, arguments) for name, arguments in forms.items()]
    answer = _closed({"text": _TEXT, "results": _listed(_REFERENCE)})
    return _closed({"calls": {**_listed({"anyOf": calls}), "minItems": 1}, "answer": answer})


def _call(name: str, arguments: Schema) -> Schema:
    fields = {"n": {"type": "integer"}, "for_each": _REFERENCE, "tool": {"enum": [name]}, "arguments": arguments}
    return _closed(fields, ["n", "tool", "arguments"])


def _closed(fields: dict[str, Schema], required: Sequence[str] | None = None) -> Schema:
    wanted = [*fields] if required is None else [*required]
    some = {"required": wanted} if wanted else {}
    return {"type": "object", "properties": fields, **some, "additionalProperties": False}


def _listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _arguments(schema: Any, levels: int) -> Schema:
    defs = json_schema.definitions(schema)
    return _form(schema, defs, levels, iter(range(_MOST_PARTS))) if levels else _OBJECT


def _value(part: Any, defs: Schema, levels: int, room: Iterator[int]) -> Schema:
    """Return the form of a value in arguments: text, or what it is, or a reference to that."""
    form = _form(part, defs, levels, room)
    choices = form.get("anyOf", [form])
    return form if {} in choices or _TEXT in choices else {"anyOf": [*choices, _REFERENCE]}


def _form(part: Any, defs: Schema, levels: int, room: Iterator[int]) -> Schema:
    part = json_schema.resolve(part, defs)
    if next(room, None) is None or levels < 0:
        return {}
    if isinstance(part.get("enum"), list) or "const" in part:
        return {"enum": part.get("enum") or [part["const"]]}
    if choices := json_schema.choices_of(part):
        return _any_of(_form(choice, defs, levels, room) for choice in choices)
    fields = part.get("properties")
    if isinstance(fields, dict) and fields and levels:
        wanted = [name for name in part.get("required") or () if name in fields]
        return _closed({name: _value(inner, defs, levels - 1, room) for name, inner in fields.items()}, wanted)
    types = sorted(json_schema.types_of(part, defs))
    if types == ["array"] and isinstance(part.get("items"), dict) and levels:
        return _listed(_value(part["items"], defs, levels - 1, room))
    return _any_of({"type": name} for name in types) if types else {}


def _any_of(forms: Iterable[Schema]) -> Schema:
    found = list(forms)
    return found[0] if len(found) == 1 else {} if {} in found else {"anyOf": found}


def _shared(schema: Schema) -> Schema:
    """Return a schema that says only once, in `$defs`, what it would say often."""
    counts: Counter[str] = Counter()

    def count(part: Schema) -> Schema:
        counts[_written(part)] += 1
        return _changed(part, count)

    def name(part: Schema) -> Schema:
        found = names.get(_written(part))
        return {"$ref": f"#/$defs/{found}"} if found else _changed(part, name)

    count(schema)
    often = [text for text, times in counts.items() if times > 1 and len(text) > _SHORT]
    names = {text: f"d{place}" for place, text in enumerate(often)}
    defs = {names[text]: _changed(json.loads(text), name) for text in often}
    return {**name(schema), **({"$defs": defs} if defs else {})}


def _changed(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Return a schema whose inner schemas are changed."""
    fields = {name: change(part) for name, part in schema.get("properties", {}).items()}
    found: Schema = {"properties": fields} if "properties" in schema else {}
    found |= {"items": change(schema["items"])} if "items" in schema else {}
    return {**schema, **found, **({"anyOf": [change(part) for part in schema["anyOf"]]} if "anyOf" in schema else {})}


def _written(schema: Schema) -> str:
    return json.dumps(schema)
