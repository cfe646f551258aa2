"""What tokens cost: `prices.toml`, the one place with prices and with the models that bare provider names mean."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from sennit.activities.providers.settings import ModelSettings, Prices
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.language.nodes import Role

_DATA = tomllib.loads(Path(__file__).with_name("prices.toml").read_text(encoding="utf-8"))
_SNAPSHOT = re.compile(r"-(\d{4}-\d\d-\d\d|\d{8}|latest)\Z")

DEFAULTS: dict[str, str] = _DATA["defaults"]
_TODO = (
    "add to the file that SENNIT_PRICES names, with the millionths of a dollar that a million tokens of input and of "
    "output cost, 0 for a local model"
)
_listed: dict[str, Mapping[str, Sequence[int]]] = {}


def use(prices: Prices) -> None:
    """Take these prices before those of the data file, in this process from now on."""
    _listed.clear()
    _listed.update(prices)


def price_of(model: str, prompt: int = 0) -> tuple[int, int] | None:
    """Return micro-dollars per million input and output tokens of a call of `provider:name` with so many tokens in its
    prompt; a dated snapshot costs what its model does. None where no price is known; the offline rules cost nothing.
    """
    provider, _, name = model.partition(":")
    if provider == "offline":
        return 0, 0
    known = {**_DATA.get(provider, {}), **_listed.get(provider, {})}
    found = known.get(name) or known.get(_SNAPSHOT.sub("", name))
    if not found:
        return None
    sent, written, *long = found
    return (long[1], long[2]) if long and prompt > long[0] else (sent, written)


def price_list(settings: ModelSettings) -> dict[str, tuple[int, int]]:
    """Return all that `price_of` knows of short prompts, and for each role the price of the model that serves it first.

    The settings' own prices are taken from now on.
    A bare name that stands for a model of a server of one's own has no known price.
    """
    use(settings.prices)
    full = {name: f"{name}:{model}" for name, model in DEFAULTS.items() if _is_official(settings, name)}
    named = {f"{provider}:{model}": f"{provider}:{model}" for provider in DEFAULTS for model in _DATA[provider]}
    names = {"offline": "offline"} | full | named
    for role in get_args(Role):
        model = settings.models(role)[0]
        names[role] = names.get(model, model)
    names |= {f"{provider}:{model}": f"{provider}:{model}" for provider, known in _listed.items() for model in known}
    return {name: price for name, model in names.items() if (price := price_of(model)) is not None}


def _is_official(settings: ModelSettings, provider: str) -> bool:
    server = settings.servers.get(provider)
    return server is None or server.official


def with_cost(usage: Usage, model: str) -> Usage:
    """Return usage with its cost in micro-dollars, rounded up; 0 where no price is known."""
    sent, written = price_of(model, usage.input_tokens) or (0, 0)
    total = usage.input_tokens * sent + usage.output_tokens * written
    return usage._replace(cost=-(-total // 1_000_000))


def unpriced(models: Iterable[str]) -> str | None:
    """Return the warning that some of these models have no known price; None when all have."""
    unknown = sorted({model for model in models if price_of(model) is None})
    return f"no price is known for {', '.join(unknown)}: it counts as 0" if unknown else None


def price_to_add(models: Iterable[str]) -> str:
    """Return what to do about models without a price in a run whose budget limits cost; nothing where all have one."""
    unknown = sorted({model for model in models if price_of(model) is None})
    lines = "; ".join(f'{model.partition(":")[0]}."{model.partition(":")[2]}" = [0, 0]' for model in unknown)
    names = ", ".join(unknown)
    return f"no price is known for {names}, and the budget limits cost; {_TODO}: {lines}" if names else ""
