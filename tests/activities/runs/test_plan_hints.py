"""What a planner is told of earlier runs: within its tokens, fenced, of its tenant, and of the schemas of today."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from doubles.planner_desk import GOAL, LINES, Desk

from sennit.activities.limits import MAX_HINT_TOKENS
from sennit.activities.prompts.hints import hints
from sennit.activities.providers.model import tokens_of
from sennit.activities.storage.learned import LearnedStore
from sennit.activities.toolbox import load_tools
from sennit.testing.models import model_server
from sennit.workflows.plan.learning.limits import MAX_GOAL_WORDS
from sennit.workflows.plan.learning.patterns import PairRow, PatternTable
from sennit.workflows.plan.learning.trajectory import NotedCall, PlanShape, Trajectory, keys_of

CATALOGUE = load_tools([]).catalogue()
KEYS = keys_of(CATALOGUE)
SHAPE = ('1. search(query="…")', "2. read(path=${1.items[0].path})", '3. answer("…", $2)')


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with model_server() as server:
        found = Desk(tmp_path, server)
        found.learned = LearnedStore(found.store)
        yield found


def called(name: str, began: int, uses: tuple[int, ...] = (), version: str = "") -> NotedCall:
    version = version or KEYS[name].partition("@")[2]
    return NotedCall(name=name, kind="tool", version=version, began=began, millis=5, uses=uses)


def run_of(name: str, words: tuple[str, ...], lines: tuple[str, ...] = SHAPE, version: str = "") -> Trajectory:
    calls = (called("search", 0, version=version), called("read", 5, (0,)), called("calculate", 10))
    tools = tuple(dict.fromkeys(call.key for call in calls))
    return Trajectory(
        run=name, status="done", ended=1, calls=calls, words=words, plan=PlanShape(lines=lines, tools=tools)
    )


async def known(desk: Desk, tenant: str = "", goal: str = GOAL, count: int = 6, version: str = "") -> None:
    """Note runs of a goal."""
    assert desk.learned is not None
    words = (await desk.learned.marks("default")).words(goal, MAX_GOAL_WORDS)
    for number in range(count):
        await desk.learned.note("default", tenant, run_of(f"r{number}", words, version=version))


async def prompt(desk: Desk, **fields: Any) -> str:
    desk.server.on("", LINES)
    await desk.ask(tools=("search", "read", "calculate"), **fields)
    return desk.server.asked[-1].text


async def test_a_planner_reads_plans_for_similar_goals_and_which_tools_used_what_others_gave(desk: Desk) -> None:
    await known(desk)
    text = await prompt(desk)
    (told,) = re.findall(r"<<<DATA (\w+) earlier_runs\n(.*)\nDATA \1>>>", text, re.DOTALL)
    assert told[1].startswith("Plan 1, of 6 earlier runs:\n" + "\n".join(SHAPE))
    assert "`read` used what `search` gave in 6 of 6 runs." in told[1]
    assert "`calculate` used nothing of what `search` gave in 6 runs: it need not wait." in told[1]
    assert "Nile" not in told[1]


async def test_it_is_told_of_its_own_tenant_alone(desk: Desk) -> None:
    await known(desk, tenant="acme")
    assert "earlier_runs" not in await prompt(desk)
    assert "earlier_runs" in await prompt(desk, tenant="acme")


async def test_a_goal_without_a_common_word_shows_no_plan(desk: Desk) -> None:
    await known(desk, goal="Translate everything!")
    text = await prompt(desk)
    assert "Plan 1" not in text
    assert "`read` used what `search` gave" in text


async def test_what_is_known_of_other_schemas_is_not_told(desk: Desk) -> None:
    await known(desk, version="abcabcabcabc")
    text = await prompt(desk)
    assert "Plan 1" not in text
    assert "`search`" not in text.partition("earlier_runs")[2]


async def test_nothing_is_told_where_nobody_wants_it(desk: Desk) -> None:
    await known(desk)
    desk.learned = None
    assert "earlier_runs" not in await prompt(desk)


async def test_a_repair_names_edges_that_were_of_no_use(desk: Desk) -> None:
    await known(desk)
    desk.server.on("", '1. search("a")\n2. calculate("1 + 1", needs=[$1])\n3. answer($1, $2)')
    first = await desk.ask(tools=("search", "read", "calculate"))
    await desk.ask(tools=("search", "read", "calculate"), problems=("line 1: no",), draft=first.draft, text=first.text)
    said = desk.server.asked[-1].turns[-1][1]
    assert "in 6 of 6 runs `calculate` used nothing of what `search` had returned" in said
    assert "- line 2 needs[0]: `n2` waits for `n1`" in said


def test_what_is_told_keeps_within_its_tokens() -> None:
    table = PatternTable()
    words = ("0" * 16,)
    for number in range(40):
        lines = tuple(f'{line}. search(query="…", k=…)  # {number} {"x" * 150}' for line in range(1, 30))
        table.fold(run_of(f"r{number}", words, lines))
    for first in KEYS.values():
        for second in KEYS.values():
            table.pairs[f"{first} -> {second}"] = PairRow(together=1_000, used=10)
    found = hints(table, CATALOGUE, words)
    assert found
    assert tokens_of(found) <= MAX_HINT_TOKENS
