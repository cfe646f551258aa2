"""Task queues: one for workflows, one for tools, one for each model provider, so that
each scales on its own.
"""

import re
from collections.abc import Collection

WORKFLOW = "sennit.workflow"
TOOLS = "sennit.tools"
SANDBOX = "sennit.sandbox"
LLM_PREFIX = "sennit.llm."

PYDANTIC_AI = "pydantic-ai"
"""The models of the extra of that name: `pydantic-ai:google:NAME`."""
PROVIDERS = ("offline", "openai", "anthropic", PYDANTIC_AI)
_MODEL = re.compile(r"[^\s,]{1,110}")


def llm_queue(model: str) -> str:
    """Return the queue of the provider in `provider:model`; a bare provider name is one too."""
    return LLM_PREFIX + model.partition(":")[0]


def models_in(text: str, where: str = "") -> tuple[str, ...]:
    """Return the names in `openai:NAME,anthropic:NAME`. Raises ValueError that begins with
    `where`, if one is none.
    """
    names = _parts(text)
    for name in names:
        provider, colon, model = name.partition(":")
        if provider not in PROVIDERS or (colon and not _MODEL.fullmatch(model)):
            forms = "offline, openai:NAME, anthropic:NAME, pydantic-ai:MAKER:NAME"
            raise ValueError(
                f"{where}{name!r}: is no model; give {forms}, several with commas between"
            )
    return tuple(names)


def _parts(text: str) -> list[str]:
    """Return what stands between commas, without space around it and without what is empty."""
    stripped = map(str.strip, text.split(","))
    return list(filter(None, stripped))


def rates_in(
    text: str, *, providers: Collection[str] | None = None, least: int = 0
) -> dict[str, int]:
    """Return how many calls a minute each provider takes, from `openai=600,anthropic=50`: `least`
    of them, and where `providers` are given, of no other.

    Raises ValueError with a sentence about the part that is wrong.
    """
    rates: dict[str, int] = {}
    for part in _parts(text):
        provider, _, calls = map(str.strip, part.partition("="))
        is_known = re.fullmatch(r"[a-z][\w-]{0,40}", provider) is not None
        if providers is not None:
            is_known = provider in providers
        if not is_known or not re.fullmatch(r"[0-9]{1,9}", calls) or int(calls) < least:
            raise ValueError(
                f"{part[:60]!r}: is no rate; give calls a minute, like openai=600,anthropic=50"
            )
        rates[provider] = int(calls)
    return rates
