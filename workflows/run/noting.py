"""Has a run that is over noted, without waiting for any worker of activities."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import cast, get_args

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import FailureError, is_cancelled_exception

from sennit.workflows.limits import MAX_NOTED_ID_BYTES
from sennit.workflows.messages.message import message_bytes
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.messages.result import RunStatus
from sennit.workflows.messages.trajectory import NOTE_RUN_TYPE, NoteCall, RunEnd
from sennit.workflows.plan.language.text import text_bytes
from sennit.workflows.plan.limits import MAX_PAYLOAD_BYTES
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.run.setup import RunSetup
from sennit.workflows.run.timer import milliseconds
from sennit.workflows.views.trajectory import calls_of

LIMIT = timedelta(minutes=10)
"""After this a note that no worker has taken is given up."""
LAST = Priority(priority_key=5)
"""Whatever else waits for workers comes first."""


ENDS = get_args(RunEnd)


async def note_run(
    setup: RunSetup,
    state: RunState,
    plan: str,
    status: RunStatus,
    took: Mapping[int, int] = MappingProxyType({}),
) -> None:
    """Start a workflow of its own that has the calls of this run noted, and return as
    soon as the server has it.

    The run never learns what became of it, and no failure of it is the run's: the server gives it
    up after ten minutes. (A server starts no child of a run that has ended meanwhile, so the run
    waits for one answer of the server.) One whose id would be too long for a database is not
    started, and neither is one of a run without calls. `took` is how long those calls took that
    were made early, by the units that have taken them over.
    """
    # No sub-agent has this name: nodes have no hyphen.
    ident = f"{workflow.info().workflow_id}.noted-calls"
    calls, left_out = calls_of(state, took)
    if not calls or status not in ENDS or text_bytes(ident) > MAX_NOTED_ID_BYTES:
        return
    note = NoteCall(
        run=setup.run_prefix,
        run_context=setup.run_context,
        plan=plan,
        tenant=setup.tenant,
        status=cast("RunEnd", status),
        ended=milliseconds(),
        calls=calls,
        left_out=left_out,
    )
    if message_bytes(note, exclude_defaults=True) > MAX_PAYLOAD_BYTES // 4:
        return
    try:
        await workflow.start_child_workflow(
            NOTE_RUN_TYPE,
            note,
            id=ident,
            task_queue=WORKFLOW,
            execution_timeout=LIMIT,
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            priority=LAST,
        )
    except FailureError as error:
        if is_cancelled_exception(error):
            raise
        workflow.logger.info("the run is not noted: %s", error)
