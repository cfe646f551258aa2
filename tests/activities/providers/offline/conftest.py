import json
import re
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from typing import Any

import pytest

from activities.providers import ModelRequest
from activities.providers.offline import Offline
from activities.toolbox.arithmetic import settled
from activities.toolbox.calculate import evaluate
from workflows.plan.language.conditions import holds
from workflows.plan.language.facts import MISSING, facts_of
from workflows.plan.language.nodes import Role
from workflows.plan.language.references import (
    BindError,
    as_text,
    bind,
    parse_reference,
    references_in,
    resolve,
    rewrite,
)

Notes = dict[str, str]
Ask = Callable[..., Awaitable[dict[str, Any]]]
Call = Callable[..., Awaitable[Any]]


def request(role: Role, template: str, inputs: dict[str, Any] | None = None, **fields: Any) -> ModelRequest:
    """A call as the engine makes it: the prompt bound from the inputs."""
    given = inputs or {}
    prompt = str(bind(f"{template} ", given.__getitem__)).rstrip()
    return ModelRequest(role, "offline", fields.pop("goal", template), prompt, template, given, **fields)


def use_tool(name: str, args: dict[str, Any], notes: Notes) -> Any:
    """Tiny stand-ins for the tools that plans use, over notes kept in memory."""
    if name == "calculate":
        return {"expression": args["expression"], "value": settled(evaluate(args["expression"]))}
    if name == "read":
        return hit(args["path"], notes[args["path"]]) | {"text": notes[args["path"]]}
    if name == "list_files":
        folder = args["glob"].split("/")[1]
        paths = [path for path in sorted(notes) if any(fnmatchcase(part, folder) for part in path.split("/")[:-1])]
        return {"count": len(paths), "items": [{"path": path, "bytes": 1} for path in paths], "truncated": False}
    words = set(re.findall(r"\w+", args["query"].lower()))
    scores = {path: len(words & set(re.findall(r"\w+", f"{path} {text}".lower()))) for path, text in notes.items()}
    best = sorted((path for path in notes if scores[path]), key=lambda path: (-scores[path], path))[: args["k"]]
    items = [hit(path, notes[path]) | {"passage": notes[path], "score": 1.0} for path in best]
    return {"query": args["query"], "count": len(items), "items": items}


def hit(path: str, text: str) -> dict[str, Any]:
    """What search and read say of a document besides its text."""
    title = re.match(r"# (.+)", text)
    return {"path": path, "title": title[1] if title else path.rsplit("/", 1)[-1].removesuffix(".md")}


async def run_plan(plan: dict[str, Any], notes: Notes, goal: str) -> dict[str, Any]:
    """Run a plan one node after the other, with the engine's rules for skipped nodes. Returns every output."""
    values: dict[str, Any] = {}

    async def work(node: dict[str, Any], item: dict[str, Any]) -> Any:
        known = {**values, **item}
        if node["kind"] == "tool":
            return use_tool(node["tool"], bind(node["args"], known.__getitem__), notes)
        inputs = {name: known[name] for name in dict.fromkeys(ref.node for ref in references_in(node["prompt"]))}
        if "inputs" in node:
            inputs[node["id"]] = [ending(name, values) for name in node["inputs"]]
        schema = node.get("output_schema")
        worded = rewrite(
            node["prompt"],
            lambda ref: (
                as_text(resolve(ref, item[ref.node])) if f"{ref}" != f"${ref.node}" and ref.node in item else None
            ),
        )
        call = request(node["role"], worded, inputs, goal=goal, output_schema=schema)
        return json.loads(json.dumps((await Offline().complete(call)).output))

    for node in plan["nodes"]:
        try:
            if "when" not in node or holds(node["when"], lambda test: fact(test["ref"], values)):
                items = (
                    [{node["as"]: item} for item in bind(node["over"], values.__getitem__)] if "over" in node else []
                )
                values[node["id"]] = (
                    [await work(node["do"], item) for item in items] if "over" in node else await work(node, {})
                )
        except (KeyError, BindError):
            continue
    return values


def ending(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """How an input of a node ended, as the node is told."""
    return {
        "id": name,
        "status": "succeeded" if name in values else "skipped",
        "value": values.get(name),
        "error": None,
    }


def fact(ref: str, values: dict[str, Any]) -> Any:
    """The value that a condition tests."""
    reference = parse_reference(ref)
    assert reference is not None
    return facts_of(values[reference.node], [reference.fact]).get(reference.fact, MISSING)


@pytest.fixture
def ask() -> Ask:
    """Plan a goal over notes, run the plan, and return `{answer, evidence}`."""

    async def ask(goal: str, notes: Notes) -> dict[str, Any]:
        plan = (await Offline().complete(request("planner", goal.replace("$", "$$")))).output
        return dict((await run_plan(plan, notes, goal))["answer"])

    return ask


@pytest.fixture
def call() -> Call:
    """Make one call of the offline model and return its output."""

    async def call(role: Role, template: str, inputs: dict[str, Any] | None = None, **fields: Any) -> Any:
        return (await Offline().complete(request(role, template, inputs, **fields))).output

    return call
