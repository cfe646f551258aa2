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
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowFailureError
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
    """Return the outcome of a workflow that returned `result`; raises Refused if that is no report."""
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
    problem = str(cause) or type(cause).__name__
    if isinstance(cause, ApplicationError):
        refused = cause.type if cause.type in REFUSALS else None
        kind = ""
        if not (refused or cause.type in (None, "RunFailed")):
            kind = f"{cause.type}: "
        problem = f"{kind}{cause.message}"
    elif isinstance(cause, CancelledError):
        status, problem = "cancelled", "the run was cancelled"
    elif isinstance(cause, TerminatedError):
        reason = ""
        if cause.message != "Workflow terminated":
            reason = f": {cause.message}"
        problem = f"the run was terminated{reason}"
    elif isinstance(cause, RunTimeout):
        problem = "the run hit its time limit in Temporal"
    return RunOutcome(RunReport(id=run, run_id=run_id, status=status, problem=problem), refused)


def result_of(report: RunReport, kind: type[T]) -> T:
    """Return the answer of a run as a value of this type; raises NoResult unless it is whole and fits."""
    if report.status != "done":
        how = "answers only a part" if report.status == "partial" else report.status
        raise NoResult(": ".join(filter(None, (report.id, how, report.problem))), report)
    try:
        return TypeAdapter(kind).validate_python(report.answer)
    except ValidationError as error:
        raise NoResult(f"{report.id}: the answer is no {kind.__name__}: {describe_errors(error, ())}", report) from None


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

_STARTED, _ENDED = (
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED,
    {
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED: "child_workflow_execution_completed_event_attributes",
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED: "child_workflow_execution_failed_event_attributes",
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED: "child_workflow_execution_canceled_event_attributes",
    },
)


async def writes_at_end(client: Client, found: WorkflowExecutionDescription) -> tuple[WriteLine, ...]:
    """Return the writes of a run that is over and has no report. One that was cancelled has waited for them and says
    what became of each. Of one that the server ended, they are those in flight then, and nobody knows of them. Raises
    RPCError.
    """
    if found.status is WorkflowExecutionStatus.CANCELED:
        return tuple(WriteLine.model_validate(each) for each in (await found.memo()).get(WRITES, ()))
    paths = [path async for path, _ in _open_writes(client, found.id, found.run_id)]
    return tuple(WriteLine(node=path, status="unknown") for path in paths)


async def looked_up(client: Client, found: WorkflowExecutionDescription) -> tuple[WriteLine, ...]:
    """Return the writes that were in flight when the server ended a run, with what became of each by the ledger of
    effects. They stay unknown if no worker looks in time. Raises RPCError.
    """
    writes = [write async for write in _open_writes(client, found.id, found.run_id)]
    calls = [(await client.data_converter.decode(payloads, [WriteNodeCall]))[0] for _, payloads in writes]
    asked = [
        WriteNodeCall(run=call.run, plan=call.plan, nodes=call.nodes, epoch=call.epoch, looks_up=True) for call in calls
    ]
    statuses: list[WriteStatus] = ["unknown"] * len(asked)
    with suppress(WorkflowFailureError):
        statuses = await client.execute_workflow(
            "LookUp",
            asked,
            id=f"{found.id}.look-up",  # no sub-agent has this name
            task_queue=WORKFLOW,
            result_type=list[WriteStatus],
            execution_timeout=LONGEST_LOOK,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
    return tuple(WriteLine(node=path, status=status) for (path, _), status in zip(writes, statuses, strict=True))


async def _open_writes(client: Client, name: str, run_id: str | None) -> AsyncIterator[tuple[str, Sequence[Payload]]]:
    """Yield the writes that a run began, and of which its history does not tell how they ended, by their paths, each
    with the input of its activity: first its own, then those of its sub-agents.
    """
    calls, doubts, children = dict[int, str](), dict[str, Sequence[Payload]](), dict[str, bool]()
    async for event in client.get_workflow_handle(name, run_id=run_id).fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            found = parse_activity_id(scheduled.activity_id)
            if found is None:
                continue
            path = found.full_path
            doubts = {
                each: payloads
                for each, payloads in doubts.items()
                if each.partition("~")[0] != found.node or each == path
            }
            if scheduled.activity_type.name == WRITE.name:
                calls[event.event_id], doubts[path] = path, scheduled.input.payloads
        elif (begun := _scheduled_by(event)) in calls and not await _is_in_doubt(client, event):
            doubts.pop(calls[begun], None)
        elif event.event_type == _STARTED:
            started = event.child_workflow_execution_started_event_attributes
            children[started.workflow_execution.workflow_id] = True
        elif event.event_type in _ENDED:
            children.pop(getattr(event, _ENDED[event.event_type]).workflow_execution.workflow_id, None)
    for path, payloads in doubts.items():
        yield path, payloads
    for child in children:
        async for path, payloads in _open_writes(client, child, None):
            yield f"{child.removeprefix(f'{name}.')}.{path}", payloads


def _scheduled_by(event: HistoryEvent) -> int:
    """Return the event that scheduled the activity which ends with this one, 0 for any other event."""
    return (
        event.activity_task_completed_event_attributes.scheduled_event_id
        or event.activity_task_failed_event_attributes.scheduled_event_id
    )


async def _is_in_doubt(client: Client, event: HistoryEvent) -> bool:
    """Whether the end of a write says that nobody knows whether it was made."""
    failure = event.activity_task_failed_event_attributes.failure
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
        return failure.application_failure_info.type == UNKNOWN_OUTCOME
    payloads = event.activity_task_completed_event_attributes.result.payloads
    reply, *_ = await client.data_converter.decode(payloads, [GroupReply]) if payloads else (None,)
    ends = reply.ends((1,)) if isinstance(reply, GroupReply) else ()
    if not ends:
        return True  # somebody has completed it by hand, with what is no result
    return ends[0].error is not None and ends[0].error.type == UNKNOWN_OUTCOME
