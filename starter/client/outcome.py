"""How a run ended, whatever way Temporal tells it: as a report and an exit code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError
from temporalio.exceptions import TimeoutError as RunTimeout

from starter.client.errors import Exit, Refused, exit_of
from workflows.messages.result import RunReport, RunStatus

REFUSALS = ("InvalidRequest", "InvalidPlan")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A run that is over. `refused` names why nothing was run at all: InvalidRequest or InvalidPlan."""

    report: RunReport
    refused: str | None = None

    @property
    def code(self) -> Exit:
        """The exit code of a command that waited for this run."""
        return Exit.USAGE if self.refused else exit_of(self.report.status)


def outcome_of_result(run: str, result: Any) -> RunOutcome:
    """Return the ending of a workflow that returned `result`; raises Refused when that is no run of Sennit."""
    report = _report_in([result])
    if report is None:
        raise Refused(f"{run} is not a run of this Sennit: its result has another form")
    return RunOutcome(report)


def outcome_of_failure(run: str, run_id: str, cause: BaseException) -> RunOutcome:
    """Return the ending of a workflow that failed, was cancelled, terminated or timed out."""
    if isinstance(cause, ApplicationError):
        told = _report_in(cause.details)
        if told is not None:
            return RunOutcome(told)
        refused = cause.type if cause.type in REFUSALS else None
        kind = "" if refused or cause.type in (None, "RunFailed") else f"{cause.type}: "
        return RunOutcome(_bare(run, run_id, "failed", f"{kind}{cause.message}"), refused)
    if isinstance(cause, CancelledError):
        return RunOutcome(_report_in(cause.details) or _bare(run, run_id, "cancelled", "the run was cancelled"))
    if isinstance(cause, TerminatedError):
        reason = f": {cause.message}" if cause.message != "Workflow terminated" else ""
        return RunOutcome(_bare(run, run_id, "failed", f"the run was terminated{reason}"))
    if isinstance(cause, RunTimeout):
        return RunOutcome(_bare(run, run_id, "failed", "the run hit its time limit in Temporal"))
    return RunOutcome(_bare(run, run_id, "failed", str(cause) or type(cause).__name__))


def _bare(run: str, run_id: str, status: RunStatus, problem: str) -> RunReport:
    return RunReport(id=run, run_id=run_id, status=status, problem=problem)


def _report_in(details: Sequence[Any]) -> RunReport | None:
    for item in details:
        if isinstance(item, dict) and "status" in item:
            try:
                return RunReport.model_validate(item)
            except ValidationError:
                return None
    return None
