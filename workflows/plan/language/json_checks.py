"""Whether data is plain JSON: what JSON text cannot carry is found here, before
anything tries to write it.

Python's reader lets NaN, lone surrogates and numbers of any size through, and whoever hashes,
stores or sends them fails much later, in a place that cannot say what was wrong.
"""

from collections.abc import Iterable
from math import isfinite
from typing import Any

from sennit.workflows.plan.language.problems import Where
from sennit.workflows.plan.language.text import format_name, format_value, printable
from sennit.workflows.plan.limits import MAX_JSON_LEVELS, MAX_JSON_VALUES, MAX_NUMBER_BITS

_HOLDERS = (dict, list)


def first_violation(data: Any, *, depth: int = MAX_JSON_LEVELS) -> tuple[Where, str] | None:
    """Return (path, sentence) of a value which plain JSON does not hold, None when there is none.

    At most `depth` levels and 1,000,000 values; needs no stack, so any nesting is judged, and data
    that contains itself is too deep.
    """
    pending: list[tuple[Any, Where]] = [(data, ())]
    seen = 0
    while pending:
        value, where = pending.pop()
        wrong = _wrong(value)
        if wrong is not None:
            return where, wrong
        if len(where) > depth:
            return (
                (),
                f"nested more than {depth} levels deep; flatten it, or put the text in a document",
            )
        if isinstance(value, _HOLDERS):
            seen += len(value)
        else:
            seen += 1
        if seen > MAX_JSON_VALUES:
            return (), f"holds over {MAX_JSON_VALUES:,} values; use a `map` for many alike nodes"
        for key, item in _parts(value):
            if isinstance(item, _HOLDERS):
                pending.append((item, (*where, key)))
                continue
            if isinstance(item, str) and item.isascii():
                continue
            wrong = _wrong(item)
            if wrong is not None:
                return (*where, key), wrong
    return None


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list):
        return enumerate(value)
    return ()


def _wrong(value: object) -> str | None:
    if isinstance(value, str):
        if _encodable(value):
            return None
        return f"{format_value(value)} holds half a surrogate pair; write the character whole"
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        if value.bit_length() > MAX_NUMBER_BITS:
            return "a number of over 300 digits; write it as text"
        return None
    if isinstance(value, float):
        if isfinite(value):
            return None
        return f"{format_value(value)} is no number that JSON can hold; use null or text"
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or not (key.isascii() or _encodable(key)):
                return _wrong_key(key)
        return None
    if isinstance(value, list):
        return None
    return f"{_kind(value)} is nothing that JSON can hold"


def _wrong_key(key: Any) -> str:
    if isinstance(key, str):
        return f"the field {format_name(key)} holds half a surrogate pair"
    return f"a field is named by a value ({_kind(key)}); names are text, so put it in quotes"


def _kind(value: object) -> str:
    return printable(type(value).__name__, 40)


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
