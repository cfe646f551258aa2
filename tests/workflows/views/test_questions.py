"""What a run of a program shows of failures: those that a script has caught, its own errors, the items of a map."""

from typing import Any

from doubles.plan.pages import advanced
from doubles.plan.play import Play, each, node

from sennit.starter.terminal.script import script_text
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.events import InputsRead, NodeEnded, Outcome, ProgramEdited, RunStarted
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.views.board import board
from sennit.workflows.views.questions import blocked_on
from sennit.workflows.views.report import report_lines
from sennit.workflows.views.script import script_view
from sennit.workflows.views.shown_run import ShownRun

SCRIPT = "async def main():\n    return 1 / 0\n"
BROKEN = Outcome(error=("Boom", "it broke"))
OWN_ERROR = Outcome(error=("ProgramFailed", "ZeroDivisionError: division by zero (line 2: return 1 / 0)"))


def begun(*others: NodeSpec) -> RunState:
    main = NodeSpec("main", "program", script=SCRIPT, summary="main program")
    state = RunState(Graph(ExecutionPlan([main, *others], [0], direct=True)))
    step(state, RunStarted())
    return state


def added(state: RunState, *specs: NodeSpec, page: str = "p") -> None:
    for spec in specs:
        spec.page = page
    step(state, InputsRead(0))
    step(state, advanced(state, *specs))


def called(name: str, kind: Any = "tool", **fields: Any) -> NodeSpec:
    return NodeSpec(name, kind, summary=f"{name} search:2 {name}", call_site="search:2", **fields)


def then(name: str, *inputs: int) -> NodeSpec:
    return NodeSpec(name, "program", inputs=[*inputs])


def ends(state: RunState, name: str, outcome: Outcome | None = None) -> None:
    node = state.graph.by_id[name]
    step(state, NodeEnded(node, state.units[node].generation, outcome or Outcome("v")))


def status_of(state: RunState) -> dict[str, str]:
    return {line.id: line.status for line in report_lines(ShownRun(state))[0]}


def test_a_failure_that_the_script_has_caught_is_handled() -> None:
    state = begun()
    added(state, called("main_1"), then("main_s2", 1))
    ends(state, "main_1", BROKEN)
    assert status_of(state)["main_1"] == "failed", "nobody has caught it yet"
    added(state, called("main_2"), called("main_3"), then("main_s3", 2, 3))
    assert status_of(state) == {"main": "running", "main_1": "handled", "main_2": "running", "main_3": "running"}
    ends(state, "main_3", BROKEN)
    ends(state, "main_2")
    ends(state, "main", Outcome(error=("CallFailed", "Boom: it broke")))
    assert [item.node for item in blocked_on(state, "run-1", {})] == ["main_3"]
    text = board(ShownRun(state, "run-1"), title="t")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows if "failed" in row or "handled" in row] == ["main_3", "main", "main_1"]
    assert ShownRun(state).counts == {"succeeded": 1, "failed": 1, "handled": 1}, "calls are counted"


def test_what_a_script_that_was_replaced_has_called_is_not_listed_as_failed() -> None:
    state = begun()
    added(state, called("main_1"), then("main_s2", 1))
    ends(state, "main_1", BROKEN)
    ends(state, "main", Outcome(error=("CallFailed", "Boom: it broke")))
    assert blocked_on(state, "run-1", {})
    step(state, ProgramEdited(0, "p2"))
    added(state, called("main_r2_1"), then("main_r2_s2", 2), page="q")
    assert blocked_on(state, "run-1", {}) == ()
    assert "failed" not in status_of(state).values()


def test_calls_keep_their_ids_when_a_program_runs_again() -> None:
    state = begun()
    added(state, called("main_1", key="a"), called("main_2", key="b"), then("main_s2", 1, 2))
    ends(state, "main_1")
    for mark in ("_r2", "_r3"):
        step(state, ProgramEdited(0, "p2"))
        calls = (called(f"main{mark}_1", key="a"), called(f"main{mark}_2", key=mark), called(f"main{mark}_3", key="c"))
        added(state, *calls, then(f"main{mark}_s2", *((1, 3, 4) if mark == "_r2" else (1, 5, 4))), page=mark)
    lines = {line.id: (line.status, line.taken_over, line.summary) for line in report_lines(ShownRun(state))[0]}
    assert lines["main_1"][:2] == ("succeeded", True)
    assert lines["main_r2_3"][:2] == ("running", True)
    assert sorted(lines) == ["main", "main_1", "main_2", "main_r2_2", "main_r2_3", "main_r3_2"]
    for name in lines:
        assert state.path(state.find(name) or 0) == name
    assert state.find("main_r2_1") is None, "that is only what the script calls it"


def test_a_script_that_failed_by_itself_is_edited_first() -> None:
    state = begun()
    added(state, called("main_1"), then("main_s2", 1))
    ends(state, "main_1")
    ends(state, "main", OWN_ERROR)
    [item] = blocked_on(state, "run-1", {})
    assert (item.node, item.update, item.also) == ("main", "edit_program", ("retry_node", "skip_node"))
    assert item.command == "sennit edit run-1 FILE.py"
    view = script_view(state, {}, "")
    assert not isinstance(view, str)
    assert [(line.line, line.error) for line in view.lines] == [
        (2, "ZeroDivisionError: division by zero"),
    ]
    assert script_text(view).splitlines()[1].startswith("2  ✗ ZeroDivisionError: division by zero, 1 call")
    assert item.question == "ProgramFailed: ZeroDivisionError: division by zero (line 2: return 1 / 0)"


def test_a_failed_map_names_its_items_and_the_command_for_one() -> None:
    play = Play(node("a"), each("prices", "a"), answer="prices")
    play.begin()
    play.ok("a", length=9)
    for number in range(9):
        play.fail(f"prices[{number}]") if number in (2, 8) else play.ok(f"prices[{number}]")
    [item] = blocked_on(play.state, "run-1", {})
    assert item.command == "sennit retry run-1 'prices[2]'"
    assert item.question.startswith("2 of 9 items failed, prices[2], prices[8]: ")
    assert (item.node, item.example) == ("prices", {"node": "prices[2]"})


def test_calls_keep_their_places_however_many_there_are() -> None:
    state = begun()
    calls = [called(f"main_{number}") for number in range(1, 1500)]
    added(state, *calls, then("main_s2", *range(1, 1500)))
    lines, left_out = report_lines(ShownRun(state))
    assert left_out == 0
    assert [(line.call_site, line.summary) for line in lines[1:]] == [("search:2", call.id) for call in calls]
