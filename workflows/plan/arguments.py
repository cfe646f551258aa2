"""A node's arguments against its tool's schema, and references against what their nodes give."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from workflows.plan import edges, schema
from workflows.plan.model import JoinNode, MapNode, ModelCall, Node, Plan, ToolCall
from workflows.plan.problems import Problem, Where
from workflows.plan.references import Reference, parse_reference, path_text, references_in

Tools = dict[str, dict[str, Any]]
_TEXT: dict[str, Any] = {"type": "string"}


def argument_problems(plan: Plan, node: Node, where: Where, tools: Tools) -> list[Problem]:
    """Return what is wrong with a node's call: unknown tool, unknown or missing or mistyped arguments."""
    work = edges.work_of(node)
    inside: Where = (*where, "do") if isinstance(node, MapNode) else where
    giving = _Givers(plan, tools)
    found = [
        Problem("reference", (*where, *field), sentence)
        for field, reference in edges.value_references(node)
        for sentence in giving.missing(reference)
    ]
    if not isinstance(work, ToolCall):
        return found
    tool = tools.get(work.tool)
    if tool is None:
        near = get_close_matches(work.tool, tools, 1)
        hint = f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(sorted(tools)[:20])}"
        return [*found, Problem("unknown_tool", (*inside, "tool"), f"there is no tool `{work.tool}`{hint}")]

    def on_text(path: Where, text: str, wanted: schema.Schema) -> Iterator[schema.Fault] | None:
        return giving.text_faults(path, text, wanted, tool["schema"].get("$defs") or {})

    for path, sentence in schema.faults(work.args, tool["schema"], on_text=on_text):
        found.append(Problem("argument", (*inside, "args", *path), f"{tool['name']}: {sentence}"))
    return found


class _Givers:
    """What each node of a plan gives, as far as a schema tells."""

    def __init__(self, plan: Plan, tools: Tools) -> None:
        self._nodes = {node.id: node for node in plan.nodes}
        self._inputs = plan.inputs
        self._tools = tools

    def schema_of(self, name: str) -> schema.Schema | None:
        node = self._nodes.get(name)
        if isinstance(node, ToolCall):
            return (self._tools.get(node.tool) or {}).get("output_schema")
        if isinstance(node, ModelCall):
            return node.output_schema
        if isinstance(node, MapNode) or (isinstance(node, JoinNode) and node.policy != "first"):
            return {"type": "array"}
        return None

    def resolve(self, reference: Reference) -> tuple[schema.Schema | None, str | None]:
        """Return (schema at the reference or None when unknown, sentence when it cannot exist)."""
        if reference.node == "input" and len(reference.path) == 1 and isinstance(reference.path[0], str):
            spec = self._inputs.get(reference.path[0])
            return ({"type": spec.type} if spec else None), None
        here = self.schema_of(reference.node)
        defs = (here or {}).get("$defs") or {}
        for count, part in enumerate(reference.path):
            if here is None:
                return None, None
            here, wrong = _into(schema.resolve(here, defs), part, defs)
            if wrong:
                return None, f"`{reference}`: ${reference.node}{path_text(reference.path[:count])} {wrong}"
        return ({**here, "$defs": defs} if here else None), None

    def missing(self, reference: Reference) -> list[str]:
        sentence = self.resolve(reference)[1]
        return [sentence] if sentence else []

    def text_faults(
        self, path: Where, text: str, wanted: schema.Schema, defs: dict[str, Any]
    ) -> Iterator[schema.Fault] | None:
        """Take over strings with references: a whole one keeps its type, inside text it becomes text."""
        if not any(True for _ in references_in(text)):
            return None
        whole = parse_reference(text)
        given: schema.Schema | None = self.resolve(whole)[0] if whole is not None else _TEXT
        if given is None:
            return iter(())
        have = schema.types_of(given, given.get("$defs") or {})
        want = schema.types_of(wanted, defs)
        if not have or not want or have & want or ("integer" in have and "number" in want):
            return iter(())
        what = f"`{text}` gives" if whole is not None else "text with references is"
        return iter([(path, f"{what} {' or '.join(sorted(have))}; wanted {' or '.join(sorted(want))}")])


def _into(here: schema.Schema, part: str | int, defs: dict[str, Any]) -> tuple[schema.Schema | None, str | None]:
    """Follow one step of a path through a schema: (schema or None when unknown, sentence when impossible)."""
    kinds = schema.types_of(here, defs)
    if here.get("anyOf") or here.get("oneOf") or not kinds:
        return None, None
    if isinstance(part, int):
        if "array" not in kinds:
            return None, f"is no list but {' or '.join(sorted(kinds))}"
        items = here.get("items")
        return (items if isinstance(items, dict) else None), None
    if "array" in kinds and part == "length":
        return {"type": "integer"}, None
    if "object" not in kinds:
        return None, f"has no `{part}`: it is {' or '.join(sorted(kinds))}"
    properties = here.get("properties")
    if properties is None:
        return None, None
    if part in properties:
        return properties[part], None
    if here.get("additionalProperties") not in (None, False):
        return None, None
    return None, f"has no `{part}`; it has {', '.join(properties)}"
