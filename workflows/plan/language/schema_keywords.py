"""The keywords and types of JSON schemas in plans and programs. The process of a
script knows them, too.
"""

from typing import Any

from sennit.workflows.plan.limits import MAX_CHECKED_PATTERN_CHARACTERS

Schema = dict[str, Any]
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}
_NOTES = (
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "deprecated",
)
CHOICES = ("anyOf", "oneOf", "allOf")
SCHEMA: Schema = {"$ref": "#/$defs/schema"}
_SCHEMAS: Schema = {"type": "array", "items": SCHEMA, "minItems": 1}
_NAMED_SCHEMAS: Schema = {"type": "object", "additionalProperties": SCHEMA}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_NUMBER: Schema = {"type": "number"}
_ANYTHING: Schema = {}
KEYWORDS: dict[str, Schema] = {
    "type": {
        "anyOf": [
            {"enum": list(TYPES)},
            {"type": "array", "items": {"enum": list(TYPES)}, "minItems": 1},
        ]
    },
    "enum": {"type": "array", "minItems": 1},
    "const": _ANYTHING,
    **dict.fromkeys(CHOICES, _SCHEMAS),
    "$ref": {"type": "string"},
    "$defs": _NAMED_SCHEMAS,
    "properties": _NAMED_SCHEMAS,
    "required": {"type": "array", "items": {"type": "string"}},
    "additionalProperties": SCHEMA,
    "items": SCHEMA,
    "pattern": {"type": "string", "maxLength": MAX_CHECKED_PATTERN_CHARACTERS},
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), _COUNT),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(_NOTES, _ANYTHING),
}
