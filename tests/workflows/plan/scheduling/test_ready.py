"""Which ready nodes start first, and what holds some of them back."""

from doubles.plan.play import Play, each, node

from sennit.workflows.plan.scheduling.events import DrainEnded, DrainStarted

REPO = [("repo", True)]
READING = [("repo", False)]


def test_the_lowest_priority_number_then_the_longest_path_then_the_place_in_the_plan_decide() -> None:
    run = Play(
        node("last", priority=5),
        node("b", rank=10),
        node("c", rank=10),
        node("a", rank=20),
        node("first", priority=1),
        answer="a",
        window=1,
    )
    assert run.begin() == ["start first"]
    for ended, started in (("first", "a"), ("a", "b"), ("b", "c"), ("c", "last")):
        assert run.ok(ended) == [f"start {started}"]


def test_the_window_counts_units() -> None:
    run = Play(*(node(f"n{i}") for i in range(5)), answer="n0", window=3)
    assert run.begin() == ["start n0", "start n1", "start n2"]
    assert run.fail("n1") == ["start n3"]


def test_an_exclusive_lock_is_held_by_one_node_at_a_time() -> None:
    run = Play(node("a", locks=REPO), node("b", locks=REPO), node("c"), answer="a")
    assert run.begin() == ["start a", "start c"]
    assert run.fail("a") == ["start b"]


def test_a_shared_lock_is_held_by_many_but_not_beside_an_exclusive_one() -> None:
    run = Play(
        node("a", locks=READING), node("b", locks=READING), node("w", locks=REPO), node("d", locks=READING), answer="w"
    )
    assert run.begin() == ["start a", "start b", "start d"]
    run.ok("a")
    run.ok("b")
    assert run.ok("d") == ["start w"]


def test_all_locks_are_taken_or_none() -> None:
    both = [("repo", True), ("disk", True)]
    run = Play(node("a", locks=REPO), node("ab", locks=both), node("b", locks=[("disk", True)]), answer="a")
    assert run.begin() == ["start a", "start b"]
    assert run.ok("a") == []
    assert run.ok("b") == ["start ab"]


def test_a_lock_named_twice_is_one_lock_and_the_exclusive_one_counts() -> None:
    run = Play(node("a", locks=[*READING, *REPO, *REPO]), node("b", locks=READING), answer="a")
    assert run.begin() == ["start a"]
    assert run.ok("a") == ["start b"]
    assert run.ok("b") == ["end done"]


def test_the_items_of_a_map_take_its_locks_one_by_one() -> None:
    run = Play(node("l"), each("m", "l", locks=REPO), answer="m")
    run.begin()
    assert run.ok("l", length=2) == ["start m[0]"]
    assert run.ok("m[0]") == ["start m[1]"]


def test_a_cancelled_node_gives_back_its_locks_and_its_place() -> None:
    run = Play(node("a", locks=REPO), node("b", locks=REPO), answer="b", window=1)
    run.begin()
    assert run.give_up("a") == ["cancel a", "start b"]


def test_while_a_run_drains_nothing_starts() -> None:
    run = Play(node("a"), node("b", "a"), answer="b")
    run.begin()
    run.act(DrainStarted(500))
    assert run.ok("a") == []
    assert run.state.next_due() == 500
    run.crash()
    assert run.state.deadlines == {}, "the run that goes on begins anew"
    run.act(DrainStarted())
    assert run.act(DrainEnded()) == ["start b"]


def test_a_draining_run_in_which_nothing_is_ready_any_more_still_parks() -> None:
    run = Play(node("a"), node("b"), answer="a", window=1)
    run.begin()
    run.act(DrainStarted())
    run.give_up("b")
    assert run.fail("a") == ["park a"]
