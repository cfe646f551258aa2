"""JSON data to a `Plan`, with every error as a sentence at its place."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sennit.workflows.plan.language import nodes
from sennit.workflows.plan.language.call_settings import CallSettings
from sennit.workflows.plan.language.conditions import form_of
from sennit.workflows.plan.language.json_checks import first_violation
from sennit.workflows.plan.language.nodes import ID_PATTERN, Plan
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, Where
from sennit.workflows.plan.language.text import (
    did_you_mean,
    format_name,
    format_names,
    format_value,
)
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
    """Return the plan in `data`. Raises InvalidPlan with the first 50 errors of its
    form; never anything else.
    """
    wrong = malformed(data)
    if wrong is not None:
        raise InvalidPlan([wrong])
    reserved = list(islice(_reserved_in(data.get("nodes")), MAX_PARSE_PROBLEMS))
    if reserved:
        raise InvalidPlan(reserved)
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        # A list is also `too short` when only its items are wrong.
        errors: list[ErrorDetails] = []
        for item in error.errors(include_url=False):
            if item["type"] != "too_short" or not item["input"]:
                errors.append(item)
        problems = [_problem(item, data) for item in errors[:MAX_PARSE_PROBLEMS]]
        raise InvalidPlan(problems) from None


def malformed(data: Any) -> Problem | None:
    """Return why no plan can be read from `data`: it is no object, too big or not plain
    JSON. None if one can.
    """
    if not isinstance(data, dict):
        return Problem("shape", (), f"a plan is an object with `nodes`, not {format_value(data)}")
    listed = data.get("nodes")
    if isinstance(listed, list) and len(listed) > MAX_NODES:
        message = f"{len(listed):,} nodes; at most {MAX_NODES:,}. Use a `map`"
        return Problem("too_many_nodes", ("nodes",), message)
    violation = first_violation(data)
    if violation is None:
        return None
    where, sentence = violation
    return Problem("not_json", where, sentence)


def _reserved_in(listed: Any) -> Iterator[Problem]:
    """Yield the problems of fields that the engine alone writes."""
    if isinstance(listed, list):
        for index, node in enumerate(listed):
            yield from _reserved(node, ("nodes", index))


def _reserved(node: Any, where: Where) -> Iterator[Problem]:
    if not isinstance(node, dict):
        return
    kind = node.get("kind")
    turn = node.get("turn")
    is_further = isinstance(turn, dict) and "number" in turn
    if is_further or (kind == "join" and turn is not None):
        message = (
            "such a `turn` is written by the engine; leave it out. A model with tools takes "
            "`turn: first`"
        )
        yield Problem("reserved", (*where, "turn"), message)
    if kind == "program" and not node.get("script"):
        yield Problem("missing_field", where, "`script` is missing: the text of the program")
    if kind == "map":
        # One node, or a list of nodes.
        do = node.get("do")
        yield from _reserved(do, (*where, "do"))
        if isinstance(do, list):
            for position, stage in enumerate(do):
                yield from _reserved(stage, (*where, "do", position))


def _problem(item: ErrorDetails, data: Any) -> Problem:
    """Return one of pydantic's errors on `data` as a problem at its place in `data`."""
    where = _place(item["loc"], data)
    kind = item["type"]
    value = item["input"]
    if kind == "extra_forbidden":
        return Problem("unknown_field", where, _unknown_field(where, data))
    if kind == "missing":
        message = f"`{where[-1]}` is missing{_example(where)}"
        return Problem("missing_field", where[:-1], message)
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        field = _last_name(where)
        if field == "nodes":
            return _wrong_kind(where, value, KINDS)
        if field == "do":
            return _wrong_kind(where, value, tuple(nodes.STAGES))
    if kind == "string_pattern_mismatch":
        return Problem("id", where, _wrong_id(str(value)))
    code, sentence = describe_error(item)
    if code == "type":
        sentence = _wrong_type(where, value, sentence)
    return Problem(code, where, sentence)


def _last_name(where: Where) -> str:
    """Return the innermost field of a path, "" without one."""
    for part in reversed(where):
        if isinstance(part, str):
            return part
    return ""


def _place(loc: Sequence[str | int], data: Any) -> Where:
    """Return the path through `data` that pydantic's `loc` means."""
    where: list[str | int] = []
    here = data
    for part in loc:
        # `do` is a list for pydantic, also where one node is written.
        is_invented = isinstance(part, int) and not isinstance(here, list)
        if part == "[key]" or is_invented:
            continue
        where.append(part)
        if isinstance(here, dict):
            here = here.get(part)
        elif isinstance(here, list) and isinstance(part, int):
            here = here[part]
    return tuple(where)


def _wrong_kind(where: Where, kind: Any, kinds: Collection[str]) -> Problem:
    listed = ", ".join(kinds)
    if not isinstance(kind, dict) or "kind" not in kind:
        return Problem("kind", where, f"`kind` is missing; write one of {listed}")
    name = kind["kind"]
    hint = ""
    if name in ("loop", "route"):
        hint = "; for loops and branches write a `program`"
    elif isinstance(name, str):
        hint = did_you_mean(name, kinds)
    those = "there are"
    if len(kinds) < len(KINDS):
        those = "a map repeats one of"
    message = f"there is no kind {format_value(name)} here; {those} {listed}{hint}"
    return Problem("kind", (*where, "kind"), message)


def _wrong_id(name: str) -> str:
    bare = name.lstrip("$").strip("{}")
    if name.startswith("$") and re.fullmatch(ID_PATTERN, bare):
        return f"write the id `{bare}` here, without `$`"
    return (
        f"{format_value(name)} is not an id; an id is a letter, then up to 39 letters, digits or _"
    )


def _wrong_type(where: Where, value: Any, sentence: str) -> str:
    if where[:1] == ("nodes",) and len(where) == 2:
        return f"a node is an object with `id` and `kind`, not {format_value(value)}"
    if where[:1] == ("inputs",) and len(where) == 2:
        return (
            f"an input is declared as an object such as {{type: string}}, not {format_value(value)}"
        )
    return sentence + _example(where)


def _example(where: Where) -> str:
    field = _last_name(where)
    if field == "inputs":
        if len(where) == 1:
            return "; for example `inputs: {city: {type: string}}`"
        return "; for example `inputs: [a, b]`"
    if field not in _EXAMPLES:
        return ""
    return f"; for example `{field}: {_EXAMPLES[field]}`"


def _unknown_field(where: Where, data: Any) -> str:
    *outer, field = where
    here = data
    for part in outer:
        here = here[part]
    if not isinstance(here, dict):
        here = {}
    thing, fields = _fields_of(tuple(outer), here)
    name = format_name(str(field))
    if field in CallSettings.model_fields and "settings" in fields:
        return f"{name} is not a field of {thing}; write it under `settings`: {{{field}: ...}}"
    hint = did_you_mean(str(field), fields)
    if not hint:
        hint = f"; it has {format_names(fields)}"
    return f"{name} is not a field of {thing}{hint}"


def _fields_of(where: Where, here: dict[str, Any]) -> tuple[str, list[str]]:
    """Return what is at `where`, in words, and the fields it may have."""
    if not where:
        return "a plan", _field_names(nodes.Plan)
    if where[0] == "inputs":
        return "an input", _field_names(nodes.InputSpec)
    kind = str(here.get("kind"))
    if len(where) == 2:
        return f"a node of kind {kind}", _field_names(nodes.NODES[kind])
    if "when" in where[2:5]:
        return "a condition", _field_names(form_of(here))
    field = _last_name(where)
    if field == "do":
        return f"a call of kind {kind} in a map", _field_names(nodes.STAGES[kind])
    if field not in _PARTS:
        return f"`{field}`", []
    return f"`{field}`", _field_names(_PARTS[field])


def _field_names(kind: type[BaseModel]) -> list[str]:
    """Return the fields as people write them: id and kind first."""
    names = [field.alias or name for name, field in kind.model_fields.items()]
    return sorted(names, key=lambda name: (name != "id", name != "kind"))
