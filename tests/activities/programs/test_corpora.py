"""Scripts as people and models write them, written before the check was: right ones run, wrong ones are found before.

Of each corpus the second, fourth, sixth ... entry was not looked at while the check was built.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.programs import type_check
from sennit.activities.programs.classes import Classes, classes_of
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.schemas import schema_of
from sennit.activities.sandbox.runner import Sandbox
from sennit.activities.sandbox.tools import code_tools
from sennit.activities.toolbox.loader import load_tools
from sennit.testing import run_async
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.programs.reply import UnreadableProgram, planned_problems, script_in
from sennit.workflows.plan.programs.stubs import stubs_of
from sennit.workflows.plan.programs.syntax import DOUBT, doubts_in, parameters_of, problems_in

CORPORA = Path(__file__).parent / "corpora"
SCRIPT = re.compile(r"^#### (\w+) ?(.*)$", re.MULTILINE)
REPLIES = json.loads((CORPORA / "replies.json").read_text())


def scripts(name: str) -> dict[str, tuple[str, str]]:
    """What stands behind the name of each script of a corpus, and the script."""
    _, *parts = SCRIPT.split((CORPORA / name).read_text())
    return {
        key: (head, body.lstrip("\n")) for key, head, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


RIGHT, WRONG = scripts("right.txt"), scripts("wrong.txt")
WRONG_TYPES = (
    "wrong_type_of_argument", "await_a_value", "string_plus_number", "compare_text_with_number", "range_of_text",
    "ticket_used_as_value", "method_typo_str", "push_on_list", "dataclass_missing_field",
)  # fmt: skip
"""What only a check of types finds: without `ty` the run itself does."""
NO_JSON = {
    "set_returned": "a set has no JSON",
    "return_function": "a function is no value",
    "returns_ticket": "a Task is no value",
    "the_return_function": "a function is no value",
    "return_bytes": "a bytes has no JSON",
    "time_in_the_result": "a datetime has no JSON",
}
"""What a script returns that has no JSON."""
ENDLESS = ("endless_loop", "endless_recursion", "infinite_loop_never_changes")
"""What the limits of a script end."""
FOUND_BY_THE_RUN = (*NO_JSON, *ENDLESS, "name_before_assignment")
"""What Python, or a limit, says when the script runs."""
CATALOGUE = load_tools(
    offered=code_tools(Sandbox("landlock", "python3", CORPORA, namespaces=False, groups=None))
).catalogue()
TOOLS = {entry["name"]: entry for entry in CATALOGUE}
STUBS = stubs_of(CATALOGUE)


def made(schema: dict[str, Any]) -> Any:
    """A value that fits a schema."""
    if "anyOf" in schema or "enum" in schema:
        return schema["enum"][0] if "enum" in schema else made(schema["anyOf"][0])
    if schema.get("type") == "object":
        return {name: made(part) for name, part in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return [made(schema.get("items", {}))]
    return {"integer": 1, "number": 1.5, "boolean": True}.get(schema.get("type", ""), "text")


def fakes(classes: Classes) -> dict[str, Any]:
    def llm(prompt: str, *_: Any, schema: Any = None, **__: Any) -> Any:
        return "text" if schema is None else made(schema_of(schema, classes))

    return {
        "llm": llm,
        "ask": llm,
        "agent": lambda goal, **_: f"did {goal}",
        "search": lambda query, k=3: {"items": [{"path": f"{query}.md", "text": "passage"}]},
        "read": lambda path, **_: {"path": path, "text": "a,b\n1,2"},
        "list_files": lambda **_: {"items": [{"path": "a.md"}]},
        "calculate": lambda expression: {"value": 3.0},
        "table": lambda **_: {"text": "| |"},
        "http_get": lambda url, **_: {"text": "page"},
        "python": lambda code: {"exit_code": 0, "stdout": "2", "stderr": ""},
        "budget_left": lambda: {"tokens": None, "calls": None, "cost_usd": None},
    }


async def found_in(interpreter: Interpreter, script: str) -> list[Problem]:
    """What people are told of a script: problems, or else doubts."""
    problems = problems_in(script, TOOLS)
    return problems or [*await interpreter.type_problems(script, STUBS), *doubts_in(script, TOOLS)]


def test_the_corpora_are_large_enough() -> None:
    assert len(RIGHT) >= 40
    assert len(WRONG) >= 55
    assert len(REPLIES) >= 50


def test_more_than_four_of_five_wrong_scripts_are_found_before_they_run() -> None:
    left_to_the_run = len(FOUND_BY_THE_RUN) / len(WRONG)
    assert round(100 * (1 - left_to_the_run)) == 91
    without_ty = left_to_the_run + len(WRONG_TYPES) / len(WRONG)
    assert round(100 * (1 - without_ty)) == 83


@pytest.mark.parametrize("name", NO_JSON)
async def test_what_a_script_cannot_return_is_named_when_it_does(name: str) -> None:
    script = WRONG[name][1]
    inputs = {
        given: ["a"] if parameter.annotation == "list" else "a" for given, parameter in parameters_of(script).items()
    }
    with pytest.raises(TypeError, match=NO_JSON[name]):
        await run_async(script, fakes(classes_of(script)), **inputs)


@pytest.mark.parametrize("name", RIGHT)
async def test_a_right_script_is_not_refused_and_runs_to_its_end(interpreter: Interpreter, name: str) -> None:
    inputs, script = RIGHT[name]
    assert [each for each in await found_in(interpreter, script) if each.code != DOUBT] == []
    json.dumps(await run_async(script, fakes(classes_of(script)), **json.loads(inputs)))


@pytest.mark.parametrize("name", [name for name in WRONG if name not in FOUND_BY_THE_RUN])
async def test_a_wrong_script_is_found_before_it_runs_in_the_right_place(interpreter: Interpreter, name: str) -> None:
    if name in WRONG_TYPES and type_check._program() is None:
        pytest.skip("ty is not installed")
    script = WRONG[name][1]
    found = await found_in(interpreter, script)
    assert found
    lines = [number for number, line in enumerate(script.split("\n"), 1) if "# HERE" in line]
    assert not lines or lines[0] in [problem.where[-1] for problem in found]


@pytest.mark.parametrize("entry", REPLIES, ids=[entry["name"] for entry in REPLIES])
def test_a_reply_is_read_or_asked_for_again(entry: dict[str, str]) -> None:
    try:
        script = script_in(entry["reply"])
    except UnreadableProgram:
        assert entry["want"] == "asked"
        return
    problems = [*planned_problems(script, ()), *map(str, problems_in(script, TOOLS))]
    if problems:
        assert entry["want"] == "asked", problems
        return
    names = [node.name for node in ast.parse(script).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert entry["want"] == " ".join(names)
