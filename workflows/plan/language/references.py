"""References to other nodes' outputs: `$n3`, `$n3.count`, `${n3.items[0].name}`.

A value that is only a reference keeps its type. Inside text a reference is replaced once:
what is put in is never looked at again. `$$` is a literal `$`, and `$` before a digit or any
other character is text.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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
_DOLLAR = "$$"
"""How a dollar is written that begins no reference."""
_NAMED_FIELDS = 8


class BindError(Exception):
    """A reference that cannot be resolved: the path is not in the value. The message names both."""


@dataclass(frozen=True, slots=True)
class Reference:
    """`node` is a node id, `input`, `goal` or a map's item name; `path` leads into its value."""

    node: str
    path: tuple[Step, ...] = ()

    def __str__(self) -> str:
        if not self.path:
            return f"${self.node}"
        return f"${{{self.node}{path_text(self.path)}}}"

    @property
    def fact(self) -> str:
        """The name under which a condition reads this value: the path as
        written, `.` for the whole.
        """
        return path_text(self.path).removeprefix(".") or "."


class StatusReference(NamedTuple):
    """What a condition reads of a node that has ended: `name` is `status` or `error.type`."""

    node: str
    name: str


def path_text(path: tuple[Step, ...]) -> str:
    """Return a path as it is written behind a node id: `.items[0].name`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}"
    return text


def parse_path(text: str) -> tuple[Step, ...]:
    """Return the steps of `.items[0].name` or `items[0].name`; `.` alone is the whole value."""
    if text == ".":
        return ()
    if text and not text.startswith(("[", ".")):
        text = f".{text}"
    steps: list[Step] = []
    for name, index in _PART.findall(text):
        if index:
            steps.append(int(index))
        else:
            steps.append(name)
    return tuple(steps)


def _reference(token: re.Match[str]) -> Reference:
    node = token["braced"] or token["plain"]
    path = token["braced_path"] or token["plain_path"] or ""
    return Reference(node, parse_path(path))


def parse_reference(text: str) -> Reference | None:
    """Return the reference that `text` is as a whole, or None."""
    token = _TOKEN.fullmatch(text)
    if token is None or token[0] == _DOLLAR:
        return None
    return _reference(token)


def parse_status_reference(text: str) -> StatusReference | None:
    """Return what `$a:status` and `$a:error.type` refer to, or None."""
    token = _STATUS.match(text)
    if token is None:
        return None
    return StatusReference(token["node"], token["name"])


def references_in(value: Any) -> Iterator[Reference]:
    """Yield the references in every string of a JSON value, in order; keys are never read."""
    for text in _texts_in(value):
        for token in _TOKEN.finditer(text):
            if token[0] != _DOLLAR:
                yield _reference(token)


def malformed_in(value: Any) -> Iterator[str]:
    """Yield each `${...}` that looks like a reference but is none, so that it
    is not taken for text.
    """
    for text in _texts_in(value):
        without_references = _TOKEN.sub("", text)
        for opened in _OPEN.finditer(without_references):
            yield opened[0]


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
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
    """Return `value` with references to other nodes, as `names` says, in the form
    that they were written in.
    """

    def with_new_names(text: str) -> str:
        return _TOKEN.sub(lambda token: _renamed(token, names), text)

    return _with_texts(value, with_new_names)


def _with_texts(value: Any, change: Callable[[str], Any]) -> Any:
    """Return a JSON value with each of its texts changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _with_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(item, change) for item in value]
    return value


def _renamed(token: re.Match[str], names: Mapping[str, str]) -> str:
    name = token["braced"] or token["plain"]
    if name not in names:
        return token[0]
    return token[0].replace(name, names[name], 1)


def _bind_text(text: str, lookup: Callable[[str], Any]) -> Any:
    # A text that is only a reference gives the value itself, of whatever type that is.
    whole = parse_reference(text)
    if whole is not None:
        return resolve(whole, lookup(whole.node))

    def written(reference: Reference) -> str:
        value = resolve(reference, lookup(reference.node))
        return as_text(value)

    return filled(text, written)


def filled(text: str, write: Callable[[Reference], str]) -> str:
    """Return text with every reference replaced by what `write` says,
    once, and `$$` by a dollar.
    """

    def substitute(token: re.Match[str]) -> str:
        if token[0] == _DOLLAR:
            return "$"
        return write(_reference(token))

    return _TOKEN.sub(substitute, text)


def rewrite(text: str, put: Callable[[Reference], str | None]) -> str:
    """Return `text` with those references replaced for which `put` gives a text;
    what is put in stays text.
    """

    def substitute(token: re.Match[str]) -> str:
        if token[0] == _DOLLAR:
            return token[0]
        new = put(_reference(token))
        if new is None:
            return token[0]
        return new.replace("$", _DOLLAR)

    return _TOKEN.sub(substitute, text)


def as_text(value: Any) -> str:
    """Return how a value reads inside text: a string as it is, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    return _COMPACT.encode(value)


def part_of(value: Any, path: str, name: str) -> Any:
    """Return what is at a path of a value, such as `items[0].title`; the whole for "". `name` is
    what the value is called. Raises BindError, which says what is there instead.
    """
    if path and not _PATH.fullmatch(path):
        raise BindError(f"{path[:100]!r} is no path into {name}; write it like items[0].title")
    return resolve(Reference(name, parse_path(path)), value)


def resolve(reference: Reference, value: Any) -> Any:
    """Follow the reference's path into `value`; `.length` of a list is its
    length. Raises BindError.
    """
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
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if not isinstance(value, dict):
        return f"a {type(value).__name__}"
    if not value:
        return "an empty object"
    names = sorted(map(str, value))[:_NAMED_FIELDS]
    listed = ", ".join(names)
    return f"an object with {listed}"
