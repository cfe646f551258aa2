"""Values on their way out of a script and into it: JSON, references to large results, and
the types of a schema.
"""

import asyncio
import collections.abc
import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import types
import typing
from typing import Any, Final, NoReturn

from sennit.activities.programs.cpython.modules import is_own, whole_name
from sennit.activities.storage.escapes import REFERENCE, escaped_key, unescaped_key
from sennit.workflows.plan.programs.written_schemas import is_json_schema

_BYTES: Final = 1 << 20
_DEPTH: Final = 50
_NUMBER_BITS: Final = 14_000
"""Python writes no longer numbers as text."""
_INSTEAD: Final[dict[type, str]] = {
    set: ": write sorted(...) or list(...)",
    frozenset: ": write sorted(...) or list(...)",
    bytes: ": write .decode()",
    dt.date: ": write .isoformat()",
    dt.datetime: ": write .isoformat()",
    dt.timedelta: ": write .total_seconds()",
    decimal.Decimal: ": write float(...) or str(...)",
}
_NO_ATTRIBUTE: Final = "a Ref has `.size` alone: read it with `await part(ref, a, b)`"
_KINDS: Final = {
    "generator": "generator",
    "builtin_function_or_method": "function",
    "method": "function",
}
_NO_VALUES: Final = (
    asyncio.Future,
    types.CoroutineType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    type,
    range,
    collections.abc.Iterator,
    collections.abc.MappingView,
)


class NotJson(TypeError):
    """A value that may not leave the script; the message says which, and what to write."""


class Ref:
    """What a script has of a large result: how much of it `part` can read. The worker knows
    which ones it has given.
    """

    def __init__(self, digest: str, size: int) -> None:
        self.__dict__.update(digest=digest, size=size)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(_NO_ATTRIBUTE)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_NO_ATTRIBUTE)

    def __repr__(self) -> str:
        return f"Ref(digest={self.digest!r}, size={self.size})"


def json_of(value: Any, word: str, *, is_read_outside: bool = False) -> Any:
    """Return a value as JSON: tuples become lists, dataclasses and instances objects, members
    of enums their values.

    Numbers that are keys become texts only in what a model, a tool or a person reads; a
    task would miss them. Keys are escaped, so that no dict of the script looks like a Ref.
    Raises NotJson, ValueError.
    """
    return _Copy(word, is_read_outside=is_read_outside).of(value)


def value_of(sent: Any) -> Any:
    """Return JSON of the worker as a value of the script."""
    if isinstance(sent, list):
        return [value_of(part) for part in sent]
    if not isinstance(sent, dict):
        return sent
    if len(sent) == 2 and REFERENCE in sent and "size" in sent:
        return Ref(sent[REFERENCE], sent["size"])
    return {unescaped_key(key): value_of(part) for key, part in sent.items()}


class _Copy:
    """Counts what a value takes while it is copied, so that a value that shares its parts
    cannot grow without end.
    """

    def __init__(self, word: str, *, is_read_outside: bool) -> None:
        self._word = word
        self._is_read_outside = is_read_outside
        self._left = _BYTES

    def of(self, value: Any, depth: int = 0) -> Any:
        kind = type(value)
        self._take(_size_of(value))
        if value is None or kind is bool or kind is str:
            return value
        if kind is int or kind is float:
            return self._number(value)
        if depth > _DEPTH:
            raise NotJson(f"{self._word}: it is nested more than {_DEPTH} levels deep")
        if isinstance(value, Ref):
            return {REFERENCE: value.digest, "size": value.size}
        if isinstance(value, enum.Enum):
            return self.of(value.value, depth + 1)
        if isinstance(value, dict):
            return self._object(value.items(), depth)
        is_view = isinstance(value, collections.abc.KeysView | collections.abc.ValuesView)
        if isinstance(value, list | tuple) or (depth == 0 and is_view):
            return [self.of(part, depth + 1) for part in value]
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int):
            return self._number(int(value))
        if isinstance(value, float):
            return self._number(float(value))
        return self._instance(value, depth)

    def _instance(self, value: Any, depth: int) -> dict[str, Any]:
        """Return an instance of a class of the script as an object of its fields."""
        kind = type(value)
        if isinstance(value, type):
            self._refuse(value)
        if dataclasses.is_dataclass(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return self._object(fields.items(), depth)
        if is_own(kind.__module__) and hasattr(value, "__dict__"):
            fields = {name: part for name, part in vars(value).items() if name != ORDINAL}
            return self._object(fields.items(), depth)
        return self._refuse(value)

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise NotJson(f"{self._word}: it has more than {_BYTES >> 20} MB")

    def _number(self, value: int | float) -> int | float:
        if isinstance(value, int):
            if value.bit_length() > _NUMBER_BITS:
                message = "a number of more than 14,000 bits has no JSON: write a part of it"
                raise ValueError(f"{self._word}: {message}")
        elif not math.isfinite(value):
            raise NotJson(f"{self._word}: JSON has no {value}")
        return value

    def _object(
        self, items: collections.abc.Iterable[tuple[Any, Any]], depth: int
    ) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key, part in items:
            if isinstance(key, enum.Enum):
                key = key.value
            if self._is_read_outside and (key is None or type(key) in (int, float, bool)):
                key = json.dumps(key)
            if not isinstance(key, str):
                raise NotJson(
                    f"{self._word}: the keys of a dict are texts, not {shown(key)}: write str(key)"
                )
            self._take(len(key) + 3)
            if escaped_key(key) in plain:
                raise NotJson(f"{self._word}: two keys become {key!r}: write str(key)")
            plain[escaped_key(str(key))] = self.of(part, depth + 1)
        return plain

    def _refuse(self, value: Any) -> NoReturn:
        kind = type(value)
        if kind.__module__ in ("asyncio.locks", "asyncio.queues", "asyncio.taskgroups"):
            message = "is no value: coroutines share it, but what a task is given is copied"
            raise NotJson(f"{self._word}: a {kind.__name__} {message}")
        name = _KINDS.get(kind.__name__, kind.__name__)
        if isinstance(value, asyncio.Future):
            name = "Task"
        if isinstance(value, _NO_VALUES):
            hint = "await a call, or give its function to task(function, ...)"
            if isinstance(value, range | collections.abc.MappingView):
                hint = "write list(...)"
            raise NotJson(f"{self._word}: a {name} is no value: {hint}")
        raise NotJson(f"{self._word}: a {name} has no JSON{_INSTEAD.get(kind, '')}")


ORDINAL: Final = "__ordinal__"
"""The field in which an instance of a script's class keeps the number that is its hash."""


def _size_of(value: Any) -> int:
    if type(value) is str:
        return len(value) + 2
    return 8


def shown(value: Any) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if type(value) is int:
        return "a number"
    name: object
    if isinstance(value, type):
        name = value.__name__
    else:
        name = getattr(value, "name", None)
    if isinstance(name, str):
        return f"{name} itself"
    return f"a {type(value).__name__}"


class _TypesCopy(_Copy):
    """Copies a value in which types stand for themselves."""

    def of(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, type) or value is typing.Any or typing.get_origin(value) is not None:
            return _type_text(value)
        return super().of(value, depth)


class _SchemaCopy(_TypesCopy):
    """Copies a schema. Types in it may be texts with the names of a module."""

    def __init__(self, word: str, names: dict[str, Any]) -> None:
        super().__init__(word, is_read_outside=False)
        self._names = names

    def of(self, value: Any, depth: int = 0) -> Any:
        if type(value) is str:
            value = self._whole(value)
        is_choices = isinstance(value, list) and len(value) != 1
        if is_choices or is_json_schema(value):
            # The texts in it are no types.
            return _TypesCopy(self._word, is_read_outside=False).of(value, depth)
        return super().of(value, depth)

    def _whole(self, text: str) -> str:
        """Return a type in a text with the names that classes of modules have in the whole
        script: `helpers.Fact`.
        """
        try:
            kind = eval(text, self._names)  # noqa: S307 - a type of the script, in its own process
            found = _type_text(kind)
        except Exception:  # noqa: BLE001 - whatever it raises, it names no class of a module
            return text
        is_class = isinstance(kind, type) or typing.get_origin(kind) is not None
        return found if is_class and "." in found else text


def schema_of(value: Any, word: str, names: dict[str, Any]) -> Any:
    """Return what a script gives as `schema`, with each type in it as it is written. `names` are
    those of the module that gives it. Raises NotJson, ValueError.
    """
    return _SchemaCopy(word, names).of(value)


def _type_text(kind: Any) -> str:
    """Return a type as a script writes it, with the names that its classes
    have in the whole script.
    """
    if kind is types.NoneType or kind is None:
        return "None"
    origin, given = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, given))}]"
    if origin in (types.UnionType, typing.Union):
        return " | ".join(map(_type_text, given))
    if origin is not None:
        return f"{_type_text(origin)}[{', '.join(map(_type_text, given))}]"
    if isinstance(kind, type):
        return whole_name(kind)
    if isinstance(kind, typing.ForwardRef):
        return kind.__forward_arg__
    # `Any`, and annotations that are texts.
    return str(kind).removeprefix("typing.")
