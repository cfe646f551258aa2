"""Outputs of nodes in a prompt, within a budget of tokens: whole if they fit, else cut with a mark that says so.

Small outputs are never cut for the sake of large ones: what they leave of their share goes to the others. A summary by
a model is no business of this module; it is a node of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from activities.prompts.fence import fenced
from workflows.plan.references import Reference, as_text, filled, resolve

CONTEXT_TOKENS = 16_000
BYTES_A_TOKEN = 3
"""Bytes of UTF-8 that a token stands for, at the least: estimates err on the long side."""

BY_REFERENCE = 20
"""How many times its share an output must have to be left to the reading tool."""

PREVIEW_TOKENS = 200
ITEM_TOKENS = 40
"""What an item of a list that is cut has at least, or it is left out."""

_TRUSTED = ("goal", "input")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of the outputs enters a prompt. `reader` is the tool, if the model has one, that reads the rest of an
    output by its node id.
    """

    tokens: int = CONTEXT_TOKENS
    reader: str = ""


def tokens_of(text: str) -> int:
    """Return about how many tokens a text has."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def woven(template: str, lookup: Callable[[str], Any], budget: Budget) -> str:
    """Return a prompt with its references filled in.

    The goal, the run's inputs, numbers and truth values stand where they are referred to. Everything else was said by
    somebody else: its place has the reference's name in brackets, and the text follows in a fence. Raises BindError.
    """
    blocks: dict[str, Any] = {}

    def write(reference: Reference) -> str:
        value = resolve(reference, lookup(reference.node))
        if reference.node in _TRUSTED or not isinstance(value, str | list | dict):
            return as_text(value)
        name = str(reference).strip("${}")
        blocks[name] = value
        return f"[{name}]"

    text = filled(template, write)
    return "\n\n".join([text, *fitted(blocks, budget)])


def fitted(values: dict[str, Any], budget: Budget) -> list[str]:
    """Return one fenced block a value, all together about within the budget."""
    shares = shared([tokens_of(as_text(value)) for value in values.values()], budget.tokens)
    return [
        fenced(name, _within(name, value, share, budget.reader))
        for (name, value), share in zip(values.items(), shares, strict=True)
    ]


def shared(sizes: Sequence[int], total: int) -> list[int]:
    """Return how much of `total` each size gets: all it asks for, or an equal part of what smaller ones leave."""
    shares = [0] * len(sizes)
    left = total
    for count, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[index] = min(sizes[index], left // (len(sizes) - count))
        left -= shares[index]
    return shares


def _within(name: str, value: Any, share: int, reader: str) -> str:
    text = as_text(value)
    size = tokens_of(text)
    if size <= share:
        return text
    if reader and size > BY_REFERENCE * share:
        return cut(name, text, min(share, PREVIEW_TOKENS), reader)
    if isinstance(value, list) and len(value) > 1:
        return _listed(name, value, share, reader)
    return cut(name, text, share, reader)


def _listed(name: str, items: list[Any], share: int, reader: str) -> str:
    """Return as many items as may have a useful length, each cut to its own share, and how many are missing."""
    parts = [as_text(item) for item in items[: max(1, share // ITEM_TOKENS)]]
    pairs = enumerate(zip(parts, shared([tokens_of(part) for part in parts], share), strict=True))
    lines = [cut(f"{name}[{index}]", part, most) for index, (part, most) in pairs]
    if len(parts) < len(items):
        lines.append(_mark(f"{len(items) - len(parts):,} more items of {name}", name, reader))
    return "\n".join(lines)


def cut(name: str, text: str, share: int, reader: str = "") -> str:
    """Return the first `share` tokens of a text, and how much is missing from what."""
    body = text.encode("utf-8", "replace")
    if len(body) <= share * BYTES_A_TOKEN:
        return text
    kept = body[: share * BYTES_A_TOKEN].decode("utf-8", "ignore")
    return f"{kept}\n{_mark(f'{len(text) - len(kept):,} more characters of {name}', name, reader)}"


def _mark(missing: str, name: str, reader: str) -> str:
    return f'[cut: {missing}; {reader}("{name}") reads it]' if reader else f"[cut: {missing}]"
