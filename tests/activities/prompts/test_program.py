"""The prompt of a planner that writes a program: bounded, with every word, and with examples that hold."""

from typing import Any

import pytest

from sennit.activities.limits import MAX_PROGRAM_PROMPT_BYTES
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.prompts import program
from sennit.activities.prompts.planner import Example
from sennit.activities.toolbox import load_tools
from sennit.workflows.plan.programs.reply import script_in
from sennit.workflows.plan.programs.stubs import stubs_of
from sennit.workflows.plan.programs.syntax import problems_in
from sennit.workflows.plan.programs.vocabulary import WORDS

CATALOGUE = load_tools([]).catalogue()
TEXT = {"type": "string"}
RESULT = {"type": "object", "properties": {"number": {"type": "integer"}, "labels": {"type": "array", "items": TEXT}}}
FEW = {"type": "object", "properties": {"owner": TEXT, "labels": RESULT["properties"]["labels"]}, "required": ["owner"]}  # type: ignore[index]
WIDE = {"type": "object", "properties": {f"a_rather_long_name_{n}": {"type": "integer"} for n in range(200)}}


@pytest.mark.parametrize(
    ("schema", "shown"),
    [(FEW, "(owner: str, labels: list[str] = ..., **others: Any) -> dict[str, Any]:"), (WIDE, "(**arguments: Any)")],
    ids=["few", "wide"],
)
def test_sixty_tools_fit_and_each_is_there(schema: Any, shown: str) -> None:
    entry = {"description": "What it does. " * 99, "effect": "write", "schema": schema, "output_schema": RESULT}
    text = program.system([{"name": f"some_server__create_the_thing_{n}", **entry} for n in range(60)])
    assert len(text.encode()) <= MAX_PROGRAM_PROMPT_BYTES
    assert f"async def some_server__create_the_thing_59{shown}" in text
    assert ("# gives {number: integer, labels: [string]}" in text) is (schema is FEW)


def test_the_prompt_has_every_word_and_only_tools_that_a_script_can_call() -> None:
    text = program.system([{**CATALOGUE[0], "name": "read-it"}])
    assert [word for word in WORDS if f"{word}(" not in text] == []
    assert "There are no tools in this run." in text
    assert "Mont Blanc" not in text


@pytest.mark.parametrize("example", program.EXAMPLES, ids=lambda example: example[1][:20])
async def test_every_example_passes_its_check(example: Example) -> None:
    tools, _, script = example
    entries = {entry["name"]: entry for entry in CATALOGUE if entry["name"] in tools}
    assert script_in(script) == f"{script}\n"
    assert problems_in(script, entries) == []
    async with Interpreter() as interpreter:
        assert await interpreter.type_problems(script, stubs_of(entries.values())) == []
