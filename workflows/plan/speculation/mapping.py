"""How the arguments of a call are made of an earlier one, as patterns write it: `path <-
output items[0].path`.

A constant is known by its mark alone: whoever binds it has to find a value that has the mark.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from sennit.workflows.plan.language.references import (
    BindError,
    Reference,
    Step,
    parse_reference,
    resolve,
)
from sennit.workflows.plan.speculation.limits import MAX_BOUND_INDEX

Origin = Literal["output", "argument", "constant", "goal", "input"]
"""Where a value can be taken from. What came from another call, or out of a text,
nobody can make again.
"""
WHOLE: Final = "."


@dataclass(frozen=True, slots=True)
class ArgumentSource:
    """One value of the arguments, by its place in them, and where it comes from."""

    argument: tuple[Step, ...]
    origin: Origin
    detail: str
    """A path into the output, the arguments or the inputs, or the mark of a constant."""


def parse_mapping(text: str) -> tuple[ArgumentSource, ...] | None:
    """Return the parts of a mapping; None for one that cannot be bound, whoever has written it."""
    sources = []
    for part in text.split("; "):
        place, arrow, source = part.partition(" <- ")
        origin, _, detail = source.partition(" ")
        argument = _path(place)
        if not arrow or origin not in get_args(Origin) or argument is None:
            return None
        if origin in ("output", "argument", "input") and _path(detail or WHOLE) is None:
            return None
        sources.append(ArgumentSource(argument, cast("Origin", origin), detail))
    return tuple(sources)


def bind_mapping(
    sources: tuple[ArgumentSource, ...], values: Mapping[str, Any], constant: Callable[[str], Any]
) -> dict[str, Any]:
    """Return arguments. `values` has what an origin stands for, and `constant`
    finds the value of a mark.

    Raises BindError for what cannot be bound with these values.
    """
    root: dict[str, Any] = {}
    for source in sources:
        if source.origin == "constant":
            value = constant(source.detail)
        else:
            path = _path(source.detail or WHOLE) or ()
            reference = Reference(source.origin, path)
            value = resolve(reference, values[source.origin])
        _put(root, source.argument, value)
    arguments = root.get("", {})
    if not isinstance(arguments, dict):
        raise BindError("the arguments of a pattern are no object")
    return arguments


def candidates(schema: Any, arguments: Any, levels: int = 6) -> Iterator[Any]:
    """Yield values that a constant may have: what a schema names, what the call before was
    given, and small ones.
    """
    yield from (True, False, None, "", [], {})
    yield from _named(schema, levels)
    yield from _leaves(arguments, levels)
    yield from range(-1, 1_001)


def _named(schema: Any, levels: int) -> Iterator[Any]:
    if isinstance(schema, list):
        for part in schema:
            yield from _named(part, levels - 1)
    if not isinstance(schema, dict) or levels < 0:
        return
    for name, part in schema.items():
        if name in ("enum", "examples") and isinstance(part, list):
            yield from part
        elif name in ("const", "default"):
            yield part
        else:
            yield from _named(part, levels - 1)


def _leaves(value: Any, levels: int) -> Iterator[Any]:
    parts: Any = ()
    if isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, list):
        parts = value
    else:
        yield value
    if levels:
        for part in parts:
            yield from _leaves(part, levels - 1)


def _path(text: str) -> tuple[Step, ...] | None:
    """Return the steps of a path, None for one that is none, or leads to a place without a name."""
    if text == WHOLE:
        return ()
    dot = "" if text.startswith("[") else "."
    reference = parse_reference(f"${{x{dot}{text}}}")
    if reference is None:
        return None
    return reference.path


def _put(root: dict[str, Any], path: tuple[Step, ...], value: Any) -> None:
    """Put a value at a place of the arguments, which are at "" of `root`. Raises BindError
    where that is no place.
    """
    here: Any = root
    name: Step = ""
    for step in path:
        empty: Any = []
        if isinstance(step, str):
            empty = {}
        here = _into(here, name, empty)
        name = step
    if isinstance(here, list):
        _fill(here, name)
    elif not isinstance(here, dict) or not isinstance(name, str):
        raise BindError("a pattern has two kinds of values at one place")
    here[name] = value


def _into(here: Any, name: Step, empty: Any) -> Any:
    """Return what is at a place, which is made of this kind if nothing is there yet."""
    if isinstance(here, list):
        _fill(here, name)
        if here[cast("int", name)] is None:
            here[cast("int", name)] = empty
        return here[cast("int", name)]
    if not isinstance(here, dict):
        raise BindError("a pattern has two kinds of values at one place")
    return here.setdefault(name, empty)


def _fill(here: list[Any], name: Step) -> None:
    if not isinstance(name, int) or not 0 <= name < MAX_BOUND_INDEX:
        raise BindError("a pattern has no place in a list")
    missing = name + 1 - len(here)
    here += [None] * missing
