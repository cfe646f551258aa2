"""A planner over real HTTP: its text becomes a draft, its problems come by line, its nodes while it writes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from doubles.planner_desk import GOAL, HOME, LINES, Desk, Nodes

from sennit.activities.limits import MAX_PLANNED_NODES
from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.activities.storage.run_context import plan_marker
from sennit.testing.model_rules import Reply
from sennit.testing.models import model_server

DEAR = "async def main():\n    return await llm('a', model='openai:big')\n"


async def test_lines_become_a_draft_in_the_plan_language(desk: Desk) -> None:
    desk.server.on("", f"Thought: two searches.\n{LINES}")
    planned = await desk.ask()
    plan = await desk.plan(planned)
    assert [node["id"] for node in plan["nodes"]] == ["n1", "n2", "n3"]
    assert plan["nodes"][1]["args"] == {"query": "Amazon length", "k": 5}
    assert (plan["answer"], planned.problems, planned.warnings) == ("$n3", (), ())
    assert planned.usage[1] > 0
    assert (await desk.library.value(HOME, planned.text)).startswith("Thought")


async def test_people_see_the_lines_as_they_come_and_how_fast(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sennit.activities.providers.reply_builder.PACE_AFTER", 0.2)
    monkeypatch.setattr("sennit.activities.providers.reply_builder.PROGRESS_SECONDS", 0.0)
    desk.server.on("", Reply(f"Thought: two searches.\n{LINES}", rate=24))
    seen: list[str] = []

    async def see(_: Nodes) -> None:
        seen.append(desk.attempts.status)

    await desk.ask(on_nodes=see)
    assert re.fullmatch(r'1\. search\("Nile length"\) · about \d+ tokens so far(, \d+ a second)?', seen[0])
    assert re.fullmatch(r"3\. answer\(\$1, \$2\) · about \d+ tokens so far, \d+ a second", desk.attempts.status)


async def test_the_planner_gets_the_allowed_tools_and_the_goal(desk: Desk) -> None:
    desk.server.on("", LINES)
    await desk.ask()
    asked = desk.server.asked[0]
    assert "search(query: string, k: integer = 3)" in asked.system
    assert "http_get(url" not in asked.system
    assert GOAL in asked.turns[-1][1]
    assert asked.tools == ()


async def test_a_planner_is_told_what_was_wrong_with_a_reply_that_was_none(desk: Desk) -> None:
    desk.server.on("", LINES)
    desk.fault = "it asks for the tool 'search', and none was offered"
    await desk.ask()
    assert desk.fault in desk.server.asked[0].turns[-1][1].partition("could not be used:")[2]


async def test_a_plan_in_json_is_a_draft_too(desk: Desk) -> None:
    plan = {"nodes": [{"id": "a", "kind": "llm", "prompt": "$goal"}]}
    desk.server.on("", f"```json\n{json.dumps(plan)}\n```")
    assert await desk.plan(await desk.ask()) == plan


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("I would first look up the Nile.", "the reply holds no plan"),
        (
            '1. http_get("https://example.org")\n2. answer($1)',
            "line 1: there is no tool `http_get`; known: read, search",
        ),
        ('1. llm("a", model="openai:dear")', "`openai:dear` is no model of this run (openai:test-model); leave"),
        (
            '{"nodes": [{"id": "a", "kind": "map", "do": {"model": "x"}}]}',
            "nodes[0].model: `x` is no model of this run (openai:test-model)",
        ),
        (
            '{"nodes": [{"id": "a", "kind": "map", "do": [{"id": "b"}, {"model": "x"}]}]}',
            "nodes[0].do[1].model: `x` is no model of this run (openai:test-model)",
        ),
        (
            json.dumps({"nodes": [{"id": "a", "kind": "program", "script": DEAR}]}),
            "nodes[0].script, line 2: `llm` may ask openai:test-model alone",
        ),
        (
            json.dumps({"nodes": [{"id": "a", "kind": "map", "do": {"kind": "program", "script": DEAR}}]}),
            "nodes[0].script, line 2: `llm` may ask openai:test-model alone",
        ),
        ('1. search("a"\n2. answer($1)', "line 1: `)` is missing at its end"),
        (
            '1. search("a")\nThen call read("b").\n2. answer($1)',
            "looks like a call of read; write it as a line, 2. read(",
        ),
        ('1. search("$2")\n2. search("$1")\n3. answer()', "line 1: it refers to $2, and no line 2 stands above it"),
        (
            "".join(f'{line}. search("a {line}")\n' for line in range(1, 501)) + "501. answer()",
            f"the plan has 501 nodes; at most {MAX_PLANNED_NODES} are planned for one goal",
        ),
        (Reply(text='1. search("a")\n2. answer($1)', stop="length"), "the plan was cut off because it is too long"),
    ],
)
async def test_a_text_that_is_no_plan_is_a_problem_that_says_why(desk: Desk, reply: Any, problem: str) -> None:
    desk.server.on("", reply)
    planned = await desk.ask()
    assert problem in planned.problems[0]
    assert planned.text


async def test_many_errors_are_counted_and_not_all_listed(desk: Desk) -> None:
    desk.server.on("", "".join(f"{line}. rm(x)\n" for line in range(50)))
    planned = await desk.ask()
    assert len(planned.problems) == 21
    assert planned.problems[-1] == "... and 30 more"


async def test_problems_go_back_with_the_plan_by_line(desk: Desk) -> None:
    desk.server.on("cannot run", LINES, times=1)
    desk.server.on("", '1. search("a", 99)\n2. answer($1)')
    first = await desk.ask()
    again = await desk.ask(draft=first.draft, text=first.text, problems=("nodes[0].args.k: search: is 99; at most 20",))
    turns = desk.server.asked[-1].turns
    assert [role for role, _ in turns] == ["user", "assistant", "user"]
    assert turns[1][1] == '1. search("a", 99)\n2. answer($1)'
    assert "- line 1 args.k: search: is 99; at most 20" in turns[2][1]
    assert len((await desk.plan(again))["nodes"]) == 3


async def test_thoughts_are_no_part_of_the_plan_nor_of_what_is_asked_again(desk: Desk) -> None:
    desk.server.on("", f"<think>\n1. read('draft')\n</think>\n{LINES}")
    batches: list[Nodes] = []

    async def on_nodes(nodes: Nodes) -> None:
        batches.append(nodes)

    planned = await desk.ask(on_nodes=on_nodes)
    assert [node["tool"] for batch in batches for node in batch if "tool" in node] == ["search", "search"]
    assert (planned.problems, planned.warnings) == ((), ())
    assert str(await desk.library.value(HOME, planned.text)).strip() == LINES.strip()


async def test_a_thought_that_shows_only_at_its_end_streams_nothing_more(desk: Desk) -> None:
    desk.server.on("", f"1. read('draft')\n</think>\n{LINES}")
    streamed: Nodes = []

    async def on_nodes(nodes: Nodes) -> None:
        streamed.extend(nodes)

    plan = await desk.plan(await desk.ask(on_nodes=on_nodes))
    assert [node["args"] for node in streamed] in ([], [{"path": "draft"}])
    assert [node["tool"] for node in plan["nodes"][:2]] == ["search", "search"]


async def test_nodes_come_while_the_planner_writes(desk: Desk) -> None:
    """The server writes the last line only a second after the first ones; by then those are known."""
    desk.server.on("", Reply(text=LINES + "4. " + "x " * 40, rate=40, cut=7))
    batches: list[tuple[bool, Nodes]] = []

    async def on_nodes(nodes: Nodes) -> None:
        batches.append((bool(desk.server.busy), nodes))

    await desk.ask(on_nodes=on_nodes)
    assert [node["id"] for _, nodes in batches for node in nodes] == ["n1", "n2", "n3"]
    assert len(batches) > 1
    assert batches[0][0], "the server is still writing"


async def test_nodes_that_cannot_start_early_are_named_in_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.server.on("", LINES)

    async def on_nodes(_: Nodes) -> None:
        raise StoreUnavailable("the disk is full")

    plan = await desk.plan(await desk.ask(on_nodes=on_nodes))
    assert [node["tool"] for node in plan["nodes"][:2]] == ["search", "search"], "the draft comes whole all the same"
    assert "no further nodes start while the planner writes" in caplog.text
    assert "StoreUnavailable: the disk is full" in caplog.text


in_program = pytest.mark.parametrize("desk", ["program"], indirect=True)
SCRIPT = """\
async def main(goal: str):
    found = await parallel([task(search, query=f"{name} length") for name in ["Nile", "Amazon"]])
    return await llm("Which is longer?", goal, found)
"""


@in_program
async def test_a_planner_may_write_a_program_of_which_nothing_runs_before_it_is_whole(desk: Desk) -> None:
    fenced = f"```python\n{SCRIPT}```"
    desk.server.on("", Reply(f"<think>\n1. search('a')\n</think>\n{fenced}", rate=200))

    async def on_nodes(nodes: Nodes) -> None:
        raise AssertionError(nodes)

    planned = await desk.ask(on_nodes=on_nodes)
    assert (planned.problems, planned.warnings) == ((), ())
    [node] = (await desk.plan(planned))["nodes"]
    assert (node["kind"], node["script"], node["arguments"]) == ("program", SCRIPT, {"goal": "$goal"})
    assert str(await desk.library.value(HOME, planned.text)).strip() == fenced
    asked = desk.server.asked[0]
    assert "async def search(query: str, k: int = 3)" in asked.system
    assert "http_get" not in asked.system
    assert "numbered lines" not in asked.system
    assert GOAL in asked.turns[-1][1]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply(SCRIPT, stop="length"), "the script was cut off because it is too long; write a shorter one"),
        (f"```python\n{SCRIPT}", "the code fence is never closed; write the whole script again, and close it"),
        ("I would first look up the Nile.", "the reply holds no script"),
        (
            SCRIPT.replace("goal, found)", 'found, model="openai:dear")'),
            "line 3: `llm` may ask openai:test-model alone",
        ),
    ],
    ids=["too long", "cut", "prose", "model"],
)
@in_program
async def test_a_reply_that_is_no_whole_program_says_why(desk: Desk, reply: Any, problem: str) -> None:
    desk.server.on("", reply)
    planned = await desk.ask()
    assert planned.problems[0].startswith(problem)
    assert planned.text


@in_program
async def test_what_the_goal_of_a_sub_agent_names_is_in_the_goal_of_main(desk: Desk) -> None:
    desk.server.on("", SCRIPT)
    material = await desk.store.put(HOME, json.dumps({"rivers": "the Nile costs $5"}).encode())
    planned = await desk.ask(goal="Sum up [rivers].", material=material)
    [node] = (await desk.plan(planned))["nodes"]
    assert node["arguments"] == {"goal": "Sum up the Nile costs $$5."}
    assert "`main` gets the goal with the" in desk.server.asked[0].turns[-1][1]


async def test_nothing_is_streamed_after_a_line_that_is_wrong_or_beyond_the_bound(desk: Desk) -> None:
    got: Nodes = []

    async def on_nodes(nodes: Nodes) -> None:
        got.extend(nodes)

    desk.server.on("", '1. search("a")\n2. rm("b")\n3. search("c")\n4. answer()\n' + "x " * 9, times=1)
    await desk.ask(on_nodes=on_nodes)
    assert [node["id"] for node in got] == ["n1"]
    got.clear()
    desk.server.on("", Reply(text="".join(f'{line}. search("a")\n' for line in range(99)) + "x " * 9, rate=2_000))
    await desk.ask(on_nodes=on_nodes)
    assert len(got) == MAX_PLANNED_NODES


async def test_a_listener_that_fails_costs_no_plan(desk: Desk) -> None:
    async def on_nodes(_: Nodes) -> None:
        raise RuntimeError("no such run")

    desk.server.on("", LINES)
    assert (await desk.ask(on_nodes=on_nodes)).problems == ()


async def test_the_rules_plan_from_the_goal_alone(tmp_path: Path) -> None:
    async with model_server() as server:
        desk = Desk(tmp_path, server, "offline")
        planned = await desk.ask(tools=("search", "calculate"))
        assert (planned.text, planned.problems) == ("", ())
        assert (await desk.plan(planned))["goal"] == GOAL
        assert server.asked == []


@pytest.mark.parametrize(("marked", "asked"), [(False, 2), (True, 1)], ids=["unchecked", "checked"])
async def test_a_reply_whose_draft_has_passed_its_check_is_found_again(desk: Desk, marked: bool, asked: int) -> None:
    desk.server.on("", LINES)
    first = await desk.ask()
    if marked:
        await desk.store.mark(HOME, plan_marker(desk.run_context), first.draft.encode())
    assert await desk.ask() == first
    assert len(desk.server.asked) == asked
