"""The quota of a namespace: no more than the operator allows, in the order of the asking, and nobody is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.limits import MAX_QUOTA_BYTES, MAX_QUOTA_LOOKED_AT
from sennit.workflows.plan.quota import PlaceReply, PlaceRequest, Quota, QuotaLimits, QuotaState, Spending

ONE = QuotaLimits(runs=1)
TOKENS = QuotaLimits(tokens_a_day=10_000)
NONE = Spending()
MOVES = ("ask", "end", "cut", "day")


def run(name: str, tokens: int | None = None, cost: int | None = None) -> PlaceRequest:
    return PlaceRequest(run=f"agent-{name}", first_run=name, tokens=tokens, cost=cost)


def called(quota: Quota) -> list[str]:
    return [request.first_run for request in quota.to_call()]


def test_runs_get_places_in_the_order_in_which_they_asked() -> None:
    quota = Quota(QuotaState())
    assert quota.ask(run("a"), ONE) == PlaceReply(granted=True)
    assert quota.ask(run("b"), ONE).reason == "1 of 1 runs of the namespace go on"
    waits = quota.ask(run("c"), ONE)
    assert not waits.granted
    assert waits.can_wait
    assert waits.reason == "1 of 1 runs of the namespace go on, and 1 run waits before this one"
    quota.give_back("a", NONE)
    assert not quota.ask(run("d"), ONE).granted, "a new run does not pass those that wait"
    assert not quota.ask(run("c"), ONE).granted
    assert called(quota) == ["b"]
    assert quota.ask(run("b"), ONE).granted


def test_a_run_that_asks_twice_has_one_place() -> None:
    quota = Quota(QuotaState())
    assert quota.ask(run("a"), ONE).granted
    assert quota.ask(run("a"), ONE).granted
    assert quota.next_to_look_at() == {"a": "agent-a"}


def test_a_run_that_waits_is_called_once_until_it_asks() -> None:
    quota = Quota(QuotaState())
    quota.ask(run("a"), ONE)
    quota.ask(run("b"), ONE)
    assert called(quota) == []
    quota.give_back("a", NONE)
    assert called(quota) == ["b"]
    assert called(quota) == []


def test_what_a_run_may_spend_is_reserved_and_what_it_has_not_spent_comes_back() -> None:
    quota = Quota(QuotaState())
    assert quota.ask(run("a", tokens=6_000), TOKENS).granted
    waits = quota.ask(run("b", tokens=6_000), TOKENS)
    assert waits.can_wait
    assert waits.reason == "the runs that go on may still spend what is left of the day"
    quota.give_back("a", Spending(tokens=500))
    assert quota.ask(run("b", tokens=6_000), TOKENS).granted
    assert quota.state.spent == Spending(tokens=500)


def test_a_run_that_can_have_nothing_today_is_refused() -> None:
    quota = Quota(QuotaState())
    quota.ask(run("a", tokens=6_000), TOKENS)
    quota.give_back("a", Spending(tokens=6_000))
    refused = quota.ask(run("b", tokens=6_000), TOKENS)
    assert not refused.granted
    assert not refused.can_wait
    assert refused.reason == (
        "the runs of the namespace have used 6,000 of 10,000 tokens today, and this one may use 6,000: give it a "
        "smaller --budget, or start it after midnight UTC"
    )
    dollars = quota.ask(run("c", cost=2_000_000), QuotaLimits(cost_a_day=1_000_000))
    assert dollars.reason.startswith(
        "the runs of the namespace have used $0.00 of $1.00 today, and this one may use $2.00"
    )


def test_a_run_without_a_limit_of_what_the_quota_counts_is_refused() -> None:
    for limits, name in ((TOKENS, "tokens"), (QuotaLimits(cost_a_day=5), "cost_usd")):
        refused = Quota(QuotaState()).ask(run("a"), limits)
        assert not refused.can_wait
        assert f"start it with --budget {name}=N" in refused.reason


def test_a_run_counts_for_the_day_on_which_it_began() -> None:
    quota = Quota(QuotaState(day=7))
    quota.ask(run("a", tokens=9_000), TOKENS)
    quota.ask(run("b", tokens=9_000), TOKENS)
    quota.begin_day(8)
    assert called(quota) == ["b"]
    assert quota.ask(run("b", tokens=9_000), TOKENS).granted
    quota.give_back("a", Spending(tokens=9_000))
    assert quota.state.spent == NONE


def test_a_run_that_ended_without_a_word_has_spent_all_that_was_reserved() -> None:
    quota = Quota(QuotaState())
    quota.ask(run("a", tokens=6_000), TOKENS)
    quota.give_back("a", None)
    quota.give_back("a", None)
    assert quota.state.spent == Spending(tokens=6_000)


def test_a_run_that_leaves_the_line_has_spent_nothing() -> None:
    quota = Quota(QuotaState())
    for name in ("a", "b", "c"):
        quota.ask(run(name, tokens=6_000), TOKENS)
    quota.give_back("b", None)
    quota.give_back("a", NONE)
    assert called(quota) == ["c"]
    assert quota.state.spent == NONE


def test_the_newest_limits_count_for_all() -> None:
    quota = Quota(QuotaState())
    for name in ("a", "b", "c"):
        quota.ask(run(name), ONE)
    assert quota.ask(run("d"), QuotaLimits(runs=3)).reason.endswith("and 2 runs wait before this one")
    assert called(quota) == ["b", "c"]


def test_the_state_and_one_look_are_bounded() -> None:
    quota = Quota(QuotaState())
    requests = [PlaceRequest(run="x" * 900, first_run=f"{number:036}") for number in range(1_000)]
    replies = [quota.ask(request, ONE) for request in requests]
    refused = [reply.reason for reply in replies if not reply.can_wait]
    assert refused[0].endswith("runs wait already; start it later")
    assert len(quota.state.model_dump_json()) <= MAX_QUOTA_BYTES
    assert len(quota.next_to_look_at()) == MAX_QUOTA_LOOKED_AT


def test_every_run_is_looked_at_in_turn() -> None:
    quota = Quota(QuotaState())
    limits = QuotaLimits(runs=2 * MAX_QUOTA_LOOKED_AT)
    names = [f"{number:04}" for number in range(MAX_QUOTA_LOOKED_AT + 100)]
    for name in names:
        quota.ask(run(name), limits)
    first = quota.next_to_look_at()
    assert list(first) == names[:MAX_QUOTA_LOOKED_AT]
    assert list(quota.next_to_look_at()) == names[MAX_QUOTA_LOOKED_AT:]
    assert quota.next_to_look_at() == first


@given(
    st.lists(
        st.tuples(st.sampled_from(["ask", "end", "cut", "day"]), st.integers(0, 7), st.integers(1, 60)), max_size=60
    ),
    st.integers(1, 3),
)
def test_any_order_of_asks_and_ends_keeps_the_limits_and_forgets_nobody(
    moves: list[tuple[str, int, int]], runs: int
) -> None:
    limits = QuotaLimits(runs=runs, tokens_a_day=100)
    quota = Quota(QuotaState())
    wishes: dict[str, int] = {}
    day = 0
    for kind, number, amount in moves:
        name = str(number)
        if kind == "ask":
            quota.ask(run(name, tokens=wishes.setdefault(name, amount)), limits)
        elif kind == "end":
            quota.give_back(name, Spending(tokens=min(amount, wishes.get(name, 0))))
        elif kind == "cut":
            quota.give_back(name, None)
        else:
            day += 1
            quota.begin_day(day)
        state = quota.state
        assert len(state.places) <= runs
        reserved = sum(place.reserved.tokens for place in state.places.values() if place.day == day)
        assert state.spent.tokens + reserved <= 100
        assert not set(state.places) & set(state.line)
        assert Quota(QuotaState.model_validate_json(state.model_dump_json())).state == state

    # All runs that go on end: then each of those that wait is called in turn, or refused for the day.
    for name in list(quota.state.places):
        quota.give_back(name, NONE)
    quota.begin_day(day + 1)
    waiting = list(quota.state.line)
    began: list[str] = []
    for _ in range(2 * len(waiting)):
        for name in waiting:
            if name not in began and quota.ask(run(name, tokens=wishes[name]), limits).granted:
                began.append(name)
                quota.give_back(name, NONE)
    assert began == waiting
