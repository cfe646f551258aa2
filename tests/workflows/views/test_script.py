"""A script with what its lines have called: each call is counted once, where the script as it is now has made it."""

import pytest

from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.views import ScriptView
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling.session import Session
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import DELEGATED, FAILED, SUCCEEDED, WAITING
from sennit.workflows.views.script import script_view


def called(name: str, what: str, kind: str = "tool", inputs: tuple[int, ...] = ()) -> NodeSpec:
    site = what.partition(" ")[0] if ":" in what else ""
    summary = f"{name} {what}"
    return NodeSpec(name, kind, summary=summary, page="p", inputs=[*inputs], call_site=site)  # type: ignore[arg-type]


def graph_of(*programs: str) -> Graph:
    specs = [NodeSpec(name, "program", summary=f"{name} program", script="the script") for name in programs]
    return Graph(ExecutionPlan(specs or [NodeSpec("a", "tool")], [0]))


def view_of(state: RunState, replies: dict[int, NodeReply] | None = None) -> ScriptView:
    found = script_view(state, replies or {}, "")
    assert isinstance(found, ScriptView)
    return found


def test_calls_in_tasks_add_up_by_line_with_time_and_tokens() -> None:
    graph = graph_of("main")
    tasks = [called(f"m_{n}", f"look#{n}:9 {n}", "task") for n in (1, 2)]
    calls = [called(f"m_{task}_{n}", f"look#{task}/llm:4 a", "llm") for task in (1, 2) for n in (1, 2)]
    graph.append([*tasks, *calls], 0)
    graph.go_on_with([called("m_1_1_t1_1", "calculate 6"), called("m_1_1_t2", "worker a", "llm", (7,))], 3)
    state = RunState(graph)
    state.sessions[0] = Session(calls=dict.fromkeys(range(1, 7), 0))
    statuses = [DELEGATED, SUCCEEDED, FAILED, SUCCEEDED, SUCCEEDED, SUCCEEDED, WAITING, FAILED, SUCCEEDED]
    for unit, status in enumerate(statuses):
        state.units[unit].status = status
        state.units[unit].millis = 7
    state.taken_over = {4: True}
    usage = NodeReply(usage=Usage(10, 5, cost=2_000_000, calls=1))
    found = {line.line: line for line in view_of(state, {3: usage, 8: usage}).lines}
    assert sorted(found) == [4, 9]
    assert found[4].calls == {"succeeded": 3, "waiting": 1}
    assert (found[4].tasks, found[4].taken_over, found[4].duration_ms) == ({}, 1, 28)
    assert (found[4].usage.input_tokens, found[4].usage.calls, found[4].usage.cost_usd) == (20, 2, 4.0)
    assert (found[9].calls, found[9].tasks, found[9].duration_ms) == ({}, {"handled": 1, "succeeded": 1}, 0)


def test_what_only_an_earlier_script_has_called_is_not_in_it() -> None:
    graph = graph_of("main")
    graph.append([called("m_1", "search:2 a"), called("m_2", "search:3 b"), called("m_3", "look#1:3 a", "task")], 0)
    graph.show_as(1, called("m_g_1", "search:5 a"))
    state = RunState(graph)
    state.sessions[0] = Session(calls={1: 0}, left={2: None, 3: None})
    lines = view_of(state).lines
    assert [(line.line, line.calls, line.tasks) for line in lines] == [(5, {"pending": 1}, {})]


def test_a_call_of_a_module_stands_beside_its_line_in_the_text_that_is_shown() -> None:
    script = "from pack import a\n# ==== main: prog.py ====\n# ==== file: pack/a.py ====\nx = 1\nread()\n"
    graph = Graph(ExecutionPlan([NodeSpec("main", "program", summary="main program", script=script)], [0]))
    graph.append([called("m_1", "pack.a.look#1/read:pack.a.py:2 a")], 0)
    state = RunState(graph)
    state.sessions[0] = Session(calls={1: 0})
    view = view_of(state)
    [line] = view.lines
    assert view.script.splitlines()[line.line - 1] == "read()"
    alone = "x = 1\n# ==== main: prog.py ====\n"
    graph = Graph(ExecutionPlan([NodeSpec("main", "program", summary="main program", script=alone)], [0]))
    assert view_of(RunState(graph)).script == "x = 1\n"


@pytest.mark.parametrize(
    ("programs", "name", "problem"),
    [
        ((), "", "the run has no program; its nodes come from a plan"),
        (("one", "two"), "", "the run has several programs: one, two; name one"),
        (("one", "two"), "three", "`three` is not a program; the programs are one, two"),
    ],
)
def test_without_a_program_to_show_it_says_why(programs: tuple[str, ...], name: str, problem: str) -> None:
    state = RunState(graph_of(*programs))
    assert script_view(state, {}, name) == problem
    if programs:
        assert getattr(script_view(state, {}, "two"), "node", "") == "two"
        state.graph.specs[1].script = ""
        assert script_view(state, {}, "two") == "the script of `two` is too long to be shown"
