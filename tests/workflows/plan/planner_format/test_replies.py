"""docs/replies.md says what becomes of each form of a planner's reply; nothing of any is lost, even when damaged."""

import json
import random
import re
from itertools import pairwise
from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE
from doubles.reply_forms import DAMAGED, damaged, rows

from sennit.workflows.plan.checking.validation import problems_of
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.problems import InvalidPlan
from sennit.workflows.plan.planner_format.lines import LineReader

TOOLS = {entry["name"]: entry["schema"] for entry in CATALOGUE}


def read(text: str, cuts: tuple[int, ...] = ()) -> tuple[Any, list[str]]:
    reader = LineReader(TOOLS)
    for start, end in pairwise((0, *cuts, len(text))):
        reader.feed(text[start:end])
    reader.close()
    return reader.plan, reader.errors


ROWS = rows("Planners")


@pytest.mark.parametrize(("reply", "result", "expected"), ROWS)
def test_a_reply_is_read_as_the_page_says(reply: str, result: str, expected: str) -> None:
    plan, errors = read(reply)
    if result == "refused":
        assert any(expected in error for error in errors), errors
    else:
        assert errors == []
        assert unescaped(plan) == unescaped(read(expected)[0])


def unescaped(plan: Any) -> str:
    """Return a plan with amounts in one form: `$$5` and `$5` are the same text."""
    return json.dumps(plan).replace("$$", "$")


def test_the_page_holds_all_forms() -> None:
    assert len(ROWS) > 90


HEAD = re.compile(r"(?<!\w)(search|read|calculate)\s*\(\s*[\"'](\w+)")
THOUGHT = (
    "<(?:thoughts?|thought_?process|reasoning|reflection|scratchpad|analysis|planning|reason|rationale|cot|"
    r"chain_of_thought|inner_?monologue|deliberation)\b"
)
SKIPPED = re.compile(f"\"\"\"|'''|think|{THOUGHT}|channel|\\\\", re.IGNORECASE)
"""What lets a text hold a call without meaning it: longer quotes, thoughts, escapes."""
GOOD = [reply for reply, result, _ in ROWS if result != "refused"]


def texts_of(plan: Any) -> set[tuple[str, str]]:
    """Return each text among the arguments of all nodes, and their names, with the tool."""
    nodes = [node.get("do", node) for node in plan["nodes"]]
    pairs = ((str(node.get("tool")), pair) for node in nodes for pair in node.get("args", {}).items())
    return {(tool, str(item)) for tool, pair in pairs for item in pair}


def refusals(plan: Any) -> list[Any]:
    """Return what the validator refuses; that it does not fail is what matters."""
    try:
        return problems_of(parse_plan(plan), CATALOGUE)
    except InvalidPlan as error:
        return list(error.problems)


def test_no_call_of_a_damaged_reply_is_lost() -> None:
    """Whatever stands as `tool("word` in a reply without errors is a node; errors do not depend on how it came."""
    chance = random.Random(7)
    for count in range(DAMAGED):
        text = damaged(chance, GOOD)
        plan, errors = read(text)
        if count % 4 == 0:
            cuts = sorted(chance.randrange(len(text) + 1) for _ in range(3))
            assert read(text, tuple(cuts)) == (plan, errors), text
            assert errors or refusals(plan) is not None
        if not errors and not SKIPPED.search(text) and "kind" not in text:
            texts = texts_of(plan)
            for tool, word in HEAD.findall(text):
                assert any(name == tool and found.startswith(word) for name, found in texts), text
