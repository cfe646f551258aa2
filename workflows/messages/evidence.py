"""An answer with its evidence: what joiners return as `{answer, evidence: [{n, node, claim, source, quote}]}`."""

from typing import Any

from pydantic import ValidationError

from workflows.messages.contracts import Evidence


def split_evidence(output: Any) -> tuple[Any, tuple[Evidence, ...]]:
    """Return (answer, evidence) of a joiner's output; any other output is the answer itself, without evidence."""
    if not isinstance(output, dict) or set(output) != {"answer", "evidence"}:
        return output, ()
    try:
        return output["answer"], tuple(Evidence.model_validate(item) for item in output["evidence"])
    except (ValidationError, TypeError):
        return output, ()
