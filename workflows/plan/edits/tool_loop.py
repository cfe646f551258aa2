"""Tool loops as graphs: each call that a model asks for becomes a node, and so does its next turn, which reads them.

So a call of a loop is checked, approved, locked, paid, retried and seen like any other node, and a turn that has ended
is never paid twice.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue, ValidationError

from sennit.workflows.plan.checking.calls import argument_problems
from sennit.workflows.plan.checking.symbols import SymbolTable
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import JoinNode, LlmNode, ModelCall, Node, Plan, ToolNode, Turn
from sennit.workflows.plan.language.references import literal
from sennit.workflows.plan.language.workspaces import FIELD, left_by, takes_workspace
from sennit.workflows.plan.limits import MAX_RESULT_CHARACTERS, MAX_STEM_CHARACTERS, MAX_TURN_CALLS

READER = "read_output"
"""The tool by which a model reads on in those of its inputs that its prompt only begins."""


def expand_tool_calls(
    plan: Plan,
    name: str,
    generation: int,
    calls: list[dict[str, Any]],
    transcript: str,
    tools: dict[str, dict[str, Any]],
    outputs: Mapping[str, str] | None = None,
    workspace: JsonValue = None,
) -> Plan:
    """Return the plan with the calls that the turn `name` asks for, and the turn that follows them.

    `calls` are `{id, name, arguments}`. What cannot be called is not: the next turn reads why. `transcript` names
    what was said, the calls included. `outputs` are references to what the model may read on in, by the names that it
    knows them by; without any it cannot. The first call that works in a folder begins with `workspace`, and each
    further one with the workspace that the call before it has left.
    """
    node = _host(plan, name)
    number = node.turn.number if node.turn is not None else 1
    stem = f"{_stem(plan, node, generation)}t"
    allowed = (*node.tools, *([READER] if outputs else []))
    scope = SymbolTable(plan, {tool: tools[tool] for tool in allowed if tool in tools})
    made: list[Node] = []
    refused: dict[str, str] = {}
    current = workspace
    for index, call in enumerate(calls):
        place = f"{stem}{number}_{index + 1}"
        found: ToolNode | str = "too many calls at once"
        if index < MAX_TURN_CALLS:
            found = _call(scope, place, call, outputs or {}, current)
        if isinstance(found, str):
            refused[str(call.get("id", index))] = found
            continue
        made.append(found)
        if current is not None and takes_workspace(tools[found.tool]):
            current = left_by(found.id, tools[found.tool]) or current
    if made:
        ids = tuple(node.id for node in made)
        made.append(JoinNode(id=f"{stem}{number}_all", kind="join", inputs=ids, policy="settled"))
    turn = Turn(
        number=number + 1,
        node=name,
        transcript=transcript,
        results=f"${made[-1].id}" if made else "",
        refused=refused,
    )
    # The next turn is told by which of these calls its folder is: only calls that have succeeded leave one.
    changes = {"id": f"{stem}{number + 1}", "turn": turn, "needs": (), "when": None, "workspace": workspace}
    following = node.model_copy(update=changes)
    answer = plan.answer if plan.answer is not None else dependencies.answer_of(plan)
    return plan.model_copy(update={"nodes": (*plan.nodes, *made, following), "answer": answer})


def _host(plan: Plan, name: str) -> LlmNode:
    """Return the model call of that id. Raises ValueError for any other node."""
    node = next(node for node in plan.nodes if node.id == name)
    if not isinstance(node, LlmNode):
        raise ValueError(f"{name} is no model call")
    return node


def _stem(plan: Plan, node: LlmNode, generation: int) -> str:
    """Return what the ids of a loop begin with. A loop, or a turn of it, that runs again begins a new one."""
    if node.turn is not None and generation == 1:
        return node.id[: node.id.rindex("t")]
    first = f"{node.id[:24]}_" if generation == 1 else f"{node.id[:20]}_g{generation}"
    taken = [other.id for other in plan.nodes if other.id.startswith(node.id[:20])]
    stem, count = first, 0
    while any(other.startswith(f"{stem}t") for other in taken):
        count += 1
        stem = first + "x" * count if len(first) + count <= MAX_STEM_CHARACTERS else f"{first[:24]}_{count}"
    return stem


def _call(
    scope: SymbolTable, name: str, call: dict[str, Any], outputs: Mapping[str, str], workspace: JsonValue
) -> ToolNode | str:
    """Return the node of one call, or why it is not made. Arguments are data: a `$` in them is text. A model names no
    workspace where it has one.
    """
    tool, arguments = call.get("name"), call.get("arguments")
    if not isinstance(arguments, dict):
        return "the arguments are no JSON object"
    if tool not in (scope.tools or {}):
        return f"there is no tool {tool!r}; there are {', '.join(sorted(scope.tools or {})) or 'none'}"
    args = literal(arguments)
    if tool == READER:
        asked = str(arguments.get("node", "")).strip("${} ")
        if asked not in outputs:
            return f"there is no output {asked[:80]!r} to read; there are {', '.join(outputs)}"
        args |= {"node": asked, "output": outputs[asked]}
    if workspace is not None and takes_workspace((scope.tools or {})[str(tool)]):
        args |= {FIELD: workspace}
    try:
        node = ToolNode(id=name, kind="tool", tool=str(tool), args=args)
    except ValidationError:
        return "the arguments are no plain JSON"
    problems = list(map(str, argument_problems(scope, node, ())))
    return "; ".join(problems)[:500] if problems else node


def last_turn(work: ModelCall) -> bool:
    """Whether the model must answer now, because it has no tools or no turns left."""
    return not work.loops or (work.turn.number if work.turn is not None else 1) >= work.max_turns


def call_results(turn: Turn, calls: list[dict[str, Any]], results: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return (call id, node, text) for each call of the turn before: what came of it, or why it was not made."""
    left = iter(results)
    found = []
    for index, call in enumerate(calls):
        ident = str(call.get("id", index))
        entry = {} if ident in turn.refused else next(left, {})
        found.append((ident, str(entry.get("id", "refused")), turn.refused.get(ident) or _result(entry)))
    return found


def _result(entry: dict[str, Any]) -> str:
    if entry.get("status") != "succeeded":
        return f"{entry.get('status', 'failed')}: {entry.get('error') or 'no result'}"
    value = entry.get("value")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= MAX_RESULT_CHARACTERS:
        return text
    return f"{text[:MAX_RESULT_CHARACTERS]}\n[cut: {len(text) - MAX_RESULT_CHARACTERS:,} more characters]"
