"""Limits of a budget as people write them, on a command line or in a variable."""

from typing import Any

from pydantic import ValidationError

from sennit.workflows.plan.language.json_schema import typed_value
from sennit.workflows.plan.language.limits import Limits
from sennit.workflows.plan.language.validation_messages import describe_errors


def parse_limits(text: str, example: str) -> Limits:
    """Return limits from `name=value` parts with commas between. Raises ValueError with a sentence
    about the part that is wrong, and an `example`.
    """
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = map(str.strip, part.partition("="))
        if not equals or not name:
            raise ValueError(f"{part.strip()[:40]!r} is not a limit; write for example {example}")
        if not value:
            raise ValueError(f"the limit `{name[:40]}` has no value; write for example {example}")
        if name in values:
            raise ValueError(f"the limit `{name[:40]}` is given twice; write for example {example}")
        values[name] = typed_value(value, frozenset({"integer", "number"}))
    try:
        return Limits.model_validate(values)
    except ValidationError as error:
        problem = describe_errors(error, Limits.model_fields)
        raise ValueError(f"{problem}; write for example {example}") from None
