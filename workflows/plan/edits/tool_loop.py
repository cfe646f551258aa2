"""Tool loops as graphs: each call that a model asks for becomes a node, and so does its next
turn, which reads them.

So a call of a loop is checked, approved, locked, paid, retried and seen like any other node, and a
turn that has ended is never paid twice.

By the rule of a plan's `turn`, a further turn may start while some calls run. Such a call is an
input of the join before each later turn, until one of these turns is told how it has ended.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue, ValidationError

from sennit.workflows.plan.checking.calls import argument_problems
from sennit.workflows.plan.checking.symbols import SymbolTable
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import (
    GOES_ON,
    TURN_TOOLS,
    WAIT_FOR,
    JoinNode,
    LlmNode,
    ModelCall,
    Node,
    Plan,
    ToolNode,
    Turn,
    TurnCalls,
)
from sennit.workflows.plan.language.references import literal
from sennit.workflows.plan.language.workspaces import FIELD, left_by, takes_workspace
from sennit.workflows.plan.limits import MAX_RESULT_CHARACTERS, MAX_STEM_CHARACTERS, MAX_TURN_CALLS

Named = Mapping[str, Sequence[str]]
"""The running calls that a model has named, by the ids of the calls in which it did."""
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
    running: Sequence[str] = (),
) -> Plan:
    """Return the plan with the calls that the turn `name` asks for, and the turn that follows them.

    `calls` are `{id, name, arguments}`. What cannot be called is not: the next turn reads why.
    `transcript` names what was said, the calls included. `outputs` are references to what the
    model may read on in, by the names that it knows them by; without any it cannot. The first
    call that works in a folder begins with `workspace`, and each further one with the workspace
    that the call before it has left. `running` are the calls of earlier turns that went on when
    the turn `name` started.
    """
    node = _host(plan, name)
    number = _turn_number(node)
    stem = f"{_stem(plan, node, generation)}t"
    allowed = list(node.tools)
    if outputs:
        allowed.append(READER)
    scope = SymbolTable(plan, _offered(allowed, tools))

    # A node for each call that can be made.
    made: list[Node] = []
    refused: dict[str, str] = {}
    current = workspace
    waits: dict[str, tuple[str, ...]] = {}
    cancels: dict[str, tuple[str, ...]] = {}
    for index, call in enumerate(calls):
        call_id = _id(call, index)
        if node.turn_rule is not None and call.get("name") in TURN_TOOLS:
            named = _named(call, running)
            if isinstance(named, str):
                refused[call_id] = named
            elif call["name"] == WAIT_FOR:
                waits[call_id] = named
            else:
                cancels[call_id] = named
            continue
        made_or_why: ToolNode | str = "too many calls at once"
        if index < MAX_TURN_CALLS:
            call_name = f"{stem}{number}_{index + 1}"
            made_or_why = _call(scope, call_name, call, outputs or {}, current)
        if isinstance(made_or_why, str):
            refused[call_id] = made_or_why
            continue
        made.append(made_or_why)
        tool = tools[made_or_why.tool]
        if current is not None and takes_workspace(tool):
            current = left_by(made_or_why.id, tool) or current

    # The next turn reads all of their ends. It is told by which of these calls its folder is: only
    # calls that have succeeded leave one.
    results = ""
    made_ids = [call.id for call in made]
    ids = (*made_ids, *running)
    if ids:
        join = JoinNode(id=f"{stem}{number}_all", kind="join", inputs=ids, policy="settled")
        if node.turn_rule is not None:
            rule = _turn_calls(node, len(made), ids, waits, cancels)
            join = join.model_copy(update={"turn": rule})
        made.append(join)
        results = f"${join.id}"
    turn = Turn(
        number=number + 1,
        node=name,
        transcript=transcript,
        results=results,
        refused=refused,
        rule=node.turn_rule,
        waits=waits,
        cancels=cancels,
    )
    changes = {
        "id": f"{stem}{number + 1}",
        "turn": turn,
        "needs": (),
        "when": None,
        "workspace": workspace,
    }
    following = node.model_copy(update=changes)
    nodes = (*plan.nodes, *made, following)
    return plan.model_copy(update={"nodes": nodes, "answer": dependencies.answer_of(plan)})


def _offered(allowed: Sequence[str], tools: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the tools of these names, as far as there are such tools."""
    offered: dict[str, dict[str, Any]] = {}
    for name in allowed:
        if name in tools:
            offered[name] = tools[name]
    return offered


def _named(call: Mapping[str, Any], running: Sequence[str]) -> tuple[str, ...] | str:
    """Return the running calls that a model names to wait for them or to cancel one, or why it
    names none. It may wait for all without naming them.
    """
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):
        return "the arguments are no JSON object"
    if not running:
        return "no call is running"
    asked = arguments.get("call")
    if call["name"] == WAIT_FOR:
        asked = arguments.get("calls") or list(running)
    if isinstance(asked, str):
        asked = [asked]
    known = ", ".join(running)
    if not isinstance(asked, list):
        return f"name a running call; there are {known}"
    names: dict[str, None] = {}
    for name in asked:
        if name not in running:
            return f"no call {str(name)[:80]!r} is running; there are {known}"
        names[name] = None
    return tuple(names)


def _turn_calls(
    node: LlmNode, calls: int, ids: Sequence[str], waits: Named, cancels: Named
) -> TurnCalls:
    """Return by which rule the next turn starts. The last one has no turn behind it that could be
    told of calls, so nothing goes on then.
    """
    assert node.turn_rule is not None
    awaited: dict[str, None] = {}
    for names in waits.values():
        awaited |= dict.fromkeys(names)
    if _turn_number(node) + 1 >= node.max_turns:
        awaited = dict.fromkeys(ids)
    cancelled: dict[str, None] = {}
    for names in cancels.values():
        cancelled |= dict.fromkeys(names)
    return TurnCalls(
        rule=node.turn_rule, calls=calls, awaited=tuple(awaited), cancelled=tuple(cancelled)
    )


def _turn_number(work: ModelCall) -> int:
    if work.further_turn is None:
        return 1
    return work.further_turn.number


def _host(plan: Plan, name: str) -> LlmNode:
    """Return the model call of that id. Raises ValueError for any other node."""
    node = plan.by_id[name]
    if not isinstance(node, LlmNode):
        raise ValueError(f"{name} is no model call")
    return node


def _stem(plan: Plan, node: LlmNode, generation: int) -> str:
    """Return what the ids of a loop begin with. A loop, or a turn of it, that runs
    again begins a new one.
    """
    if node.further_turn is not None and generation == 1:
        return node.id[: node.id.rindex("t")]
    first = f"{node.id[:24]}_"
    if generation > 1:
        first = f"{node.id[:20]}_g{generation}"
    taken = [name for name in plan.ids if name.startswith(node.id[:20])]
    stem = first
    count = 0
    while any(name.startswith(f"{stem}t") for name in taken):
        count += 1
        stem = first + "x" * count
        if len(stem) > MAX_STEM_CHARACTERS:
            stem = f"{first[:24]}_{count}"
    return stem


def _call(
    scope: SymbolTable,
    name: str,
    call: dict[str, Any],
    outputs: Mapping[str, str],
    workspace: JsonValue,
) -> ToolNode | str:
    """Return the node of one call, or why it is not made. Arguments are data: a `$` in them is
    text. A model names no workspace where it has one.
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


class CallResult(NamedTuple):
    """What a model is told in the place of a call's result: of one or more
    nodes what came of them.
    """

    call_id: str
    nodes: list[tuple[str, str]]
    """The name and the text of each."""


def call_results(
    turn: Turn, calls: list[dict[str, Any]], results: list[dict[str, Any]]
) -> list[CallResult]:
    """Return what came of each call of the turn before, or why it was not made.

    The result of a call of an earlier turn that has ended since stands at the call that has waited
    for it or cancelled it, or else at the first one.
    """
    # The results are those of the calls that were made, in their order, and then those
    # of calls that went on.
    asked = {**turn.waits, **turn.cancels}
    ids: list[str] = []
    made_count = 0
    for index, call in enumerate(calls):
        call_id = _id(call, index)
        ids.append(call_id)
        if call_id not in turn.refused and call_id not in asked:
            made_count += 1
    pending = iter(results[:made_count])
    late: dict[str, dict[str, Any]] = {}
    for entry in results[made_count:]:
        late[str(entry.get("id"))] = entry

    # Each call is told its own result, or why it has none.
    found: list[CallResult] = []
    for call_id in ids:
        told = CallResult(call_id, [])
        if call_id in turn.refused:
            reason = turn.refused[call_id] or _result({})
            told.nodes.append(("refused", reason))
        elif call_id in asked:
            told.nodes.extend(_told_of(asked[call_id], late))
        else:
            entry = next(pending, {})
            name = str(entry.get("id", "refused"))
            told.nodes.append((name, _result(entry)))
        found.append(told)

    # The first call is also told how all other calls have ended since.
    ended: list[str] = []
    for name, entry in late.items():
        if entry.get("status") != GOES_ON:
            ended.append(name)
    if found:
        found[0].nodes.extend(_told_of(ended, late))
    return found


def _id(call: Mapping[str, Any], index: int) -> str:
    return str(call.get("id", index))


def _told_of(names: Sequence[str], late: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what came of calls of earlier turns. Each is told once, so it is taken out of
    those that are `late`.
    """
    told: list[tuple[str, str]] = []
    for name in names:
        if name in late:
            told.append((name, _result(late.pop(name))))
        else:
            told.append((name, "its result stands in another message"))
    return told


def calls_going_on(results: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the calls that still ran when the turn started that is told these results."""
    names: list[str] = []
    for entry in results:
        if entry.get("status") == GOES_ON:
            names.append(str(entry["id"]))
    return tuple(names)


def _result(entry: Mapping[str, Any]) -> str:
    if entry.get("status") == GOES_ON:
        return "still running"
    if entry.get("status") != "succeeded":
        return f"{entry.get('status', 'failed')}: {entry.get('error') or 'no result'}"
    text = entry.get("value")
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False)
    if len(text) <= MAX_RESULT_CHARACTERS:
        return text
    return (
        f"{text[:MAX_RESULT_CHARACTERS]}\n[cut: {len(text) - MAX_RESULT_CHARACTERS:,} more "
        "characters]"
    )
