"""References by line number, `$1` and `${1.items[0].name}`, as references by node id."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from workflows.plan.language.references import STEP

_NUMBERED = re.compile(
    rf"\$\$|\$\{{\s*(?P<braced>\d{{1,9}})(?P<path>{STEP}*)\s*\}}|\$(?P<plain>\d{{1,9}})(?!\d)(?P<word>[A-Za-z_])?",
    re.ASCII,
)


def numbers_in(value: Any) -> Iterator[int]:
    """Yield the line numbers that the strings of a JSON value refer to; keys are never read."""
    if isinstance(value, str):
        for found in _NUMBERED.finditer(value) if "$" in value else ():
            if found[0] != "$$":
                yield int(found["braced"] or found["plain"])
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(item)


def with_ids(value: Any, id_of: Callable[[int], str | None]) -> Any:
    """Return `value` with line numbers as node ids; what refers to a line that is none (`id_of` is None) is text."""
    if isinstance(value, str):
        return _NUMBERED.sub(lambda found: _written(found, id_of), value) if "$" in value else value
    if isinstance(value, dict):
        return {key: with_ids(item, id_of) for key, item in value.items()}
    return [with_ids(item, id_of) for item in value] if isinstance(value, list) else value


def _written(found: re.Match[str], id_of: Callable[[int], str | None]) -> str:
    if found[0] == "$$":
        return "$$"
    name = id_of(int(found["braced"] or found["plain"]))
    if found["braced"]:
        return f"${{{name}{found['path']}}}" if name else f"${found[0]}"
    if not name:
        return found[0]
    return f"${{{name}}}{found['word']}" if found["word"] else f"${name}"
