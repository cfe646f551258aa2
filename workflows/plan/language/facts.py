"""Facts: the scalar paths and list lengths of an output that conditions and maps read.

The validator names them, the activity computes them beside its result, and the scheduler decides on them alone.
"""

from typing import Any

from sennit.workflows.plan.language.references import BindError, Reference, parse_path, resolve
from sennit.workflows.plan.language.text import text_bytes
from sennit.workflows.plan.limits import MAX_FACT_BYTES

OF_A_JOIN = "~"
"""What the name of a fact begins with that is wanted because a join wants it: left out if it is too large."""

Scalar = str | int | float | bool | None


class Missing:
    """The fact has no value; distinct from a value that is null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


class FactTooLarge(Exception):
    """A value which a condition tests is over 256 bytes or not a scalar. The message names the path."""


def facts_of(output: Any, wanted: list[str]) -> dict[str, Scalar]:
    """Return the wanted facts which `output` has, by name; `?path` is true where the path exists. Of what only joins
    want, those that are too large are left out.

    Raises FactTooLarge.
    """
    found: dict[str, Scalar] = {}
    for wish in wanted:
        name = wish.removeprefix(OF_A_JOIN)
        try:
            value = resolve(Reference("", parse_path(name.removeprefix("?"))), output)
            found[name] = True if name.startswith("?") else _scalar(name, value)
        except BindError:
            continue
        except FactTooLarge:
            if wish == name:
                raise
    return found


def facts_of_conditions(wanted: list[str]) -> list[str]:
    """Return the wanted facts without those that only joins want."""
    return [name for name in wanted if not name.startswith(OF_A_JOIN)]


def fact_of_input(policy: str, name: str) -> tuple[int, str] | None:
    """Return which of the values that a join takes has the fact `name` of the join's own value, and its name there;
    None if it is a part of none of them.
    """
    asks, (*steps,) = name[: name.startswith("?")], parse_path(name.removeprefix("?"))
    if policy == "first":
        return 0, name
    if not steps or not isinstance(steps[0], int) or (policy == "settled" and steps[1:2] != ["value"]):
        return None
    return steps[0], asks + Reference("", tuple(steps[2 if policy == "settled" else 1 :])).fact


def _scalar(name: str, value: Any) -> Scalar:
    if isinstance(value, str) and (size := text_bytes(value)) > MAX_FACT_BYTES:
        raise FactTooLarge(f"`{name}` is {size} bytes; a condition tests at most {MAX_FACT_BYTES}")
    if isinstance(value, dict | list):
        raise FactTooLarge(f"`{name}` is {'an object' if isinstance(value, dict) else 'a list'}; test a part of it")
    return value  # type: ignore[no-any-return]  # JSON leaves only scalars here
