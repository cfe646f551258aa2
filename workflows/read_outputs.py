"""ReadOutputs: what a run has stored, for a client that does not reach the store,
as a Temporal workflow.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from sennit.workflows.messages import queues
    from sennit.workflows.messages.outputs import OUTPUTS, OutputsCall, OutputsReply

PATIENCE = timedelta(seconds=30)


@workflow.defn(name="ReadOutputs")
class ReadOutputs:
    """Has a worker read outputs of one run. It changes nothing."""

    @workflow.run
    async def run(self, call: OutputsCall) -> OutputsReply:
        """Return the outputs, or why there are none. Fails if no worker could
        read the store for 30 s.
        """
        found: OutputsReply = await workflow.execute_activity(
            OUTPUTS.name,
            call,
            result_type=OUTPUTS.gives,
            task_queue=queues.TOOLS,
            schedule_to_close_timeout=PATIENCE,
            heartbeat_timeout=PATIENCE / 2,
            retry_policy=RetryPolicy(initial_interval=timedelta(seconds=0.25), maximum_attempts=5),
        )
        return found
