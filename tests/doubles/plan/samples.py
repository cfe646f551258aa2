"""Plans that keep every rule, the tools they call, and a driver that runs a execution_plan to its end."""

import copy
from collections.abc import Callable
from typing import Any

from sennit.activities.storage.run_context import StoredPlan
from sennit.workflows.plan.checking.inputs import bind_inputs
from sennit.workflows.plan.compile.compiler import PlanCompiler
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.scheduling.events import (
    Answered,
    ApprovalDecided,
    Decision,
    End,
    NodeEnded,
    Outcome,
    Question,
    RunStarted,
    Start,
    TimeAdvanced,
)
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import WAITING

Data = dict[str, Any]
Facts = Callable[[RunState, int], dict[str, Any]]


def _schema(required: tuple[str, ...] = (), **properties: Any) -> Data:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
PASSAGE = {"type": "object", "properties": {"path": TEXT, "title": TEXT, "score": {"type": "number"}}}
CATALOGUE: list[Data] = [
    {
        "name": "search",
        "effect": "read",
        "timeout": 60.0,
        "schema": _schema(("query",), query={"type": "string", "maxLength": 400}, k={"type": "integer", "minimum": 1}),
        "output_schema": {
            "type": "object",
            "$defs": {"Passage": PASSAGE},
            "properties": {"count": WHOLE, "items": {"type": "array", "items": {"$ref": "#/$defs/Passage"}}},
        },
    },
    {
        "name": "read",
        "effect": "read",
        "schema": _schema(("path",), path=TEXT, max_chars={"anyOf": [WHOLE, {"type": "null"}]}),
        "output_schema": {"type": "object", "properties": {"text": TEXT, "truncated": {"type": "boolean"}}},
    },
    {
        "name": "calculate",
        "effect": "pure",
        "timeout": 5.0,
        "schema": _schema(("expression",), expression=TEXT),
        "output_schema": {"type": "object", "properties": {"value": {"anyOf": [WHOLE, {"type": "boolean"}]}}},
    },
    {"name": "note", "effect": "write", "schema": _schema(("text",), text=TEXT), "output_schema": None},
    {"name": "save", "effect": "write", "idempotent": True, "schema": _schema(("text",), text=TEXT)},
    {"name": "anything", "effect": "read", "schema": {"type": "object"}},
    {"name": "load", "effect": "read", "resource": "file:{path}", "schema": {"type": "object"}},
    {"name": "store", "effect": "write", "resource": "file:{path}", "schema": {"type": "object"}},
    {"name": "shell", "effect": "read", "queue": "sennit.sandbox", "schema": {"type": "object"}},
]
TOOLS = {entry["name"]: entry for entry in CATALOGUE}


def tool(name: str = "a", tool: str = "search", args: Data | None = None, **fields: Any) -> Data:
    """Return a tool node."""
    given = args if args is not None else {"query": "the Nile"}
    return {"id": name, "kind": "tool", "tool": tool, "args": given, **fields}


def free(name: str, *, of: str = "", **fields: Any) -> Data:
    """Return a node that takes any arguments; it reads the node `of`."""
    return tool(name, "anything", {"of": f"${of}"} if of else {}, **fields)


def llm(name: str = "b", prompt: str = "Sum up", **fields: Any) -> Data:
    """Return a model node."""
    return {"id": name, "kind": "llm", "prompt": prompt, **fields}


def join(name: str, inputs: list[str], **fields: Any) -> Data:
    """Return a join."""
    return {"id": name, "kind": "join", "inputs": inputs, **fields}


def gate(name: str = "g", **fields: Any) -> Data:
    """Return a gate."""
    return {"id": name, "kind": "gate", "question": "Go on?", **fields}


def each(name: str = "m", over: str = "$a.items", **fields: Any) -> Data:
    """Return a map that reads every path of a list."""
    do = {"kind": "tool", "tool": "read", "args": {"path": "$item.path"}}
    return {"id": name, "kind": "map", "over": over, "do": do} | fields


def plan(*nodes: Data, answer: Any = None, **fields: Any) -> Data:
    """Return a plan of these nodes; its answer is the last one unless given."""
    return {"nodes": list(nodes), "answer": f"${nodes[-1]['id']}" if answer is None else answer, **fields}


def stored(*nodes: dict[str, Any], goal: str = "Sum up", **inputs: Any) -> StoredPlan:
    """Return a checked plan as workers keep it."""
    parsed = parse_plan(plan(*nodes))
    keep = {"inputs": inputs, "keep": lambda _: ("digest", 1), "queues": lambda _: "queue", "approval": "never"}
    compiler = PlanCompiler(parsed, TOOLS, goal=goal, **keep)  # type: ignore[arg-type]
    return StoredPlan(
        run_context="", goal=goal, docs=None, inputs=inputs, plan=parsed, wanted={},
        execution_plan=compiler.execution_plan(None).pack(),
    )  # fmt: skip


NILE: Data = {
    "goal": "Which is longer, the Nile or the Amazon?",
    "nodes": [
        {"id": "a", "kind": "tool", "tool": "search", "args": {"query": "length of the Nile", "k": 3}},
        {"id": "b", "kind": "tool", "tool": "search", "args": {"query": "length of the Amazon", "k": 3}},
        {"id": "both", "kind": "join", "inputs": ["a", "b"], "policy": "settled"},
        {"id": "d", "kind": "tool", "tool": "calculate", "args": {"expression": "6650 - 6400"}, "needs": ["both"]},
        {"id": "c", "kind": "llm", "role": "joiner", "prompt": "Which is longer, and by how much? $both $d"},
    ],
    "answer": "$c",
}
PLANS: dict[str, Data] = {
    "the design's example": NILE,
    "tool with everything": plan(
        tool(
            args={"query": "$input.city and $goal for $$5, ${input.city}", "k": "$input.k"},
            on_error={"fallback": {"count": 0, "items": []}},
            retry={"attempts": 3},
            timeout="30s",
            priority=1,
            locks=[{"name": "repo", "mode": "shared"}, {"name": "disk"}],
            estimate={"tokens": 10, "seconds": 1.5},
        ),
        goal="Tell of it",
        inputs={"city": {"type": "string", "default": "Rome"}, "k": {"type": "integer", "default": 2}},
        on_failure="partial",
    ),
    "llm with a schema": plan(
        llm("b", "Go", role="critic", model="offline", output_schema={"type": "object", "properties": {"n": WHOLE}}),
        tool("a", args={"query": "x", "k": "$b.n"}),
        answer={"n": "$b.n", "found": ["$a.items[0].title", "$a.items.length"]},
    ),
    "map": plan(tool(), each(max_items=5, priority=2), llm("b", "$m[0].text $m.length")),
    "map of inputs": plan(
        each(
            "m",
            "$input.urls",
            do={"kind": "llm", "prompt": "Read $url", "on_error": {"fallback": None}},
            **{"as": "url"},
        ),
        inputs={"urls": {"type": "array", "default": ["x", "y"]}},
    ),
    "map that skips": plan(
        tool(), each(do={"kind": "llm", "prompt": "$item.title", "on_error": "skip"}), on_failure="fail"
    ),
    "joins of every policy": plan(
        *(free(name) for name in "abc"),
        join("all", ["a", "b", "c"]),
        join("settled", ["a", "b"], policy="settled", deadline="5m"),
        join("first", ["a", "c"], policy="first", on_error="skip"),
        join("two", ["a", "b", "c"], policy={"quorum": 2}, priority=5),
        join("most", ["a", "b", "c"], policy={"quorum": "60%"}, deadline="1h"),
        answer=["$all", "$settled", "$first", "$two", "$most"],
    ),
    "gate": plan(
        gate("g", schema={"type": "string", "enum": ["yes", "no"]}, timeout="2h", on_error={"fallback": "no"}),
        free("a", when={"ref": "$g", "op": "eq", "value": "yes"}),
    ),
    "a fallback node": plan(tool("a", on_error={"instead": "s"}), tool("s"), llm("b", "$a.items[0].title")),
    "conditions": plan(
        tool("a", on_error="skip"),
        tool(
            "b",
            when={
                "and": [
                    {"ref": "$a.count", "op": "gt", "value": 3},
                    {"not": {"ref": "$a.items[0].title", "op": "contains", "value": "x"}},
                ]
            },
        ),
        llm(
            "c",
            when={
                "or": [
                    {"ref": "$a:status", "op": "in", "value": ["failed", "skipped"]},
                    {"ref": "$a:error.type", "op": "eq", "value": "NodeTimeout"},
                ]
            },
        ),
        llm(
            "d",
            when={
                "and": [
                    {"ref": "$input.depth", "op": "ge", "value": 1},
                    {"ref": "$goal", "op": "contains", "value": "Nile"},
                ]
            },
        ),
        join("e", ["b", "c", "d"], policy="settled"),
        inputs={"depth": {"type": "integer", "default": 2}},
        goal="The Nile",
    ),
    "writes": plan(tool("n", "note", {"text": "x"}), tool("s", "save", {"text": "$n"})),
    "fused": plan(tool("a"), tool("b", needs=["a"]), tool("c", needs=["a"]), llm("d", "$b $c"), fuse="on"),
}


def sample(name: str) -> Data:
    """Return a copy of a sample that may be changed."""
    return copy.deepcopy(PLANS[name])


def skeleton_of(plan: Plan, inputs: Data | None = None, **options: Any) -> ExecutionPlan:
    """Return the execution_plan of a checked plan with the sample tools."""
    chosen: Data = {"queues": lambda node: f"queue.{node.kind}", "approval": "writes", "keep": _keep} | options
    on_failure = chosen.pop("on_failure", None)
    return PlanCompiler(plan, TOOLS, inputs=bind_inputs(plan, inputs or {}), **chosen).execution_plan(on_failure)


def _keep(value: Any) -> tuple[str, int]:
    return f"digest of {value!r:.20}", 1


def annotated(data: Data, inputs: Data | None = None, **options: Any) -> ExecutionPlan:
    """Return the execution_plan of a plan given as JSON."""
    return skeleton_of(parse_plan(data), inputs, **options)


def no_facts(_state: RunState, _unit: int) -> Data:
    """Every output lacks what conditions and maps ask for."""
    return {}


class Drive:
    """Runs a execution_plan: every started unit succeeds at once, gates are answered, writes approved, time passes."""

    def __init__(self, execution_plan: ExecutionPlan, facts: Facts = no_facts) -> None:
        self.state = RunState(Graph(execution_plan))
        self.started: list[str] = []
        self.status = ""
        self._facts = facts
        self._events: list[Any] = [RunStarted()]

    def run(self) -> str:
        """Return how the run ended."""
        while not self.status:
            if waiting := self.state.units_in(WAITING):
                unit = waiting[0]
                gate = self.state.spec_of(unit).kind == "gate"
                self._events.insert(0, Answered(unit, "yes") if gate else ApprovalDecided(unit, True))
            elif not self._events:
                due = self.state.next_due()
                assert due is not None, "nothing runs, nothing waits, and the run has not ended"
                self.state.now = max(self.state.now, due)
                self._events.append(TimeAdvanced())
            for decision in step(self.state, self._events.pop(0)):
                self._take(decision)
        return self.status

    def _take(self, decision: Decision) -> None:
        if isinstance(decision, Start):
            for unit in decision.units:
                self.started.append(self.state.path(unit))
                outcome = Outcome(f"digest {unit}", 1, self._facts(self.state, unit))
                if decision.asks:
                    outcome = Outcome(question=Question("?", "d"), attempts=0)
                self._events.append(NodeEnded(unit, self.state.units[unit].generation, outcome))
        elif isinstance(decision, End):
            self.status = decision.status


def wanted_facts(plan: Plan, value: Any = 2) -> Facts:
    """Every output has exactly the facts which the plan asks of it, all of one value."""
    wanted = dependencies.facts_wanted(plan)

    def facts(state: RunState, unit: int) -> Data:
        return dict.fromkeys(wanted.get(state.path(unit), []), value)

    return facts
