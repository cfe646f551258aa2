"""Limits as they are typed on a command line."""

import re
from typing import Any

from pydantic import ValidationError

from workflows.plan.language.limits import Limits
from workflows.plan.language.validation_messages import describe_errors

EXAMPLE = "tokens=20000,cost_usd=0.5,calls=20,nodes=100,time=10m"


def read_limits(text: str) -> dict[str, Any]:
    """Return a budget as a request has it, from `name=value` parts with commas between; raises ValueError."""
    given: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise ValueError(f"{part[:40]!r} is no limit; write for example {EXAMPLE}")
        if name in given:
            raise ValueError(f"the limit `{name[:40]}` is given twice")
        given[name] = _number(value)
    try:
        return Limits.model_validate(given).model_dump(mode="json", exclude_none=True)
    except ValidationError as error:
        raise ValueError(f"{describe_errors(error, Limits.model_fields)}; write for example {EXAMPLE}") from None


def _number(text: str) -> int | float | str:
    if re.fullmatch(r"-?\d{1,40}", text, re.ASCII):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d{0,18}\.\d{1,18}", text, re.ASCII) else text
