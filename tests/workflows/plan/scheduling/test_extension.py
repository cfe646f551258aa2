"""A plan that grows while its nodes run: locks that only the longer plan gives are held by what runs already."""

import pytest
from doubles.plan.play import Play, node

from workflows.plan.language.nodes import OnFailure
from workflows.plan.scheduling.events import PlanExtended

READS, WRITES = [("file", False)], [("file", True)]


def test_a_write_that_comes_later_waits_for_the_reads_that_run() -> None:
    run = Play(node("a"), node("b"), answer="a")
    assert run.begin() == ["start a", "start b"]
    longer = Play(
        node("a", locks=READS), node("b", locks=READS), node("w", locks=WRITES), node("c", locks=READS), answer="w"
    )
    run.graph = longer.graph
    assert run.act(PlanExtended(longer.graph)) == ["start c"]
    assert run.ok("a", "c") == []
    assert run.ok("b") == ["start w"]
    assert run.state.held == {"file": -1}
    assert run.ok("w") == ["end done"]
    assert run.state.held == {"file": 0}


def test_two_writes_that_come_to_share_a_lock_give_it_back_once_each() -> None:
    run = Play(node("a", locks=[("file:a", True)]), node("b", locks=[("file:b", True)]), answer="a")
    assert run.begin() == ["start a", "start b"]
    longer = Play(node("a", locks=WRITES), node("b", locks=WRITES), node("r", locks=READS), answer="r")
    run.graph = longer.graph
    assert run.act(PlanExtended(longer.graph)) == []
    assert run.ok("a") == []
    assert run.ok("b") == ["start r"]


@pytest.mark.parametrize(("policy", "end"), [("park", "park a"), ("fail", "end failed"), ("partial", "end partial")])
def test_a_failure_is_judged_when_the_plan_is_whole(policy: OnFailure, end: str) -> None:
    run = Play(node("a"), node("b"), answer=["a", "b"], on_failure=policy)
    run.state.streaming = True
    run.begin()
    assert run.fail("a") == []
    assert run.ok("b") == []
    longer = Play(node("a"), node("b"), node("c", "b"), answer="c", on_failure=policy)
    run.graph = longer.graph
    assert run.act(PlanExtended(longer.graph)) == ["start c"]
    assert run.ok("c") == [end]
