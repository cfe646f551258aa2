"""Which ready nodes start first, and what holds some of them back."""

from doubles.plan.play import Play, each, node

from workflows.plan.scheduling.events import Outcome

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
    run.state.draining = True
    assert run.ok("a") == []
    run.state.draining = False
    assert run.tick(0) == ["start b"]


def test_a_draining_run_in_which_nothing_is_ready_any_more_still_parks() -> None:
    run = Play(node("a"), node("b"), answer="a", window=1)
    run.begin()
    run.state.draining = True
    run.give_up("b")
    assert run.fail("a") == ["park a"]


# groups: nodes that one activity runs together


def group(*, window: int = 100) -> Play:
    """x outside; a -> b and c inside one group."""
    run = Play(
        node("x"),
        node("a", "x"),
        node("b", "a"),
        node("c", "x"),
        node("z", "b", "c"),
        answer="z",
        groups=[["a", "b", "c"]],
        window=window,
    )
    run.begin()
    return run


def test_an_island_starts_as_one_when_all_that_its_members_need_from_outside_is_there() -> None:
    run = Play(node("x"), node("y"), node("a", "x"), node("b", "a", "y"), answer="b", groups=[["a", "b"]])
    run.begin()
    assert run.ok("x") == []
    assert run.ok("y") == ["start a+b"]
    assert run.ok("a") == []
    assert run.ok("b") == ["end done"]


def test_an_island_that_needs_nothing_starts_with_the_plan() -> None:
    run = Play(node("a"), node("b", "a"), answer="b", groups=[["a", "b"]])
    assert run.begin() == ["start a+b"]


def test_an_island_waits_for_room_and_starts_over_the_window_only_alone() -> None:
    run = Play(
        node("p", priority=1),
        node("a"),
        node("b", "a"),
        node("c", "a"),
        answer="c",
        groups=[["a", "b", "c"]],
        window=2,
    )
    assert run.begin() == ["start p"]
    assert run.ok("p") == ["start a+b+c"]
    assert run.state.running == 3


def test_a_lost_dependency_ungroups_a_group_and_its_members_start_alone() -> None:
    run = Play(node("x"), node("y"), node("a", "x"), node("b", "y"), answer=("a", "b"), groups=[["a", "b"]])
    run.begin()
    run.ok("x")
    assert run.fail("y") == ["start a"]
    assert run.status("b") == "blocked"


def test_a_member_that_asks_to_be_started_again_runs_alone() -> None:
    run = group()
    assert run.ok("x") == ["start a+b+c"]
    assert run.fail("a") == []
    assert run.end("b", Outcome(again=True)) == []
    assert run.status("b") == "blocked"
    assert run.ok("c") == ["park a"]
    assert run.retry("a") == ["start a~2"]
    assert run.ok("a") == ["start b"]


def test_a_member_that_its_condition_skipped_is_skipped() -> None:
    run = group()
    run.ok("x")
    run.ok("a")
    run.end("b", Outcome(skipped=True))
    assert run.status("b") == "skipped"
    assert run.ok("c") == ["end partial"]


def test_an_edit_before_a_group_ungroups_it() -> None:
    run = Play(node("x"), node("y"), node("a", "x"), node("b", "y"), answer=("a", "b"), groups=[["a", "b"]])
    run.begin()
    run.ok("x")
    run.retry("x")
    assert run.ok("x") == ["start a"]
    assert run.ok("y") == ["start b"]


def test_a_member_given_up_does_not_start_with_the_others() -> None:
    nodes = (node("x"), node("y"), node("a", "x"), node("b", "x"))
    run = Play(*nodes, answer="a", groups=[["a", "b"]])
    run.begin()
    run.give_up("b")
    assert run.ok("x") == ["start a"]
    assert run.status("y") == "running"


def test_groups_that_wait_for_each_other_are_ungrouped_when_nothing_else_can_move() -> None:
    run = Play(
        node("a1"),
        node("b1", "a1"),
        node("b2"),
        node("a2", "b2"),
        answer=("a2", "b1"),
        groups=[["a1", "a2"], ["b1", "b2"]],
    )
    assert run.begin() == ["start a1", "start b2"]
    run.ok("a1", "b2")
    run.ok("b1")
    assert run.ok("a2") == ["end done"]
