"""docs/replies.md says what becomes of each form of a planner's script."""

import random

import pytest
from doubles.reply_forms import damaged, rows

from sennit.workflows.plan.programs.reply import UnreadableProgram, planned_problems, program_plan_of, script_in
from sennit.workflows.plan.programs.syntax import problems_in

ROWS = rows("Planners that write programs")
GOOD = "async def main(goal: str):\n    return await llm('Sum up.', goal, model='openai:cheap', role='judge')\n"


def read(reply: str) -> tuple[str, list[str]]:
    try:
        script = script_in(reply)
    except UnreadableProgram as error:
        return "", [str(error)]
    found = problems_in(script, {"search": {}, "read": {}})
    return script, [*planned_problems(script, {"openai:cheap"}), *map(str, found)]


@pytest.mark.parametrize(("reply", "result", "expected"), ROWS)
def test_a_reply_is_read_as_the_page_says(reply: str, result: str, expected: str) -> None:
    script, problems = read(reply)
    if result == "refused":
        assert any(expected in problem for problem in problems), problems
    else:
        assert (script, problems) == (f"{expected}\n", [])


def test_the_page_holds_all_forms() -> None:
    assert len(ROWS) == 23


def test_a_damaged_reply_is_read_or_refused() -> None:
    chance = random.Random(7)
    for _ in range(500):
        script, problems = read(damaged(chance, [reply for reply, *_ in ROWS]))
        assert problems or "async def main" in script


def test_main_gets_the_goal_if_it_asks_for_it() -> None:
    assert read(GOOD) == (GOOD, [])
    node = {"id": "main", "kind": "program", "script": GOOD, "arguments": {"goal": "$goal"}}
    assert program_plan_of(GOOD) == {"nodes": [node], "answer": "$main"}
    assert program_plan_of("async def main(): pass")["nodes"][0]["arguments"] == {}
