"""How calls have ended that an advance of a program has made itself, as they travel on the
page that they are on.
"""

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
    """Return what `pack_ends` has packed. Raises ValueError for anything else, and for ends that no
    advance can know: those of calls that write, and two of one node. Ends that are taken over from
    another run may be of any call.
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

    ends: dict[str, NodeReply] = {}
    for spec, reply in zip(specs, replies, strict=True):
        if spec.id in ends or not says_an_end(reply):
            raise ValueError("the ends do not fit the page")
        if not reply.taken_over and (spec.kind != "tool" or spec.effect == "write"):
            raise ValueError("the page says how something ended that an advance does not call")
        ends[spec.id] = reply
    return list(ends.items())


def says_an_end(reply: NodeReply) -> bool:
    """Whether a reply says that its node has ended, with a value or an error."""
    return reply.error is not None or bool(reply.ref)
