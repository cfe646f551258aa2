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
    number = _turn_number(node)
    stem = f"{_stem(plan, node, generation)}t"
    allowed = list(node.tools)
    if outputs:
        allowed.append(READER)
    scope = SymbolTable(plan, {tool: tools[tool] for tool in allowed if tool in tools})

    # A node for each call that can be made.
    made: list[Node] = []
    refused: dict[str, str] = {}
    current = workspace
    for index, call in enumerate(calls):
        made_or_why: ToolNode | str = "too many calls at once"
        if index < MAX_TURN_CALLS:
            made_or_why = _call(scope, f"{stem}{number}_{index + 1}", call, outputs or {}, current)
        if isinstance(made_or_why, str):
            refused[str(call.get("id", index))] = made_or_why
            continue
        made.append(made_or_why)
        tool = tools[made_or_why.tool]
        if current is not None and takes_workspace(tool):
            current = left_by(made_or_why.id, tool) or current

    # The next turn reads all of their ends. It is told by which of these calls its folder is: only calls that have
    # succeeded leave one.
    results = ""
    if made:
        ids = tuple(call.id for call in made)
        join = JoinNode(id=f"{stem}{number}_all", kind="join", inputs=ids, policy="settled")
        made.append(join)
        results = f"${join.id}"
    turn = Turn(number=number + 1, node=name, transcript=transcript, results=results, refused=refused)
    changes = {"id": f"{stem}{number + 1}", "turn": turn, "needs": (), "when": None, "workspace": workspace}
    following = node.model_copy(update=changes)
    nodes = (*plan.nodes, *made, following)
    return plan.model_copy(update={"nodes": nodes, "answer": dependencies.answer_of(plan)})


def _turn_number(work: ModelCall) -> int:
    if work.turn is None:
        return 1
    return work.turn.number


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
    first = f"{node.id[:24]}_"
    if generation > 1:
        first = f"{node.id[:20]}_g{generation}"
    taken = [other.id for other in plan.nodes if other.id.startswith(node.id[:20])]
    stem = first
    count = 0
    while any(name.startswith(f"{stem}t") for name in taken):
        count += 1
        stem = first + "x" * count
        if len(stem) > MAX_STEM_CHARACTERS:
            stem = f"{first[:24]}_{count}"
    return stem


def _call(
    scope: SymbolTable, name: str, call: dict[str, Any], outputs: Mapping[str, str], workspace: JsonValue
) -> ToolNode | str:
    """Return the node of one call, or why it is not made. Arguments are data: a `$` in them is text. A model names no
    workspace where it has one.
    """
    tool = call.get("name")
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):
        return "the arguments are no JSON object"
    tools = scope.tools or {}
    if tool not in tools:
        known = ", ".join(sorted(tools)) or "none"
        return f"there is no tool {tool!r}; there are {known}"
    args = literal(arguments)
    if tool == READER:
        asked = str(arguments.get("node", "")).strip("${} ")
        if asked not in outputs:
            known = ", ".join(outputs)
            return f"there is no output {asked[:80]!r} to read; there are {known}"
        args |= {"node": asked, "output": outputs[asked]}
    if workspace is not None and takes_workspace(tools[tool]):
        args |= {FIELD: workspace}
    try:
        node = ToolNode(id=name, kind="tool", tool=str(tool), args=args)
    except ValidationError:
        return "the arguments are no plain JSON"
    problems = list(map(str, argument_problems(scope, node, ())))
    if problems:
        return "; ".join(problems)[:500]
    return node


def last_turn(work: ModelCall) -> bool:
    """Whether the model must answer now, because it has no tools or no turns left."""
    return not work.loops or _turn_number(work) >= work.max_turns


def call_results(turn: Turn, calls: list[dict[str, Any]], results: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return (call id, node, text) for each call of the turn before: what came of it, or why it was not made."""
    # The results are those of the calls that were made, in their order.
    pending = iter(results)
    found = []
    for index, call in enumerate(calls):
        call_id = str(call.get("id", index))
        if call_id in turn.refused:
            found.append((call_id, "refused", turn.refused[call_id] or _result({})))
        else:
            entry = next(pending, {})
            found.append((call_id, str(entry.get("id", "refused")), _result(entry)))
    return found


def _result(entry: dict[str, Any]) -> str:
    if entry.get("status") != "succeeded":
        return f"{entry.get('status', 'failed')}: {entry.get('error') or 'no result'}"
    text = entry.get("value")
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False)
    if len(text) <= MAX_RESULT_CHARACTERS:
        return text
    return f"{text[:MAX_RESULT_CHARACTERS]}\n[cut: {len(text) - MAX_RESULT_CHARACTERS:,} more characters]"
