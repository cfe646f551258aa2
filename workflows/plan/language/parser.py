"""JSON data to a `Plan`, with every error as a sentence at its place."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sennit.workflows.plan.language import conditions, nodes
from sennit.workflows.plan.language.json_checks import first_violation
from sennit.workflows.plan.language.nodes import ID_PATTERN, Plan
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, Where
from sennit.workflows.plan.language.text import did_you_mean, format_name, format_names, format_value
from sennit.workflows.plan.language.validation_messages import describe_error
from sennit.workflows.plan.limits import MAX_NODES, MAX_PARSE_PROBLEMS

KINDS_TO_COME = ("loop", "route")
POLICIES_TO_COME = ("vote", "best", "reduce")
CONDITION_FORM = "{ref: $a.count, op: gt, value: 3}, {and: [...]}, {or: [...]} or {not: ...}"
FORMS = {
    "on_error": "fail, skip, {fallback: value} or {instead: node}",
    "policy": 'all, settled, first, {quorum: 2} or {quorum: "60%"}',
}
_NODES: dict[str, type[BaseModel]] = {
    "tool": nodes.ToolNode,
    "llm": nodes.LlmNode,
    "agent": nodes.AgentNode,
    "program": nodes.ProgramNode,
    "map": nodes.MapNode,
    "join": nodes.JoinNode,
    "gate": nodes.GateNode,
}
_STAGES: dict[str, type[BaseModel]] = {"tool": nodes.ToolStage, "llm": nodes.ModelStage}
KINDS = tuple(_NODES)
_PARTS: dict[str, type[BaseModel]] = {
    "retry": nodes.Retry,
    "estimate": nodes.Estimate,
    "locks": nodes.Lock,
    "on_error": nodes.Fallback,
    "policy": nodes.Quorum,
    "context": nodes.Context,
}
_EXAMPLES = {
    "retry": "{attempts: 3}",
    "estimate": "{seconds: 20, tokens: 500}",
    "context": "{tokens: 16000, over: reference}",
    "locks": "[{name: repo, mode: exclusive}]",
    "needs": "[a, b]",
    "args": "{query: length of the Nile}",
    "do": "{kind: tool, tool: read, args: {path: $item.path}}",
    "nodes": "[{id: a, kind: tool, tool: search, args: {query: ...}}]",
    "schema": "{type: string, enum: [yes, no]}",
    "output_schema": "{type: object, properties: {...}}",
}


def parse_plan(data: Any) -> Plan:
    """Return the plan in `data`. Raises InvalidPlan with the first 50 errors of its form; never anything else."""
    problems = _outline(data)
    if problems:
        raise InvalidPlan(problems)
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        # A list is also `too short` when only its items are wrong.
        errors = [item for item in error.errors(include_url=False) if item["type"] != "too_short" or not item["input"]]
        raise InvalidPlan(_problem(item, data) for item in errors[:MAX_PARSE_PROBLEMS]) from None


def _outline(data: Any) -> list[Problem]:
    """Return what makes the fields not worth looking at: no object, too big, not plain JSON, kinds not built yet."""
    if not isinstance(data, dict):
        return [Problem("shape", (), f"a plan is an object with `nodes`, not {format_value(data)}")]
    listed = data.get("nodes")
    if isinstance(listed, list) and len(listed) > MAX_NODES:
        return [Problem("too_many_nodes", ("nodes",), f"{len(listed):,} nodes; at most {MAX_NODES:,}. Use a `map`")]
    violation = first_violation(data)
    if violation is not None:
        return [Problem("not_json", *violation)]
    if not isinstance(listed, list):
        return []
    problems = (problem for index, node in enumerate(listed) for problem in _not_built(node, ("nodes", index)))
    return list(problems)[:MAX_PARSE_PROBLEMS]


def _not_built(node: Any, where: Where) -> Iterator[Problem]:
    if not isinstance(node, dict):
        return
    kind, policy = node.get("kind"), node.get("policy")
    if kind in KINDS_TO_COME:
        yield Problem(
            "not_built", (*where, "kind"), f"no kind `{kind}`: write a `program`, whose script loops and branches"
        )
        return
    name = next(iter(policy), None) if isinstance(policy, dict) else policy
    if kind == "join" and name in POLICIES_TO_COME:
        message = f"join policy `{name}` is not built yet; built: all, settled, first, quorum"
        yield Problem("not_built", (*where, "policy"), message)
    if kind == "llm" and node.get("turn") is not None:
        yield Problem("not_built", (*where, "turn"), "`turn` is written by the engine; leave it out")
    if kind == "program":
        if node.get("step") is not None or node.get("inputs"):
            yield Problem("not_built", where, "`step` and `inputs` are written by the engine; leave them out")
        elif not node.get("script"):
            yield Problem("missing_field", where, "`script` is missing: the text of the program")
    if kind == "map":
        do = node.get("do")
        for position, stage in enumerate(do) if isinstance(do, list) else ():
            yield from _not_built(stage, (*where, "do", position))
        yield from _not_built(do, (*where, "do"))


def _problem(item: ErrorDetails, data: Any) -> Problem:
    """Return one of pydantic's errors on `data` as a problem at its place in `data`."""
    where, kind = _place(item["loc"], data), item["type"]
    field = next((part for part in reversed(where) if isinstance(part, str)), "")
    value = item["input"]
    if kind == "extra_forbidden":
        return Problem("unknown_field", where, _unknown_field(where, data))
    if kind == "missing":
        return Problem("missing_field", where[:-1], f"`{where[-1]}` is missing{_example(where)}")
    if kind in ("union_tag_not_found", "union_tag_invalid") and field in ("nodes", "do"):
        return _wrong_kind(where, value, KINDS if field == "nodes" else tuple(_STAGES))
    if kind == "string_pattern_mismatch":
        return Problem("id", where, _wrong_id(str(value)))
    form = _form(where, kind)
    if form is not None:
        return Problem("form", where, f"{format_value(value)} is not a {form[0]}; write {form[1]}")
    code, sentence = describe_error(item)
    return Problem(code, where, _wrong_type(where, value, sentence) if code == "type" else sentence)


def _place(loc: Sequence[str | int], data: Any) -> Where:
    """Return the path through `data` that pydantic's `loc` means, without the names of the forms it tried."""
    where: list[str | int] = []
    here = data
    parts = _untagged(loc)
    for position, part in enumerate(parts):
        if _contains(here, part):
            here = here[part]
        elif (position < len(loc) - 1 and not isinstance(here, dict)) or parts[position - 1 : position] == ["do"]:
            continue  # `do` is a list for pydantic, also where one node is written
        where.append(part)
    return tuple(where)


def _contains(here: Any, part: str | int) -> bool:
    if isinstance(here, dict):
        return part in here
    return isinstance(here, list) and isinstance(part, int) and part < len(here)


def _untagged(loc: Sequence[str | int]) -> list[str | int]:
    """Drop the tags of unions: a node's kind after its index, the forms of `on_error`, `policy` and `when`."""
    kept: list[str | int] = []
    parts = list(loc)
    while parts:
        part = parts.pop(0)
        kept.append(part)
        field = kept[_base(kept) :]  # of a node, or of a node in a map's `do`
        at_kind = not field and isinstance(part, int)
        at_form = len(field) in (1, 2) and part in ("on_error", "policy")
        if parts and (at_kind or (at_form and parts[0] in nodes.FORM_TAGS)):
            parts.pop(0)
        elif field == ["when"]:
            return kept + _untagged_condition(parts)
    return [part for part in kept if part != "[key]"]


def _base(where: Sequence[str | int]) -> int:
    """Return how many parts of a path lead to a node, or to a node in a map's `do`."""
    if where[:1] != ["nodes"]:
        return 0
    return 4 if len(where) > 3 and where[2] == "do" else 2


def _untagged_condition(parts: list[str | int]) -> list[str | int]:
    """Drop the tag in front of every part of a condition."""
    kept: list[str | int] = []
    while parts:
        tag, *parts = parts
        steps = {"and": 2, "or": 2, "not": 1}.get(str(tag), len(parts))
        kept += parts[:steps]
        parts = parts[steps:]
    return kept


def _form(where: Where, kind: str) -> tuple[str, str] | None:
    """Return (what, its forms) for a field that has several forms, of which none was given."""
    if "when" in where[2:5] and kind == "model_type":
        return "condition", CONDITION_FORM
    field = str(where[-1]) if where else ""
    return (f"valid `{field}`", FORMS[field]) if field in FORMS else None


def _wrong_kind(where: Where, kind: Any, kinds: Collection[str]) -> Problem:
    if not isinstance(kind, dict) or "kind" not in kind:
        return Problem("kind", where, f"`kind` is missing; write one of {', '.join(kinds)}")
    name = kind["kind"]
    hint = did_you_mean(name, kinds) if isinstance(name, str) else ""
    only = "a map repeats one of" if len(kinds) < len(KINDS) else "there are"
    message = f"there is no kind {format_value(name)} here; {only} {', '.join(kinds)}{hint}"
    return Problem("kind", (*where, "kind"), message)


def _wrong_id(name: str) -> str:
    bare = name.lstrip("$").strip("{}")
    if name.startswith("$") and re.fullmatch(ID_PATTERN, bare):
        return f"write the id `{bare}` here, without `$`"
    return f"{format_value(name)} is not an id; an id is a letter, then up to 39 letters, digits or _"


def _wrong_type(where: Where, value: Any, sentence: str) -> str:
    if where[:1] == ("nodes",) and len(where) == 2:
        return f"a node is an object with `id` and `kind`, not {format_value(value)}"
    if where[:1] == ("inputs",) and len(where) == 2:
        return f"an input is declared as an object such as {{type: string}}, not {format_value(value)}"
    return sentence + _example(where)


def _example(where: Where) -> str:
    field = next((part for part in reversed(where) if isinstance(part, str)), "")
    if field == "inputs":
        return "; for example `inputs: [a, b]`" if len(where) > 1 else "; for example `inputs: {city: {type: string}}`"
    return f"; for example `{field}: {_EXAMPLES[field]}`" if field in _EXAMPLES else ""


def _unknown_field(where: Where, data: Any) -> str:
    field = str(where[-1])
    here = data
    for part in where[:-1]:
        here = here[part]
    thing, fields = _fields_of(where[:-1], here if isinstance(here, dict) else {})
    hint = did_you_mean(field, fields) or f"; it has {format_names(fields)}"
    return f"{format_name(field)} is not a field of {thing}{hint}"


def _fields_of(where: Where, here: dict[str, Any]) -> tuple[str, list[str]]:
    """Return what is at `where`, in words, and the fields it may have."""
    if not where:
        return "a plan", _field_names(nodes.Plan)
    if where[0] == "inputs":
        return "an input", _field_names(nodes.InputSpec)
    if len(where) == 2:
        return f"a node of kind {here.get('kind')}", _field_names(_NODES[str(here.get("kind"))])
    if "when" in where[2:5]:
        found: type[BaseModel] = conditions.Test
        for name, kind in (("and", conditions.AllOf), ("or", conditions.AnyOf), ("not", conditions.Not)):
            found = kind if name in here and found is conditions.Test else found
        return "a condition", _field_names(found)
    field = next(part for part in reversed(where) if isinstance(part, str))
    if field == "do":
        return f"a call of kind {here.get('kind')} in a map", _field_names(_STAGES[str(here.get("kind"))])
    return f"`{field}`", _field_names(_PARTS[field]) if field in _PARTS else []


def _field_names(kind: type[BaseModel]) -> list[str]:
    names = [field.alias or name for name, field in kind.model_fields.items()]
    return sorted(names, key=lambda name: (name != "id", name != "kind"))
