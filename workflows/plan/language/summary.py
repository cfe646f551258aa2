"""One line a node for timelines and lists: `n7 search "length of the Nile" <- n2,n3`."""

import json
import re
from itertools import islice
from typing import Any

from workflows.plan.language import dependencies
from workflows.plan.language.nodes import AgentCall, GateNode, JoinNode, MapNode, Node, ProgramNode, Quorum, ToolCall
from workflows.plan.language.text import one_line

SUMMARY_CHARACTERS = 120
TAIL_CHARACTERS = 44
SUMMARY_BYTES = 340
"""Temporal's limit is 400 with the payload around it; Chinese fills it before its characters are spent."""
BAR_CHARACTERS = 64
"""What the web UI's timeline can show of a bar that begins in the middle of a laptop's window: it writes to the left of
the bar then, and cuts what is longer where the id stands."""
LOOKED_AT = 1_000
_MARKUP = re.compile(r"[$`*]|<(?=[/!?A-Za-z])|(?<=])\(")
_LOOKALIKES = {
    "$": "\N{SMALL DOLLAR SIGN}",
    "`": "'",
    "*": "\N{ASTERISK OPERATOR}",
    "<": "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}",
    "(": " (",
}
"""For signs with a meaning in Markdown. Web UIs before 2.55 show a summary as it is and later ones as Markdown, with
formulas between two `$`: so a sign can be neither left as it is nor escaped."""


def summary_of(node: Node, links: dependencies.Links | None = None, what: str = "") -> str:
    """Return the summary: id first, what it does, what it waits for; at most 120 characters on one line.

    Control characters and marks that turn the direction of writing are left out. `links` saves working out what
    the node depends on once more. With `what`, that stands for what it does and what it waits for.
    """
    if what:
        return clipped(one_line(f"{node.id} {what[:LOOKED_AT]}"), SUMMARY_CHARACTERS)
    links = links or dependencies.links_of(node)
    names = [*links.inputs, *links.needs]
    tail = f" <- {','.join(names)}" if names else ""
    if len(tail) > TAIL_CHARACTERS:
        tail = f" <- {len(names)} nodes"
    head = one_line(f"{node.id} {_what(node)[:LOOKED_AT]}")
    return clipped(head, SUMMARY_CHARACTERS - len(tail)) + tail


def for_bar(summary: str) -> str:
    """Return a summary as a bar of the timeline can show it whole: clipped before what it waits for.

    It reads the same as text and as Markdown.
    """
    summary = _MARKUP.sub(lambda found: _LOOKALIKES[found[0]], summary)
    head, arrow, sources = summary.rpartition(" <- ")
    tail = arrow + sources if len(sources) <= TAIL_CHARACTERS else ""
    head = head if tail else summary
    return clipped(head, BAR_CHARACTERS - len(tail)) + tail


def clipped(text: str, most: int) -> str:
    """Return at most `most` characters of `text` and 340 bytes, with a mark where it was cut."""
    short = text[:most].encode(errors="replace")[:SUMMARY_BYTES].decode(errors="ignore")
    return text if short == text else short[: most - 1] + "…"


def _what(node: Node) -> str:
    if isinstance(node, JoinNode):
        policy = f"quorum {node.policy.quorum}" if isinstance(node.policy, Quorum) else node.policy
        return f"join {policy} of {len(node.inputs)}"
    if isinstance(node, GateNode):
        return f"gate {node.question}"
    if isinstance(node, ProgramNode):
        return f"program {arguments_text(node.arguments)}".strip()
    work = dependencies.work_of(node)
    if isinstance(work, AgentCall):
        return f"agent {work.goal}"
    if isinstance(work, ToolCall):
        call = f"{work.tool} {arguments_text(work.args)}".strip()
    else:
        call = f"{work.role} {work.prompt}" if work is not None else ""
    return f"map {call} over {node.over}" if isinstance(node, MapNode) else call


def arguments_text(args: dict[str, Any]) -> str:
    """Return arguments as a summary has them: the first speaks for itself; the rest are named."""
    parts = [
        _text(value, 150) if index == 0 else f"{name}={value[:30] if isinstance(value, str) else _text(value, 30)}"[:30]
        for index, (name, value) in enumerate(islice(args.items(), 10))
    ]
    return " ".join(parts)


def _text(value: Any, most: int) -> str:
    short = value[:most] if isinstance(value, str) else value
    return json.dumps(short, ensure_ascii=False)[:most]
