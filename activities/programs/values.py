"""What passes between a script and what is around it: its calls and how they end, JSON, references to large results,
and the names of functions.
"""

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any, NamedTuple, Self
from uuid import UUID

from sennit.activities.limits import MAX_VALUE_BYTES
from sennit.activities.storage.escapes import REFERENCE, escaped_key, unescaped_key
from sennit.activities.toolbox.read_output import whole_of
from sennit.workflows.plan.language.json_schema import parts_of
from sennit.workflows.plan.language.text import text_bytes

_DEPTH, _RESULT_DEPTH = 50, 120
_FUNCTION = re.compile(r"<function '(\w+|<lambda>)' at 0x[0-9a-f]+>")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a name that the script does not define, as the script made it.

    `number` is unique in the session and ascends in the order of the calls; `line` is 1-based, 0 for a call that
    does not stand in the script. Arguments are JSON, with two exceptions: the functions that `task` and `pipeline` take
    are FunctionNames, and the types in `schema` are their texts: "bool", "list[str]", "Point | None". A Ref stays one.
    `coroutine` is what makes the call, "" for what the session runs; `clock` is the time then, in milliseconds.
    """

    number: int
    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    line: int
    coroutine: str = ""
    clock: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended: with a value, which is JSON, or with an error's type and message. `at` is when, in
    milliseconds: so late is it then in the script, if it was not later before.
    """

    value: Any = None
    error: tuple[str, str] | None = None
    at: int = 0


class Sleep(NamedTuple):
    """The answer to a call that sleeps, in milliseconds: until when by the clock of the script, and `at` by that of the
    run, which is another one while a script that was edited makes calls that it made before.
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


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a script came. It waits if there is a snapshot; else it ended with a value or an error.

    `waits` has the numbers of all calls that are open, ascending; of a script that ended, those it never awaited. All
    sleeps that are over at the same time have one number, which is that time below 0; `sleep` is the next of them.
    `left` are those whose ends the script has not been told yet, and `clock` is the time in it when it has ended.
    `printed` is what the script has printed meanwhile, `kept` the calls, by name and line, that it has written down and
    neither awaited nor started, and `took` the seconds for which it ran.
    """

    snapshot: bytes = b""
    waits: tuple[int, ...] = ()
    value: Any = None
    error: ScriptError | None = None
    left: tuple[int, ...] = ()
    sleep: Sleep | None = None
    clock: int = 0
    printed: str = ""
    kept: tuple[tuple[str, int], ...] = ()
    took: float = field(default=0.0, compare=False)


Answer = Callable[[Call], Ended | Sleep | None]
"""Answers a call at once, or returns None: the call is open until `resume` gets how it ended. An error is raised where
the script calls, not where it waits."""


@dataclass(frozen=True, slots=True)
class Ref:
    """What a script has of a large result: its digest, and how much `part` can read of it, in characters or items."""

    digest: str
    size: int

    @classmethod
    def to(cls, digest: str, value: Any) -> Self:
        """Return the reference to a stored value."""
        return cls(digest, len(whole_of(value)))


@dataclass(frozen=True, slots=True)
class Given:
    """Knows the Refs that a session was given: each is known in the session by an id that comes from both, and that no
    instance of a script's own classes has.
    """

    session: str

    def id_of(self, ref: Ref) -> UUID:
        """Return the id of a reference in the session."""
        return UUID(bytes=sha256(json.dumps([self.session, ref.digest, ref.size]).encode()).digest()[:16])

    def ref_in(self, instance: Any) -> Ref | None:
        """Return the reference that an instance is, None if it is none that the session was given."""
        ref = _ref_of(instance.attributes.get("digest"), instance.attributes)
        return ref if ref is not None and instance.id == self.id_of(ref) else None


def mapped(value: Any, change: Callable[[Ref], Any]) -> Any:
    """Return a value with each Ref in it changed."""
    if isinstance(value, Ref):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(part, change) for key, part in value.items()}
    return [mapped(part, change) for part in value] if isinstance(value, list) else value


def packed(value: Any) -> Any:
    """Return a value as it is stored between sessions: with its Refs as JSON, and with what only looks like one
    escaped.
    """
    if isinstance(value, Ref):
        return {REFERENCE: value.digest, "size": value.size}
    if isinstance(value, dict):
        return {escaped_key(key): packed(part) for key, part in value.items()}
    return [packed(part) for part in value] if isinstance(value, list) else value


def unpacked(value: Any) -> Any:
    """Return a value that was `packed`, with its Refs."""
    if isinstance(value, list):
        return [unpacked(part) for part in value]
    if not isinstance(value, dict):
        return value
    ref = _ref_of(value.get(REFERENCE), value)
    return ref or {unescaped_key(key): unpacked(part) for key, part in value.items()}


def has_refs(value: Any) -> bool:
    """Whether a value is a Ref, or has one in it."""
    return isinstance(value, Ref) or any(map(has_refs, parts_of(value)))


def _ref_of(digest: Any, fields: dict[str, Any]) -> Ref | None:
    size = fields.get("size")
    is_ref = len(fields) == 2 and type(size) is int and isinstance(digest, str) and _DIGEST.fullmatch(digest)
    return Ref(digest, size) if is_ref else None  # type: ignore[arg-type]


class NotJson(TypeError):
    """A value of a script that may not leave it; the message says which, and what to write."""


class FunctionName(str):
    """The name of a function, of the script or a tool, where a script gives one to `task` or `pipeline`."""

    __slots__ = ()

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the function's name. Raises NotJson if it is none."""
        match = _FUNCTION.fullmatch(value) if isinstance(value, str) else None
        if match is None or match[1] == "<lambda>":
            raise NotJson(f"name a function of the script or a tool, without calling it; this is {_kind(value)}")
        return cls(match[1])


def tool_named(name: str) -> Callable[..., None]:
    """Return what stands for a tool in a script that names it without a call. It may be called, too; then its name is
    the text that Monty writes for a function of the script, for which see `called_name`.
    """

    def called(*_: object, **__: object) -> None:
        raise NotImplementedError(name)

    called.__name__ = called.__qualname__ = f"<function '{name}' at 0x0>"
    return called


def called_name(name: str) -> str:
    """Return the name of the function that a script calls."""
    match = _FUNCTION.fullmatch(name)
    return match[1] if match else name


def as_json(value: Any, given: Given, *, is_read_outside: bool = False) -> Any:
    """Return a value of a script as JSON: tuples become lists, and instances of its classes objects. A Ref that the
    session was given stays one; a text is a text, whatever it says. Numbers that are keys become texts, as in
    `json.dumps`, in a value that a model, a tool or a person reads; a task would miss them.

    Raises NotJson for what has no JSON, and for more than 1 MB or 50 levels.
    """
    leaf = lambda part: part if isinstance(part, Ref) else _scalar(part)  # noqa: E731
    return _Copy(MAX_VALUE_BYTES, leaf, given=given, has_texts=is_read_outside).of(value)


def as_schema(value: Any, given: Given) -> Any:
    """Return a value of `schema` as JSON, with each type in it as the text that a script has for it. Raises NotJson."""
    leaf = lambda part: part.__name__ if isinstance(part, type) else _scalar(part)  # noqa: E731
    return _Copy(MAX_VALUE_BYTES, leaf, given=given).of(value)


def as_result(value: Any, wrap: Callable[[Ref], Any]) -> Any:
    """Return what a call gives to a script, which is JSON already, with each Ref wrapped. Raises NotJson for more than
    1 MB.
    """
    leaf = lambda part: wrap(part) if isinstance(part, Ref) else _scalar(part)  # noqa: E731
    return _Copy(MAX_VALUE_BYTES, leaf, _RESULT_DEPTH).of(value)


class _Copy:
    """Counts what a value takes while it is copied, so that a value that shares its parts cannot grow without end."""

    def __init__(
        self,
        limit: int,
        leaf: Callable[[Any], Any],
        levels: int = _DEPTH,
        given: Given | None = None,
        has_texts: bool = False,
    ) -> None:
        self._limit = limit
        self._left = limit
        self._leaf = leaf
        self._levels = levels
        self._given = given
        self._has_texts = has_texts

    def of(self, value: Any, depth: int = 0) -> Any:
        if depth > self._levels:
            raise NotJson(f"it is nested more than {self._levels} levels deep")
        if isinstance(value, dict):
            return self._object(value.items(), depth)
        if isinstance(value, list | tuple):
            self._take(8)
            return [self.of(part, depth + 1) for part in value]
        if isinstance(attributes := getattr(value, "attributes", None), dict) and type(value).__name__ == _INSTANCE:
            if _MEMBER in attributes:  # of an enum
                return self.of(attributes.get("value"), depth)
            ref = self._given.ref_in(value) if self._given is not None else None
            return ref or self._object(attributes.items(), depth)
        self._take(text_bytes(value) + 2 if isinstance(value, str) else 8)
        return self._leaf(value)

    def _object(self, items: Iterable[tuple[Any, Any]], depth: int) -> dict[str, Any]:
        self._take(8)
        plain = {}
        for key, part in items:
            if self._has_texts and (key is None or type(key) in (int, float, bool)):
                key = json.dumps(_scalar(key))
            if not isinstance(key, str):
                raise NotJson(f"the keys of a dict are texts, not {_kind(key)}: write str(key)")
            if key in plain:
                raise NotJson(f"two keys become {key!r}: write str(key)")
            self._take(text_bytes(key) + 3)
            plain[key] = self.of(part, depth + 1)
        return plain

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
    raise NotJson(f"{_kind(value)} has no JSON{_INSTEAD.get(type(value), '')}")


def _kind(value: object) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if type(value) is int:
        return "a number"
    name = value.__name__ if isinstance(value, type) else getattr(value, "name", None)
    return f"{name} itself" if isinstance(name, str) else f"a {type(value).__name__}"


_INSTANCE = "MontyClassProxy"
_MEMBER = "__is_member"
_NUMBER_BITS = 14_000
_DIGEST = re.compile(r"[0-9a-f]{40}")
_INSTEAD = {
    set: ": write sorted(...) or list(...)",
    frozenset: ": write sorted(...) or list(...)",
    bytes: ": write .decode()",
    date: ": write .isoformat()",
    datetime: ": write .isoformat()",
    timedelta: ": write .total_seconds()",
    Decimal: ": write float(...) or str(...)",
}
