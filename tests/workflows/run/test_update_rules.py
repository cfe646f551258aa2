"""When an update fits a run, without a server."""

import pytest
from doubles.plan.play import Play, node

from workflows.messages.updates import RetryNode, SkipNode, Update
from workflows.run.update_rules import judge


@pytest.mark.parametrize("update", [RetryNode(node="a"), SkipNode(node="b")], ids=["retry", "skip"])
def test_a_node_of_an_unfinished_plan_is_neither_retried_nor_skipped(update: Update) -> None:
    """The whole plan may replace this beginning, and would know nothing of what people did to it."""
    run = Play(node("a"), node("b"), node("c"), answer="c")
    run.begin()
    run.ok("a")
    run.state.streaming = True
    early = judge(run.state, update)
    assert (early.rejection, early.is_final) == ("the plan is still being written; try again in a moment", False)
    run.state.streaming = False
    assert judge(run.state, update).event is not None
