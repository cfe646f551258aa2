"""What tokens cost: `prices.toml`, the one place with prices and with the models that bare provider names mean."""

import re
import tomllib
from pathlib import Path

from workflows.plan.language.limits import Usage

_DATA = tomllib.loads(Path(__file__).with_name("prices.toml").read_text(encoding="utf-8"))
_SNAPSHOT = re.compile(r"-(\d{4}-\d\d-\d\d|\d{8}|latest)\Z")

DEFAULTS: dict[str, str] = _DATA["defaults"]


def price_of(model: str, prompt: int = 0) -> tuple[int, int] | None:
    """Return micro-dollars per million input and output tokens of a call of `provider:name` with so many tokens in its
    prompt; a dated snapshot costs what its model does. None where no price is known; the offline rules cost nothing.
    """
    provider, _, name = model.partition(":")
    if provider == "offline":
        return 0, 0
    known = _DATA.get(provider, {})
    found = known.get(name) or known.get(_SNAPSHOT.sub("", name))
    if not found:
        return None
    given, written, *long = found
    return (long[1], long[2]) if long and prompt > long[0] else (given, written)


def with_cost(usage: Usage, model: str) -> Usage:
    """Return usage with its cost in micro-dollars, rounded up; 0 where no price is known."""
    given, written = price_of(model, usage.input_tokens) or (0, 0)
    total = usage.input_tokens * given + usage.output_tokens * written
    return usage._replace(cost=-(-total // 1_000_000))
