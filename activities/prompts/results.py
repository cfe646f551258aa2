"""What a joiner's inputs hold, node by node: values, and why there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workflows.plan.scheduling.state import SHOWN

_SETTLED = {"id", "status", "value", "error"}
_STATUSES = tuple(dict.fromkeys(SHOWN))


@dataclass(frozen=True, slots=True)
class Result:
    """How one node ended, with its value or its error. `place` is a reference to the value."""

    node: str
    status: str = "succeeded"
    value: Any = None
    error: str | None = None
    place: str = ""


def results_of(inputs: Mapping[str, Any], gathered: Mapping[str, Sequence[str]]) -> dict[str, Result]:
    """Return the results behind a node's inputs by node id: inputs themselves, and the ends that some of them hold.

    Only those in `gathered` do, of the nodes named there: any output may look as if it did.
    """
    found: dict[str, Result] = {}
    for name, value in inputs.items():
        if name in gathered and _ends_of(gathered[name], value):
            for index, end in enumerate(value):
                place = f"${{{name}[{index}].value}}"
                found[end["id"]] = Result(end["id"], end["status"], end["value"], end["error"], place)
        elif name not in ("goal", "input"):
            found[name] = Result(name, value=value, place=f"${name}")
    return found


def _ends_of(names: Sequence[str], value: Any) -> bool:
    """Whether a value tells how these nodes ended; a fallback or a stand-in may have given another."""
    ends = value if isinstance(value, list) else []
    told = [end["id"] for end in ends if isinstance(end, dict) and set(end) == _SETTLED and end["status"] in _STATUSES]
    return told == list(names)
