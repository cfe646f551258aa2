"""How many workers serve a task queue, and how many activities wait in it."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

FRESH = 10.0  # seconds
GONE = timedelta(seconds=75)
"""A worker asks for work at least every minute."""
_LIMIT = timedelta(seconds=2)


class QueueWorkers:
    """Remembers the server's answers for a moment."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, int]] = {}

    async def counts(self, client: Client, queues: Iterable[str]) -> dict[str, int]:
        """Return how many workers serve each queue that has several. No error if
        the server does not say.
        """
        counts: dict[str, int] = {}
        for queue in dict.fromkeys(queues):
            count = await self._count(client, queue)
            if count > 1:
                counts[queue] = count
        return counts

    async def backlog(self, client: Client, queue: str) -> int | None:
        """Return about how many activities wait in a queue now; None if the server does not say."""
        request = DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            report_stats=True,
        )
        try:
            answer = await client.workflow_service.describe_task_queue(request, timeout=_LIMIT)
        except RPCError:
            return None
        return int(answer.stats.approximate_backlog_count)

    async def _count(self, client: Client, queue: str) -> int:
        asked, known = self._found.get(queue, (-FRESH, 0))
        if time.monotonic() - asked < FRESH:
            return known
        request = DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
        try:
            answer = await client.workflow_service.describe_task_queue(request, timeout=_LIMIT)
        except RPCError:
            return known
        since = datetime.now(UTC) - GONE
        workers: set[str] = set()
        for poller in answer.pollers:
            if poller.last_access_time.ToDatetime(UTC) > since:
                workers.add(poller.identity)
        count = len(workers)
        self._found[queue] = time.monotonic(), count
        return count
