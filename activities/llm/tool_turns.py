"""The turns of a tool loop: how they are kept between two activities, and what the
next call shows of them.

The transcript is an artifact. It has the words of each turn, its calls and what a model wants back.
Images, PDFs and recordings that tools have returned stand in it as the values that name them; their
bytes are read for each call.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from pydantic import JsonValue

from sennit.activities.limits import MAX_CALL_MEDIA_BYTES, MAX_CALL_MEDIA_READS
from sennit.activities.nodes.context import NodeContext
from sennit.activities.prompts.outputs import fenced
from sennit.activities.providers.media import part_of
from sennit.activities.providers.model import MediaPart, Message, ModelReply, ToolRequest
from sennit.activities.storage.artifacts import BodyMissing
from sennit.activities.storage.media import load_media
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox.media import BadMedia
from sennit.workflows.plan.edits.tool_loop import call_results, calls_going_on
from sennit.workflows.plan.language.media import Media, as_media
from sennit.workflows.plan.language.nodes import CANCEL_CALL, WAIT_FOR, ModelCall, ToolNode
from sennit.workflows.plan.language.references import parse_reference
from sennit.workflows.plan.language.workspaces import FIELD, as_workspace, left_by, takes_workspace
from sennit.workflows.plan.limits import MAX_CALL_MEDIA

TURN_CALLS: Final[Sequence[dict[str, Any]]] = (
    {
        "name": WAIT_FOR,
        "description": "Wait for the results of calls that are still running, by their names.",
        "schema": {
            "type": "object",
            "properties": {
                "calls": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": (
                        "The names of running calls, such as n1_t1_2; all of them if you name none"
                    ),
                }
            },
            "required": [],
            "additionalProperties": False,
        },
    },
    {
        "name": CANCEL_CALL,
        "description": "Cancel a call that is still running, because you do not need its result.",
        "schema": {
            "type": "object",
            "properties": {
                "call": {
                    "type": "string",
                    "description": "The name of a running call, such as n1_t1_2",
                }
            },
            "required": ["call"],
            "additionalProperties": False,
        },
    },
)
"""What a model may call beside its tools if it goes on while some of its calls run, as
entries of the catalogue.
"""


@dataclass(frozen=True, slots=True)
class ToolTurns:
    """The turns before a call, and what people should know of them."""

    messages: tuple[Message, ...] = ()
    warnings: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    """The calls that still run, by their names, of which a later turn is told."""


async def turns_before(
    context: NodeContext, library: ArtifactReader, work: ModelCall, media: Sequence[MediaPart]
) -> ToolTurns:
    """Return the messages of the turns before, with the results of the last calls in fences. Beside
    the `media` of the prompt, the model is shown what tools have returned, as far as a call may
    have it: the last results come first.

    Raises BodyMissing and StoreUnavailable.
    """
    turn = work.further_turn
    if turn is None or not turn.transcript:
        return ToolTurns()
    body = await library.value(context.run_prefix, turn.transcript)
    settled = await settled_results(context, turn.results)
    values: dict[str, Any] = {}
    for entry in settled:
        if entry.get("status") == "succeeded":
            values[str(entry["id"])] = entry.get("value")

    # The turns of the transcript, and then the results of the last one.
    items: list[dict[str, Any]] = list(body["messages"])
    for call_id, nodes in call_results(turn, body["calls"], settled):
        texts: list[str] = []
        found: list[dict[str, Any]] = []
        for node, text in nodes:
            texts.append(fenced(node, text))
            for shown in _media_in(values.get(node)):
                found.append(shown.model_dump(mode="json"))
        items.append(
            {
                "role": "tool",
                "text": "\n".join(texts),
                "call_id": call_id,
                "calls": [],
                "media": found,
            }
        )

    # Some servers take no message of ours between the results and the model's words. So the last
    # result says what runs.
    running = calls_going_on(settled)
    if running:
        items[-1]["text"] += f"\nStill running: {', '.join(running)}"
    media_bytes = sum(part.bytes for part in media)
    room = _Room(MAX_CALL_MEDIA - len(media), MAX_CALL_MEDIA_BYTES - media_bytes)
    messages: list[Message] = []
    for item in reversed(items):
        messages.append(await _with_media(library, context.run_prefix, item, room))
    messages.reverse()
    return ToolTurns(tuple(messages), room.warnings, running)


def transcript(before: ToolTurns, reply: ModelReply) -> dict[str, Any]:
    """Return the messages so far, the calls to make and those of earlier turns that still ran. Ids
    that a server has used twice are made different, because results are matched by them.
    """
    messages = before.messages
    taken: set[str] = set()
    for message in messages:
        taken.update(call.id for call in message.calls)
    calls: list[ToolRequest] = []
    for call in reply.calls:
        ident, count = call.id or "call", 1
        while ident in taken:
            count += 1
            ident = f"{call.id or 'call'}_{count}"
        taken.add(ident)
        calls.append(replace(call, id=ident))
    turn = Message(
        "assistant", reply.text, tuple(calls), thinking=reply.thinking, origin=reply.origin
    )
    items = [_item(message) for message in (*messages, turn)]
    body: dict[str, Any] = {"messages": items}
    body["calls"] = [asdict(call) for call in calls]
    if before.running:
        body["running"] = list(before.running)
    return body


@dataclass(slots=True)
class _Room:
    """How many files and bytes of media a call may still have, and how many files found no room."""

    files: int
    bytes: int
    reads: int = MAX_CALL_MEDIA_READS
    """How many more values are looked up: a tool may return any number of values
    that only look like media.
    """
    left_out: int = 0

    def may_hold(self, claimed: int) -> bool:
        """Return whether to look up a value that claims to have so many bytes. It takes no room
        yet: a tool may have made it up.
        """
        if self.files < 1 or self.reads < 1 or self.bytes < claimed:
            self.left_out += 1
            return False
        self.reads -= 1
        return True

    def takes(self, size: int) -> bool:
        """Return whether there is room for a file that is there and has so many
        bytes, which takes it.
        """
        if self.bytes < size:
            self.left_out += 1
            return False
        self.files -= 1
        self.bytes -= size
        return True

    @property
    def warnings(self) -> tuple[str, ...]:
        if not self.left_out:
            return ()
        most = f"a call has at most {MAX_CALL_MEDIA} files and {MAX_CALL_MEDIA_BYTES:,} bytes"
        return (
            (
                f"{self.left_out:,} files that tools have returned are named to the model and not "
                f"shown: {most}"
            ),
        )


def message_of(item: dict[str, Any]) -> Message:
    """Return a message of a transcript, without its media."""
    calls = tuple(ToolRequest(**call) for call in item["calls"])
    thinking = tuple(item.get("thinking", ()))
    origin = item.get("origin", "")
    return Message(item["role"], item["text"], calls, item["call_id"], thinking, origin)


def _item(message: Message) -> dict[str, Any]:
    """Return a message as the transcript has it, without the bytes of its media."""
    item = asdict(replace(message, media=()))
    item["media"] = [part.reference for part in message.media]
    return item


async def _with_media(
    library: ArtifactReader, run_prefix: str, item: dict[str, Any], room: _Room
) -> Message:
    """Return a message of the transcript with its media. What only looks like media, or lies in
    another run, is not shown: the words of the result name it all the same.
    """
    shown = list[MediaPart]()
    for reference in item.get("media", ()):
        media = as_media(reference)
        if media is None or not room.may_hold(media.bytes):
            continue
        try:
            loaded = await load_media(library.store, run_prefix, [reference])
        except (BadMedia, BodyMissing):
            continue
        for true, data in loaded:
            if room.takes(true.bytes):
                shown.append(part_of(true, data))
    return replace(message_of(item), media=tuple(shown))


def without_workspace(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a tool as a model sees it that works in one folder: it does not say in which."""
    if not takes_workspace(entry):
        return entry
    schema = entry["schema"]
    properties = {name: part for name, part in schema["properties"].items() if name != FIELD}
    required = [name for name in schema.get("required", ()) if name != FIELD]
    return {**entry, "schema": {**schema, "properties": properties, "required": required}}


def workspace_in(
    context: NodeContext, tools: dict[str, dict[str, Any]], entry: dict[str, Any]
) -> tuple[str, JsonValue] | None:
    """Return the reference to the workspace that a call of the turn before has left, and the
    workspace. None for a call that has left none, as its result may be the word of a person, or
    that did not work in the folder of the model.
    """
    call = context.checked.find(str(entry.get("id")))
    if (
        entry.get("status") != "succeeded"
        or not isinstance(call, ToolNode)
        or FIELD not in call.args
    ):
        return None
    reference = left_by(call.id, tools.get(call.tool, {}))
    if not reference:
        return None
    left = entry["value"]
    if reference.endswith(f".{FIELD}") and isinstance(left, dict):
        left = left.get(FIELD)
    if as_workspace(left) is None:
        return None
    return reference, left


async def settled_results(context: NodeContext, reference: str) -> list[dict[str, Any]]:
    """Return how the nodes behind a settled join ended; none without a reference."""
    found = parse_reference(reference)
    if found is None:
        return []
    return list(await context.binder.value(found.node))


def _media_in(value: Any) -> Iterator[Media]:
    """Yield the media that stand anywhere in a value, in their order."""
    media = as_media(value)
    if media is not None:
        yield media
    elif isinstance(value, dict):
        for part in value.values():
            yield from _media_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _media_in(part)
