"""Runs workflow code in the SDK's sandbox in tests, and without it in workers.

The sandbox finds code that is not deterministic; every test runs in it. In workers it would find nothing new
and cost 1.5 ms of CPU a node, a quarter of all they need, because every payload enters it again.
SENNIT_WORKFLOW_SANDBOX=1 turns it on.
"""

from collections.abc import Sequence
from typing import Any

from temporalio.worker import (
    UnsandboxedWorkflowRunner,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

MAX_UPDATE_BYTES = 1024 * 1024
PASSED_THROUGH = (
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
    "workflows.plan",
    "workflows.run.update_rules",
    "workflows.views.board",
    "workflows.messages.contracts",
    "workflows.drawing",
    "workflows.messages.activity_options",
    "workflows.messages.queues",
    "workflows.views.report",
    "workflows.messages.request",
    "workflows.messages.result",
    "workflows.messages.updates",
    "workflows.messages.views",
)
"""Modules that the sandbox shares with the process: a class must be the same on both sides, and loading it for each
run would cost more than its first workflow task. None may keep state, read a clock or use the SDK's API."""


def workflow_runner() -> SandboxedWorkflowRunner:
    """Return the sandboxed runner of tests, replays and workers that ask for it."""
    return SandboxedWorkflowRunner(SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))


def runner_for(sandboxed: bool, *, remembers: bool = True) -> WorkflowRunner:
    """Return the runner of a worker, which does or does not remember workflows between their tasks."""
    return GuardedRunner(workflow_runner() if sandboxed else UnsandboxedWorkflowRunner(), remembers=remembers)


class GuardedRunner(WorkflowRunner):
    """Keeps from workflows what the SDK should not have given them."""

    def __init__(self, inner: WorkflowRunner, *, remembers: bool) -> None:
        self._inner = inner
        self._remembers = remembers

    def prepare_workflow(self, defn: Any) -> None:
        self._inner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        self._inner.set_worker_level_failure_exception_types(types)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = self._inner.create_instance(det)
        activate, seen = instance.activate, _Seen()

        def guarded(act: Any) -> Any:
            if self._remembers:
                seen.check(act)
            drop_large_updates(act)
            return activate(act)

        instance.activate = guarded  # type: ignore[method-assign]
        return instance


class _Seen:
    """How far a workflow has come: the time of its last workflow task, and the events up to then."""

    def __init__(self) -> None:
        self._time, self._events = 0, 0

    def check(self, act: Any) -> None:
        """Raise if events are news that no workflow task has delivered.

        A query of a workflow that this worker does not remember comes with all events there are, and the SDK delivers
        them at the time of the last workflow task. Decisions would go by a time that no replay sees again, and a worker
        that remembers the workflow would send them with its next task. Instead the query fails, and the workflow is
        forgotten and replayed at that task.
        """
        time = act.timestamp.ToNanoseconds()
        news = any(job.WhichOneof("variant") != "query_workflow" for job in act.jobs)
        if news and time == self._time and act.history_length > self._events:
            raise RuntimeError("this worker does not know the run yet; ask again in a few seconds")
        self._time, self._events = time, act.history_length


def drop_large_updates(act: Any) -> None:
    """Leave updates of over 1 MiB without a response; the server then says that no worker processes them.

    The SDK sends a copy of an update with its rejection. One over the 2 MiB that a payload may have would fail
    workflow tasks until its sender gives up, and hold up the run as long.
    """
    for place in reversed(range(len(act.jobs))):
        if act.jobs[place].HasField("do_update") and act.jobs[place].ByteSize() > MAX_UPDATE_BYTES:
            del act.jobs[place]
