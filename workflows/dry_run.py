"""DryRun: what an edit or a fork would do, for a client that does not reach the store,
as a Temporal workflow.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from sennit.workflows.messages import queues
    from sennit.workflows.messages.dry_run import DRY_RUN, DryRunCall, DryRunReport

PATIENCE = timedelta(seconds=40)


@workflow.defn(name="DryRun")
class DryRun:
    """Has a worker play what an edit or a fork would do. It changes nothing."""

    @workflow.run
    async def run(self, call: DryRunCall) -> DryRunReport:
        """Return what becomes of each call. Fails if no worker could play it within 40 s."""
        found: DryRunReport = await workflow.execute_activity(
            DRY_RUN.name,
            call,
            result_type=DRY_RUN.gives,
            task_queue=queues.TOOLS,
            schedule_to_close_timeout=PATIENCE,
            heartbeat_timeout=PATIENCE / 2,
            retry_policy=RetryPolicy(initial_interval=timedelta(seconds=0.25), maximum_attempts=3),
        )
        return found
