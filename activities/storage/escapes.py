"""Keeps what comes from outside from passing for a reference where values and
references stand in one JSON.
"""

import re
from typing import Any

REFERENCE = "__ref__"
"""The key of an object that is a reference to a stored value."""
_ESCAPE = "~"
_LOOKS = re.compile(rf"{REFERENCE}{_ESCAPE}*")


def escaped(value: Any) -> Any:
    """Return a JSON value in which no object is a reference. `unescaped_key` gives
    back each of its keys.
    """
    if isinstance(value, dict):
        return {escaped_key(key): escaped(part) for key, part in value.items()}
    if isinstance(value, list):
        return [escaped(part) for part in value]
    return value


def escaped_key(key: str) -> str:
    """Return a key of data, other than that of a reference."""
    if not _LOOKS.fullmatch(key):
        return key
    return f"{key}{_ESCAPE}"


def unescaped_key(key: str) -> str:
    """Return a key as it was before `escaped_key`."""
    if not _LOOKS.fullmatch(key):
        return key
    return key.removesuffix(_ESCAPE)
