"""Calls whose ends come with their page: a step has made them itself, or a fork has taken them over.

They ran elsewhere, so they give back nothing that only a start in this run would have taken.
"""

from doubles.plan.pages import advanced, begun, paged

from sennit.workflows.plan.compile.execution_plan import EXCLUSIVE, SHARED, NodeSpec
from sennit.workflows.plan.scheduling.budget import Rate
from sennit.workflows.plan.scheduling.events import Outcome
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import RUNNING, SUCCEEDED


def append(state: RunState, *specs: NodeSpec, ends: dict[str, Outcome]) -> None:
    following = paged("main_s2", "program", inputs=[1, 2])
    step(state, advanced(state, *specs, following, ends=tuple(ends.items())), 1_000)


def test_a_call_that_is_taken_over_frees_no_lock_and_takes_none() -> None:
    """Where files may be written, a `read` shares a lock. The write beside it holds that lock, and goes on to."""
    state = begun()
    calls = [paged("w", locks=[("file", EXCLUSIVE)], effect="write"), paged("r", locks=[("file", SHARED)])]
    append(state, *calls, ends={})
    assert [state.units[unit].status for unit in (1, 2)] == [RUNNING, 0], "the write holds the lock, and the read waits"
    other = begun()
    append(other, *calls, ends={"r": Outcome("v", at=500)})
    assert other.units[2].status == SUCCEEDED
    assert other.units[1].status == RUNNING
    assert list(other.locks["file"].holders) == [1]


def test_a_model_call_that_is_taken_over_gives_its_provider_no_more_room() -> None:
    state = begun()
    state.rates = {"q": Rate(1)}
    calls = [paged("a", "llm", queue="q"), paged("b", "llm", queue="q")]
    append(state, *calls, ends={"a": Outcome("v", at=500, attempts=0)})
    assert state.rates["q"].running == 1, "the other call runs"
