"""A plan that grows while its nodes run."""

import pytest
from doubles.plan.play import Play, node

from sennit.workflows.plan.language.nodes import OnFailure


def test_a_write_that_comes_later_waits_for_the_reads_that_run() -> None:
    run = Play(node("a", locks=[("file", False)]), node("b", locks=[("file", False)]), answer="a")
    assert run.begin() == ["start a", "start b"]
    assert run.grow(node("w", locks=[("file", True)]), node("c", locks=[("file", False)]), answer="w") == ["start c"]
    assert run.ok("a", "c") == []
    assert run.ok("b") == ["start w"]
    assert list(run.state.locks["file"].holders) == [run.unit("w")]
    assert run.ok("w") == ["end done"]
    assert run.state.locks == {}


@pytest.mark.parametrize(("policy", "end"), [("park", "park a"), ("fail", "end failed"), ("partial", "end partial")])
def test_a_failure_is_judged_when_the_plan_is_whole(policy: OnFailure, end: str) -> None:
    run = Play(node("a", effect="write"), node("b"), answer=["a", "b"], on_failure=policy)
    run.begin(more=True)
    assert run.fail("a") == []
    assert run.ok("b") == []
    assert run.grow(node("c", "b"), answer="c") == ["start c"]
    assert run.ok("c") == [end]


def test_a_model_that_fails_when_it_runs_again_has_its_fallback_and_not_its_old_turn() -> None:
    run = Play(node("n", kind="llm", successor="x"), node("x", is_successor=True), node("k"), answer="n")
    run.begin()
    assert run.grow(node("c"), node("t2", "c", kind="llm", successor="x"), of="n") == ["start c"]
    assert run.ok("c") == ["start t2"]
    assert run.ok("t2") == []
    assert (run.status("n"), run.status("x")) == ("succeeded", "skipped")
    run.retry("n")
    assert run.fail("n") == ["start x"]
    run.ok("x")
    assert (run.status("n"), run.digest("n")) == ("succeeded", "of x")
