"""Durations as people write them (`500ms`, `30s`, `5m`, `24h`), held as seconds."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_SHAPE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)\Z")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 30 * 86400.0


def parse_duration(value: Any) -> float:
    """Return the seconds in `value`; raises ValueError naming the accepted forms."""
    found = _SHAPE.match(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not a duration; write one such as 500ms, 30s, 5m, 24h")
    seconds = float(found[1]) * _SECONDS[found[2]]
    if not 0 < seconds <= _LONGEST:
        raise ValueError(f"{value!r} is out of range; a duration is above 0 and at most 30d")
    return seconds


def format_duration(seconds: float) -> str:
    """Return the shortest exact spelling of `seconds`, which `parse_duration` reads back."""
    for unit in ("d", "h", "m", "s"):
        count = seconds / _SECONDS[unit]
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    return f"{round(seconds * 1000, 3):g}ms"


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h|d)$", "examples": ["30s"]}),
]
