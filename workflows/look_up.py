"""LookUp: what became of writes whose run the server has ended, as a Temporal workflow."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sennit.workflows.messages import queues
    from sennit.workflows.messages.contracts import WRITE, GroupReply, NodeReply
    from sennit.workflows.messages.node_calls import WriteNodeCall
    from sennit.workflows.plan.scheduling.completion import NOT_WRITTEN
    from sennit.workflows.plan.scheduling.events import WriteStatus

PATIENCE = timedelta(minutes=1)


@workflow.defn(name="LookUp")
class LookUp:
    """Asks the ledger of effects about writes that nobody has waited for. It
    writes nothing itself.
    """

    @workflow.run
    async def run(self, calls: list[WriteNodeCall]) -> list[WriteStatus]:
        """Return what became of each. A write that may still be under way is waited for, at most a
        minute; then nobody knows of it.
        """
        return await asyncio.gather(*map(self._status, calls))

    async def _status(self, call: WriteNodeCall) -> WriteStatus:
        try:
            reply = await workflow.execute_activity(
                WRITE.name,
                call,
                result_type=WRITE.gives,
                task_queue=queues.TOOLS,
                schedule_to_close_timeout=PATIENCE,
                heartbeat_timeout=PATIENCE / 4,
            )
        except ActivityError:
            return "unknown"
        ends: tuple[NodeReply, ...] = ()
        if isinstance(reply, GroupReply):
            ends = reply.ends((1,))
        if not ends:
            return "unknown"  # somebody has completed it by hand, with what is no result
        error = ends[0].error
        if error is None:
            return "made"
        return "not made" if error.type == NOT_WRITTEN else "unknown"
