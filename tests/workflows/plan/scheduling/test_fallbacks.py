"""Stand-ins: a node that runs only when another has failed, in its place."""

from doubles.plan.play import Play, join, node

from sennit.workflows.plan.scheduling.events import Outcome


def test_a_fallback_runs_only_when_its_node_failed_and_gives_the_value() -> None:
    run = Play(node("a", successor="s"), node("s", is_successor=True), node("b", "a"), answer="b")
    assert run.begin() == ["start a"]
    assert run.fail("a") == ["start s"]
    assert run.status("a") == "delegated"
    assert run.ok("s") == ["start b"]
    assert (run.status("a"), run.digest("a")) == ("succeeded", "of s")


def test_a_fallback_is_skipped_when_its_node_did_not_fail() -> None:
    run = Play(node("a", successor="s"), node("s", is_successor=True), node("b", "a"), answer="b")
    run.begin()
    run.ok("a")
    assert run.status("s") == "skipped"
    assert run.note("s")[0] == "NotNeeded"


def test_when_a_fallback_fails_its_node_fails_with_its_own_error() -> None:
    run = Play(node("a", successor="s"), node("s", is_successor=True), answer="a")
    run.begin()
    run.fail("a", "First")
    assert run.fail("s", "Second") == ["park a"]
    assert run.note("a")[0] == "First"


def test_a_fallback_of_a_blocked_node_is_blocked_too() -> None:
    run = Play(node("f"), node("a", "f", successor="s"), node("s", is_successor=True), answer="a")
    run.begin()
    run.fail("f")
    assert (run.status("a"), run.status("s")) == ("blocked", "blocked")


def test_a_chain_of_fallbacks_is_tried_in_turn() -> None:
    run = Play(
        node("a", successor="b"), node("b", is_successor=True, successor="c"), node("c", is_successor=True), answer="a"
    )
    assert run.begin() == ["start a"]
    assert run.fail("a") == ["start b"]
    assert run.fail("b") == ["start c"]
    assert run.ok("c") == ["end done"]


def test_a_retried_node_whose_fallback_succeeded_runs_itself_again() -> None:
    run = Play(node("a", successor="s"), node("s", is_successor=True), node("b", "a"), answer="b")
    run.begin()
    run.fail("a")
    run.ok("s")
    assert run.retry("a") == ["start a~2"]
    assert run.status("s") == "pending"
    assert run.ok("a") == ["cancel b", "start b~2"]
    assert run.status("s") == "skipped"
    run.retry("a")
    run.fail("a")
    assert run.retry("a") == ["cancel s~2", "start a~4"]


def test_a_fallback_that_reads_a_changed_output_runs_again() -> None:
    run = Play(node("x"), node("a", successor="s"), node("s", "x", is_successor=True), node("b", "a"), answer="b")
    run.begin()
    run.fail("a")
    run.ok("x")
    run.ok("s")
    run.retry("x")
    assert run.ok("x", digest="new") == ["start s~2"]
    assert run.status("a") == "delegated"
    assert run.ok("s", digest="better") == ["cancel b", "start b~2"]
    assert run.digest("a") == "better"


def test_a_repaired_node_lets_a_blocked_fallback_run_after_all() -> None:
    run = Play(node("x"), node("a", successor="s"), node("s", "x", is_successor=True), answer="a")
    run.begin()
    run.fail("x")
    assert run.fail("a") == ["park x a"]
    run.retry("x")
    assert run.ok("x") == ["start s"]
    assert run.ok("s") == ["end done"]


def test_a_node_skipped_while_its_fallback_runs_cancels_it() -> None:
    run = Play(node("a", successor="s"), node("s", is_successor=True), node("b", "a"), answer="b")
    run.begin()
    run.fail("a")
    assert run.give_up("a") == ["cancel s", "end partial"]


def test_a_loop_that_a_join_does_not_need_takes_its_calls_along() -> None:
    run = Play(
        node("a", kind="llm", successor="t"),
        node("c"),
        join("all", "c", policy="settled"),
        node("t", "all", kind="llm", is_successor=True),
        node("b"),
        join("j", "a", "b", policy="first"),
        answer="j",
    )
    assert run.begin() == ["start a", "start c", "start b"]
    run.end("a", Outcome("said", 1, delegated=True))
    assert run.ok("b") == ["cancel c", "close j", "end done"]
    assert [run.status(name) for name in ("a", "c", "all", "t")] == ["cancelled"] * 4
