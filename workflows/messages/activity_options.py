"""Timeouts, retries and queues of every activity; chosen so that the web UI has
nothing to warn about.

Each has a retry policy with an end, a start-to-close time, and a heartbeat shorter than that. A
node's own timeout is kept inside the activity. The time beyond it is for binding and storing, and
for waiting: until the worker has a thread for a tool, until its event loop is free of a tool that
blocks it, or until the artifact store is back.
"""

from datetime import timedelta
from typing import TypedDict

from temporalio.common import Priority, RetryPolicy
from temporalio.workflow import ActivityCancellationType

from sennit.workflows.messages import queues
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.limits import CALL_SECONDS
from sennit.workflows.plan.language.summary import for_bar

HEARTBEAT = timedelta(seconds=10)
OVERHEAD = timedelta(seconds=5)
QUEUE = timedelta(minutes=30)
SERVICE = timedelta(minutes=1)
PLANNING = timedelta(seconds=CALL_SECONDS) + QUEUE
PATIENCE = timedelta(hours=24)
STORE_AWAY = "StoreUnavailable"
STORE_PATIENCE = timedelta(seconds=30)
"""How long an activity waits for the store before its run does, which shows what it waits for."""
FIRST_RETRY, GROWTH, LAST_RETRY = timedelta(seconds=0.25), 4.0, timedelta(seconds=30)
"""A slip costs hardly any time, and five attempts outlive an outage of 20 s."""
USUAL_PRIORITY = 3
LAST_PRIORITY = 5
SOON = timedelta(seconds=5)
"""How long a call that is made early may wait for a worker: one that is late is of no use."""
SERVICE_ATTEMPTS = 5
REFUSALS = 10_000
"""Times that a busy provider may put a model call off, beside its attempts: as many as
there is patience for.
"""


OTHER_PYTHONS = 20
"""Times that workers may leave an advance of a program to one with another version of
Python: for eight minutes.
"""


class Options(TypedDict, total=False):
    """The options of `workflow.start_activity` that Sennit sets."""

    task_queue: str
    start_to_close_timeout: timedelta
    schedule_to_start_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType
    priority: Priority
    summary: str


def node_options(specs: list[NodeSpec], *, item: bool, is_call: bool) -> Options:
    """Return the options for one node or a group. `is_call` is false where only stored outputs are
    put together, around a sub-agent too: what fails there is the store, and what its run has cost
    is not to be lost for that. The end of a write that is cancelled is waited for, and that of a
    model call, which says what the call has used.
    """
    first = specs[0]
    limit = working_time(specs, item=item, is_call=is_call)
    options = Options(
        task_queue=first.queue if is_call else queues.TOOLS,
        start_to_close_timeout=limit + QUEUE,
        schedule_to_close_timeout=max(PATIENCE, 2 * (limit + QUEUE)),
        heartbeat_timeout=min(HEARTBEAT, limit / 2),
        retry_policy=_retry(_attempts(specs) if is_call else 4),
    )
    if first.priority != USUAL_PRIORITY:
        options["priority"] = Priority(priority_key=first.priority)
    tells_end = first.effect == "write" or first.calls_model
    if len(specs) > 1 or (is_call and tells_end):
        options["cancellation_type"] = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
    if not item and first.summary and len(specs) == 1:
        options["summary"] = for_bar(first.summary)
    return options


def working_time(specs: list[NodeSpec], *, item: bool, is_call: bool = True) -> timedelta:
    """Return the longest that one node or a group may take once it has started. A write has twice
    its time, because it may have to wait for an earlier attempt.
    """
    millis = sum(spec.limit(item=item) for spec in specs)
    if is_call and specs[0].effect == "write":
        millis *= 2
    return OVERHEAD + timedelta(milliseconds=millis)


def prefetch_options(queue: str, timeout: int, *, summary: str) -> Options:
    """Return the options of a call that is made early and may take so many milliseconds. It
    is made once, soon or not at all, and behind everything that a worker has to do. Nothing
    waits for its cancellation.
    """
    limit = OVERHEAD + timedelta(milliseconds=timeout)
    return Options(
        task_queue=queue,
        start_to_close_timeout=limit,
        schedule_to_start_timeout=SOON,
        schedule_to_close_timeout=limit + SOON,
        heartbeat_timeout=min(HEARTBEAT, limit / 2),
        retry_policy=_retry(1),
        priority=Priority(priority_key=LAST_PRIORITY),
        summary=summary,
    )


def look_up_options(spec: NodeSpec, *, item: bool) -> Options:
    """Return the options to look up what became of a write that was cut off: as long as the write
    may take, and longer only while a worker waits for the artifact store.
    """
    limit = working_time([spec], item=item)
    return Options(
        task_queue=queues.TOOLS,
        start_to_close_timeout=limit + QUEUE,
        schedule_to_start_timeout=limit + HEARTBEAT,
        schedule_to_close_timeout=limit + QUEUE + HEARTBEAT,
        heartbeat_timeout=min(HEARTBEAT, limit / 2),
        retry_policy=_retry(SERVICE_ATTEMPTS),
    )


def service_options(summary: str, *, queue: str = queues.TOOLS, waits: bool = False) -> Options:
    """Return the options for an activity of the run itself: preparing, checking, planning,
    concluding. What is no model call takes a moment, but may have to wait for the artifact store.
    If the run `waits` for that itself, the activity soon gives up; a model's reply is paid for, so
    its activity does not.
    """
    plans = queue.startswith(queues.LLM_PREFIX)
    retry = _retry(SERVICE_ATTEMPTS + (REFUSALS if plans else 0))
    if waits and not plans:
        retry.non_retryable_error_types = [STORE_AWAY]
    return Options(
        task_queue=queue,
        start_to_close_timeout=PLANNING if plans else SERVICE + QUEUE,
        schedule_to_close_timeout=PATIENCE,
        heartbeat_timeout=HEARTBEAT if plans else SERVICE,
        retry_policy=retry,
        summary=summary,
    )


def _attempts(specs: list[NodeSpec]) -> int:
    """Return the most that Temporal may count; a model call and a program count their
    own attempts themselves.
    """
    most = max(spec.attempts for spec in specs)
    if specs[0].kind == "program":
        return most + OTHER_PYTHONS
    if specs[0].queue.startswith(queues.LLM_PREFIX):
        return most + REFUSALS
    return most


def pause_after(attempt: int) -> timedelta:
    """Return how long a failed attempt waits before the next one, as Temporal reckons it."""
    return min(FIRST_RETRY * GROWTH ** (attempt - 1), LAST_RETRY)


def _retry(attempts: int) -> RetryPolicy:
    return RetryPolicy(
        initial_interval=FIRST_RETRY,
        backoff_coefficient=GROWTH,
        maximum_interval=LAST_RETRY,
        maximum_attempts=attempts,
    )
