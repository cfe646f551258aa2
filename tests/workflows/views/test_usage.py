"""What each node of a run has used, and when it started, as status and reports tell it."""

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, ProgramAdvanced, RunStarted
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.views.report import report_lines
from sennit.workflows.views.shown_run import ShownRun


def test_a_program_has_used_what_it_has_called() -> None:
    specs = [NodeSpec("main", "program"), NodeSpec("alone", "llm")]
    state = RunState(Graph(ExecutionPlan(specs, [0])))
    step(state, RunStarted(), 5_000)
    call = NodeSpec("main_1", "llm", page="p", maker=0, call_site="look#1/llm:2")
    step(state, ProgramAdvanced(NodeEnded(0, 1, Outcome("s", delegated=True)), [call], "s2", (2,)), 7_000)
    step(state, NodeEnded(2, 1, Outcome("d", usage=Usage(80, 20, 500, 1))), 9_000)
    step(state, NodeEnded(1, 1, Outcome("e", usage=Usage(5, 5, 7, 1))), 9_000)
    lines = {line.id: line for line in report_lines(ShownRun(state))[0]}
    used = {name: (line.tokens, line.cost_usd) for name, line in lines.items()}
    assert used == {"main": (100, 0.0005), "main_1": (100, 0.0005), "alone": (10, 0.000007)}
    assert {name: line.started for name, line in lines.items()} == {"main": 5.0, "main_1": 7.0, "alone": 5.0}
