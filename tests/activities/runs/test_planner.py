"""A planner over real HTTP: its text becomes a draft, its problems come by line, its nodes while it writes."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.model_rules import Reply
from doubles.models import ModelServer, model_server

from activities.llm.models import Models
from activities.nodes.attempts import Attempts
from activities.prompts.planner import MOST_NODES
from activities.providers.errors import CallRefused
from activities.providers.settings import ModelSettings, PlanFormat, Server
from activities.runs.planner import Planner
from activities.storage.directory import DirectoryStore
from activities.storage.run_context import ArtifactReader, RunContext, plan_marker
from activities.toolbox import load_tools
from workflows.messages.contracts import PlanCall, PlanResult

HOME = "default/run"
GOAL = "Which is longer, the Nile or the Amazon?"
LINES = '1. search("Nile length")\n2. search("Amazon length", 5)\n3. answer($1, $2)\n'

Nodes = list[dict[str, Any]]


class Desk:
    """A planner before a model server, and what was asked of it."""

    def __init__(
        self, place: Path, server: ModelServer, planner: str = "openai:test-model", plan_format: PlanFormat = "auto"
    ) -> None:
        self.server = server
        self.store = DirectoryStore(place)
        self.library = ArtifactReader(self.store)
        servers = {"openai": Server("openai", server.openai_url)}
        self.models = Models.of(ModelSettings(servers=servers, plan_format=plan_format))
        self._planner = planner
        self.run_context = ""
        self.fault = ""

    async def ask(
        self,
        *,
        tools: tuple[str, ...] = ("search", "read"),
        on_nodes: Callable[[Nodes], Awaitable[None]] | None = None,
        goal: str = GOAL,
        given: str = "",
        **fields: Any,
    ) -> PlanResult:
        catalogue = [entry for entry in load_tools([]).catalogue() if entry["name"] in tools]
        models = {"planner": [self._planner]}
        run_context = RunContext(
            goal=goal, inputs={}, docs=None, approval="writes", catalogue=catalogue, models=models, given=given
        )
        self.run_context = await self.library.keep(HOME, run_context)
        call = PlanCall(run="run", run_context=self.run_context, **fields)
        planning = Planner(self.store, self.library, self.models)
        self.attempts = Attempts(1, 0, fault=self.fault)
        return await planning.plan(HOME, call, self.attempts, on_nodes)

    async def plan(self, planned: PlanResult) -> Any:
        return await self.library.value(HOME, planned.draft)


@pytest.fixture
async def desk(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Desk]:
    """A planner; the parameter is the format it is held to."""
    async with model_server() as server:
        found = Desk(tmp_path, server, plan_format=getattr(request, "param", "auto"))
        yield found
        await found.models.close()


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
    monkeypatch.setattr("activities.providers.reply_builder.PACE_AFTER", 0.2)
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
        ('1. search("a"\n2. answer($1)', "line 1: `)` is missing at its end"),
        (
            '1. search("a")\nThen call read("b").\n2. answer($1)',
            "looks like a call of read; write it as a line, 3. read(",
        ),
        ('1. search("$2")\n2. search("$1")\n3. answer()', "line 1: a cycle: line 1 needs line 2 needs line 1"),
        (
            "".join(f'{line}. search("a {line}")\n' for line in range(1, 501)) + "501. answer()",
            f"the plan has 501 nodes; at most {MOST_NODES} are planned for one goal",
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


in_json = pytest.mark.parametrize("desk", ["json"], indirect=True)
in_program = pytest.mark.parametrize("desk", ["program"], indirect=True)
IN_JSON = json.dumps(
    {
        "calls": [
            {"n": 1, "tool": "search", "arguments": {"query": "Nile length"}},
            {"n": 2, "tool": "search", "arguments": {"query": "Amazon length", "k": 5}},
        ],
        "answer": {"text": "Which", "results": ["$1", "$2"]},
    }
)


@in_json
async def test_a_planner_may_be_held_to_json_whose_calls_begin_as_they_come(desk: Desk) -> None:
    desk.server.on("", Reply(text=IN_JSON + " " * 3 + "\n" * 40, rate=60, characters=4))
    batches: list[tuple[bool, Nodes]] = []

    async def on_nodes(nodes: Nodes) -> None:
        batches.append((bool(desk.server.busy), nodes))

    planned = await desk.ask(on_nodes=on_nodes)
    asked = desk.server.asked[0]
    assert asked.schema is not None
    assert "Write a plan as one JSON object" in asked.system
    assert "numbered lines" not in asked.system
    assert (planned.problems, planned.warnings) == ((), ())
    assert [node["id"] for _, nodes in batches for node in nodes] == ["n1", "n2"]
    assert batches[0][0], "the server is still writing"
    assert desk.attempts.status.startswith('{"n": 2, "tool": "search"')
    assert [node["id"] for node in (await desk.plan(planned))["nodes"]] == ["n1", "n2", "n3"]


@in_json
@pytest.mark.parametrize("cut", [100, 150, -1])
async def test_json_that_was_cut_is_no_plan(desk: Desk, cut: int) -> None:
    desk.server.on("", IN_JSON[:cut], Reply(text=IN_JSON[:cut], stop="length"))
    assert "the reply is no plan: the JSON breaks" in (await desk.ask()).problems[0]
    assert "the plan was cut off" in (await desk.ask()).problems[0]


@in_json
async def test_a_server_that_takes_no_schema_cannot_hold_to_json(desk: Desk) -> None:
    desk.server.refuse["response_format"] = "response_format json_schema is not supported"
    for _ in range(2):
        with pytest.raises(CallRefused, match=r"test-model takes no schema .* set SENNIT_PLAN_FORMAT to auto or lines"):
            await desk.ask()
    assert len(desk.server.asked) == 1


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
    planned = await desk.ask(goal="Sum up [rivers].", given=material)
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
    assert len(got) == MOST_NODES


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
