"""Plans are valid, as wide as they can be, and skip arithmetic whose figures are missing."""

from typing import Any

import pytest

from activities.providers.offline.plans import instruction, plan_of, read_order
from activities.providers.offline.questions import question
from activities.toolbox import load_tools
from workflows.plan.checking.validation import problems_of
from workflows.plan.language.nodes import Plan

GOALS = [
    "How long is the Oder?",
    "How long is the $5 Bridge, or ${x}?",
    "Who designed the Palace?",
    "When was the Palace completed?",
    "Which is longer, the Oder or the Warta, and by how much?",
    "Which of A, B, C and D is the longest, and how much longer is it than the shortest?",
    "How much longer is A than B?",
    "What is the combined length of 1st, 2nd and Łódź?",
    "What is the combined population of Goal, Input, Answer and Sum?",
    "How long are A, A length, a-length and A_?",
    "What is the longest river?",
    "Write a poem for $5.",
]


def nodes(goal: str) -> dict[str, dict[str, Any]]:
    return {node["id"]: node for node in plan_of(goal, question(goal))["nodes"]}


@pytest.mark.parametrize("goal", GOALS)
def test_every_plan_is_valid_and_its_prompts_are_read_back_as_they_were_meant(goal: str) -> None:
    asked = question(goal)
    plan = plan_of(goal, asked)
    assert problems_of(Plan.model_validate(plan), load_tools().catalogue()) == []
    orders = [read_order(instruction(node["prompt"])) for node in plan["nodes"] if node.get("role") == "worker"]
    meant = (
        [(asked.attribute, name, asked.unit or asked.attribute.unit or "") for name in asked.subjects] if asked else []
    )
    assert orders == meant


def test_look_ups_stand_side_by_side_and_arithmetic_needs_all_of_them() -> None:
    found = nodes("How much longer is A than B?")
    assert list(found) == ["a", "a_length", "b", "b_length", "difference", "answer"]
    assert found["a_length"]["prompt"] == "Find the length of A in the passages, in km.\n\n$a"
    assert found["difference"]["args"] == {"expression": "${a_length.value} - ${b_length.value}"}
    assert [test["ref"] for test in found["difference"]["when"]["and"]] == ["$a_length.found", "$b_length.found"]
    assert found["answer"]["inputs"] == ["a_length", "b_length", "difference"]


@pytest.mark.parametrize(
    ("template", "said"),
    [("Say ${a.b} now", "Say"), ("For $$5: $a", "For $5:"), ("$a", ""), ("No reference. ", "No reference.")],
)
def test_an_instruction_is_what_stands_before_the_first_reference(template: str, said: str) -> None:
    assert instruction(template) == said
