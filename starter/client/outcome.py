"""How a run ended, in whatever form Temporal reports it: as a report and an exit code.

Of one that ended without a report, its memo or its history says what became of its writes.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError
from temporalio.exceptions import TimeoutError as RunTimeout

from sennit.starter.client.errors import Exit, NoResult, Refused, exit_of
from sennit.workflows.messages.activity_ids import parse_activity_id
from sennit.workflows.messages.contracts import WRITE, GroupReply
from sennit.workflows.messages.node_calls import WriteNodeCall
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.messages.result import WRITES, RunReport, RunStatus, WriteLine
from sennit.workflows.plan.language.validation_messages import describe_errors
from sennit.workflows.plan.scheduling.completion import UNKNOWN_OUTCOME
from sennit.workflows.plan.scheduling.events import WriteStatus

T = TypeVar("T")
REFUSALS = ("InvalidRequest", "InvalidPlan", "OriginMissing")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A run that is over. `refused` names why nothing was run at all, one of `REFUSALS`."""

    report: RunReport
    refused: str | None = None

    @property
    def code(self) -> Exit:
        if self.report.status == "done" and self.report.answer_ref is not None:
            return Exit.PARTIAL  # its answer is cut
        if self.refused:
            return Exit.USAGE
        return exit_of(self.report.status)


def outcome_of_result(run: str, result: Any) -> RunOutcome:
    """Return the outcome of a workflow that returned `result`; raises
    Refused if that is no report.
    """
    report = _report_in([result])
    if report is None:
        raise Refused(f"{run} is not a run of this Sennit: its result has another form")
    return RunOutcome(report)


def outcome_of_failure(run: str, run_id: str, cause: BaseException) -> RunOutcome:
    """Return the outcome of a workflow that failed, was cancelled, terminated or timed out."""
    report = None
    if isinstance(cause, ApplicationError | CancelledError):
        report = _report_in(cause.details)
    if report is not None:
        return RunOutcome(report)
    status: RunStatus = "failed"
    refused = None
    if isinstance(cause, ApplicationError):
        problem = cause.message
        if cause.type in REFUSALS:
            refused = cause.type
        elif cause.type not in (None, "RunFailed"):
            problem = f"{cause.type}: {cause.message}"
    elif isinstance(cause, CancelledError):
        status = "cancelled"
        problem = "the run was cancelled"
    elif isinstance(cause, TerminatedError):
        problem = "the run was terminated"
        if cause.message != "Workflow terminated":
            problem += f": {cause.message}"
    elif isinstance(cause, RunTimeout):
        problem = "the run hit its time limit in Temporal"
    else:
        problem = str(cause) or type(cause).__name__
    return RunOutcome(RunReport(id=run, run_id=run_id, status=status, problem=problem), refused)


def result_of(report: RunReport, kind: type[T]) -> T:
    """Return the answer of a run as a value of this type; raises NoResult
    unless it is whole and fits.
    """
    if report.status != "done":
        how = "answers only a part" if report.status == "partial" else report.status
        problem = f"{report.id}: {how}"
        if report.problem:
            problem += f": {report.problem}"
        raise NoResult(problem, report)
    try:
        return TypeAdapter(kind).validate_python(report.answer)
    except ValidationError as error:
        raise NoResult(
            f"{report.id}: the answer is no {kind.__name__}: {describe_errors(error, ())}", report
        ) from None


def _report_in(details: Sequence[Any]) -> RunReport | None:
    for item in details:
        if isinstance(item, dict) and "status" in item:
            try:
                return RunReport.model_validate(item)
            except ValidationError:
                return None
    return None


LONGEST_LOOK = timedelta(seconds=70)
"""A worker waits a minute for a write that may still be under way."""

_CHILD_STARTED = EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED
_CHILD_ENDS = {
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED: (
        "child_workflow_execution_completed_event_attributes"
    ),
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED: (
        "child_workflow_execution_failed_event_attributes"
    ),
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED: (
        "child_workflow_execution_canceled_event_attributes"
    ),
}
"""The events with which a sub-agent ends by itself, and where each says which
sub-agent it is about.
"""


async def writes_at_end(
    client: Client, found: WorkflowExecutionDescription
) -> tuple[WriteLine, ...]:
    """Return the writes of a run that is over and has no report. One that was cancelled has waited
    for them and says what became of each. Of one that the server ended, they are those in flight
    then, and nobody knows of them. Raises RPCError.
    """
    if found.status is WorkflowExecutionStatus.CANCELED:
        memo = await found.memo()
        return tuple(WriteLine.model_validate(line) for line in memo.get(WRITES, ()))
    writes = [write async for write in _open_writes(client, found.id, found.run_id)]
    return tuple(WriteLine(node=write.path, status="unknown") for write in writes)


async def looked_up(client: Client, found: WorkflowExecutionDescription) -> tuple[WriteLine, ...]:
    """Return the writes that were in flight when the server ended a run, with what became of each
    by the ledger of effects. They stay unknown if no worker looks in time. Raises RPCError.
    """
    paths: list[str] = []
    look_ups: list[WriteNodeCall] = []
    async for write in _open_writes(client, found.id, found.run_id):
        arguments = await client.data_converter.decode(write.input, [WriteNodeCall])
        call = arguments[0]
        paths.append(write.path)
        look_ups.append(
            WriteNodeCall(
                run=call.run, plan=call.plan, nodes=call.nodes, epoch=call.epoch, looks_up=True
            )
        )

    statuses: list[WriteStatus] = ["unknown"] * len(look_ups)
    with suppress(WorkflowFailureError):
        statuses = await client.execute_workflow(
            "LookUp",
            look_ups,
            id=f"{found.id}.look-up",  # no sub-agent has this name
            task_queue=WORKFLOW,
            result_type=list[WriteStatus],
            execution_timeout=LONGEST_LOOK,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
    return tuple(
        WriteLine(node=path, status=status) for path, status in zip(paths, statuses, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _OpenWrite:
    """A write of which a history does not tell how it ended: its path, and the
    input of its activity.
    """

    path: str
    input: Sequence[Payload]


async def _open_writes(client: Client, name: str, run_id: str | None) -> AsyncIterator[_OpenWrite]:
    """Yield the writes that a run began, and of which its history does not tell how they ended:
    first its own, then those of its sub-agents.
    """
    open_writes, children = await _left_open(client, name, run_id)
    for write in open_writes:
        yield write
    for child in children:
        prefix = child.removeprefix(f"{name}.")
        async for write in _open_writes(client, child, None):
            yield _OpenWrite(f"{prefix}.{write.path}", write.input)


async def _left_open(
    client: Client, name: str, run_id: str | None
) -> tuple[list[_OpenWrite], list[str]]:
    """Return the writes and the sub-agents of one run of which its history does
    not tell how they ended.
    """
    paths: dict[int, str] = {}
    """By the event that scheduled a write, the path of the write."""
    open_writes: dict[str, _OpenWrite] = {}
    children: dict[str, bool] = {}
    async for event in client.get_workflow_handle(name, run_id=run_id).fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            scheduled = event.activity_task_scheduled_event_attributes
            place = parse_activity_id(scheduled.activity_id)
            if place is None:
                continue
            # Somebody has decided about the earlier generations of a node when another one begins.
            path = place.full_path
            for earlier in list(open_writes):
                if earlier.partition("~")[0] == place.node and earlier != path:
                    del open_writes[earlier]
            if scheduled.activity_type.name == WRITE.name:
                paths[event.event_id] = path
                open_writes[path] = _OpenWrite(path, scheduled.input.payloads)
        elif _scheduled_by(event) in paths:
            if not await _is_in_doubt(client, event):
                path = paths[_scheduled_by(event)]
                open_writes.pop(path, None)
        elif event.event_type == _CHILD_STARTED:
            started = event.child_workflow_execution_started_event_attributes
            children[started.workflow_execution.workflow_id] = True
        elif event.event_type in _CHILD_ENDS:
            ended = getattr(event, _CHILD_ENDS[event.event_type])
            children.pop(ended.workflow_execution.workflow_id, None)
    return list(open_writes.values()), list(children)


def _scheduled_by(event: HistoryEvent) -> int:
    """Return the event that scheduled the activity which ends with this one,
    0 for any other event.
    """
    return (
        event.activity_task_completed_event_attributes.scheduled_event_id
        or event.activity_task_failed_event_attributes.scheduled_event_id
    )


async def _is_in_doubt(client: Client, event: HistoryEvent) -> bool:
    """Whether the end of a write says that nobody knows whether it was made."""
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
        failure = event.activity_task_failed_event_attributes.failure
        return failure.application_failure_info.type == UNKNOWN_OUTCOME

    # A person may have completed the activity by hand, with any value or none: that
    # is no result of a write.
    payloads = event.activity_task_completed_event_attributes.result.payloads
    if not payloads:
        return True
    reply, *_ = await client.data_converter.decode(payloads, [GroupReply])
    if not isinstance(reply, GroupReply):
        return True
    ends = reply.ends((1,))
    if not ends:
        return True
    error = ends[0].error
    return error is not None and error.type == UNKNOWN_OUTCOME
