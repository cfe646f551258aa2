"""How a run ended, in whatever form Temporal reports it: as a report and an exit code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError
from temporalio.exceptions import TimeoutError as RunTimeout

from starter.client.errors import Exit, Refused, exit_of
from workflows.messages.result import RunReport, RunStatus

REFUSALS = ("InvalidRequest", "InvalidPlan", "OriginMissing")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A run that is over. `refused` names why nothing was run at all, one of `REFUSALS`."""

    report: RunReport
    refused: str | None = None

    @property
    def code(self) -> Exit:
        return Exit.USAGE if self.refused else exit_of(self.report.status)


def outcome_of_result(run: str, result: Any) -> RunOutcome:
    """Return the outcome of a workflow that returned `result`; raises Refused if that is no report."""
    report = _report_in([result])
    if report is None:
        raise Refused(f"{run} is not a run of this Sennit: its result has another form")
    return RunOutcome(report)


def outcome_of_failure(run: str, run_id: str, cause: BaseException) -> RunOutcome:
    """Return the outcome of a workflow that failed, was cancelled, terminated or timed out."""
    report = _report_in(cause.details) if isinstance(cause, ApplicationError | CancelledError) else None
    if report is not None:
        return RunOutcome(report)
    status: RunStatus = "failed"
    refused = None
    problem = str(cause) or type(cause).__name__
    if isinstance(cause, ApplicationError):
        refused = cause.type if cause.type in REFUSALS else None
        kind = "" if refused or cause.type in (None, "RunFailed") else f"{cause.type}: "
        problem = f"{kind}{cause.message}"
    elif isinstance(cause, CancelledError):
        status, problem = "cancelled", "the run was cancelled"
    elif isinstance(cause, TerminatedError):
        reason = f": {cause.message}" if cause.message != "Workflow terminated" else ""
        problem = f"the run was terminated{reason}"
    elif isinstance(cause, RunTimeout):
        problem = "the run hit its time limit in Temporal"
    return RunOutcome(RunReport(id=run, run_id=run_id, status=status, problem=problem), refused)


def _report_in(details: Sequence[Any]) -> RunReport | None:
    for item in details:
        if isinstance(item, dict) and "status" in item:
            try:
                return RunReport.model_validate(item)
            except ValidationError:
                return None
    return None
