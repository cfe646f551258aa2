"""The record of a run: what counts as a call, when it was under way, behind what, and for what it has waited."""

from doubles.plan.play import Play, each, gate, join, node

from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.figures.figures import Figures, critical_path, figures_of
from sennit.workflows.plan.figures.record import Part
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling.budget import Rate
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, ProgramAdvanced
from sennit.workflows.plan.scheduling.unit import RUNNING, SUCCEEDED
from sennit.workflows.views.figures import figures_page, record_of


def figures(play: Play) -> Figures:
    return figures_of(record_of(play.state)[0])


def parts(play: Play) -> dict[str, Part]:
    return {part.name: part for part in record_of(play.state)[0].parts}


def path(play: Play) -> list[str]:
    record = record_of(play.state)[0]
    return [record.parts[place].name for place in critical_path(record.parts)[0]]


def at(play: Play, now: int) -> Play:
    play.state.now = now
    return play


def end(play: Play, name: str, now: int, span: tuple[int, int] = (0, 0), **more: object) -> None:
    """A call ends, with its own times if its worker tells them."""
    unit = play.unit(name)
    outcome = Outcome(f"of {name}", 1, span=span, **more)  # type: ignore[arg-type]
    at(play, now).act(NodeEnded(unit, play.state.units[unit].generation, outcome))


def test_a_call_counts_by_its_own_times_and_the_rest_is_waiting_for_a_slot() -> None:
    """`a` starts at 1,000, its worker begins at 1,040 and ends at 1,100, of which the run hears at 1,110."""
    play = Play(node("a"), node("b", "a"), answer="b")
    at(play, 1_000).begin()
    end(play, "a", 1_110, span=(1_040, 1_100))
    end(play, "b", 1_200, span=(1_130, 1_190))
    found = figures(play)
    assert (found.sequential_ms, found.makespan_ms, found.critical_path_ms) == (120, 150, 120)
    assert found.waited_ms == {"dependency": 110, "slot": 40 + 20}
    assert path(play) == ["a", "b"]


def test_without_own_times_a_call_counts_from_its_start_until_the_run_hears_of_its_end() -> None:
    play = Play(node("a"), answer="a")
    at(play, 1_000).begin()
    end(play, "a", 1_110, attempts=3)
    assert figures(play).sequential_ms == 110
    assert figures(play).retries == 2


def test_a_map_is_no_call_and_its_items_are() -> None:
    play = Play(node("l"), each("m", "l"), node("z", "m"), answer="z")
    play.begin()
    play.ok("l", length=3)
    for item, now in enumerate((100, 200, 150)):
        end(play, f"m[{item}]", now)
    end(play, "m", 210)
    end(play, "z", 300)
    found = figures(play)
    assert found.calls == 5
    assert found.sequential_ms == 0 + 100 + 200 + 150 + (300 - play.state.units[play.unit("z")].started)
    assert parts(play)["m"].kind == "container"
    assert path(play) == ["m[1]", "z"]


def test_a_join_of_items_is_behind_those_that_it_has_taken() -> None:
    play = Play(node("l"), each("m", "l"), join("j", "m", policy="first", of_items=True), node("z", "j"), answer="z")
    at(play, 1_000).begin()
    at(play, 1_100).ok("l", length=3)
    end(play, "m[1]", 1_200)
    end(play, "z", 1_300)
    assert path(play) == ["l", "m[1]", "z"]


def test_calls_of_one_activity_count_by_themselves() -> None:
    """`a` and `b` share an activity in which `b` follows `a`: what it waits there is for `a`, and not for a slot."""
    play = Play(node("a", typical=10, tool="t"), node("b", "a", typical=10, tool="t"), answer="b", fuse="on")
    at(play, 1_000).begin()
    assert play.state.units_in(RUNNING) == [0, 1], "both run in one activity"
    unit, more = play.unit("a"), True
    at(play, 1_100)
    play.act(NodeEnded(unit, 1, Outcome("a", 1, span=(1_010, 1_050), millis=40), more=more))
    play.act(NodeEnded(play.unit("b"), 1, Outcome("b", 1, span=(1_052, 1_072), millis=20)))
    found = figures(play)
    assert (found.sequential_ms, found.critical_path_ms, found.largest_width) == (60, 60, 1)
    assert found.waited_ms == {"dependency": 50, "slot": 10 + 2}


def test_waiting_for_a_lock_a_rate_the_window_and_a_person_is_told_apart() -> None:
    door = [("door", 1)]
    play = Play(node("a", locks=door), node("b", locks=door), answer=("a", "b"))
    play.begin()
    end(play, "a", 300)
    end(play, "b", 400)
    assert figures(play).waited_ms == {"lock": 300}

    play = Play(node("a", kind="llm"), node("b", kind="llm"), answer=("a", "b"))
    play.state.rates = {"": Rate(1)}
    play.begin()
    end(play, "a", 60_000)
    end(play, "b", 61_000)
    assert figures(play).waited_ms["rate"] == 60_000

    play = Play(node("a"), node("b"), answer=("a", "b"), window=1)
    play.begin()
    end(play, "a", 300)
    end(play, "b", 400)
    assert figures(play).waited_ms == {"slot": 300}

    play = Play(gate("g"), node("a", "g"), answer="a")
    play.begin()
    at(play, 5_000).answer("g", True)
    end(play, "g", 5_000) if play.state.units[0].status == 1 else None
    end(play, "a", 5_300)
    found = figures(play)
    assert found.waited_ms["person"] == 5_000
    assert found.makespan_ms == 300


def test_what_ran_again_counts_once_and_as_a_retry() -> None:
    play = Play(node("a"), answer="a")
    play.begin()
    at(play, 100)
    play.fail("a")
    at(play, 200).retry("a")
    end(play, "a", 250)
    found = figures(play)
    assert (found.calls, found.sequential_ms, found.retries, found.failures) == (1, 50, 1, {})


def test_only_a_failure_of_its_own_counts() -> None:
    play = Play(node("a"), node("b", "a"), answer="b", on_failure="partial")
    play.begin()
    play.fail("a", "SchemaMismatch")
    assert figures(play).failures == {"verification": 1}


def test_what_calls_have_used_is_kept_over_a_new_start_and_belongs_to_their_branch() -> None:
    play = Play(node("a", kind="llm"), answer="a")
    play.begin()
    end(play, "a", 100, usage=Usage(10, 5, cost=7, calls=1))
    [branch] = figures(play).branches
    assert (branch.branch, branch.tokens) == ("a", 15)
    record, _ = record_of(play.state, Usage(1, 1, calls=1))
    assert [each.branch for each in figures_of(record).branches] == ["a", "planner"]


def test_a_run_that_goes_on_from_its_snapshot_has_the_same_figures() -> None:
    play = Play(gate("g"), node("a"), node("b", "a", "g"), answer="b")
    at(play, 1_000).begin()
    end(play, "a", 1_110, span=(1_040, 1_100), usage=Usage(1, 2, 3, 1))
    before = record_of(play.state)
    play.crash()
    assert record_of(play.state) == before


def test_a_page_has_the_calls_that_have_begun_and_marks_the_critical_path() -> None:
    play = Play(node("a"), node("b"), node("c", "a", "b"), answer="c")
    play.begin()
    end(play, "a", 100)
    end(play, "b", 300)
    page = figures_page(play.state, Usage(), 0, 2)
    assert [(call.node, call.began, call.ended, call.critical) for call in page.calls] == [
        ("a", 0, 100, False),
        ("b", 0, 300, True),
    ]
    assert page.next == 2
    assert [call.node for call in figures_page(play.state, Usage(), 2, 2).calls] == ["c"], "it runs"


def program(*calls: tuple[str, str, int, int]) -> Play:
    """A program whose first advance has made these calls itself: names, call sites, begins and ends."""
    play = Play(node("p", kind="program"), answer="p")
    at(play, 0).begin()
    made = [NodeSpec(name, "tool", in_place=True, call_site=site, key=name) for name, site, _, _ in calls]
    state = play.state
    play.act(ProgramAdvanced(NodeEnded(0, 1, Outcome("said", delegated=True)), made, "s2"))
    play.index |= state.graph.by_id
    for name, _, began, ended in calls:
        unit = play.unit(name)
        record = state.units[unit]
        record.attempts, record.span, record.status = 1, (began, ended), SUCCEEDED
    return play


def test_calls_that_a_script_made_one_after_another_are_a_chain() -> None:
    play = program(("a", "search:1", 10, 30), ("b", "search:2", 31, 41), ("c", "search:3", 45, 50))
    assert path(play) == ["a", "b", "c"]


def test_tasks_of_a_script_that_run_side_by_side_are_no_chain() -> None:
    """Two tasks begin one after the other, and what the script calls then has heard of both."""
    play = program(
        ("a", "search:1", 0, 10),
        ("b", "look#1/search:3", 12, 20),
        ("c", "look#2/search:3", 20, 50),
        ("d", "look#1/llm:4", 21, 30),
        ("e", "search:9", 60, 70),
    )
    assert path(play) == ["a", "c", "e"]
    assert figures(play).critical_path_ms == 10 + 30 + 10


def test_joins_over_the_items_of_one_map_do_not_list_these_each() -> None:
    """Those that have taken no item yet are behind one part, which is behind all items."""
    items, joins = 30, 40
    many = [join(f"j{number}", "m", policy="all", of_items=True) for number in range(joins)]
    play = Play(node("l"), each("m", "l"), *many, answer="j0")
    play.begin()
    play.ok("l", length=items)
    record, _ = record_of(play.state)
    assert sum(len(part.after) for part in record.parts) < 5 * items + 3 * joins
    first = parts(play)["j0"]
    [closing] = [place for place in first.after if record.parts[place].name == "m" and place > len(many) + items]
    assert [record.parts[place].name for place in record.parts[closing].after] == [f"m[{n}]" for n in range(items)]
