"""Tool loops as graphs: each call that a model asks for becomes a node, and so does its next turn, which reads them.

So a call of a loop is checked, approved, locked, paid, retried and seen like any other node, and a turn that has ended
is never paid twice.
"""

import json
from typing import Any

from pydantic import ValidationError

from workflows.plan import edges
from workflows.plan.arguments import argument_problems
from workflows.plan.model import JoinNode, LlmNode, ModelCall, Node, Plan, ToolNode, Turn
from workflows.plan.scope import Scope

MAX_CALLS = 32
"""Calls that one turn may make; the others are refused, and the model is told so."""
RESULT_CHARACTERS = 20_000


def expanded(
    plan: Plan,
    name: str,
    generation: int,
    calls: list[dict[str, Any]],
    transcript: str,
    tools: dict[str, dict[str, Any]],
) -> Plan:
    """Return the plan with the calls that the turn `name` asks for, and the turn that follows them.

    `calls` are `{id, name, arguments}`. What cannot be called is not: the next turn is told why. `transcript` names
    what was said, the calls included.
    """
    node = next(node for node in plan.nodes if node.id == name)
    if not isinstance(node, LlmNode):
        raise ValueError(f"{name} is no model call")
    number = node.turn.number if node.turn is not None else 1
    stem = _stem(plan, node, generation)
    scope = Scope(plan, {tool: tools[tool] for tool in node.tools if tool in tools})
    made: list[Node] = []
    refused: dict[str, str] = {}
    for index, call in enumerate(calls):
        found = _call(scope, f"{stem}t{number}_{index + 1}", call) if index < MAX_CALLS else "too many calls at once"
        if isinstance(found, str):
            refused[str(call.get("id", index))] = found
        else:
            made.append(found)
    if made:
        ids = tuple(node.id for node in made)
        made.append(JoinNode(id=f"{stem}t{number}_all", kind="join", inputs=ids, policy="settled"))
    results = f"${made[-1].id}" if made else ""
    turn = Turn(number=number + 1, node=name, transcript=transcript, results=results, refused=refused)
    following = node.model_copy(update={"id": f"{stem}t{number + 1}", "turn": turn, "needs": (), "when": None})
    answer = plan.answer if plan.answer is not None else edges.answer_of(plan)
    return plan.model_copy(update={"nodes": (*plan.nodes, *made, following), "answer": answer})


def _stem(plan: Plan, node: LlmNode, generation: int) -> str:
    """Return what the ids of a loop begin with. A loop, or a turn of it, that runs again begins a new one."""
    if node.turn is not None and generation == 1:
        return node.id[: node.id.rindex("t")]
    taken = [other.id for other in plan.nodes]
    stem = f"{node.id[:24]}_" if generation == 1 else f"{node.id[:20]}_g{generation}"
    while any(other.startswith(f"{stem}t") for other in taken):
        stem = f"{stem[:30]}x"
    return stem


def _call(scope: Scope, name: str, call: dict[str, Any]) -> ToolNode | str:
    """Return the node of one call, or why it is not made. Arguments are data: a `$` in them is text."""
    tool, arguments = call.get("name"), call.get("arguments")
    if not isinstance(arguments, dict):
        return "the arguments are no JSON object"
    if tool not in (scope.tools or {}):
        return f"there is no tool {tool!r}; there are {', '.join(sorted(scope.tools or {})) or 'none'}"
    try:
        node = ToolNode(id=name, kind="tool", tool=str(tool), args=_literal(arguments))
    except ValidationError:
        return "the arguments are no plain JSON"
    problems = [problem.message for problem in argument_problems(scope, node, ())]
    return "; ".join(problems)[:500] if problems else node


def _literal(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, dict):
        return {name: _literal(item) for name, item in value.items()}
    return [_literal(item) for item in value] if isinstance(value, list) else value


def last_turn(work: ModelCall) -> bool:
    """Whether the model must answer now, because it has no tools or no turns left."""
    return not work.tools or (work.turn.number if work.turn is not None else 1) >= work.max_turns


def told(turn: Turn, calls: list[dict[str, Any]], results: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (call id, text) for each call of the turn before: what came of it, or why it was not made."""
    left = iter(results)
    return [
        (str(call.get("id", index)), turn.refused.get(str(call.get("id", index))) or _result(next(left, {})))
        for index, call in enumerate(calls)
    ]


def _result(entry: dict[str, Any]) -> str:
    if entry.get("status") != "succeeded":
        return f"{entry.get('status', 'failed')}: {entry.get('error') or 'no result'}"
    value = entry.get("value")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= RESULT_CHARACTERS:
        return text
    return f"{text[:RESULT_CHARACTERS]}\n[cut: {len(text) - RESULT_CHARACTERS:,} more characters]"
