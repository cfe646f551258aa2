"""Facts: the scalar paths and list lengths of an output that conditions and maps read.

The validator names them, the activity computes them beside its result, and the scheduler
decides on them alone.
"""

from typing import Any

from sennit.workflows.plan.language.references import BindError, Reference, parse_path, resolve
from sennit.workflows.plan.language.text import text_bytes
from sennit.workflows.plan.limits import MAX_FACT_BYTES

OF_A_JOIN = "~"
"""The sign before the name of a fact that only a join wants: such a fact is left
out if it is too large.
"""

Scalar = str | int | float | bool | None


class Missing:
    """The fact has no value; distinct from a value that is null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


class FactTooLarge(Exception):
    """A value which a condition tests is over 256 bytes or not a scalar. The
    message names the path.
    """


def facts_of(output: Any, wanted: list[str]) -> dict[str, Scalar]:
    """Return the wanted facts which `output` has, by name; `?path` is true where the path exists. A
    fact that only a join wants is left out if it is too large.

    Raises FactTooLarge.
    """
    facts: dict[str, Scalar] = {}
    for wish in wanted:
        name = wish.removeprefix(OF_A_JOIN)
        path = name.removeprefix("?")
        try:
            value = resolve(Reference("", parse_path(path)), output)
            if name == path:
                facts[name] = _scalar(name, value)
            else:
                facts[name] = True
        except BindError:
            continue
        except FactTooLarge:
            if wish == name:
                raise
    return facts


def facts_of_conditions(wanted: list[str]) -> list[str]:
    """Return the wanted facts without those that only joins want."""
    return [name for name in wanted if not name.startswith(OF_A_JOIN)]


def fact_of_input(policy: str, name: str) -> tuple[int, str] | None:
    """Return which of the values that a join takes has the fact `name` of the join's own value, and
    its name there; None if it is a part of none of them.
    """
    if policy == "first":
        return 0, name
    path = name.removeprefix("?")
    steps = list(parse_path(path))
    if not steps or not isinstance(steps[0], int):
        return None

    # A join takes a list; with the policy `settled`, each entry has the value in a field.
    place, *inner = steps
    assert isinstance(place, int)
    if policy == "settled":
        if inner[:1] != ["value"]:
            return None
        inner = inner[1:]
    fact = Reference("", tuple(inner)).fact
    if name != path:
        fact = f"?{fact}"
    return place, fact


def _scalar(name: str, value: Any) -> Scalar:
    if isinstance(value, str):
        size = text_bytes(value)
        if size > MAX_FACT_BYTES:
            raise FactTooLarge(
                f"`{name}` is {size} bytes; a condition tests at most {MAX_FACT_BYTES}"
            )
    if isinstance(value, dict):
        raise FactTooLarge(f"`{name}` is an object; test a part of it")
    if isinstance(value, list):
        raise FactTooLarge(f"`{name}` is a list; test a part of it")
    return value  # type: ignore[no-any-return]  # JSON leaves only scalars here
