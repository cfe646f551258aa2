"""NoteRun: has a run noted that is over, for those that come later, as a Temporal workflow."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sennit.workflows.messages import queues
    from sennit.workflows.messages.trajectory import NOTE_RUN, NOTE_RUN_TYPE, NoteCall

LIMIT = timedelta(minutes=5)


@workflow.defn(name=NOTE_RUN_TYPE)
class NoteRun:
    """Has a worker note one run. Nobody waits for it, and nothing depends on it: after
    five minutes it gives up.
    """

    @workflow.run
    async def run(self, call: NoteCall) -> int:
        """Return how many calls were noted. A run that cannot be noted fails nobody."""
        try:
            noted = await workflow.execute_activity(
                NOTE_RUN.name,
                call,
                result_type=NOTE_RUN.gives,
                task_queue=queues.TOOLS,
                schedule_to_close_timeout=LIMIT,
                start_to_close_timeout=LIMIT / 5,
                retry_policy=RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=5),
                summary="note what the run has called",
            )
        except ActivityError:
            return 0
        return noted.calls if isinstance(noted, NOTE_RUN.gives) else 0
