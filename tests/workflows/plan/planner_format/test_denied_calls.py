"""Around a call stand words, strikes, comments and thoughts: it never runs, and no call of the plan is lost."""

import json
import random
from itertools import pairwise
from typing import Any

from doubles.denied_calls import ROWS, THOUGHTS, UNOPENED, WORDS, denied
from doubles.plan.samples import CATALOGUE
from doubles.reply_forms import DAMAGED

from sennit.workflows.plan.planner_format.lines import LineReader

TOOLS = {entry["name"]: entry["schema"] for entry in CATALOGUE}
MARK = "never this"
CALLS = [f'search("{MARK}")', f'read(path="{MARK}")', f"search('{MARK}', k=3)", f'anything(a=["{MARK}"])',
         f'functions.read("{MARK}")', f'llm("{MARK}")', f'map(["{MARK}"], read($item))']  # fmt: skip
IN_JSON = [{"name": "search", "arguments": {"query": MARK}}, {"tool": "read", "args": {"path": MARK}}]
STYLES = ["{n}. {call}", "{n}) {call}", "Step {n}: {call}", "**{n}.** {call}", "{call}", "n{n} = {call}"]


def a_plan(chance: random.Random) -> list[str]:
    """Return the lines of a plan of two to four reads and an answer."""
    style, count = chance.choice(STYLES), chance.randrange(2, 5)
    calls = [chance.choice(['search("a{}")', 'read("a{}")', 'llm("a{}")']).format(n) for n in range(count)]
    return [style.format(n=n, call=call) for n, call in enumerate([*calls, "answer()"], 1)]


def read(text: str, cuts: list[int]) -> tuple[list[Any], Any, list[str]]:
    """Return the nodes as they came, the plan and its errors."""
    reader, found = LineReader(TOOLS), list[Any]()
    for start, end in pairwise((0, *cuts, len(text))):
        found += reader.feed(text[start:end])
    found += reader.close()
    return found, reader.plan, reader.errors


def inserted(chance: random.Random, forms: list[str], first: int) -> tuple[str, list[str]]:
    """Return a plan with a call that is none in it, behind at least `first` of its lines, and the plan's own texts."""
    rows = a_plan(chance)
    place = chance.randrange(first, len(rows))
    written = denied(chance, place + 1, chance.choice(CALLS), json.dumps(chance.choice(IN_JSON)), forms)
    own = [f"a{n}" for n in range(len(rows) - 1)]
    return "\n".join([*rows[:place], written, *rows[place:]]), own


def test_what_is_said_around_a_call_never_makes_it_run() -> None:
    chance = random.Random(3)
    for _ in range(DAMAGED):
        thought = chance.random() < 0.3
        forms = THOUGHTS if thought else chance.choice([WORDS, ROWS])
        text, own = inserted(chance, forms, first=0 if thought else 1)
        cuts = sorted(chance.randrange(len(text) + 1) for _ in range(chance.randrange(4)))
        begun, plan, errors = read(text, cuts)
        assert MARK not in json.dumps(begun), text
        assert errors or MARK not in json.dumps(plan), text
        assert errors or [word for word in own if word not in json.dumps(plan)] == [], text
        assert not (thought and errors) or "So. " in text, (text, errors)


def test_a_thought_whose_beginning_nobody_wrote_is_none_of_the_plan() -> None:
    chance = random.Random(4)
    for _ in range(DAMAGED // 10):
        rows = a_plan(chance)
        written = denied(chance, 1, chance.choice(CALLS), json.dumps(chance.choice(IN_JSON)), UNOPENED)
        _, plan, errors = read("\n".join([written, *rows]), [])
        assert errors == [], written
        assert MARK not in json.dumps(plan)
        assert len(plan["nodes"]) == len(rows)
