"""From a node's output to its reply: kept whole in the store, with facts and a preview for the workflow."""

from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json

from activities.nodes.error_mapping import OutputRefused
from activities.storage.artifacts import MAX_BODY_BYTES, ArtifactStore, encode
from workflows.messages.contracts import NodeReply
from workflows.plan.language.facts import facts_of
from workflows.plan.language.references import as_text

PREVIEW_CHARACTERS = 160
INLINE_BYTES = 32 * 1024
MAX_DEPTH = 120
_READABLE_DEPTH = 200
"""Payloads nested deeper cannot be read, by the workflow least of all. An answer wraps outputs in 60 levels at most."""


class Marker(BaseModel):
    """What is kept of a node's outcome, under its content key or a write's key: the reply, and which plan it is of."""

    reply: NodeReply
    epoch: int = 1

    def body(self) -> bytes:
        """Return the marker as it is stored."""
        return encode(self.model_dump(mode="json", exclude_unset=True))


async def keep(store: ArtifactStore, run_prefix: str, output: Any, wanted: list[str], *, inline: bool) -> NodeReply:
    """Store an output and return its reply, with the value itself when asked for and small.

    Raises OutputRefused, FactTooLarge or StoreUnavailable; nothing is half kept.
    """
    body = encode_output(output)
    fields: dict[str, Any] = {
        "ref": await store.put(run_prefix, body),
        "size": len(body),
        "preview": preview_of(output),
    }
    facts = facts_of(output, wanted)
    if facts:
        fields["facts"] = facts
    if inline and len(body) <= INLINE_BYTES:
        fields |= {"value": output, "has_value": True}
    return NodeReply(**fields)


def encode_output(output: Any) -> bytes:
    """Return an output as its body. Raises OutputRefused with the reason and the way out."""
    try:
        body = encode(output)
    except (ValueError, TypeError, RecursionError) as error:
        raise OutputRefused(f"the output is not JSON: {error}") from None
    if len(body) > MAX_BODY_BYTES:
        size = f"{len(body):,} bytes; at most {MAX_BODY_BYTES:,}"
        raise OutputRefused(f"the output has {size}. Return less, or a path to where it is")
    if _deep(body):
        raise OutputRefused(f"the output is nested more than {MAX_DEPTH} levels deep. Return it flatter, or as text")
    return body


def _deep(body: bytes) -> bool:
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    more = _READABLE_DEPTH - MAX_DEPTH
    try:
        from_json(b"[" * more + body + b"]" * more)
    except ValueError:
        return True
    return False


def preview_of(output: Any) -> str:
    """Return the start of an output on one line."""
    text = " ".join(as_text(output).split())
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 1] + "…"
