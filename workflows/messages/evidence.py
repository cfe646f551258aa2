"""An answer with its evidence: what joiners return as `{answer, evidence: [{n, node, claim, source, quote}]}`."""

from typing import Any

from pydantic import ValidationError

from workflows.messages.contracts import Conclusion, Evidence


def conclusion_of(output: Any) -> Conclusion:
    """Return the answer and evidence of a joiner's output; any other output is the answer itself, without evidence.

    `partial: true` beside them says that the answer covers only a part of the goal.
    """
    if isinstance(output, dict) and set(output) - {"partial"} == {"answer", "evidence"}:
        try:
            evidence = tuple(Evidence.model_validate(item) for item in output["evidence"])
        except (ValidationError, TypeError):
            return Conclusion(answer=output)
        return Conclusion(answer=output["answer"], evidence=evidence, partial=output.get("partial") is True)
    return Conclusion(answer=output)
