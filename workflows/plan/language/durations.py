"""Durations: as people write them (`500ms`, `30s`, `5m`), held as seconds; and as people read them."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_SHAPE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)\Z")
_MILLIS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_LONGEST = 30 * 86_400_000


def parse_duration(value: Any) -> float:
    """Return the seconds in `value`, in whole milliseconds; raises ValueError naming the accepted forms."""
    found = _SHAPE.match(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not a duration; write one such as 500ms, 30s, 5m, 24h")
    millis = float(found[1]) * _MILLIS[found[2]]
    if not 1 <= millis <= _LONGEST:
        raise ValueError(f"{value[:40]!r} is out of range; a duration is at least 1ms and at most 30d")
    return round(millis) / 1000


def format_duration(seconds: float) -> str:
    """Return the shortest exact spelling of a duration in whole milliseconds, which `parse_duration` reads back."""
    millis = round(seconds * 1000)
    unit = next(name for name, size in _MILLIS.items() if millis % size == 0)
    return f"{millis // _MILLIS[unit]}{unit}"


def duration_text(ms: float | None) -> str:
    """Return milliseconds as people read them: `230 ms`, `3.4 s`, `2 m 05 s`, `1 h 02 m`; nothing for None."""
    if ms is None:
        return ""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes} m {seconds:02} s"
    return f"{minutes // 60} h {minutes % 60:02} m"


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h|d)$", "examples": ["30s"]}),
]
