"""What passes between a script and what is around it: its calls and how they end, JSON, and
references to large results.
"""

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from sennit.activities.limits import MAX_VALUE_BYTES
from sennit.activities.programs.cpython.values import shown
from sennit.activities.storage.escapes import REFERENCE, escaped_key, unescaped_key
from sennit.activities.toolbox.read_output import whole_of
from sennit.workflows.plan.language.json_schema import parts_of
from sennit.workflows.plan.language.text import text_bytes

_DEPTH, _RESULT_DEPTH = 50, 120
_TOO_DEEP = f"it is nested more than {_DEPTH} levels deep"
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, which has no bytes."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a name that the script does not define, as the script made it.

    `number` is unique in the session and ascends in the order of the calls; `line` is 1-based, 0
    for a call that does not stand in the script. Arguments are JSON; the types in `schema` are
    their texts: "bool", "list[str]", "Point | None". A Ref stays one. `coroutine` is the call
    site: the tasks, phases and coroutines that the call is in, "" for what `main` itself calls;
    `clock` is the time then, in milliseconds. Of so many `writes` the script had been told by
    then that they had ended.
    """

    number: int
    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    line: int
    coroutine: str = ""
    clock: int = 0
    writes: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended: with a value, which is JSON, or with an error's type and message. `at` is
    when, in milliseconds: so late is it then in the script, if it was not later before. `writes`
    says whether it was a write.
    """

    value: Any = None
    error: tuple[str, str] | None = None
    at: int = 0
    writes: bool = False


class Sleep(NamedTuple):
    """The answer to a call that sleeps, in milliseconds: until when by the clock of the
    script, and `at` by that of the run, which is another one while a script that was edited
    makes calls that it made before.
    """

    due: int
    at: int
    line: int = 0
    coroutine: str = ""


@dataclass(frozen=True, slots=True)
class ScriptError:
    """What a script raised. `line` is the innermost line of the script, 0 if it is unknown."""

    type: str
    message: str
    line: int = 0
    traceback: str = ""


Answer = Callable[[Call], Ended | Sleep | None]
"""Answers a call at once, or returns None: the call is open until `resume` gets how it ended. An
error is raised where the script calls, not where it waits.
"""


@dataclass(frozen=True, slots=True)
class Ref:
    """What a script has of a large result: its digest, and how much `part` can read of it,
    in characters or items.
    """

    digest: str
    size: int

    @classmethod
    def to(cls, digest: str, value: Any) -> Self:
        """Return the reference to a stored value."""
        return cls(digest, len(whole_of(value)))


def mapped(value: Any, change: Callable[[Ref], Any]) -> Any:
    """Return a value with each Ref in it changed."""
    if isinstance(value, Ref):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(part, change) for key, part in value.items()}
    if isinstance(value, list):
        return [mapped(part, change) for part in value]
    return value


def packed(value: Any) -> Any:
    """Return a value as it is stored between sessions: with its Refs as JSON, and with what only
    looks like one escaped.
    """
    if isinstance(value, Ref):
        return {REFERENCE: value.digest, "size": value.size}
    if isinstance(value, dict):
        return {escaped_key(key): packed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [packed(part) for part in value]
    return value


def unpacked(value: Any) -> Any:
    """Return a value that was `packed`, with its Refs."""
    if isinstance(value, list):
        return [unpacked(part) for part in value]
    if not isinstance(value, dict):
        return value
    ref = _ref_of(value.get(REFERENCE), value)
    if ref is not None:
        return ref
    return {unescaped_key(key): unpacked(part) for key, part in value.items()}


def with_refs(value: Any, known: Collection[tuple[str, int]], levels: int = _DEPTH) -> Any:
    """Return a value that a script's process has packed, with its Refs. Raises NotJson for one that
    is not `known`, by its digest and size, and for a value of more levels.
    """
    if levels < 0:
        raise NotJson(_TOO_DEEP)
    if isinstance(value, list):
        return [with_refs(part, known, levels - 1) for part in value]
    if not isinstance(value, dict):
        return value
    if REFERENCE not in value:
        plain = dict[str, Any]()
        for key, part in value.items():
            name = unescaped_key(key)
            plain[name] = with_refs(part, known, levels - 1)
        return plain
    ref = _ref_of(value[REFERENCE], value)
    if ref is None or (ref.digest, ref.size) not in known:
        raise NotJson("it has a Ref that the script was not given")
    return ref


def known_refs(value: Any) -> set[tuple[str, int]]:
    """Return the digests and sizes of the Refs in a value that was `packed`."""
    found = set[tuple[str, int]]()
    if isinstance(value, dict):
        ref = _ref_of(value.get(REFERENCE), value)
        if ref is not None:
            return {(ref.digest, ref.size)}
    for part in parts_of(value):
        found |= known_refs(part)
    return found


def has_refs(value: Any) -> bool:
    """Whether a value is a Ref, or has one in it."""
    return isinstance(value, Ref) or any(map(has_refs, parts_of(value)))


def _ref_of(digest: Any, fields: dict[str, Any]) -> Ref | None:
    size = fields.get("size")
    if len(fields) != 2 or type(size) is not int:
        return None
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        return None
    return Ref(digest, size)


class NotJson(TypeError):
    """A value of a script that may not leave it; the message says which, and what to write."""


def as_json(value: Any) -> Any:
    """Return a value of a script as JSON, in which a Ref stays one. Raises NotJson for more
    than 1 MB or 50 levels.
    """
    return _Copy(MAX_VALUE_BYTES).of(value)


def as_result(value: Any) -> Any:
    """Return what a call gives to a script, which is JSON already. Raises
    NotJson for more than 1 MB.
    """
    return _Copy(MAX_VALUE_BYTES, _RESULT_DEPTH).of(value)


class _Copy:
    """Counts what a value takes while it is copied, so that a value that shares its parts
    cannot grow without end.
    """

    def __init__(self, limit: int, levels: int = _DEPTH) -> None:
        self._limit = limit
        self._left = limit
        self._levels = levels

    def of(self, value: Any, depth: int = 0) -> Any:
        if depth > self._levels:
            raise NotJson(f"it is nested more than {self._levels} levels deep")
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, list | tuple):
            self._take(8)
            return [self.of(part, depth + 1) for part in value]
        if isinstance(value, Ref):
            self._take(8)
            return value
        if isinstance(value, str):
            self._take_text(value)
        else:
            self._take(8)
        return _scalar(value)

    def _object(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        self._take(8)
        plain = {}
        for key, part in value.items():
            if not isinstance(key, str):
                raise NotJson(f"the keys of a dict are texts, not {shown(key)}: write str(key)")
            self._take_text(key)
            plain[key] = self.of(part, depth + 1)
        return plain

    def _take_text(self, text: str) -> None:
        if not text.isascii() and _HALF.search(text):
            raise NotJson(
                "a text has half a character: write text.encode(errors='replace').decode()"
            )
        self._take(text_bytes(text) + 2)

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise NotJson(f"it has more than {self._limit >> 20} MB")


def _scalar(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise NotJson(f"JSON has no {value}")
    if type(value) is int and value.bit_length() > _NUMBER_BITS:
        raise NotJson("a number of more than 14,000 bits has no JSON: write a part of it")
    if value is None or type(value) in (str, bool, int, float):
        return value
    raise NotJson(f"{shown(value)} has no JSON")


_NUMBER_BITS = 14_000
_DIGEST = re.compile(r"[0-9a-f]{40}")
