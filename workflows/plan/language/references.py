"""References to other nodes' outputs: `$n3`, `$n3.count`, `${n3.items[0].name}`.

A value that is only a reference keeps its type. Inside text a reference is replaced once: what is put in is never
looked at again. `$$` is a literal `$`, and `$` before a digit or any other character is text.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_NAME = r"[A-Za-z][A-Za-z0-9_]{0,39}"
STEP = r"(?:\.[A-Za-z_][A-Za-z0-9_-]*|\[\d{1,6}\])"
_TOKEN = re.compile(
    rf"\$\$|\$\{{(?P<braced>{_NAME})(?P<braced_path>{STEP}*)\}}|\$(?P<plain>{_NAME})(?P<plain_path>(?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d{{1,6}}\])*)"
)
_OPEN = re.compile(r"\$\{[^}]{0,60}\}?")
_PATH = re.compile(rf"(?:[A-Za-z_][A-Za-z0-9_-]*)?{STEP}*")
_PART = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d{1,6})\]")
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_STATUS = re.compile(rf"\$(?P<node>{_NAME}):(?P<name>status|error\.type)\Z")

Step = str | int


class BindError(Exception):
    """A reference that cannot be resolved: the path is not in the value. The message names both."""


@dataclass(frozen=True, slots=True)
class Reference:
    """`node` is a node id, `input`, `goal` or a map's item name; `path` leads into its value."""

    node: str
    path: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return f"${{{self.node}{path_text(self.path)}}}" if self.path else f"${self.node}"

    @property
    def fact(self) -> str:
        """The name under which a condition reads this value: the path as written, `.` for the whole."""
        return path_text(self.path).removeprefix(".") or "."


def path_text(path: tuple[Step, ...]) -> str:
    """Return a path as it is written behind a node id: `.items[0].name`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def parse_path(text: str) -> tuple[Step, ...]:
    """Return the steps of `.items[0].name` or `items[0].name`; `.` alone is the whole value."""
    if text == ".":
        return ()
    dotted = text if text.startswith(("[", ".")) or not text else f".{text}"
    return tuple(int(index) if index else name for name, index in _PART.findall(dotted))


def _reference(found: re.Match[str]) -> Reference:
    node = found["braced"] or found["plain"]
    return Reference(node, parse_path((found["braced_path"] or found["plain_path"]) or ""))


def parse_reference(text: str) -> Reference | None:
    """Return the reference that `text` is as a whole, or None."""
    found = _TOKEN.fullmatch(text)
    return _reference(found) if found and found[0] != "$$" else None


def parse_status_reference(text: str) -> tuple[str, str] | None:
    """Return (node id, `status` or `error.type`) for `$a:status`, `$a:error.type`; else None."""
    found = _STATUS.match(text)
    return (found["node"], found["name"]) if found else None


def references_in(value: Any) -> Iterator[Reference]:
    """Yield the references in every string of a JSON value, in order; keys are never read."""
    for text in _texts_in(value):
        yield from (_reference(found) for found in _TOKEN.finditer(text) if found[0] != "$$")


def malformed_in(value: Any) -> Iterator[str]:
    """Yield each `${...}` that looks like a reference but is none, so that it is not taken for text."""
    for text in _texts_in(value):
        yield from (found[0] for found in _OPEN.finditer(_TOKEN.sub("", text)))


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(item)


def literal(value: Any) -> Any:
    """Return a value that is data, written so that nothing in it is a reference."""
    return _with_texts(value, lambda text: text.replace("$", "$$"))


def bind(value: Any, lookup: Callable[[str], Any]) -> Any:
    """Return `value` with every reference replaced; `lookup` gives a node's whole output.

    Raises BindError when a path is not in the output, and whatever `lookup` raises.
    """
    return _with_texts(value, lambda text: _bind_text(text, lookup))


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return `value` with references to other nodes, as `names` says, in the form that they were written in."""
    return _with_texts(value, lambda text: _TOKEN.sub(lambda found: _renamed(found, names), text))


def _with_texts(value: Any, change: Callable[[str], Any]) -> Any:
    """Return a JSON value with each of its texts changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _with_texts(item, change) for key, item in value.items()}
    return [_with_texts(item, change) for item in value] if isinstance(value, list | tuple) else value


def _renamed(found: re.Match[str], names: Mapping[str, str]) -> str:
    name = found["braced"] or found["plain"]
    return found[0].replace(name, names[name], 1) if name in names else found[0]


def _bind_text(text: str, lookup: Callable[[str], Any]) -> Any:
    whole = parse_reference(text)
    if whole is not None:
        return resolve(whole, lookup(whole.node))

    return filled(text, lambda reference: as_text(resolve(reference, lookup(reference.node))))


def filled(text: str, write: Callable[[Reference], str]) -> str:
    """Return text with every reference replaced by what `write` says, once, and `$$` by a dollar."""
    return _TOKEN.sub(lambda found: "$" if found[0] == "$$" else write(_reference(found)), text)


def rewrite(text: str, put: Callable[[Reference], str | None]) -> str:
    """Return `text` with those references replaced for which `put` gives a text; what is put in stays text."""

    def substitute(found: re.Match[str]) -> str:
        new = put(_reference(found)) if found[0] != "$$" else None
        return found[0] if new is None else new.replace("$", "$$")

    return _TOKEN.sub(substitute, text)


def as_text(value: Any) -> str:
    """Return how a value reads inside text: a string as it is, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    return _COMPACT.encode(value)


def part_of(value: Any, path: str, name: str) -> Any:
    """Return what is at a path of a value, such as `items[0].title`; the whole for "". `name` is what the value is
    called. Raises BindError, which says what is there instead.
    """
    if path and not _PATH.fullmatch(path):
        raise BindError(f"{path[:100]!r} is no path into {name}; write it like items[0].title")
    return resolve(Reference(name, parse_path(path)), value)


def resolve(reference: Reference, value: Any) -> Any:
    """Follow the reference's path into `value`; `.length` of a list is its length. Raises BindError."""
    here = value
    for count, step in enumerate(reference.path):
        here = _follow(here, step, reference, count)
    return here


def _follow(here: Any, step: Step, reference: Reference, count: int) -> Any:
    if isinstance(here, dict) and isinstance(step, str) and step in here:
        return here[step]
    if isinstance(here, list) and isinstance(step, int) and step < len(here):
        return here[step]
    if isinstance(here, list) and step == "length":
        return len(here)
    at = f"${reference.node}{path_text(reference.path[:count])}"
    raise BindError(f"{reference} has no value: {at} is {_describe(here)}")


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        names = ", ".join(sorted(map(str, value))[:8])
        return f"an object with {names}" if names else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "nothing" if value is None else f"a {type(value).__name__}"
