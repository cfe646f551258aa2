"""What a node asks a person, with every value in place, bound before it asks."""

import json
import re
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from sennit.activities.limits import MAX_SHOWN_CHARACTERS
from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.effect_ledger import arguments_digest
from sennit.activities.storage.artifacts import ArtifactStore
from sennit.activities.toolbox import Preview, Tool
from sennit.activities.toolbox.errors import ToolError
from sennit.activities.toolbox.redaction import mask
from sennit.activities.toolbox.threads import tool_threads
from sennit.workflows.plan.language.json_schema import definitions, types_of
from sennit.workflows.plan.language.nodes import GateNode, ProgramNode, ToolCall
from sennit.workflows.plan.language.references import as_text
from sennit.workflows.plan.language.text import printable
from sennit.workflows.plan.scheduling.events import Question

_SHORT = 200
_BREAKS = re.compile(r"([\n\t])")
_MOST_ARGUMENTS = 100
_NAMED = 20
"""Arguments that are shown; of more than that, the rest is in the whole text."""


async def question_of(context: NodeContext, store: ArtifactStore) -> Question:
    """Return a gate's question with its references filled in. Safe to repeat.

    Raises BindError, BodyMissing, StoreUnavailable.
    """
    node = context.node
    assert isinstance(node, GateNode)
    await context.binder.load(context.unit)
    text = _visible(as_text(context.binder.bound(node.question)))
    return Question(text=await _beginning(text, store, context))


async def unapproved_program(context: NodeContext, store: ArtifactStore) -> Question | None:
    """Return what a person is to be asked about a program, or None if they have approved it: this
    script with these arguments. Safe to repeat. Raises BindError, BodyMissing, StoreUnavailable.
    """
    node, quote = context.node, context.spec.quote
    assert isinstance(node, ProgramNode)
    await context.binder.load(context.unit)
    arguments = context.binder.bound(dict(node.arguments))
    asked = Question("", arguments_digest(node.script, arguments))
    approved = context.approved
    if approved is not None and approved.covers(asked):
        return None
    parts: list[str] = []
    if quote:
        parts.append(f"quote: {quote.text}")
    if arguments:
        # The script needs room.
        parts.append(await _arguments(arguments, store, context, room=_SHORT))
    parts += ["", _visible(node.script.strip())]
    text = await _beginning("\n".join(parts), store, context)
    return Question(text=text, digest=asked.digest)


async def unapproved(
    context: NodeContext, store: ArtifactStore, tool: Tool, work: ToolCall
) -> Question | None:
    """Return what a person is to be asked about a write, or None if it is what they have
    approved. Safe to repeat.

    Arguments as a person has changed them must fit the tool and replace nothing else, or the person
    is asked again. Raises ToolArgumentError for the write's own.
    """
    arguments = context.binder.bound(work.args)
    approved = context.approved
    preview = await _preview(tool, arguments)
    asked = Question("", arguments_digest(tool.name, arguments), preview.target)
    problem = ""
    if approved is not None and approved.covers(asked):
        if approved.args:
            problem = await _misfit(tool, context.arguments(work), asked.target)
        if not problem:
            return None

    # What they should beware of comes first, then what was wrong with their changes,
    # then what the write does.
    text = ""
    caution = context.checked.cautions.get(context.unit.id, "")
    if caution:
        text = f"{_visible(caution)}\n\n"
    text += problem
    if tool.preview:
        text += await _beginning(_visible(preview.text), store, context)
    else:
        text += await _arguments(arguments, store, context)
    return Question(text, asked.digest, asked.target, _arguments_of(tool))


def _arguments_of(tool: Tool) -> dict[str, list[str]] | None:
    """Return the arguments that a tool takes, each with its JSON types; None if it takes
    any others, or very many.
    """
    properties = tool.schema.get("properties")
    if not isinstance(properties, dict) or tool.schema.get("additionalProperties"):
        return None
    if len(properties) > _MOST_ARGUMENTS:
        return None
    known = definitions(tool.schema)
    return {name: sorted(types_of(schema, known)) for name, schema in properties.items()}


async def _preview(tool: Tool, arguments: Mapping[str, Any]) -> Preview:
    """Return what a write would do, nothing if the tool does not say. Raises ToolArgumentError.

    People type a part of the target's digest to approve, so whatever a tool gives as its
    target is digested here.
    """
    checked = tool.check(arguments)
    if tool.preview is None:
        return Preview("")
    positional, named = tool.passed(checked)
    make = partial(tool.preview, *positional, **named)
    preview = await tool_threads.run(make, tool.name)
    target = ""
    if preview.target:
        target = sha256(preview.target.encode()).hexdigest()
    return preview._replace(target=target)


async def _misfit(tool: Tool, changed: Mapping[str, Any], shown: str) -> str:
    """Return why a write may not run as a person has changed it: what it would replace must
    be what they were shown.
    """
    try:
        preview = await _preview(tool, changed)
    except ToolError as error:
        return f"These changes do not fit: {error}\n\n"
    if preview.target in ("", shown):
        return ""
    return "With these changes it would replace what you were not shown.\n\n"


async def _arguments(
    arguments: Mapping[str, Any],
    store: ArtifactStore,
    context: NodeContext,
    *,
    room: int = MAX_SHOWN_CHARACTERS,
) -> str:
    """Return arguments by name. None is crowded out by a longer one: the short ones are
    whole, the others begin.
    """
    texts = {name: _value(value) for name, value in arguments.items()}

    # The long ones share what the short ones leave.
    left = min(context.room or room, room)
    count_of_long = 0
    for text in texts.values():
        if len(text) <= _SHORT:
            left -= len(text)
        else:
            count_of_long += 1
    share = max(_SHORT, left // max(1, count_of_long))
    parts: list[str] = []
    for name, text in list(texts.items())[:_NAMED]:
        parts.append(_named(name, text, share))

    is_cut = any("\n  … the beginning" in part for part in parts)
    if is_cut or len(texts) > _NAMED:
        whole = [_named(name, text, len(text)) for name, text in texts.items()]
        place = await _place("\n".join(whole), store, context)
        parts.append(f"… the whole: {place}")
    return "\n".join(parts)


def _value(value: Any) -> str:
    """Return a value as people read it: text of several lines as it is, anything else as JSON."""
    if isinstance(value, str) and "\n" in value:
        return _visible(value)
    return _visible(json.dumps(value, ensure_ascii=False))


def _visible(text: str) -> str:
    """Return a text in which nothing is hidden but the secrets of this process: what does
    not print is an escape.

    What only looks like a credential stays. A model may have written it, so that a mask
    covers the rest of its text.
    """
    visible = ""
    for part in _BREAKS.split(mask(text)):
        if part in "\n\t":
            visible += part
        else:
            visible += printable(part, len(part))
    return visible


def _named(name: str, text: str, most: int) -> str:
    """Return a value behind its name; further lines are indented, so that none
    passes for another argument.
    """
    body = text.replace("\n", "\n  ")
    if len(body) > most:
        body = f"{body[:most]}\n  … the beginning of {len(text):,} characters"
    shown = printable(name)
    if "\n" in body:
        return f"{shown}:\n  {body}"
    return f"{shown}: {body}"


async def _beginning(text: str, store: ArtifactStore, context: NodeContext) -> str:
    """Return a text as a person is shown it: whole, or its beginning, how long it is,
    and where the whole is.
    """
    most = context.room or MAX_SHOWN_CHARACTERS
    if len(text) <= most:
        return text
    place = await _place(text, store, context)
    return f"{text[:most]}\n… the first {most:,} of {len(text):,} characters; the whole: {place}"


async def _place(text: str, store: ArtifactStore, context: NodeContext) -> str:
    """Store a text, and return where a person finds it."""
    digest = await store.put(context.run_prefix, text.encode(errors="replace"))
    return store.place(context.run_prefix, digest)
