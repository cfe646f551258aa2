"""An activity's own count of its attempts and of what they used, from Temporal's count and the last heartbeat."""

import asyncio
import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from sennit.activities.definitions import _typed, _with_usage
from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.error_mapping import BudgetExceeded, NodeTimeout
from sennit.activities.providers.errors import SchemaMismatch
from sennit.activities.providers.limiter import ProviderBusy
from sennit.activities.providers.model import ProviderError
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.plan.language.limits import NO_USAGE, Usage


def within(attempt: int, beat: list[Any], work: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """Run `work` as an activity in that attempt; returns its result and its heartbeats."""
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=attempt, heartbeat_details=beat)
    beats: list[Any] = []
    environment.on_heartbeat = lambda *details: beats.append(details)
    return environment.run(work), beats


def failed(error: ProviderError, allowed: int | None) -> Callable[[], ApplicationError]:
    def work() -> ApplicationError:
        attempts = Attempts.of_this_activity()
        if allowed is not None:
            attempts.allow(allowed)
        return attempts.failed(error)

    return work


def test_refusals_of_earlier_attempts_do_not_count() -> None:
    found, _ = within(9, ["writing", 6, [10, 2, 5, 1], [7, 8, 9, 1]], Attempts.of_this_activity)
    assert (found.number, found.refused, found.spent, found.cut) == (3, 6, (10, 2, 5, 1, 0), (7, 8, 9, 1, 0))


def test_what_a_tool_has_booked_before_its_worker_died_comes_on_top() -> None:
    def work() -> Usage:
        attempts = Attempts.of_this_activity()
        attempts.call_anew()
        return _with_usage(NodeReply(usage=Usage(5, 0, 0, 0)), attempts).usage

    found, _ = within(2, ["page 3 of 9", 0, [10, 0, 0, 0], [7, 0, 0, 1]], work)
    assert found == Usage(22, 0, 0, 1)


@pytest.mark.parametrize("beat", [[], ["planning"], [[7]]])
def test_without_a_full_heartbeat_every_attempt_counts(beat: list[Any]) -> None:
    found, _ = within(3, beat, Attempts.of_this_activity)
    assert (found.number, found.refused) == (3, 0)


@pytest.mark.parametrize(
    ("attempt", "beat", "lost"),
    [
        (1, [], False),
        (2, [], True),  # it did not live to its first heartbeat
        (2, [[7]], True),  # of a group, which does not fail
        (2, ["downloading", 0, [0, 0, 0, 0], [0, 0, 0, 0]], True),
        (2, ["failed", 0, [0, 0, 0, 0], [0, 0, 0, 0]], False),
    ],
)
def test_an_attempt_that_has_not_failed_by_itself_was_lost(attempt: int, beat: list[Any], lost: bool) -> None:
    assert within(attempt, beat, Attempts.of_this_activity)[0].lost is lost


def test_a_refusal_is_passed_on_and_never_final() -> None:
    error = ProviderBusy("busy", retryable=True, retry_after=3.5)
    failure, beats = within(4, ["", 3, [0, 0, 0, 0], [0, 0, 0, 0]], failed(error, 1))
    assert (failure.type, failure.non_retryable, failure.details[0]) == ("ProviderBusy", False, 1)
    assert failure.next_retry_delay == timedelta(seconds=3.5)
    assert beats == [("failed", 4, NO_USAGE, NO_USAGE)]


def test_what_was_wrong_with_a_reply_is_known_to_all_later_attempts() -> None:
    nothing = [0, 0, 0, 0]
    _, [beat] = within(1, [], failed(SchemaMismatch("no JSON\nat all", retryable=True), 4))
    assert beat[0] == "failed\nno JSON at all"
    _, [later] = within(2, ["failed\nno JSON at all", 0, nothing, nothing], failed(ProviderError("500"), 4))
    assert later[0] == beat[0]
    found, _ = within(3, list(later), Attempts.of_this_activity)
    assert (found.fault, found.lost) == ("no JSON at all", False)


@pytest.mark.parametrize(
    ("refused", "asked", "waits"), [(15, 0.5, 0.5), (63, 0.5, 2.0), (999, 0.5, 10.0), (999, 40.0, 40.0)]
)
def test_what_is_put_off_again_and_again_asks_less_often(refused: int, asked: float, waits: float) -> None:
    error = ProviderBusy("busy", retryable=True, retry_after=asked)
    failure, _ = within(refused + 1, ["", refused, [0, 0, 0, 0], [0, 0, 0, 0]], failed(error, 1))
    assert (failure.non_retryable, failure.next_retry_delay) == (False, timedelta(seconds=waits))


def test_the_last_attempt_of_its_own_is_final_and_tells_what_all_used() -> None:
    error = ProviderError("x", retryable=True)
    error.usage = Usage(5, 6, 7, 1)
    failure, beats = within(5, ["", 3, [1, 2, 3, 4], [0, 0, 0, 0]], failed(error, 2))
    assert (failure.non_retryable, failure.details) == (True, (2, (6, 8, 10, 5, 0)))
    assert beats == [("failed", 3, (6, 8, 10, 5, 0), NO_USAGE)]
    failure, _ = within(4, ["", 3, [1, 2, 3, 4], [0, 0, 0, 0]], failed(error, 2))
    assert (failure.non_retryable, failure.next_retry_delay) == (False, timedelta(seconds=0.25))


def test_the_policy_waits_unless_refusals_have_stretched_it() -> None:
    failure, _ = within(3, [], failed(ProviderError("x", retryable=True), 4))
    assert (failure.non_retryable, failure.next_retry_delay) == (False, None)
    failure, _ = within(1, [], failed(ProviderError("x", retryable=True, retry_after=0.0), None))
    assert failure.next_retry_delay == timedelta(seconds=0.001)


def test_a_call_that_loses_every_worker_ends() -> None:
    with pytest.raises(ApplicationError, match="no worker finished it in 4 attempts") as caught:
        within(7, ["", 2, [1, 2, 3, 4], [10, 0, 5, 1]], lambda: Attempts.of_this_activity().allow(4))
    assert (caught.value.type, caught.value.non_retryable) == ("WorkerLost", True)
    assert caught.value.details == (4, (11, 2, 8, 5, 0)), "what was cut off last is charged too"


CUT = Usage(100, 900, 40, 1)
SENT, MOST = Usage(10, 0, 1, 1), Usage(10, 90, 5, 1)


class Recorder:
    """Where heartbeats go that the server has confirmed."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.beats: list[tuple[Any, ...]] = []
        self._error = error

    async def __call__(self, *details: Any) -> None:
        self.beats.append(details)
        if self._error is not None:
            raise self._error


async def test_a_call_is_recorded_at_its_maximum_before_it_starts_and_charged_if_cancelled() -> None:
    recorder = Recorder()
    attempts = Attempts(2, 0, Usage(1, 1, 1, 1), CUT, record=recorder)
    await attempts.begin(SENT, MOST)
    assert recorder.beats == [("", 0, (101, 901, 41, 2, 0), MOST)]
    attempts.end(Usage(10, 3, 2, 1))
    assert attempts.beat() == ("", 0, (101, 901, 41, 2, 0), (10, 3, 2, 1, 0))
    await attempts.begin(SENT, MOST)
    assert recorder.beats[1] == ("", 0, (111, 904, 43, 3, 0), MOST), "a call after another that has ended"


async def test_what_was_cut_off_is_charged_though_rules_take_over_and_not_when_nothing_is_called() -> None:
    recorder = Recorder()
    attempts = Attempts(2, 0, NO_USAGE, CUT, record=recorder)
    assert (attempts.spent, attempts.beat()[3]) == (NO_USAGE, CUT), "the node may be marked, with its usage"
    await attempts.begin(NO_USAGE, NO_USAGE)
    assert (attempts.spent, recorder.beats) == (CUT, [])


async def test_a_call_that_could_not_be_recorded_does_not_start_and_costs_nothing() -> None:
    attempts = Attempts(1, 0, record=Recorder(asyncio.CancelledError()))
    with pytest.raises(asyncio.CancelledError):
        await attempts.begin(SENT, MOST)
    assert attempts.beat() == ("", 0, NO_USAGE, NO_USAGE)


@pytest.mark.parametrize("lost", [None, RPCError("gone", RPCStatusCode.UNAVAILABLE, b"")])
async def test_the_server_has_counted_a_refusal_when_its_attempt_ends(lost: RPCError | None) -> None:
    recorder = Recorder(lost)

    async def refuse() -> None:
        raise ProviderBusy("busy", retryable=True, retry_after=1.0)

    with pytest.raises(ApplicationError, match="busy"):
        await ActivityEnvironment().run(_typed, refuse(), Attempts(1, 0, record=recorder))
    assert recorder.beats == [("failed", 1, NO_USAGE, NO_USAGE)]


def test_an_attempt_that_ends_beside_its_call_is_charged_what_the_call_may_have_used() -> None:
    def work() -> ApplicationError:
        attempts = Attempts.of_this_activity()
        attempts.open = MOST
        return attempts.failed(NodeTimeout("no result"))

    failure, beats = within(2, ["", 0, [1, 1, 1, 1], [0, 0, 0, 0]], work)
    assert (failure.details[1], beats) == ((11, 91, 6, 2, 0), [("failed", 0, (11, 91, 6, 2, 0), NO_USAGE)])


@pytest.mark.parametrize(
    ("left", "why"),
    [
        ({"tokens": 1010}, "used tokens 1,000 of 1,010 that were left; raise the budget"),
        ({"tokens": 5000, "cost": 41}, r"used cost \$4e-05 of \$4.1e-05 that"),
        ({"calls": 1}, "used calls 1 of 1 that were left"),
        ({"tokens": 1011, "cost": 42, "calls": 2}, None),
        ({}, None),
    ],
)
async def test_a_further_attempt_goes_out_while_the_budget_has_room_for_it(
    left: dict[str, int], why: str | None
) -> None:
    attempts = Attempts(2, 0, NO_USAGE, CUT, left=left, record=Recorder())
    if why is None:
        await attempts.begin(SENT, MOST)
        return
    with pytest.raises(BudgetExceeded, match=why):
        await attempts.begin(SENT, MOST)
    assert attempts.beat() == ("", 0, CUT, NO_USAGE)
    first = Attempts(1, 0, left=dict.fromkeys(left, 0), record=Recorder())
    await first.begin(SENT, MOST)
    assert first.open == MOST, "the scheduler has let it through"
