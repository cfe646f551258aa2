"""What a line's call means in the plan language: `search(...)`, `llm(...)`, `map(...)`,
`agent(...)`, `answer(...)`.

A tool's positional arguments take the names of its schema's properties in their order. A tool that
has the name of a form can only be called in a JSON plan.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sennit.workflows.plan.language.problems import no_such_tool
from sennit.workflows.plan.language.references import (
    Reference,
    as_text,
    parse_reference,
    path_text,
    references_in,
    rewrite,
)
from sennit.workflows.plan.language.text import (
    format_name,
    format_names,
    format_value,
    nearest_or_known,
)
from sennit.workflows.plan.planner_format.json_text import Unreadable
from sennit.workflows.plan.planner_format.values import Arguments, Scope, Tools, arguments_of

Node = dict[str, Any]

COMMON = ("needs", "when", "on_error", "retry", "timeout", "priority")
"""Fields that any call may be given by name, unless its tool has an argument of that name."""

_PREFIXES = ("functions", "function", "tools", "tool", "default_api", "api", "self")
"""What models write before a tool's name, as they learned it elsewhere."""


def call_name(name: str, tools: Tools) -> str:
    """Return the form or tool that a model means by a name, such as `Search` or
    `functions.search`; "" if none.
    """
    if name in tools and name not in FORMS:
        return name
    first, _, last = name.rpartition(".")
    meant = name
    if not first or first.lower() in _PREFIXES:
        meant = last.lower()
    if meant in FORMS:
        return meant
    alike = [tool for tool in tools if tool.lower() == meant]
    if len(alike) != 1:
        return ""
    return alike[0]


@dataclass(frozen=True, slots=True)
class InnerCall:
    """The call that a map makes for each item."""

    name: str
    arguments: Arguments


class NoResults(Unreadable):
    """An answer that has nothing to answer from."""


def node_of(name: str, node: str, arguments: Arguments, scope: Scope) -> Node:
    """Return the node with the id `node` that a call makes. Raises Unreadable."""
    if name not in FORMS:
        return {"id": node, **_tool_call(name, arguments, scope)}
    return {"id": node, **FORMS[name](arguments, scope)}


def _tool_call(name: str, arguments: Arguments, scope: Scope) -> Node:
    if name not in scope.tools:
        raise Unreadable(no_such_tool(name, scope.tools))
    names: list[str] = []
    properties = scope.tools[name].get("properties")
    if isinstance(properties, dict):
        names = list(map(str, properties))

    # An object that is the only argument, and has no names but those of arguments, has all of them.
    ordered = arguments.ordered
    by_name = dict(arguments.by_name)
    if len(ordered) == 1 and not by_name and isinstance(ordered[0], dict):
        only = ordered[0]
        if not names or all(field in names or field in COMMON for field in only):
            ordered = []
            by_name = dict(only)
    if len(ordered) > len(names):
        raise Unreadable(
            f"{name} takes {len(names)} arguments ({format_names(names)}), not {len(ordered)}"
        )
    fields = {}
    for field in COMMON:
        if field in by_name and field not in names:
            fields[field] = by_name.pop(field)
    by_place = dict(zip(names, ordered, strict=False))
    for field in by_place:
        if field in by_name:
            raise Unreadable(
                f"{format_name(field)} is given twice, by its place and by its name; give it once"
            )
    return {"kind": "tool", "tool": name, "args": by_place | by_name, **_common(fields, scope)}


def _llm(arguments: Arguments, scope: Scope) -> Node:
    fields = _fields(
        arguments,
        ("prompt", "context", "role", "model", "output_schema", "schema", "tools", "max_turns"),
    )
    parts = []
    if "prompt" in fields:
        parts.append(fields.pop("prompt"))
    parts += arguments.ordered
    added = fields.pop("context", [])
    if added in ("reference", "truncate"):
        raise Unreadable(
            "llm takes texts and results as `context`; only a plan in JSON says how much of them "
            "is read"
        )
    parts += _listed(added)
    if not parts:
        raise Unreadable('llm needs a prompt: llm("Compare $1 and $2")')
    if "schema" in fields:
        fields["output_schema"] = fields.pop("schema")
    prompt = "\n\n".join(map(as_text, parts))
    return {"kind": "llm", "prompt": prompt, **_common(fields, scope)}


def _agent(arguments: Arguments, scope: Scope) -> Node:
    fields = _fields(arguments, ("goal", "tools", "budget"))
    goals = list(arguments.ordered)
    if "goal" in fields:
        goals.append(fields.pop("goal"))
    if len(goals) != 1:
        raise Unreadable(
            'agent takes one goal: agent("Find out when $1 was built", tools=["search"])'
        )
    return {"kind": "agent", "goal": as_text(goals[0]), **_common(fields, scope)}


def _map(arguments: Arguments, scope: Scope) -> Node:
    fields = _fields(arguments, ("over", "do", "as", "max_items"))
    fields |= dict(zip(("over", "do"), arguments.ordered, strict=False))
    do = fields.get("do")
    if (
        len(arguments.ordered) > 2
        or "over" not in fields
        or not isinstance(do, ast.Call | InnerCall)
    ):
        raise Unreadable(
            "map takes a list and a call for each item: map($1.items, read(path=$item.path))"
        )
    return {"kind": "map", **_common(fields, scope), "do": _inner_node(do, scope)}


def _inner_node(do: ast.Call | InnerCall, scope: Scope) -> Node:
    if not isinstance(do, InnerCall):
        do = InnerCall(ast.unparse(do.func), arguments_of(do, scope))
    name = scope.call_name(do.name)
    if name in _IN_MAPS:
        return _IN_MAPS[name](do.arguments, scope)
    if name in FORMS:
        raise Unreadable(
            "map can do a tool call, an llm call or an agent for each item, not "
            f"{format_name(name)}"
        )
    return _tool_call(name or do.name, do.arguments, scope)


def _gate(arguments: Arguments, scope: Scope) -> Node:
    fields = _fields(arguments, ("question", "schema"))
    questions = list(arguments.ordered)
    if "question" in fields:
        questions.append(fields.pop("question"))
    if len(questions) != 1:
        raise Unreadable('gate takes one question: gate("May this be sent?")')
    return {"kind": "gate", "question": questions[0], **_common(fields, scope)}


def _join(arguments: Arguments, scope: Scope) -> Node:
    """A join with a policy; without one it is the end of a plan, as LLMCompiler (arXiv
    2312.04511) writes it.
    """
    if "policy" not in arguments.by_name:
        return _answer(arguments, scope)
    fields = _fields(arguments, ("policy", "inputs", "deadline"))
    listed = _listed(fields.pop("inputs", []))
    inputs = _nodes([*arguments.ordered, *listed], scope)
    if not inputs:
        raise Unreadable('join needs the results to join: join($1, $2, policy="first")')
    return {"kind": "join", "inputs": inputs, **_common(fields, scope)}


def _answer(arguments: Arguments, scope: Scope) -> Node:
    """The end: a joiner that reads how each of its inputs ended, so that a
    failed one is not fatal.
    """
    fields = _fields(arguments, tuple(arguments.by_name))
    kept = {}
    for name in ("model", "output_schema", *COMMON):
        if name in fields:
            kept[name] = fields.pop(name)
    sentences = []
    for text in _texts([arguments.ordered, fields]):
        if parse_reference(text) is None:
            sentence = rewrite(text, _spoken)
            sentences.append(sentence)
    inputs = _named_in([arguments.ordered, fields]) or list(scope.loose)
    if not inputs:
        raise NoResults("there is no result to answer from; write the calls before it")
    prompt = " ".join(sentences).strip() or "$goal"
    return {
        "kind": "llm",
        "role": "joiner",
        "prompt": prompt,
        "inputs": inputs,
        **_common(kept, scope),
    }


def _spoken(reference: Reference) -> str | None:
    """A reference in an answer's text only names a result: the joiner is given all of
    them, failed ones too.
    """
    if reference.node in ("goal", "input"):
        return None
    return f"{reference.node}{path_text(reference.path)}"


def _fields(arguments: Arguments, allowed: tuple[str, ...]) -> Node:
    for name in arguments.by_name:
        if name not in allowed and name not in COMMON:
            raise Unreadable(
                f"{format_name(name)} is no argument here{nearest_or_known(name, allowed)}"
            )
    return dict(arguments.by_name)


def _common(fields: Node, scope: Scope) -> Node:
    """Return fields of a node with `needs` as ids."""
    if "needs" in fields:
        fields["needs"] = _nodes(_listed(fields["needs"]), scope)
    return fields


def _nodes(values: Iterable[Any], scope: Scope) -> list[str]:
    """Return the nodes that are named in a place where only results may be: `$1`, `[$1,
    $2]` or bare line numbers.
    """
    named: dict[str, None] = {}
    for value in values:
        if isinstance(value, list):
            named |= dict.fromkeys(_nodes(value, scope))
            continue
        text = str(value)
        if not text.startswith("$") and not isinstance(value, bool):
            text = scope.resolve(f"${text}")
        reference = parse_reference(text)
        if reference is None:
            raise Unreadable(
                f"{format_value(value)} is no line; write $ and the number of one, such as $1"
            )
        named[reference.node] = None
    return list(named)


def _named_in(value: Any) -> list[str]:
    """Return the nodes that a value refers to, each once."""
    names: dict[str, None] = {}
    for reference in references_in(value):
        if reference.node not in ("goal", "input"):
            names[reference.node] = None
    return list(names)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [value]


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in an answer's arguments. Raises Unreadable for what is
    neither text nor a result.
    """
    if isinstance(value, dict):
        value = value.values()
    for item in value:
        if isinstance(item, dict | list):
            yield from _texts(item)
        elif isinstance(item, str):
            yield item
        elif item is not None:
            raise Unreadable(
                f"{format_value(item)} is neither a text nor a line; write $ and the number of a "
                "line"
            )


Form = Callable[[Arguments, Scope], Node]
_IN_MAPS: dict[str, Form] = {"llm": _llm, "agent": _agent}
"""What `map` can do for each item, beside a tool call."""
FORMS: dict[str, Form] = {
    "llm": _llm,
    "map": _map,
    "join": _join,
    "gate": _gate,
    "agent": _agent,
    "answer": _answer,
}
