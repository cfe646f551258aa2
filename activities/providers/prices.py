"""What tokens cost: the operator's own prices, the extra `prices` (genai-prices) where it is
installed, and else `prices.toml`, which also says what bare provider names mean.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, get_args

from sennit.activities.limits import MAX_KEPT_PRICES_BYTES
from sennit.activities.providers.settings import ModelSettings, OwnPrice, Prices
from sennit.workflows.messages.queues import PYDANTIC_AI
from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.language.nodes import Role

_DATA = tomllib.loads(Path(__file__).with_name("prices.toml").read_text(encoding="utf-8"))
_SNAPSHOT = re.compile(r"-(\d{4}-\d\d-\d\d|\d{8}|latest)\Z")

_MAKERS = {"openai-chat": "openai", "openai-responses": "openai"}
"""Makers that pydantic-ai knows by more than one name."""

DEFAULTS: dict[str, str] = _DATA["defaults"]
_TODO = (
    "add to the file that SENNIT_PRICES names, with the millionths of a dollar that a million "
    "tokens of input and of output cost, 0 for a local model"
)
_listed: dict[str, Mapping[str, OwnPrice]] = {}
_PRICE_BYTES = 400
"""Of what the extra says of one model, beside its name."""
_KEPT: BoundedCache[tuple[str, str], Any] = BoundedCache(
    MAX_KEPT_PRICES_BYTES, lambda _: _PRICE_BYTES
)


def use(prices: Prices) -> None:
    """Take these prices before those of the data file, in this process from now on."""
    _listed.clear()
    _listed.update(prices)


class Price(NamedTuple):
    """Micro-dollars for a million tokens: of input, of output, of input that came out of a cache,
    and of input that was written into one.
    """

    input: int
    output: int
    cached: int
    cache_write: int


NOTHING = Price(0, 0, 0, 0)


def load() -> None:
    """Load the prices of the extra, which takes a second: for a thread, before the
    first call needs them.
    """
    _library()


def price_of(model: str, prompt: int = 0) -> tuple[int, int] | None:
    """Return micro-dollars per million input and output tokens, without a
    cache: see `prices_of`.
    """
    price = prices_of(model, prompt)
    if price is None:
        return None
    return price[:2]


def prices_of(model: str, prompt: int = 0) -> Price | None:
    """Return the prices of a call of `provider:name` with so many tokens in its prompt: the
    operator's own, else those of the extra `prices`, else those of the data file. A dated snapshot
    costs what its model does.

    None where no price is known; the offline rules cost nothing.
    """
    provider, _, name = model.partition(":")
    if provider == "offline":
        return NOTHING
    own = _listed_price(_listed.get(provider, {}), {}, name, prompt)
    if own is not None:
        return own
    if provider == PYDANTIC_AI:  # a model costs the same, whoever calls it
        maker, _, name = name.partition(":")
        provider = _MAKERS.get(maker, maker)
    elsewhere = _library_price(provider, name, prompt)
    if elsewhere is not None:
        return elsewhere
    return _listed_price(_DATA.get(provider, {}), _DATA["cached"].get(provider, {}), name, prompt)


def _listed_price(
    listed: Mapping[str, OwnPrice], caches: Mapping[str, Sequence[int]], name: str, prompt: int
) -> Price | None:
    """Return a price from a list, with that of its cache."""
    if name not in listed:
        name = _SNAPSHOT.sub("", name)
    entry = listed.get(name)
    if not entry:
        return None
    if isinstance(entry, Mapping):
        sent = entry["input"]
        return Price(
            sent, entry["output"], entry.get("cached", sent), entry.get("cache_write", sent)
        )
    sent, written, *long = entry
    cached, kept = caches.get(name) or (sent, sent)
    if long:
        most, long_sent, long_written = long
        if prompt > most:  # a cache costs the same share of a long prompt
            return Price(
                long_sent, long_written, cached * long_sent // sent, kept * long_sent // sent
            )
    return Price(sent, written, cached, kept)


@cache
def _library() -> Any:
    """Return the module with the prices of the extra, None where it is not installed."""
    try:
        return import_module("genai_prices")
    except ModuleNotFoundError:
        return None


def _library_model(provider: str, name: str) -> Any:
    """Return what the extra knows of a model's price, None if that is nothing."""
    return _KEPT.get_or_make((provider, name), lambda: _looked_up(provider, name))


def _looked_up(provider: str, name: str) -> Any:
    library = _library()
    if library is None:
        return None
    try:
        usage = library.Usage(input_tokens=1, output_tokens=1)
        return library.calc_price(usage, model_ref=name, provider_id=provider).model_price
    except (LookupError, ValueError):
        return None


def _library_price(provider: str, name: str, prompt: int) -> Price | None:
    found = _library_model(provider, name)
    if found is None:
        return None
    sent = _in_tier(found, "input_mtok", prompt)
    written = _in_tier(found, "output_mtok", prompt)
    if sent is None or written is None:
        return None
    cached = _in_tier(found, "cache_read_mtok", prompt)
    if cached is None:
        cached = sent
    kept = _in_tier(found, "cache_write_mtok", prompt)
    if kept is None:
        kept = sent
    return Price(sent, written, cached, kept)


def _in_tier(price: Any, field: str, prompt: int) -> int | None:
    """Return micro-dollars from what the extra says: an amount, or amounts by the length of the
    prompt; None if it says nothing.
    """
    dollars = getattr(price, field, None)
    for tier in getattr(dollars, "tiers", ()):
        if prompt > tier.start:
            dollars = tier.price
    amount = getattr(dollars, "base", dollars)
    if amount is None:
        return None
    micros: int = round(amount * 1_000_000)
    return micros


def price_list(settings: ModelSettings) -> dict[str, tuple[int, int]]:
    """Return all that `price_of` knows of short prompts, and for each role the price of the
    model that serves it first.

    The settings' own prices are taken from now on.
    A bare name that stands for a model of a server of one's own has no known price.
    """
    use(settings.prices)
    models: dict[str, str] = {"offline": "offline"}
    """For each name in the list, the model whose price it has."""
    for provider, default in DEFAULTS.items():
        if _is_official(settings, provider):
            models[provider] = f"{provider}:{default}"
    for provider in DEFAULTS:
        for name in _DATA[provider]:
            models[f"{provider}:{name}"] = f"{provider}:{name}"
    for role in get_args(Role):
        model = settings.models(role)[0]
        models[role] = models.get(model, model)
    for provider, known in _listed.items():
        for name in known:
            models[f"{provider}:{name}"] = f"{provider}:{name}"

    prices: dict[str, tuple[int, int]] = {}
    for name, model in models.items():
        price = _quoted_price(model)
        if price is not None:
            prices[name] = price
    return prices


def _quoted_price(model: str) -> tuple[int, int] | None:
    """Return `price_of` a model. The data file comes before the extra here, with the same prices: a
    command that only checks a plan need not wait until the extra is loaded.
    """
    provider, _, name = model.partition(":")
    for listed in (_listed, _DATA):
        price = _listed_price(listed.get(provider, {}), {}, name, 0)
        if price is not None:
            return price[:2]
    return price_of(model)


def _is_official(settings: ModelSettings, provider: str) -> bool:
    server = settings.servers.get(provider)
    return server is None or server.official


def with_cost(usage: Usage, model: str, kept: int = 0) -> Usage:
    """Return usage with its cost in micro-dollars, rounded up; 0 where no price is known. So many
    tokens of the input were `kept`: written into the server's cache.
    """
    price = prices_of(model, usage.input_tokens) or NOTHING
    plain = max(0, usage.input_tokens - usage.cached_tokens - kept)
    total = plain * price.input + usage.cached_tokens * price.cached
    total += kept * price.cache_write + usage.output_tokens * price.output
    return usage._replace(cost=-(-total // 1_000_000))


def unpriced(models: Iterable[str]) -> str | None:
    """Return the warning that some of these models have no known price; None when all have."""
    unknown = _unknown(models)
    if not unknown:
        return None
    return f"no price is known for {', '.join(unknown)}: it counts as 0"


def price_to_add(models: Iterable[str]) -> str:
    """Return what to do about models without a price in a run whose budget limits cost;
    nothing where all have one.
    """
    unknown = _unknown(models)
    if not unknown:
        return ""
    lines: list[str] = []
    for model in unknown:
        provider, _, name = model.partition(":")
        lines.append(f'{provider}."{name}" = [0, 0]')
    names = ", ".join(unknown)
    return f"no price is known for {names}, and the budget limits cost; {_TODO}: {'; '.join(lines)}"


def _unknown(models: Iterable[str]) -> list[str]:
    """Return those of some models of which no price is known, each once."""
    return sorted({model for model in models if price_of(model) is None})
