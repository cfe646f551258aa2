"""What a joiner's inputs hold, node by node: values, and why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SETTLED = {"id", "status", "value", "error"}


@dataclass(frozen=True, slots=True)
class Result:
    """How one node ended, with its value or its error."""

    node: str
    status: str = "succeeded"
    value: Any = None
    error: str | None = None


def results_of(inputs: Mapping[str, Any]) -> dict[str, Result]:
    """Return the results behind a node's inputs by node id: those in settled joins, and inputs that are results."""
    found: dict[str, Result] = {}
    for name, value in inputs.items():
        if name in ("goal", "input"):
            continue
        settled = [_settled(item) for item in value] if isinstance(value, list) and value else [None]
        whole = [item for item in settled if item is not None]
        for result in whole if len(whole) == len(settled) else [Result(name, value=value)]:
            found[result.node] = result
    return found


def _settled(item: Any) -> Result | None:
    if not isinstance(item, dict) or set(item) != _SETTLED:
        return None
    return Result(str(item["id"]), str(item["status"]), item["value"], item["error"])
