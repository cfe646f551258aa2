"""JSON data to a `Plan`, with every error as a sentence at its place."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sennit.workflows.plan.language import nodes
from sennit.workflows.plan.language.call_settings import CallSettings
from sennit.workflows.plan.language.conditions import form_of
from sennit.workflows.plan.language.json_checks import first_violation
from sennit.workflows.plan.language.nodes import ID_PATTERN, Plan
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, Where
from sennit.workflows.plan.language.text import did_you_mean, format_name, format_names, format_value
from sennit.workflows.plan.language.validation_messages import describe_error
from sennit.workflows.plan.limits import MAX_NODES, MAX_PARSE_PROBLEMS

KINDS = tuple(nodes.NODES)
_PARTS: dict[str, type[BaseModel]] = {
    "retry": nodes.Retry,
    "estimate": nodes.Estimate,
    "locks": nodes.Lock,
    "on_error": nodes.Fallback,
    "policy": nodes.Quorum,
    "context": nodes.Context,
    "settings": CallSettings,
    "messages": nodes.ChatTurn,
}
_EXAMPLES = {
    "retry": "{attempts: 3}",
    "estimate": "{seconds: 20, tokens: 500}",
    "context": "{tokens: 16000, over: reference}",
    "messages": "[{role: user, content: ...}, {role: assistant, content: ...}]",
    "settings": "{temperature: 0.2, max_tokens: 2000}",
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
    wrong = malformed(data)
    problems = [wrong] if wrong is not None else _reserved_in(data.get("nodes"))
    if problems:
        raise InvalidPlan(problems)
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        # A list is also `too short` when only its items are wrong.
        errors = [item for item in error.errors(include_url=False) if item["type"] != "too_short" or not item["input"]]
        raise InvalidPlan(_problem(item, data) for item in errors[:MAX_PARSE_PROBLEMS]) from None


def malformed(data: Any) -> Problem | None:
    """Return why no plan can be read from `data`: it is no object, too big or not plain JSON. None if one can."""
    if not isinstance(data, dict):
        return Problem("shape", (), f"a plan is an object with `nodes`, not {format_value(data)}")
    listed = data.get("nodes")
    if isinstance(listed, list) and len(listed) > MAX_NODES:
        return Problem("too_many_nodes", ("nodes",), f"{len(listed):,} nodes; at most {MAX_NODES:,}. Use a `map`")
    violation = first_violation(data)
    return Problem("not_json", *violation) if violation is not None else None


def _reserved_in(listed: Any) -> list[Problem]:
    """Return the problems of fields that the engine alone writes."""
    nodes = enumerate(listed) if isinstance(listed, list) else ()
    problems = (problem for index, node in nodes for problem in _reserved(node, ("nodes", index)))
    return list(problems)[:MAX_PARSE_PROBLEMS]


def _reserved(node: Any, where: Where) -> Iterator[Problem]:
    if not isinstance(node, dict):
        return
    kind = node.get("kind")
    if kind == "llm" and node.get("turn") is not None:
        yield Problem("reserved", (*where, "turn"), "`turn` is written by the engine; leave it out")
    if kind == "program":
        if node.get("step") is not None or node.get("inputs"):
            yield Problem("reserved", where, "`step` and `inputs` are written by the engine; leave them out")
        elif not node.get("script"):
            yield Problem("missing_field", where, "`script` is missing: the text of the program")
    if kind == "map":
        do = node.get("do")
        for position, stage in enumerate(do) if isinstance(do, list) else ():
            yield from _reserved(stage, (*where, "do", position))
        yield from _reserved(do, (*where, "do"))


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
        return _wrong_kind(where, value, KINDS if field == "nodes" else tuple(nodes.STAGES))
    if kind == "string_pattern_mismatch":
        return Problem("id", where, _wrong_id(str(value)))
    code, sentence = describe_error(item)
    return Problem(code, where, _wrong_type(where, value, sentence) if code == "type" else sentence)


def _place(loc: Sequence[str | int], data: Any) -> Where:
    """Return the path through `data` that pydantic's `loc` means."""
    where: list[str | int] = []
    here = data
    for part in loc:
        if part == "[key]" or (isinstance(part, int) and not isinstance(here, list)):
            continue  # `do` is a list for pydantic, also where one node is written
        where.append(part)
        if isinstance(here, dict):
            here = here.get(part)
        elif isinstance(here, list) and isinstance(part, int):
            here = here[part]
    return tuple(where)


def _wrong_kind(where: Where, kind: Any, kinds: Collection[str]) -> Problem:
    if not isinstance(kind, dict) or "kind" not in kind:
        return Problem("kind", where, f"`kind` is missing; write one of {', '.join(kinds)}")
    name = kind["kind"]
    hint = did_you_mean(name, kinds) if isinstance(name, str) else ""
    hint = "; for loops and branches write a `program`" if name in ("loop", "route") else hint
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
    if field in CallSettings.model_fields and "settings" in fields:
        return f"{format_name(field)} is not a field of {thing}; write it under `settings`: {{{field}: ...}}"
    hint = did_you_mean(field, fields) or f"; it has {format_names(fields)}"
    return f"{format_name(field)} is not a field of {thing}{hint}"


def _fields_of(where: Where, here: dict[str, Any]) -> tuple[str, list[str]]:
    """Return what is at `where`, in words, and the fields it may have."""
    if not where:
        return "a plan", _field_names(nodes.Plan)
    if where[0] == "inputs":
        return "an input", _field_names(nodes.InputSpec)
    if len(where) == 2:
        return f"a node of kind {here.get('kind')}", _field_names(nodes.NODES[str(here.get("kind"))])
    if "when" in where[2:5]:
        return "a condition", _field_names(form_of(here))
    field = next(part for part in reversed(where) if isinstance(part, str))
    if field == "do":
        return f"a call of kind {here.get('kind')} in a map", _field_names(nodes.STAGES[str(here.get("kind"))])
    return f"`{field}`", _field_names(_PARTS[field]) if field in _PARTS else []


def _field_names(kind: type[BaseModel]) -> list[str]:
    names = [field.alias or name for name, field in kind.model_fields.items()]
    return sorted(names, key=lambda name: (name != "id", name != "kind"))
