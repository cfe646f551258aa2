"""What each node of a plan gives, as far as a schema tells: the types behind references, before anything has run."""

from typing import Any

from sennit.workflows.plan.language import json_schema
from sennit.workflows.plan.language.nodes import (
    AgentCall,
    GateNode,
    InputSpec,
    JoinNode,
    MapNode,
    ModelCall,
    Node,
    Plan,
    Program,
    ProgramNode,
    ToolCall,
)
from sennit.workflows.plan.language.references import Reference, Step, parse_reference
from sennit.workflows.plan.language.text import did_you_mean, format_name, format_names

Tools = dict[str, dict[str, Any]]
Found = tuple[json_schema.Schema | None, str | None]


class OutputTypes:
    """The schemas of a plan's outputs and inputs, with those of the tools where a catalogue is known."""

    def __init__(self, plan: Plan, tools: Tools) -> None:
        self._nodes = {node.id: node for node in plan.nodes}
        self._inputs = plan.inputs
        self._tools = tools
        self._found: dict[Reference, Found] = {}

    def at(self, reference: Reference, reader: Node | None = None) -> Found:
        """Return (schema at the reference or None when unknown, sentence when it cannot exist).

        `reader` is the node that refers: in a map's template its item's name has the schema of the list's items.
        """
        if reader is not None:
            return self._follow(reference, self._root(reference, reader))
        found = self._found.get(reference)
        if found is None:
            found = self._found[reference] = self._follow(reference, self._root(reference, None))
        return found

    def _follow(self, reference: Reference, here: Any) -> Found:
        defs = json_schema.definitions(here)
        steps = reference.path[1:] if reference.node == "input" else reference.path
        for count, step in enumerate(steps):
            if here is None:
                return None, None
            here, wrong = _into(json_schema.resolve(here, defs), step, defs)
            if wrong:
                before = Reference(reference.node, reference.path[: len(reference.path) - len(steps) + count])
                return None, f"{format_name(str(reference))} has no value: {format_name(str(before))} {wrong}"
        return ({**json_schema.resolve(here, defs), "$defs": defs} if here is not None else None), None

    def types_at(self, reference: Reference, reader: Node | None = None) -> frozenset[str]:
        """Return the JSON types the reference may give; empty when unknown."""
        found = self.at(reference, reader)[0]
        return json_schema.types_of(found, json_schema.definitions(found)) if found is not None else frozenset()

    def _root(self, reference: Reference, reader: Node | None) -> Any:
        if isinstance(reader, MapNode) and reference.node == reader.as_:
            over = parse_reference(reader.over)
            return _items(self.at(over)[0]) if over is not None else None
        if isinstance(reader, MapNode) and reference.node in reader.stages:
            return self._of_call(reader.do[reader.stages.index(reference.node)])
        if reference.node == "goal":
            return {"type": "string"}
        if reference.node == "input":
            spec = self._inputs.get(str(reference.path[0])) if reference.path else None
            return schema_of_input(spec) if spec is not None else None
        node = self._nodes.get(reference.node)
        return self._of_node(node) if node is not None else None

    def _of_node(self, node: Node) -> Any:
        if isinstance(node, MapNode):
            inner = self._of_call(node.do[-1])
            defs = json_schema.definitions(inner)
            may_skip = any(stage.when is not None or stage.on_error == "skip" for stage in node.do)
            items = (
                {"items": {"anyOf": [inner, {"type": "null"}]} if may_skip else inner}
                if isinstance(inner, dict)
                else {}
            )
            return {"type": "array", "$defs": defs} | items
        if isinstance(node, ProgramNode):
            return None
        if isinstance(node, JoinNode):
            return {"type": "array"} if node.policy != "first" else None
        return node.answer_schema if isinstance(node, GateNode) else self._of_call(node)

    def _of_call(self, call: ToolCall | ModelCall | AgentCall | Program) -> Any:
        if isinstance(call, AgentCall | Program):
            return None
        if isinstance(call, ModelCall) and call.workspace is not None:
            return {
                "type": "object",
                "properties": {"answer": call.output_schema or {}, "workspace": {"type": "object"}},
            }
        if isinstance(call, ModelCall):
            return call.output_schema
        return (self._tools.get(call.tool) or {}).get("output_schema")


def schema_of_input(spec: InputSpec) -> json_schema.Schema:
    """Return the schema of a declared input; one whose default is null may be null."""
    optional = "default" in spec.model_fields_set and spec.default is None
    return {"type": [spec.type, "null"] if optional else spec.type}


def _items(of: json_schema.Schema | None) -> Any:
    items = of.get("items") if of is not None else None
    return {**items, "$defs": json_schema.definitions(of)} if isinstance(items, dict) else None


def _into(here: json_schema.Schema, step: Step, defs: dict[str, Any]) -> tuple[Any, str | None]:
    """Follow one step of a path through a schema: (schema or None when unknown, sentence when impossible)."""
    choices = json_schema.choices_of(here)
    if choices:
        tried = [
            _into(json_schema.resolve(choice, defs), step, defs) for choice in choices[:20] if not _nested(choice, defs)
        ]
        wrong = [sentence for _, sentence in tried if sentence]
        impossible = len(wrong) == len(choices)
        return None, max(wrong, key=lambda sentence: sentence.startswith("has")) if impossible else None
    kinds = json_schema.types_of(here, defs)
    if not kinds:
        return None, None
    if isinstance(step, int):
        items = here.get("items")
        if "array" not in kinds:
            return None, f"is no list but {' or '.join(sorted(kinds))}"
        return (items if isinstance(items, dict) else None), None
    if "array" in kinds and step == "length":
        return {"type": "integer"}, None
    if "object" not in kinds:
        return None, f"is {' or '.join(sorted(kinds))}"
    return _into_object(here, step)


def _nested(choice: Any, defs: dict[str, Any]) -> bool:
    return bool(json_schema.choices_of(json_schema.resolve(choice, defs)))


def _into_object(here: json_schema.Schema, step: str) -> tuple[Any, str | None]:
    properties = here.get("properties")
    if not isinstance(properties, dict) or not properties:
        return None, None
    if step in properties:
        return properties[step], None
    if here.get("additionalProperties") not in (None, False) or "patternProperties" in here:
        return None, None
    return None, f"has {format_names(properties)}{did_you_mean(step, properties)}"
