"""How calls have ended that an advance of a program has made itself, as they travel on the page that they are on."""

import zlib
from collections.abc import Mapping, Sequence

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
    known = [(name, reply) for name, reply in ends.items() if name in places]
    if not known:
        return ""
    rows = [[places[name], reply.model_dump(mode="json", exclude_defaults=True)] for name, reply in known]
    return pack(rows)


def unpack_ends(page: ExecutionPlan, text: str) -> list[CallEnd]:
    """Return what `pack_ends` has packed. Raises ValueError for anything else, and for ends that a step cannot know:
    those of calls that write, two of one node, and that of another step than the next one, which ends last. Ends that
    are taken over from another run may be of any call.
    """
    try:
        rows = unpack(text, MAX_UNPACKED_ENDS_BYTES) if text else []
        found = [(page.specs[place], NodeReply.model_validate(fields)) for place, fields in rows]
    except (ValidationError, TypeError, LookupError, zlib.error) as error:
        raise ValueError(f"these are no ends: {error}") from None
    ends = {spec.id: reply for spec, reply in found}
    calls = [spec for spec, _ in found if spec is not page.specs[-1]]
    says = all(reply.error is not None or reply.ref for reply in ends.values())
    if not says or len(ends) < len(found) or calls != [spec for spec, _ in found][: len(calls)]:
        raise ValueError("the ends do not fit the page")
    made = [spec for spec in calls if not ends[spec.id].taken_over]
    if any(spec.kind != "tool" or spec.effect == "write" for spec in made):
        raise ValueError("the page says how something ended that a step does not call")
    return list(ends.items())
