"""The prompt of a joiner: the goal, every result with its node and status, and how to
answer or ask for more.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sennit.activities.limits import MAX_PLANNED_NODES
from sennit.activities.prompts import roles
from sennit.activities.prompts.outputs import (
    Budget,
    Result,
    fenced_blocks,
    format_ends,
    values_or_errors,
)
from sennit.activities.prompts.planner import FORMS
from sennit.activities.prompts.tools import format_tools
from sennit.workflows.plan.language.references import Reference, as_text, filled, path_text, resolve
from sennit.workflows.plan.planner_format.values import Tools

_ANSWER = """\
Answer the goal from the results alone. Reply with one JSON object and nothing else:

{"answer": "The Nile is longer, by 250 km [1][2].",
 "evidence": [{"node": "n1", "claim": "the Nile is 6,650 km long", "quote": "about 6,650 kilometres long"},
              {"node": "n2", "claim": "the Amazon is 6,400 km long", "quote": "some 6,400 kilometres"}]}

`[1]` in the answer marks what the first evidence supports. `node` is the node of a result below; `quote` is a passage
of it, word for word and at least 12 characters long, or empty. If a result that matters failed or says nothing, tell
what is not known."""  # noqa: E501
_REPLAN = """\
If the answer needs more, do not guess. A dead end calls for another way: an address that is broken, a search that found
nothing, a page that does not hold the fact, a failed call. Then reply with this JSON object in place of the answer, and
nothing else. Its `nodes` are lines to add to the plan, numbered from {first} on; `$1` is still the result of n1:

{{"replan": {{"why": "the search for the Amazon found nothing",
            "nodes": "{first}. search(\\"Amazon river kilometres\\")\\n{next}. answer($1, ${first})"}}}}

Do not repeat a call that is there already: its result would be the same. At most {most} lines. The lines are written as
follows.

{forms}
Tools:

{tools}"""  # noqa: E501
_NUMBERED = re.compile(r"n(\d{1,9})(?:_\w*)?\Z")


@dataclass(frozen=True, slots=True)
class Replanning:
    """What a joiner may add to: a plan with these nodes, by calls of the
    tools in this catalogue.
    """

    catalogue: Sequence[dict[str, Any]]
    nodes: Sequence[str]

    @property
    def first(self) -> int:
        """The number of the first new line."""
        latest = 0
        for node in self.nodes:
            numbered = _NUMBERED.match(node)
            if numbered:
                latest = max(latest, int(numbered[1]))
        return latest + 1

    @property
    def tools(self) -> Tools:
        return {str(entry["name"]): entry["schema"] for entry in self.catalogue}

    @property
    def writes(self) -> list[str]:
        """The tools that change something, whose results nobody needs to use."""
        return [str(entry["name"]) for entry in self.catalogue if entry.get("effect") == "write"]


def schema(replanning: Replanning | None) -> dict[str, Any]:
    """Return the schema of a joiner's JSON, for servers that hold a reply to one."""
    text = {"type": "string"}
    entry = {"node": text, "claim": text, "quote": text}
    evidence = {"type": "array", "items": _object(entry)}
    fields: dict[str, Any] = {"answer": text, "evidence": evidence}
    if replanning is not None:
        fields["replan"] = _object({"why": text, "nodes": text})
    return {**_object(fields), "required": []}


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": [*fields],
        "additionalProperties": False,
    }


def system(replanning: Replanning | None, own: str | None = None, told: Iterable[str] = ()) -> str:
    """Return a joiner's system prompt; without `replanning` it must answer."""
    parts = [roles.system("joiner", own, told), _ANSWER]
    if replanning is not None:
        tools = format_tools(replanning.catalogue)
        first = replanning.first
        parts.append(
            _REPLAN.format(
                first=first, next=first + 1, most=MAX_PLANNED_NODES, forms=FORMS, tools=tools
            )
        )
    return "\n\n".join(parts)


def prompt(
    template: str,
    lookup: Callable[[str], Any],
    results: Mapping[str, Result],
    budget: Budget,
    material: Mapping[str, str] | None = None,
) -> str:
    """Return the goal, what the plan asks of the joiner, and in fences the results and the
    `material` that the goal names. Raises BindError.
    """
    goal = as_text(lookup("goal"))
    asked = filled(template, lambda reference: _in_goal(reference, lookup, results)).strip()
    material = material or {}
    blocks = fenced_blocks({**material, **values_or_errors(results)}, budget)
    parts = ["The goal:", goal]
    if asked and asked != goal:
        parts.append(asked)
    if material:
        parts.append("What the goal names in brackets:")
        for name in material:
            parts.append(blocks[name])
    parts.append("The results:")
    parts += format_ends(results, blocks) or ["There are none."]
    return "\n\n".join(parts)


def format_objections(objections: Sequence[str]) -> str:
    """Return why the nodes that the joiner asked for could not be added."""
    lines = "\n".join(f"- {objection}" for objection in objections)
    return (
        f"The lines that you asked for last time cannot be added:\n{lines}\nMend them, or answer."
    )


def _in_goal(
    reference: Reference, lookup: Callable[[str], Any], results: Mapping[str, Result]
) -> str:
    """A goal or input stands in the text. A result is only named, and a join of
    results is listed one by one.
    """
    if reference.node in ("goal", "input"):
        return as_text(resolve(reference, lookup(reference.node)))
    if reference.node not in results:
        return ""
    return f"[{reference.node}{path_text(reference.path)}]"
