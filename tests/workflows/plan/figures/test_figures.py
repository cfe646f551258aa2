"""The definitions of docs/figures.md, on records whose figures are worked out by hand, and on any record."""

from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.figures.figures import critical_path, figures_of
from sennit.workflows.plan.figures.lines import figures_lines
from sennit.workflows.plan.figures.record import Part, PartKind, Record
from sennit.workflows.plan.language.limits import Usage


def part(name: str, began: int, ended: int, *after: int, kind: PartKind = "call", **more: object) -> Part:
    return Part(name, kind, began, ended, after, **more)  # type: ignore[arg-type]


def test_a_diamond_by_hand() -> None:
    """a runs for 100 ms; b and c follow at once for 200 and 300 ms; d takes 50 ms, 10 ms after c."""
    parts = (part("a", 0, 100), part("b", 100, 300, 0), part("c", 100, 400, 0), part("d", 410, 460, 1, 2))
    found = figures_of(Record(parts, window=4))
    assert found.calls == 4
    assert found.sequential_ms == 100 + 200 + 300 + 50
    assert found.critical_path_ms == 100 + 300 + 50
    assert critical_path(parts)[0] == [0, 2, 3]
    assert found.makespan_ms == 460
    assert found.saved_ms == 650 - 460
    assert found.speed_up == 1.413
    assert found.parallel_ratio == 0.5, "b and c ran side by side; a ended when they began"
    assert found.mean_width == 1.444, "650 ms in the 450 ms in which anything ran"
    assert found.largest_width == 2
    assert found.utilisation == 0.353, "650 ms of four times 460 ms"


def test_containers_never_count_and_carry_the_path() -> None:
    """A map of two items of 100 ms, and a call that reads the map: the map is no call, whatever times it has."""
    parts = (
        part("m", 0, 500, 1, 2, kind="container"),
        part("m[0]", 0, 100),
        part("m[1]", 50, 150),
        part("end", 150, 170, 0),
    )
    found = figures_of(Record(parts, window=10))
    assert (found.calls, found.sequential_ms, found.largest_width) == (3, 220, 2)
    assert found.critical_path_ms == 120
    assert critical_path(parts)[0] == [1, 3], "the first of several that are as long"
    assert found.makespan_ms == 170


def test_a_sub_agent_is_under_way_like_a_call_and_is_none() -> None:
    parts = (part("sub", 0, 100, kind="subagent"), part("a", 40, 60))
    found = figures_of(Record(parts, window=10))
    assert (found.calls, found.subagents, found.sequential_ms, found.largest_width) == (1, 1, 120, 2)
    assert found.parallel_ratio == 1.0
    assert figures_lines(found)[0].startswith("1 call and 1 sub-agent in 100 ms; one after the other 120 ms")


def test_time_in_which_only_a_person_was_waited_for_is_no_makespan() -> None:
    """Two calls of 100 ms, 10 s apart. Of these a person took 9.8 s, of which another call took 300 ms."""
    parts = (part("a", 0, 100), part("b", 10_100, 10_200, 0), part("c", 1_000, 1_300))
    found = figures_of(Record(parts, window=1, asked=((200, 10_000),)))
    assert found.paused_ms == 800 + 8_700
    assert found.makespan_ms == 10_200 - 9_500
    assert found.waited_ms == {"person": 9_800}


def test_of_overlapping_calls_in_a_chain_only_the_later_part_counts() -> None:
    """Clocks and rounding let a call begin before the one that it waited for has ended: time counts once."""
    parts = (part("a", 0, 100), part("b", 90, 200, 0))
    assert critical_path(parts) == ([0, 1], 200)


def test_what_goes_round_in_a_circle_is_cut() -> None:
    parts = (part("a", 0, 100, 1), part("b", 100, 150, 0))
    assert critical_path(parts)[1] in (100, 150)


def test_usage_is_added_by_branch_and_failures_by_class() -> None:
    dear, cheap = Usage(100, 20, cost=5_000, calls=1), Usage(10, 2, cost=100, calls=1)
    parts = (
        part("a", 0, 10, branch="look", used=dear, error="SchemaMismatch", retries=2),
        part("b", 0, 10, branch="look", used=cheap, error="RateLimited"),
        part("c", 0, 10, branch="think", used=cheap, error="OwnError"),
        part("m", 0, 10, kind="container", branch="m", error="GateTimeout"),
    )
    found = figures_of(Record(parts, window=9, waited={"slot": 30, "rate": 0}))
    assert [(each.branch, each.calls, each.tokens, each.cost_usd) for each in found.branches] == [
        ("look", 2, 132, 0.0051),
        ("think", 1, 12, 0.0001),
    ]
    assert found.failures == {"coordination": 2, "tool": 1, "verification": 1}
    assert (found.retries, found.waited_ms) == (2, {"slot": 30})


def test_a_run_that_called_nothing_has_no_ratios_and_no_lines() -> None:
    found = figures_of(Record((part("m", 0, 0, kind="container"),), window=10))
    assert (found.speed_up, found.parallel_ratio, found.mean_width, found.utilisation) == (None, None, None, None)
    assert figures_lines(found) == []


def test_two_lines_say_it() -> None:
    parts = (part("a", 0, 1_000, retries=1), part("b", 0, 3_000, error="WorkerLost"))
    found = figures_of(Record(parts, window=10, waited={"slot": 30}))
    assert figures_lines(found) == [
        "2 calls in 3.0 s; one after the other 4.0 s, 1.3 times as long; critical path 3.0 s",
        "1.3 at once, at most 2; 100% beside another; waited for slot 30 ms; 1 retry; failures: 1 coordination",
    ]


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Any record, also such as no run has: circles, calls before those that they waited for, asked times anywhere."""
    count = draw(st.integers(0, 12))
    parts = []
    for place in range(count):
        began = draw(st.integers(0, 1_000))
        kind: PartKind = draw(st.sampled_from(("call", "call", "call", "subagent", "container")))
        after = draw(st.lists(st.integers(-1, count), max_size=3))
        parts.append(part(f"n{place}", began, began + draw(st.integers(0, 400)), *after, kind=kind))
    edges = sorted(draw(st.lists(st.integers(0, 1_500), max_size=6, unique=True)))
    asked = tuple(zip(edges[::2], edges[1::2], strict=False))
    return Record(tuple(parts), draw(st.integers(1, 9)), asked=asked)


@given(records())
def test_figures_of_any_record_fit_each_other(record: Record) -> None:
    found = figures_of(record)
    timed = [each for each in record.parts if each.kind != "container"]
    # Every millisecond, one by one: another way to the same figures.
    width = [0] * 1_500
    for each in timed:
        for at in range(each.began, each.ended):
            width[at] += 1
    covered = sum(each > 0 for each in width)
    assert found.sequential_ms == sum(width)
    assert found.largest_width == max(width)
    if covered:
        assert found.mean_width == round(sum(width) / covered, 3)
    if timed:
        first, last = min(each.began for each in timed), max(each.ended for each in timed)
        asked = [at for begin, end in record.asked for at in range(begin, end)]
        assert found.paused_ms == sum(first <= at < last and width[at] == 0 for at in asked)
        assert found.makespan_ms + found.paused_ms == last - first
    beside = [
        each
        for place, each in enumerate(timed)
        if each.kind == "call"
        and any(
            max(each.began, other.began) < min(each.ended, other.ended)
            for number, other in enumerate(timed)
            if number != place
        )
    ]
    assert found.parallel_ratio == (round(len(beside) / found.calls, 3) if found.calls else None)
    assert (
        max((each.millis for each in timed), default=0)
        <= found.critical_path_ms
        <= covered
        <= max(found.makespan_ms, 0)
    )
    path, length = critical_path(record.parts)
    assert length == found.critical_path_ms
    assert len(path) == len(dict.fromkeys(path))
