"""One line a node for timelines and lists: `n7 search "length of the Nile" <- n2,n3`."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.limits import format_duration
from sennit.workflows.plan.language.nodes import (
    EndedCalls,
    JoinNode,
    ModelCall,
    Node,
    PassedTime,
    Quorum,
    ToolCall,
)
from sennit.workflows.plan.language.text import arguments_text, one_line
from sennit.workflows.plan.limits import (
    MAX_BAR_CHARACTERS,
    MAX_SUMMARY_BYTES,
    MAX_SUMMARY_CHARACTERS,
)

TAIL_CHARACTERS = 44
LOOKED_AT = 1_000
_MARKUP = re.compile(r"[$`*]|<(?=[/!?A-Za-z])|(?<=])\(")
_LOOKALIKES = {
    "$": "",
    "`": "'",
    "*": "\N{ASTERISK OPERATOR}",
    "<": "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}",
    "(": " (",
}
"""For signs with a meaning in Markdown. Web UIs before 2.55 show a summary as it is and later ones
as Markdown, with formulas between two `$`: so a sign can be neither left as it is nor escaped. No
common font has another dollar sign.
"""


def _policy_text(node: JoinNode) -> str:
    """Return when a join closes, in a few words."""
    if node.turn is None:
        if isinstance(node.policy, Quorum):
            return f"quorum {node.policy.quorum}"
        return str(node.policy)
    rule = node.turn.rule
    if isinstance(rule, EndedCalls):
        return f"quorum {rule.quorum}"
    if isinstance(rule, PassedTime):
        return f"after {format_duration(rule.after)}"
    return rule


class Drawing(NamedTuple):
    """How a kind of node is drawn: the signs around its text in Mermaid's language, and a few
    words on what it does.
    """

    opening: str
    closing: str
    words: Callable[[Any], str]


DRAWINGS: Final[Mapping[str, Drawing]] = {
    "tool": Drawing("[", "]", lambda node: f"{node.tool} {arguments_text(node.args)}".rstrip()),
    "llm": Drawing("(", ")", lambda node: f"{node.role} {node.prompt}"),
    "agent": Drawing("[/", "/]", lambda node: str(node.goal)),
    "program": Drawing("([", "])", lambda node: arguments_text(node.arguments)),
    "task": Drawing("([", "])", lambda _: ""),
    "map": Drawing(
        "[[", "]]", lambda node: f"{' | '.join(map(what_of, node.do))} over {node.over}"
    ),
    "join": Drawing(
        "{{", "}}", lambda node: f"{_policy_text(node)} of {node.items or len(node.inputs)}"
    ),
    "gate": Drawing("{", "}", lambda node: str(node.question)),
}
"""How each kind of node is drawn, in text and in pictures."""


def what_of(node: Node | ToolCall | ModelCall) -> str:
    """Return what a node does, in a few words, without its kind."""
    return DRAWINGS[node.kind].words(node)


def summary_of(node: Node, links: dependencies.Links | None = None, what: str = "") -> str:
    """Return the summary: id first, what it does, what it waits for; at most 120
    characters on one line.

    Control characters and marks that turn the direction of writing are left out. `links` are
    the node's, if they are worked out already. With `what`, the summary has that in the place
    of all words behind the id.
    """
    if what:
        return clipped(one_line(f"{node.id} {what[:LOOKED_AT]}"), MAX_SUMMARY_CHARACTERS)
    links = links or dependencies.links_of(node)
    names = [*links.inputs, *links.needs]
    tail = ""
    if names:
        tail = f" <- {','.join(names)}"
    if len(tail) > TAIL_CHARACTERS:
        tail = f" <- {len(names)} nodes"
    words = what_of(node)
    if node.kind not in ("tool", "llm"):
        words = f"{node.kind} {words}"
    head = one_line(f"{node.id} {words[:LOOKED_AT].rstrip()}")
    return clipped(head, MAX_SUMMARY_CHARACTERS - len(tail)) + tail


def for_bar(summary: str) -> str:
    """Return a summary as a bar of the timeline can show it whole: clipped
    before what it waits for.

    It reads the same as text and as Markdown.
    """
    summary = _MARKUP.sub(lambda sign: _LOOKALIKES[sign[0]], summary)
    head, arrow, sources = summary.rpartition(" <- ")
    tail = arrow + sources
    if not arrow or len(sources) > TAIL_CHARACTERS:
        head = summary
        tail = ""
    return clipped(head, MAX_BAR_CHARACTERS - len(tail)) + tail


def clipped(text: str, most: int) -> str:
    """Return at most `most` characters of `text` and 340 bytes, with a mark where it was cut."""
    if len(text) <= most <= MAX_SUMMARY_BYTES and text.isascii():
        return text
    encoded = text[:most].encode(errors="replace")
    short = encoded[:MAX_SUMMARY_BYTES].decode(errors="ignore")
    if short == text:
        return text
    return short[: most - 1] + "…"
