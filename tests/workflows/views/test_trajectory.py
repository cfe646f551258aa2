"""What a run that is over tells of its calls, for the runs to come."""

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, RunStarted
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.views.trajectory import calls_of


def test_a_call_that_has_taken_over_an_early_output_ended_when_it_did_and_tells_what_the_early_one_took() -> None:
    """Else the next call would seem to have begun before this one had ended, and to have nothing of it."""
    look = NodeSpec("look", "tool", tool="look", effect="read")
    state = RunState(Graph(ExecutionPlan([look], [0])), timings=Timings("off"))
    step(state, RunStarted(), 1_000)
    step(state, NodeEnded(0, 1, Outcome("0" * 40)), 1_040)
    [[call], _] = calls_of(state, {0: 3_000})
    assert (call.began, call.millis, call.took) == (1_000, 40, 3_000)
    [[call], _] = calls_of(state)
    assert (call.millis, call.took) == (40, 0)
