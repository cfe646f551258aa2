"""Plans are valid, as wide as they can be, and skip arithmetic whose figures are missing."""

from typing import Any

import pytest

from activities.providers.offline.extract import Wanted
from activities.providers.offline.plans import instruction, plan_of, read_order
from activities.providers.offline.questions import questions
from activities.toolbox import load_tools
from workflows.plan.checking.validation import problems_of
from workflows.plan.language.nodes import Plan

GOALS = [
    "How long is the Oder?",
    "How long is the $5 Bridge, or ${x}?",
    "Who designed the Palace?",
    "When was the Palace completed and how tall is it?",
    "Which is longer, the Oder or the Warta, and by how much?",
    "Which of A, B, C and D is the longest, and how much longer is it than the shortest?",
    "Which of A, B, C and D is the shortest, and how much shorter is it than the next?",
    "How much longer is A than B?",
    "What is the combined length of 1st, 2nd and Łódź?",
    "How many times longer is A than B?",
    "What is the population of Goal, Input, Answer and Findings together?",
    "List the lengths of A, a and B.",
    "What is the longest river?",
    "Which river is the longest? Which city is the oldest? List the lengths of the rivers.",
    "How far is Ceres from the Sun, and how many moons does Ceres have?",
]


def plan(goal: str) -> dict[str, Any]:
    return plan_of(goal, questions(goal))


def nodes(goal: str) -> dict[str, dict[str, Any]]:
    return {node["id"]: node for node in plan(goal)["nodes"]}


@pytest.mark.parametrize("goal", GOALS)
def test_every_plan_is_valid_with_the_tools_there_are(goal: str) -> None:
    assert problems_of(Plan.model_validate(plan(goal)), load_tools().catalogue()) == []


@pytest.mark.parametrize("goal", GOALS)
def test_every_prompt_is_read_back_as_it_was_meant(goal: str) -> None:
    asked = questions(goal)
    for node in plan_of(goal, asked)["nodes"]:
        call = node.get("do", node)
        if call["kind"] != "llm" or call["role"] != "worker":
            continue
        order = read_order(instruction(call["prompt"].replace("$doc.title", "Doc")))
        assert isinstance(order, Wanted)
        wanted = [(question.attribute, subject) for question in asked for subject in question.subjects or ("Doc",)]
        assert (order.attribute, order.subject) in wanted


def test_searches_wait_for_nothing_and_look_ups_only_for_their_own() -> None:
    found = nodes("How much longer is A than B?")
    assert [name for name, node in found.items() if node.get("tool") == "search"] == ["a", "b"]
    assert all("$" not in str(found[name]) for name in "ab")
    assert found["a_length"]["prompt"] == "Find the length of A in the passages, in km.\n\n$a"
    assert found["difference"]["args"] == {"expression": "${a_length.value} - ${b_length.value}"}
    assert found["answer"]["inputs"] == ["a_length", "b_length", "difference"]


def test_arithmetic_runs_only_when_every_figure_was_found() -> None:
    found = nodes("How many times longer is A than B?")["ratio"]
    assert found["when"] == {
        "and": [
            {"ref": "$a_length.found", "op": "eq", "value": True},
            {"ref": "$b_length.found", "op": "eq", "value": True},
            {"ref": "$b_length.value", "op": "ne", "value": 0},
        ]
    }


def test_the_lead_over_the_next_needs_no_knowledge_of_the_winner() -> None:
    expression = nodes("Which of A, B and C is the longest, and by how much?")["lead"]["args"]["expression"]
    for name, value in {"a": 3, "b": 10, "c": 7}.items():
        expression = expression.replace(f"${{{name}_length.value}}", str(value))
    assert expression == "abs(max(3, 10, 7) - max(min(3, 10), min(3, 7), min(10, 7)))"


def test_one_thing_is_looked_up_once() -> None:
    found = nodes("How long is the Oder? Which is longer, the Oder or the Warta?")
    assert [name for name in found if name.startswith("oder")] == ["oder", "oder_length"]


def test_a_kind_is_the_folder_with_its_name() -> None:
    found = nodes("What is the highest city?")
    assert found["city_files"]["args"] == {"glob": "**/[cC]it*/**", "max_items": 200}
    assert found["answer"]["inputs"] == ["city_files", "city_height"]
