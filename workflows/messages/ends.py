"""How calls have ended that an advance of a program has made itself, as they travel on the page that they are on."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.language.packing import pack, unpack
from sennit.workflows.plan.limits import MAX_UNPACKED_ENDS_BYTES

CallEnd = tuple[str, NodeReply]
"""A node by its id, and how it has ended."""


def pack_ends(specs: Sequence[NodeSpec], ends: Mapping[str, NodeReply]) -> str:
    """Return as compressed text how nodes of a page have ended, in that order; "" for none."""
    places = {spec.id: place for place, spec in enumerate(specs)}
    rows: list[list[Any]] = []
    for name, reply in ends.items():
        if name in places:
            fields = reply.model_dump(mode="json", exclude_defaults=True)
            rows.append([places[name], fields])
    if not rows:
        return ""
    return pack(rows)


def unpack_ends(page: ExecutionPlan, text: str) -> list[CallEnd]:
    """Return what `pack_ends` has packed. Raises ValueError for anything else, and for ends that a step cannot know:
    those of calls that write, two of one node, and that of another step than the next one, which ends last. Ends that
    are taken over from another run may be of any call.
    """
    if not text:
        return []
    specs: list[NodeSpec] = []
    replies: list[NodeReply] = []
    try:
        for place, fields in unpack(text, MAX_UNPACKED_ENDS_BYTES):
            specs.append(page.specs[place])
            replies.append(NodeReply.model_validate(fields))
    except (ValidationError, TypeError, LookupError, zlib.error) as error:
        raise ValueError(f"these are no ends: {error}") from None

    # Every end says something, and the step that follows ends behind all calls.
    ends: dict[str, NodeReply] = {}
    has_next_step = False
    for spec, reply in zip(specs, replies, strict=True):
        is_silent = reply.error is None and not reply.ref
        if is_silent or has_next_step or spec.id in ends:
            raise ValueError("the ends do not fit the page")
        ends[spec.id] = reply
        has_next_step = spec is page.specs[-1]

    for spec in specs:
        is_made = spec is not page.specs[-1] and not ends[spec.id].taken_over
        if is_made and (spec.kind != "tool" or spec.effect == "write"):
            raise ValueError("the page says how something ended that a step does not call")
    return list(ends.items())
