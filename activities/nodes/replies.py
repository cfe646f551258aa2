"""From a node's output to what the workflow is told of it, its `NodeReply`: the output is kept
whole in the store, and the workflow gets its digest, facts and a preview.

A model's reply is another thing: `activities/llm/reply.py` makes an output of it.
"""

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from sennit.activities.limits import (
    MAX_BODY_BYTES,
    MAX_INLINE_BYTES,
    MAX_NODE_WARNINGS,
    MAX_OUTPUT_LEVELS,
    MAX_PREVIEW_CHARACTERS,
    MAX_READABLE_LEVELS,
)
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.error_mapping import OutputRefused, SubAgentFailed
from sennit.activities.nodes.server_time import millis_now
from sennit.activities.storage.artifacts import (
    MARKERS,
    ArtifactStore,
    body_of,
    digest_of,
    encode,
    in_marker,
    name_of,
)
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox.errors import BadOutput
from sennit.workflows.messages.contracts import NodeReply, conclusion_of
from sennit.workflows.messages.result import usage_in
from sennit.workflows.plan.language.facts import facts_of
from sennit.workflows.plan.language.references import as_text


class Marker(BaseModel):
    """What is kept of a node's outcome, under its content key or a write's key: the reply,
    and which plan it is of.

    A short output lies in the marker itself: both are there, or neither.
    """

    reply: NodeReply
    epoch: int = 1

    @classmethod
    def read(cls, text: bytes) -> "Marker":
        """Return a marker as it was stored; one that cannot be read is a marker of nothing."""
        try:
            return cls.model_validate_json(text.partition(b"\n")[0])
        except ValidationError:
            return cls(reply=NodeReply())

    def text(self, output: bytes | None = None) -> bytes:
        """Return the marker as it is stored, with the output that lies in it."""
        line = self.model_dump_json(exclude_unset=True).encode()
        if output is None:
            return line
        return in_marker(line, output)


async def is_there(
    store: ArtifactStore, run_prefix: str, reference: str, key: str, marker: bytes
) -> bool:
    """Whether the output that the marker `key` refers to is there: whole in the marker, or
    by its name elsewhere.

    Raises StoreUnavailable.
    """
    if name_of(reference) == f"{MARKERS}{key}":
        return body_of(reference, marker) is not None
    return await store.has(run_prefix, reference)


async def keep(
    store: ArtifactStore, run_prefix: str, output: Any, wanted: list[str], *, inline: bool
) -> NodeReply:
    """Store an output and return its reply, with the value itself when asked for and small.

    Raises OutputRefused, FactTooLarge or StoreUnavailable; nothing is half kept.
    """
    body = encode_output(output)
    reply = reply_to(output, digest_of(body), len(body), wanted, inline=inline)
    await store.put(run_prefix, body)
    return reply


def reply_of(context: NodeContext, output: NodeOutput, reference: str, size: int) -> NodeReply:
    """Return the reply of a node whose output, of `size` bytes, is found by
    `reference`. Raises FactTooLarge.
    """
    wanted, inline = context.wanted
    if output.more:
        wanted, inline = [], False
    extra: dict[str, Any] = {}
    if context.attempts.number > 1:
        extra["attempt"] = context.attempts.number
    if output.millis:
        extra["millis"] = output.millis
    if output.at:
        extra["at"] = output.at
    if any(output.span):
        extra["span"] = output.span
    if any(output.usage):
        extra["usage"] = output.usage
    if output.more:
        extra["more"] = output.more
    if output.early:
        extra["early"] = output.early
    if output.warnings:
        extra["warnings"] = tuple(dict.fromkeys(output.warnings))[:MAX_NODE_WARNINGS]
    return reply_to(output.output, reference, size, wanted, inline=inline, **extra)


def reply_to(
    output: Any, reference: str, size: int, wanted: list[str], *, inline: bool, **extra: Any
) -> NodeReply:
    """Return the reply of a node with this output, which has `size` bytes. Raises FactTooLarge."""
    fields: dict[str, Any] = {
        "ref": reference,
        "size": size,
        "preview": preview_of(output),
        **extra,
    }
    facts = facts_of(output, wanted)
    if facts:
        fields["facts"] = facts
    if inline and size <= MAX_INLINE_BYTES:
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
        raise OutputRefused(
            f"the output is nested more than {MAX_OUTPUT_LEVELS} levels deep. Return it flatter, "
            "or as text"
        )
    return body


def _deep(body: bytes) -> bool:
    if body.count(b"[") + body.count(b"{") <= MAX_OUTPUT_LEVELS:
        return False
    more = MAX_READABLE_LEVELS - MAX_OUTPUT_LEVELS
    try:
        from_json(b"[" * more + body + b"]" * more)
    except ValueError:
        return True
    return False


def preview_of(output: Any) -> str:
    """Return the start of an output on one line, and how long the whole is if that is not all."""
    text = " ".join(as_text(output).split())
    if len(text) <= MAX_PREVIEW_CHARACTERS:
        return text
    mark = f"… ({len(text):,} characters)"
    return text[: MAX_PREVIEW_CHARACTERS - len(mark)] + mark


async def whole_report(library: ArtifactReader, run_prefix: str, report: Any) -> Any:
    """Return the report of a sub-agent with its whole answer. Raises
    BodyMissing, StoreUnavailable.
    """
    place = None
    if isinstance(report, dict):
        place = report.get("whole")
    if not isinstance(place, str):
        return report
    digest = await library.adopt(run_prefix, place)
    found = conclusion_of(await library.value(run_prefix, digest))
    return {**report, **found.model_dump(mode="json", include={"answer", "evidence"})}


def of_its_type(reply: NodeReply) -> NodeReply:
    """Return the reply of a write. Raises BadOutput if it was made, and returned
    what is not of its type.
    """
    if reply.error is not None:
        raise BadOutput(reply.error.message)
    return reply


def answer_of(report: Any, node: str) -> NodeOutput:
    """Return a sub-agent's answer as its node's output, with what its run has used.

    An answer with evidence is `{answer, evidence}`, as that of a joiner; so is a text that is
    partial, with `partial: true`. `sub.n1` is node n1 of the sub-agent of sub.
    """
    fields: dict[str, Any] = {}
    if isinstance(report, dict):
        fields = report
    if fields.get("answer") is None:
        problem = fields.get("problem") or "it ended without one"
        raise SubAgentFailed(f"the sub-agent gave no answer: {problem}", usage_in(report))
    answer: Any = fields["answer"]
    evidence: list[dict[str, Any]] = []
    for piece in fields.get("evidence") or ():
        evidence.append({**piece, "node": f"{node}.{piece['node']}"})
    partial = fields.get("status") == "partial"
    # Nodes that read fields of JSON find them where they were.
    if evidence or (partial and isinstance(answer, str)):
        answer = {"answer": answer, "evidence": evidence}
        if partial:
            answer["partial"] = True
    return NodeOutput(answer, usage_in(report))


def timed(context: NodeContext, output: NodeOutput) -> NodeOutput:
    """Return the output of a program's call with the time of its end, which a fork takes over."""
    if context.unit.id not in context.checked.keys or output.more:
        return output
    return replace(output, at=millis_now())
