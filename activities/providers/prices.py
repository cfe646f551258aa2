"""What tokens cost: `prices.toml`, the one place with prices and with the models that bare provider names mean."""

import re
import tomllib
from pathlib import Path
from typing import get_args

from activities.providers.settings import ModelSettings
from workflows.plan.language.limits import Usage
from workflows.plan.language.nodes import Role

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


def price_list(settings: ModelSettings) -> dict[str, tuple[int, int]]:
    """Return all that `price_of` knows of short prompts, and for each role the price of the model that serves it first.

    A bare name that stands for a model of a server of one's own has no known price.
    """
    full = {name: f"{name}:{model}" for name, model in DEFAULTS.items() if _is_official(settings, name)}
    named = {f"{provider}:{model}": f"{provider}:{model}" for provider in DEFAULTS for model in _DATA[provider]}
    names = {"offline": "offline"} | full | named
    for role in get_args(Role):
        model = settings.models(role)[0]
        names[role] = names.get(model, model)
    return {name: price for name, model in names.items() if (price := price_of(model)) is not None}


def _is_official(settings: ModelSettings, provider: str) -> bool:
    server = settings.servers.get(provider)
    return server is None or server.official


def with_cost(usage: Usage, model: str) -> Usage:
    """Return usage with its cost in micro-dollars, rounded up; 0 where no price is known."""
    given, written = price_of(model, usage.input_tokens) or (0, 0)
    total = usage.input_tokens * given + usage.output_tokens * written
    return usage._replace(cost=-(-total // 1_000_000))
