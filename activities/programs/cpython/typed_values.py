"""Makes of an answer what its schema says: dataclasses, members of enums, dicts with types."""

import collections.abc
import dataclasses
import enum
import types
import typing
from typing import Any


class _NoFit(Exception):
    """A value is none of that type."""


def typed(value: Any, kind: Any, names: dict[str, Any]) -> Any:
    """Return a value as an instance of a type, with `names` for annotations that are texts.

    A value that does not fit stays as it is: the schema was checked before.
    """
    if value is None or kind is None:
        return value
    if isinstance(kind, str):
        try:
            kind = eval(kind, names)  # noqa: S307 - an annotation of the script, in its own process
        except Exception:  # noqa: BLE001 - whatever it raises, it names no type
            return value
    if isinstance(kind, dict) and isinstance(value, dict):
        return _typed_fields(value, kind, names)
    if typing.get_origin(kind) is not None:
        return _of_generic(value, kind, names)
    try:
        return _instance(value, kind, names)
    except _NoFit:
        return value


def _typed_fields(
    fields: dict[Any, Any], kinds: dict[Any, Any], names: dict[str, Any]
) -> dict[Any, Any]:
    """Return fields as values of their kinds. A field without a kind stays as it is."""
    return {name: typed(part, kinds.get(name), names) for name, part in fields.items()}


def _of_generic(value: Any, kind: Any, names: dict[str, Any]) -> Any:
    origin, given = typing.get_origin(kind), typing.get_args(kind)
    if origin in (list, collections.abc.Sequence) and isinstance(value, list) and given:
        return [typed(part, given[0], names) for part in value]
    if origin is dict and isinstance(value, dict) and len(given) == 2:
        return {key: typed(part, given[1], names) for key, part in value.items()}
    if origin in (types.UnionType, typing.Union):
        for each in given:
            if typing.get_origin(each) in (list, dict) and isinstance(
                value, typing.get_origin(each)
            ):
                return typed(value, each, names)
            try:
                return _instance(value, each, names)
            except _NoFit:
                continue
    return value


def _instance(value: Any, kind: Any, names: dict[str, Any]) -> Any:
    """Return a value as an instance of a class. Raises _NoFit."""
    if typing.is_typeddict(kind) and isinstance(value, dict):
        hints = typing.get_type_hints(kind)
        return _typed_fields(value, hints, names)
    if not isinstance(kind, type):
        raise _NoFit
    if issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError:
            raise _NoFit from None
    if not dataclasses.is_dataclass(kind) or not isinstance(value, dict):
        raise _NoFit
    hints = typing.get_type_hints(kind)
    known = {field.name for field in dataclasses.fields(kind)}
    if not value.keys() <= known:
        raise _NoFit
    fields = _typed_fields(value, hints, names)
    try:
        return kind(**fields)
    except TypeError:
        raise _NoFit from None
