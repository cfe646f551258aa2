"""What a joiner's inputs hold, node by node: values, and why there is none."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """How one node ended, with its value or its error. `place` is a reference to the value."""

    node: str
    status: str = "succeeded"
    value: Any = None
    error: str | None = None
    place: str = ""


def results_of(inputs: Mapping[str, Any], gathered: Collection[str]) -> dict[str, Result]:
    """Return the results behind a node's inputs by node id: inputs themselves, and what those in `gathered` hold.

    Only an input that the plan knows for the ends of other nodes is read as such: any output may look like one.
    """
    found: dict[str, Result] = {}
    for name, value in inputs.items():
        if name in gathered:
            for index, end in enumerate(value):
                place = f"${{{name}[{index}].value}}"
                found[end["id"]] = Result(end["id"], end["status"], end["value"], end["error"], place)
        elif name not in ("goal", "input"):
            found[name] = Result(name, value=value, place=f"${name}")
    return found
