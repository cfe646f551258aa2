"""Facts: the scalar paths and list lengths of an output that conditions and maps read.

The validator names them, the activity computes them beside its result, and the scheduler decides on them alone.
"""

from typing import Any

from workflows.plan.language.references import BindError, Reference, parse_path, resolve

FACT_BYTES = 256
FACTS_A_NODE = 16

Scalar = str | int | float | bool | None


class Missing:
    """The fact has no value; distinct from a value that is null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


class FactTooLarge(Exception):
    """A value which a condition tests is over 256 bytes or not a scalar. The message names the path."""


def facts_of(output: Any, wanted: list[str]) -> dict[str, Scalar]:
    """Return the wanted facts which `output` has, by name; `?path` is true where the path exists.

    Raises FactTooLarge.
    """
    found: dict[str, Scalar] = {}
    for name in wanted:
        try:
            value = resolve(Reference("", parse_path(name.removeprefix("?"))), output)
        except BindError:
            continue
        found[name] = True if name.startswith("?") else _scalar(name, value)
    return found


def _scalar(name: str, value: Any) -> Scalar:
    if isinstance(value, str) and (size := len(value.encode(errors="surrogatepass"))) > FACT_BYTES:
        raise FactTooLarge(f"`{name}` is {size} bytes; a condition tests at most {FACT_BYTES}")
    if isinstance(value, dict | list):
        raise FactTooLarge(f"`{name}` is {'an object' if isinstance(value, dict) else 'a list'}; test a part of it")
    return value  # type: ignore[no-any-return]  # JSON leaves only scalars here
