from pathlib import Path
from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE
from doubles.stores import new_store

from sennit.activities.llm.models import Models
from sennit.activities.programs import type_check
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.reading import read
from sennit.activities.providers.settings import ModelSettings, Server
from sennit.activities.runs.check import PlanChecker, Run
from sennit.activities.storage.run_context import ArtifactReader, RunContext
from sennit.workflows.messages.contracts import ReplanCall
from sennit.workflows.plan.edits.prefix import PlanPrefix

CONTEXT = RunContext(goal="g", inputs={}, docs=None, approval="never", catalogue=CATALOGUE)


@pytest.mark.parametrize(
    ("script", "arguments", "problems"),
    [
        ("async def main(x: str, y: int = 1):\n    return await search(query=x)", {"x": "a"}, []),
        ("async def main(:", {}, ["nodes[0].script, line 1: "]),
        (
            "import os\nasync def main():\n    serch(os.name)",
            {"z": 1},
            ["nodes[0].script, line 1: ", "nodes[0].script, line 3: ", "nodes[0].arguments.z: `main` has no argument"],
        ),
        pytest.param(
            "async def main(x: str):\n    return await search(query=1)",
            {"x": "a"},
            ["nodes[0].script, line 2: "],
            marks=pytest.mark.skipif(type_check._program() is None, reason="ty is not installed"),
        ),
        ("async def main(x: str):\n    return x", {"X": "a"}, [
            "nodes[0].arguments.X: `main` has no argument `X`; known: x",
            "nodes[0].arguments: `main` needs the argument `x`",
        ]),
        ("async def main(x: str):\n    return x", {"x": "$other.y"}, ["nodes[0].arguments.x: `$other` refers to no"]),
    ],
)  # fmt: skip
async def test_a_script_that_cannot_run_is_refused_with_all_that_is_wrong(
    tmp_path: Path, script: str, arguments: dict[str, Any], problems: list[str]
) -> None:
    store = new_store(tmp_path)
    library = ArtifactReader(store)
    run = Run("space/run", await library.keep("space/run", CONTEXT), CONTEXT)
    node = {"id": "p", "kind": "program", "script": script, "arguments": arguments}
    async with Interpreter() as interpreter:
        checker = PlanChecker(store, library, Models.of(ModelSettings()), interpreter, read)
        found = await checker.check_draft(run, {"nodes": [node]})
    assert len(found.problems) == len(problems), found.problems
    assert all(text.startswith(start) for text, start in zip(found.problems, problems, strict=True)), found.problems


async def test_a_streamed_line_that_names_another_model_begins_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    library = ArtifactReader(store)
    context = CONTEXT.model_copy(update={"models": {"planner": ["offline"], "worker": ["offline"]}})
    digest = await library.keep("space/run", context)
    node = {"id": "a", "kind": "llm", "prompt": "x"}
    models = Models.of(ModelSettings(servers={"openai": Server("openai", "http://127.0.0.1:1/v1")}))
    async with Interpreter() as interpreter:
        checker = PlanChecker(store, library, models, interpreter, read)
        assert await checker.begin("space/run", digest, PlanPrefix(), [{**node, "model": "openai:big"}]) is None
        assert await checker.begin("space/run", digest, PlanPrefix(), [{**node, "model": "offline"}]) is not None


@pytest.mark.parametrize(
    "work",
    [
        {"kind": "map", "over": [1], "do": [{"id": "x", "kind": "llm", "prompt": "$item", "model": "openai:big"}]},
        {"kind": "program", "script": "async def main():\n    return await llm('x', model='openai:big')\n"},
    ],
)
async def test_a_joiner_adds_no_call_of_another_model(tmp_path: Path, work: dict[str, Any]) -> None:
    store = new_store(tmp_path)
    library = ArtifactReader(store)
    context = CONTEXT.model_copy(update={"models": {"planner": ["offline"]}})
    digest = await library.keep("space/run", context)
    run = Run("space/run", digest, context)
    models = Models.of(ModelSettings(servers={"openai": Server("openai", "http://127.0.0.1:1/v1")}))
    async with Interpreter() as interpreter:
        checker = PlanChecker(store, library, models, interpreter, read)
        base = await checker.check_draft(run, {"nodes": [{"id": "a", "kind": "llm", "prompt": "x"}]})
        wish = {"replan": {"why": "more", "nodes": [{"id": "b", **work}]}}
        draft = await library.put("space/run", wish)
        call = ReplanCall(run="run", run_context=digest, base=base.plan, draft=draft, refs={})
        found = await checker.check_replan("space/run", call)
    assert "offline" in found.problems[0]
