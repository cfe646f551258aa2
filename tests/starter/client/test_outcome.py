"""Every way Temporal tells that a run is over."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError, TimeoutType
from temporalio.exceptions import TimeoutError as RunTimeout

from sennit.starter.client.errors import Refused
from sennit.starter.client.outcome import outcome_of_failure, outcome_of_result

REPORT = {"id": "a", "run_id": "b", "status": "failed", "problem": "n1 failed"}


def end(cause: BaseException) -> tuple[str, str | None, int]:
    ending = outcome_of_failure("a", "b", cause)
    return ending.report.status, ending.report.problem, ending.code


def test_a_result_is_a_report() -> None:
    assert outcome_of_result("a", {**REPORT, "status": "done"}).code == 0


@pytest.mark.parametrize("result", [None, 7, [], {"status": "odd"}, {**REPORT, "more": 1}])
def test_another_result_is_no_run_of_ours(result: Any) -> None:
    with pytest.raises(Refused, match="a is not a run of this Sennit"):
        outcome_of_result("a", result)


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (ApplicationError("no", REPORT, type="RunFailed"), ("failed", "n1 failed", 1)),
        (ApplicationError("no", type="RunFailed"), ("failed", "no", 1)),
        (ApplicationError("no", type="Odd"), ("failed", "Odd: no", 1)),
        (ApplicationError("1\n2", ["1", "2"], type="InvalidPlan"), ("failed", "1\n2", 2)),
        (ApplicationError("wrong", type="InvalidRequest"), ("failed", "wrong", 2)),
        (CancelledError("Workflow cancelled"), ("cancelled", "the run was cancelled", 1)),
        (CancelledError("c", {**REPORT, "status": "cancelled"}), ("cancelled", "n1 failed", 1)),
        (TerminatedError("Workflow terminated"), ("failed", "the run was terminated", 1)),
        (TerminatedError("enough"), ("failed", "the run was terminated: enough", 1)),
        (
            RunTimeout("t", type=TimeoutType.START_TO_CLOSE, last_heartbeat_details=[]),
            ("failed", "the run hit its time limit in Temporal", 1),
        ),
        (RuntimeError(), ("failed", "RuntimeError", 1)),
    ],
)
def test_a_failure_is_a_report_with_its_exit_code(cause: BaseException, expected: tuple[str, str, int]) -> None:
    assert end(cause) == expected
