from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.programs.calculate import evaluate
from sennit.activities.providers.model import ModelRequest
from sennit.activities.providers.offline import Offline
from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.search.tool import SearchArguments, search
from sennit.workflows.plan.language.nodes import Role
from sennit.workflows.plan.language.references import bind, references_in

CORPUS = Path(__file__).parents[4] / "examples" / "corpus"
Ask = Callable[..., Awaitable[dict[str, Any]]]
Call = Callable[..., Awaitable[Any]]


async def _call(role: Role, template: str, inputs: dict[str, Any] | None = None, goal: str = "", **fields: Any) -> Any:
    given = inputs or {}
    prompt = str(bind(f"{template} ", given.__getitem__)).rstrip()
    return (await Offline().complete(ModelRequest(role, "offline", goal, prompt, template, given, **fields))).output


@pytest.fixture
def call() -> Call:
    """Make one call of the offline model, as the engine makes it, and return its output."""
    return _call


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Plan a goal, run the plan over the example corpus or other notes, and return what the joiner returns."""

    async def ask(goal: str, docs: Path = CORPUS) -> dict[str, Any]:
        context = ToolContext(docs, tmp_path / "cache", "run", "n1", 1, 1, "key", lambda _line: None)
        plan = await _call("planner", goal.replace("$", "$$"), goal=goal)
        values: dict[str, Any] = {}
        for node in plan["nodes"]:
            if node.get("tool") == "search":
                values[node["id"]] = search(
                    SearchArguments(**bind(node["args"], values.__getitem__)), context
                ).model_dump()
            elif node.get("role") == "worker":
                (source,) = (reference.node for reference in references_in(node["prompt"]))
                inputs = {source: values[source]}
                values[node["id"]] = await _call("worker", node["prompt"], inputs, output_schema=node["output_schema"])
            elif "when" in node and all(values[test["ref"][1:-6]]["found"] for test in node["when"]["and"]):
                expression = bind(node["args"]["expression"], values.__getitem__)
                values[node["id"]] = {"expression": expression, "value": evaluate(expression)}
        ends = [
            {
                "id": name,
                "status": "succeeded" if name in values else "skipped",
                "value": values.get(name),
                "error": None,
            }
            for name in plan["nodes"][-1]["inputs"]
        ]
        return dict(await _call("joiner", plan["nodes"][-1]["prompt"], {"answer": ends}, goal))

    return ask
