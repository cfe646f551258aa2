"""JSON data to a `Plan`, with every shape error as a problem at its place."""

from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from workflows.plan.model import MAX_NODES, GateNode, JoinNode, LlmNode, MapNode, Plan, ToolNode
from workflows.plan.problems import InvalidPlan, Problem, Where

MAX_DEPTH = 60
KINDS = ("tool", "llm", "map", "join", "gate")
KINDS_TO_COME = ("agent", "loop", "route")
POLICIES_TO_COME = ("vote", "best", "reduce")
FIELDS_TO_COME = {"llm": ("tools", "max_turns")}


def parse_plan(data: Any) -> Plan:
    """Return the plan in `data`. Raises InvalidPlan with every shape error found; never anything else."""
    problems = _outline(data)
    if problems:
        raise InvalidPlan(problems)
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        telling = [item for item in errors if item["type"] != "too_short"] or errors
        raise InvalidPlan(_problem(item, data) for item in telling[:50]) from None


def _outline(data: Any) -> list[Problem]:
    """What must hold before the fields are worth looking at: an object, bounded, of kinds that are built."""
    if not isinstance(data, dict):
        return [Problem("shape", (), f"a plan is an object with `nodes`, not {type(data).__name__}")]
    nodes = data.get("nodes")
    if isinstance(nodes, list | tuple) and len(nodes) > MAX_NODES:
        return [Problem("too_many_nodes", ("nodes",), f"{len(nodes)} nodes; at most {MAX_NODES}. Use a `map`")]
    if _too_deep(data):
        return [Problem("too_deep", (), f"nested more than {MAX_DEPTH} levels deep")]
    if not isinstance(nodes, list | tuple):
        return []
    return [found for index, node in enumerate(nodes) for found in _not_built(node, ("nodes", index))]


def _too_deep(data: Any) -> bool:
    layer = [data]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for value in layer:
            if isinstance(value, dict):
                inner.extend(item for item in value.values() if isinstance(item, dict | list))
            elif isinstance(value, list):
                inner.extend(item for item in value if isinstance(item, dict | list))
        if not inner:
            return False
        layer = inner
    return True


def _not_built(node: Any, where: Where) -> list[Problem]:
    if not isinstance(node, dict):
        return []
    kind, policy = node.get("kind"), node.get("policy")
    if kind in KINDS_TO_COME:
        return [Problem("not_built", (*where, "kind"), f"kind `{kind}` is not built yet; built: {', '.join(KINDS)}")]
    name = policy if isinstance(policy, str) else next(iter(policy), None) if isinstance(policy, dict) else None
    found = []
    if kind == "join" and name in POLICIES_TO_COME:
        found.append(Problem("not_built", (*where, "policy"), f"join policy `{name}` is not built yet"))
    to_come = FIELDS_TO_COME.get(kind, ()) if isinstance(kind, str) else ()
    found += [
        Problem("not_built", (*where, field), f"`{field}` (tool loops) is not built yet")
        for field in to_come
        if field in node
    ]
    return found + (_not_built(node["do"], (*where, "do")) if isinstance(node.get("do"), dict) else [])


def _problem(item: ErrorDetails, data: Any) -> Problem:
    where = _place(item["loc"], data)
    kind = item["type"]
    if kind == "extra_forbidden":
        return Problem("unknown_field", where, _unknown_field(where, data))
    if kind == "missing":
        return Problem("missing_field", where[:-1], f"`{where[-1]}` is missing")
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        given = item.get("input")
        named = given.get("kind") if isinstance(given, dict) else given
        return Problem("kind", where, f"`kind` must be one of {', '.join(KINDS)}, not {named!r:.60}")
    if kind == "string_pattern_mismatch" and where and (where[-1] == "id" or "needs" in where or "inputs" in where):
        message = f"{item['input']!r:.60} is no id; an id is a letter, then up to 39 letters, digits or _"
        return Problem("id", where, message)
    return Problem(kind, where, item["msg"].removeprefix("Value error, "))


def _unknown_field(where: Where, data: Any) -> str:
    here = data
    for part in where[:-1]:
        here = here[part]
    kind = here.get("kind", "plan") if isinstance(here, dict) else "plan"
    near = get_close_matches(str(where[-1]), _FIELDS, 1)
    return f"`{where[-1]}` is no field of {kind}" + (f"; did you mean `{near[0]}`?" if near else "")


_MODELS = (Plan, ToolNode, LlmNode, MapNode, JoinNode, GateNode)
_FIELDS = sorted({field.alias or name for model in _MODELS for name, field in model.model_fields.items()})


def _place(loc: tuple[str | int, ...], data: Any) -> Where:
    """Drop the union tags that pydantic puts into an error's path, so that it leads through the data."""
    where: list[str | int] = []
    here = data
    index = loc[1] if len(loc) > 1 and loc[0] == "nodes" else None
    for position, part in enumerate(loc):
        if position and isinstance(here, dict) and part == here.get("kind") and loc[position - 1] in (index, "do"):
            continue  # the tag of the union on `kind`, which may be spelt like a field: tool
        if _leads(here, part):
            here = here[part]
        elif position < len(loc) - 1 or not isinstance(here, dict):
            continue
        where.append(part)
    return tuple(where)


def _leads(here: Any, part: str | int) -> bool:
    if isinstance(here, dict):
        return part in here
    return isinstance(here, list | tuple) and isinstance(part, int) and part < len(here)
