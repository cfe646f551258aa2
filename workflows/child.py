"""A run as the child of somebody's own workflow."""

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError

from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.messages.request import RunInput
from sennit.workflows.messages.result import RunReport


async def run_child(request: RunInput, *, id: str | None = None) -> RunReport:  # noqa: A002  # the name Temporal has
    """Start a run as a child of the workflow that calls this, wait for its end, and return its
    report; `status` is done, partial or failed.

    The child survives what its parent survives, is called `id`, and is asked to cancel when the
    parent is cancelled or ends. It needs workers of Sennit in the same namespace; your own worker
    may have any JSON converter.

    Of an answer above 64 KiB, even an object, the report has the beginning as text. `answer_ref`
    then has the digest of the whole, and is None as long as nothing is cut. In an activity,
    `Run.output` of the run `report.id` reads it all.

    Raises ChildWorkflowError for a request that the run refuses, and for a run that was cancelled
    or ended by the server.
    """
    try:
        report = await workflow.execute_child_workflow(
            "AgentRun",
            request.model_dump(mode="json", exclude_unset=True),
            id=id or f"agent-{workflow.uuid4().hex}",
            task_queue=WORKFLOW,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
        )
    except ChildWorkflowError as error:
        if not (isinstance(error.cause, ApplicationError) and error.cause.type == "RunFailed"):
            raise
        [report] = error.cause.details
    return RunReport.model_validate(report)
