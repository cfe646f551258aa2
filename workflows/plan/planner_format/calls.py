"""What a numbered call means in the plan language: `search(...)`, `llm(...)`, `map(...)`, `agent(...)`, `answer(...)`.

A tool's positional arguments take the names of its schema's properties in their order. A tool that has the name of a
form can only be called in a JSON plan.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

from workflows.plan.language import json_schema
from workflows.plan.language.nodes import Over
from workflows.plan.language.references import Reference, as_text, parse_reference, path_text, references_in, rewrite
from workflows.plan.language.text import format_name, format_names, nearest_or_known
from workflows.plan.planner_format.literals import Arguments, CallError, read_arguments
from workflows.plan.planner_format.tokens import Tokens, Unbalanced

Node = dict[str, Any]
Tools = Mapping[str, json_schema.Schema]

COMMON = ("needs", "when", "on_error", "retry", "timeout", "priority")
"""Fields that any call may be given by name, unless its tool has an argument of that name."""

_CALL = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*\(", re.ASCII)


def node_of(name: str, node: str, given: Arguments, tools: Tools, before: Iterable[str]) -> Node:
    """Return the node with the id `node` that a call makes.

    `before` are the nodes whose results an answer takes when it names none. Raises CallError.
    """
    form = FORMS.get(name.lower())
    if form is not None:
        return form(node, given, tools, before)
    return {"id": node, **_tool_call(name, given, tools)}


def _tool_call(name: str, given: Arguments, tools: Tools) -> Node:
    wanted = tools.get(name)
    if wanted is None:
        raise CallError(f"there is no tool {format_name(name)}{nearest_or_known(name, sorted(tools))}")
    properties = wanted.get("properties")
    names = [str(each) for each in properties] if isinstance(properties, dict) else []
    ordered, by_name = given.ordered, dict(given.by_name)
    only = ordered[0] if len(ordered) == 1 and not by_name else None
    if isinstance(only, dict) and (not names or all(name in (*names, *COMMON) for name in only)):
        ordered, by_name = [], dict(only)
    if len(ordered) > len(names):
        raise CallError(f"{name} takes {len(names)} arguments ({format_names(names)}), not {len(ordered)}")
    fields = {field: by_name.pop(field) for field in COMMON if field in by_name and field not in names}
    by_place = dict(zip(names, ordered, strict=False))
    for field in by_place:
        if field in by_name:
            raise CallError(f"{format_name(field)} is given twice, by its place and by its name")
    return {"kind": "tool", "tool": name, "args": by_place | by_name, **_common(fields)}


def _llm(node: str, given: Arguments, _tools: Tools, _before: Iterable[str]) -> Node:
    return {"id": node, **_model_call(given)}


def _model_call(given: Arguments) -> Node:
    fields = _fields(given, ("prompt", "context", "role", "model", "output_schema", "schema", "tools", "max_turns"))
    parts = [*([fields.pop("prompt")] if "prompt" in fields else []), *given.ordered]
    context = fields.pop("context", [])
    if context in get_args(Over):
        fields["context"] = {"over": context}
    else:
        parts += context if isinstance(context, list) else [context]
    if not parts:
        raise CallError('llm needs a prompt: llm("Compare $1 and $2")')
    if "schema" in fields:
        fields["output_schema"] = fields.pop("schema")
    return {"kind": "llm", "prompt": "\n\n".join(map(as_text, parts)), **_common(fields)}


def _agent(node: str, given: Arguments, _tools: Tools, _before: Iterable[str]) -> Node:
    fields = _fields(given, ("goal", "tools", "budget"))
    if len(given.ordered) + ("goal" in fields) != 1:
        raise CallError('agent takes one goal: agent("Find out when $1 was built", tools=["search"])')
    return {"id": node, "kind": "agent", "goal": as_text(fields.pop("goal", *given.ordered)), **_common(fields)}


def _map(node: str, given: Arguments, tools: Tools, _before: Iterable[str]) -> Node:
    fields = _fields(given, ("over", "do", "as", "max_items"))
    fields |= dict(zip(("over", "do"), given.ordered, strict=False))
    if len(given.ordered) > 2 or "over" not in fields or not isinstance(fields.get("do"), str):
        raise CallError("map takes a list and a call for each item: map($1.items, read(path=$item.path))")
    return {"id": node, "kind": "map", **_common(fields), "do": _inner_call(fields["do"], tools)}


def _inner_call(text: str, tools: Tools) -> Node:
    found = _CALL.match(text)
    tokens = Tokens()
    try:
        end = tokens.take(text, found.end()) if found else None
    except Unbalanced as error:
        raise CallError(str(error)) from None
    if found is None or end is None or text[end:].strip():
        raise CallError(f"map needs a call for each item, such as read(path=$item.path), not {format_name(text)}")
    given = read_arguments(tokens.found)
    if found[1].lower() == "llm":
        return _model_call(given)
    if found[1].lower() in FORMS:
        raise CallError(f"map can do a tool call or an llm call for each item, not {format_name(found[1])}")
    return _tool_call(found[1], given, tools)


def _gate(node: str, given: Arguments, _tools: Tools, _before: Iterable[str]) -> Node:
    fields = _fields(given, ("question", "schema"))
    if len(given.ordered) + ("question" in fields) != 1:
        raise CallError('gate takes one question: gate("May this be sent?")')
    return {"id": node, "kind": "gate", "question": fields.pop("question", *given.ordered), **_common(fields)}


def _join(node: str, given: Arguments, tools: Tools, before: Iterable[str]) -> Node:
    """A join with a policy; without one it is the end of a plan, as LLMCompiler (arXiv 2312.04511) writes it."""
    if "policy" not in given.by_name:
        return _answer(node, given, tools, before)
    fields = _fields(given, ("policy", "inputs", "deadline"))
    inputs = _named_in([given.ordered, fields.pop("inputs", [])])
    if not inputs:
        raise CallError('join needs the results to join: join($1, $2, policy="first")')
    return {"id": node, "kind": "join", "inputs": inputs, **_common(fields)}


def _answer(node: str, given: Arguments, _tools: Tools, before: Iterable[str]) -> Node:
    """The end: a joiner that reads how each of its inputs ended, so that a failed one is not fatal."""
    fields = _fields(given, tuple(given.by_name))
    kept = {name: fields.pop(name) for name in ("model", "output_schema", *COMMON) if name in fields}
    texts = [text for text in _texts([given.ordered, fields]) if parse_reference(text) is None]
    inputs = _named_in([given.ordered, fields]) or list(before)
    if not inputs:
        raise CallError("there is no result to answer from; write the calls before it")
    prompt = " ".join(rewrite(text, _spoken) for text in texts).strip() or "$goal"
    return {"id": node, "kind": "llm", "role": "joiner", "prompt": prompt, "inputs": inputs, **_common(kept)}


def _spoken(reference: Reference) -> str | None:
    """A reference in an answer's text only names a result: the joiner is given all of them, failed ones too."""
    if reference.node in ("goal", "input"):
        return None
    return f"{reference.node}{path_text(reference.path)}"


def _fields(given: Arguments, allowed: tuple[str, ...]) -> Node:
    for name in given.by_name:
        if name not in allowed and name not in COMMON:
            raise CallError(f"{format_name(name)} is no argument here{nearest_or_known(name, allowed)}")
    return dict(given.by_name)


def _common(fields: Node) -> Node:
    """Return fields of a node with `needs` as ids: `[$1]` and `$1` name a node there."""
    if "needs" in fields:
        fields["needs"] = _named_in(fields["needs"])
    return fields


def _named_in(value: Any) -> list[str]:
    """Return the nodes that a value refers to, each once."""
    names = dict.fromkeys(reference.node for reference in references_in(value))
    return [name for name in names if name not in ("goal", "input")]


def _texts(value: Any) -> Iterator[str]:
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from _texts(item)
        elif isinstance(item, str):
            yield item


Form = Callable[[str, Arguments, Tools, Iterable[str]], Node]
FORMS: dict[str, Form] = {"llm": _llm, "map": _map, "join": _join, "gate": _gate, "agent": _agent, "answer": _answer}
