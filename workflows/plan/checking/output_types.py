"""What each node of a plan gives, as far as a schema tells: the types behind references,
before anything has run.
"""

from typing import Any

from sennit.workflows.plan.language import json_schema
from sennit.workflows.plan.language.nodes import (
    AgentCall,
    AnyStage,
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
from sennit.workflows.plan.language.schema_keywords import Schema
from sennit.workflows.plan.language.text import did_you_mean, format_name, format_names

_MAX_CHOICES = 20
Tools = dict[str, dict[str, Any]]
Found = tuple[Schema | None, str | None]


class OutputTypes:
    """The schemas of a plan's outputs and inputs, with those of the tools
    where a catalogue is known.
    """

    def __init__(self, plan: Plan, tools: Tools) -> None:
        self._nodes = plan.by_id
        self._inputs = plan.inputs
        self._tools = tools
        self._found: dict[Reference, Found] = {}

    def at(self, reference: Reference, reader: Node | None = None) -> Found:
        """Return (schema at the reference or None when unknown, sentence when it cannot exist).

        `reader` is the node that refers: in a map's template its item's name has the
        schema of the list's items.
        """
        if reader is not None:
            root = self._root(reference, reader)
            return self._follow(reference, root)
        if reference not in self._found:
            root = self._root(reference, None)
            self._found[reference] = self._follow(reference, root)
        return self._found[reference]

    def _follow(self, reference: Reference, here: Any) -> Found:
        # The root of a reference to an input is that input's schema already.
        start = 0
        if reference.node == "input":
            start = min(1, len(reference.path))
        defs = json_schema.definitions(here)
        for count, step in enumerate(reference.path[start:], start):
            if here is None:
                return None, None
            schema = json_schema.resolve(here, defs)
            here, wrong = _into(schema, step, defs)
            if wrong:
                before = Reference(reference.node, reference.path[:count])
                parent = format_name(str(before))
                return None, f"{format_name(str(reference))} has no value: {parent} {wrong}"
        if here is None:
            return None, None
        return {**json_schema.resolve(here, defs), "$defs": defs}, None

    def types_at(self, reference: Reference, reader: Node | None = None) -> frozenset[str]:
        """Return the JSON types the reference may give; empty when unknown."""
        schema, _ = self.at(reference, reader)
        if schema is None:
            return frozenset()
        return json_schema.types_of(schema, json_schema.definitions(schema))

    def _root(self, reference: Reference, reader: Node | None) -> Any:
        if isinstance(reader, MapNode):
            if reference.node == reader.as_:
                return self._item_of(reader)
            if reference.node in reader.stages:
                place = reader.stages.index(reference.node)
                return self._of_call(reader.do[place])
        if reference.node == "goal":
            return {"type": "string"}
        if reference.node == "input":
            return self._of_input(reference)
        node = self._nodes.get(reference.node)
        if node is None:
            return None
        return self._of_node(node)

    def _item_of(self, node: MapNode) -> Any:
        """Return the schema of the items of the list that a map goes over."""
        over = parse_reference(node.over)
        if over is None:
            return None
        schema, _ = self.at(over)
        if schema is None or not isinstance(schema.get("items"), dict):
            return None
        return {**schema["items"], "$defs": json_schema.definitions(schema)}

    def _of_input(self, reference: Reference) -> Any:
        if not reference.path:
            return None
        spec = self._inputs.get(str(reference.path[0]))
        if spec is None:
            return None
        return schema_of_input(spec)

    def _of_node(self, node: Node) -> Any:
        if isinstance(node, MapNode):
            return self._of_map(node)
        if isinstance(node, ProgramNode):
            return None
        if isinstance(node, GateNode):
            return node.answer_schema
        if not isinstance(node, JoinNode):
            return self._of_call(node)
        if node.policy == "first":
            return None
        return {"type": "array"}

    def _of_map(self, node: MapNode) -> Any:
        item = self._of_call(node.do[-1])
        defs = json_schema.definitions(item)
        schema: dict[str, Any] = {"type": "array", "$defs": defs}
        if isinstance(item, dict):
            # The value of an item that was left out is null.
            if any(map(_may_be_left_out, node.do)):
                item = {"anyOf": [item, {"type": "null"}]}
            schema["items"] = item
        return schema

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


def _may_be_left_out(stage: AnyStage) -> bool:
    """Whether an item may have no value because of this node in a map's `do`."""
    return stage.when is not None or stage.on_error == "skip"


def schema_of_input(spec: InputSpec) -> Schema:
    """Return the schema of a declared input; one whose default is null may be null."""
    if "default" in spec.model_fields_set and spec.default is None:
        return {"type": [spec.type, "null"]}
    return {"type": spec.type}


def _into(here: Schema, step: Step, defs: dict[str, Any]) -> tuple[Any, str | None]:
    """Follow one step of a path through a schema: (schema or None when unknown,
    sentence when impossible).
    """
    choices = json_schema.choices_of(here)
    if choices:
        return None, _wrong_in_all(choices, step, defs)
    kinds = json_schema.types_of(here, defs)
    if not kinds:
        return None, None
    listed = " or ".join(sorted(kinds))
    if isinstance(step, int):
        if "array" not in kinds:
            return None, f"is no list but {listed}"
        items = here.get("items")
        if isinstance(items, dict):
            return items, None
        return None, None
    if "array" in kinds and step == "length":
        return {"type": "integer"}, None
    if "object" not in kinds:
        return None, f"is {listed}"
    return _into_object(here, step)


def _wrong_in_all(choices: list[Any], step: Step, defs: dict[str, Any]) -> str | None:
    """Return why no alternative has this step, or None if one may have it. Alternatives in
    alternatives are not looked at, and so are those behind the first 20.
    """
    sentences = []
    for choice in choices[:_MAX_CHOICES]:
        alternative = json_schema.resolve(choice, defs)
        if not json_schema.choices_of(alternative):
            _, wrong = _into(alternative, step, defs)
            if wrong:
                sentences.append(wrong)
    if len(sentences) < len(choices):
        return None
    # What an object has says more than that a value is none.
    return max(sentences, key=lambda sentence: sentence.startswith("has"))


def _into_object(here: Schema, step: str) -> tuple[Any, str | None]:
    properties = here.get("properties")
    if not isinstance(properties, dict) or not properties:
        return None, None
    if step in properties:
        return properties[step], None
    if here.get("additionalProperties") not in (None, False) or "patternProperties" in here:
        return None, None
    return None, f"has {format_names(properties)}{did_you_mean(step, properties)}"
