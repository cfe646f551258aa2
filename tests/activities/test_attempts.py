"""An activity's own count of its attempts and of what they used, from Temporal's count and the last heartbeat."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.attempts import Attempts
from activities.providers import ProviderError, Usage
from activities.providers.limiter import ProviderBusy


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
    found, _ = within(9, ["writing", 6, [10, 2, 5]], Attempts.of_this_activity)
    assert (found.own, found.refused, found.spent) == (3, 6, (10, 2, 5))


@pytest.mark.parametrize("beat", [[], ["planning"], [[7]]])
def test_without_a_full_heartbeat_every_attempt_counts(beat: list[Any]) -> None:
    found, _ = within(3, beat, Attempts.of_this_activity)
    assert (found.own, found.refused) == (3, 0)


def test_a_refusal_is_passed_on_and_never_final() -> None:
    error = ProviderBusy("busy", retryable=True, retry_after=3.5)
    failure, beats = within(4, ["", 3, [0, 0, 0]], failed(error, 1))
    assert (failure.type, failure.non_retryable, failure.details[0]) == ("ProviderBusy", False, 1)
    assert failure.next_retry_delay == timedelta(seconds=3.5)
    assert beats == [("", 4, (0, 0, 0))]


def test_the_last_attempt_of_its_own_is_final_and_tells_what_all_used() -> None:
    error = ProviderError("x", retryable=True)
    error.usage = Usage(5, 6, 7)
    failure, beats = within(5, ["", 3, [1, 2, 3]], failed(error, 2))
    assert (failure.non_retryable, failure.details) == (True, (2, (6, 8, 10)))
    assert beats == [("", 3, (6, 8, 10))]
    failure, _ = within(4, ["", 3, [1, 2, 3]], failed(error, 2))
    assert (failure.non_retryable, failure.next_retry_delay) == (False, timedelta(seconds=1))


def test_the_policy_waits_unless_refusals_have_stretched_it() -> None:
    failure, _ = within(3, [], failed(ProviderError("x", retryable=True), 4))
    assert (failure.non_retryable, failure.next_retry_delay) == (False, None)
    failure, _ = within(1, [], failed(ProviderError("x", retryable=True, retry_after=0.0), None))
    assert failure.next_retry_delay == timedelta(seconds=0.001)


def test_a_call_that_loses_every_worker_ends() -> None:
    with pytest.raises(ApplicationError, match="no worker finished it in 4 attempts") as caught:
        within(7, ["", 2, [0, 0, 0]], lambda: Attempts.of_this_activity().allow(4))
    assert (caught.value.type, caught.value.non_retryable) == ("WorkerLost", True)
