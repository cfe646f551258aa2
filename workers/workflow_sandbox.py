"""Runs workflow code in the SDK's sandbox in tests, and without it in workers.

The sandbox finds code that is not deterministic; every test runs in it. In workers it would find
nothing new and cost 1.5 ms of CPU a node, a quarter of all they need, because every payload enters
it again. SENNIT_WORKFLOW_SANDBOX=1 turns it on.
"""

from collections.abc import Callable, Sequence
from typing import Any

from temporalio.worker import (
    UnsandboxedWorkflowRunner,
    Worker,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from sennit.private_interfaces import eviction_of
from sennit.workflows.limits import MAX_UPDATE_BYTES

QUERY_TASK = "legacy_query"
"""What the SDK calls the query of a task that is nothing but a query."""
FIRST_FLAG = 1 << 16
PASSED_THROUGH = (
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
    "sennit.workflows.plan",
    "sennit.workflows.run.update_rules",
    "sennit.workflows.views.board",
    "sennit.workflows.messages.contracts",
    "sennit.workflows.messages.message",
    "sennit.workflows.messages.node_calls",
    "sennit.workflows.drawing",
    "sennit.workflows.messages.activity_options",
    "sennit.workflows.messages.outputs",
    "sennit.workflows.messages.dry_run",
    "sennit.workflows.messages.queues",
    "sennit.workflows.views.report",
    "sennit.workflows.views.shown_run",
    "sennit.workflows.messages.ends",
    "sennit.workflows.messages.request",
    "sennit.workflows.messages.result",
    "sennit.workflows.messages.text_stream",
    "sennit.workflows.messages.quota",
    "sennit.workflows.messages.trajectory",
    "sennit.workflows.messages.updates",
    "sennit.workflows.messages.views",
)
"""Modules that the sandbox shares with the process: a class must be the same on both sides, and
loading it for each run would cost more than its first workflow task. None may keep state, read a
clock or use the SDK's API.
"""


def workflow_runner() -> SandboxedWorkflowRunner:
    """Return the sandboxed runner of tests, replays and workers that ask for it."""
    return SandboxedWorkflowRunner(
        SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    )


def runner_for(sandboxed: bool) -> "GuardedRunner":
    """Return the runner of a worker, which `attach` ties to it before it runs."""
    return GuardedRunner(workflow_runner() if sandboxed else UnsandboxedWorkflowRunner())


class GuardedRunner(WorkflowRunner):
    """Keeps from workflows what the SDK should not have given them: large updates, and news
    that only a query brought.

    A query of a run that this worker does not remember comes with all events there are, and the SDK
    delivers those that no workflow task has delivered at the time of the last one, and batched as
    no replay sees them again. It would send the decisions with the next workflow task. A workflow
    that has seen such news answers the query and is forgotten before the SDK gives it anything
    else, so the next task replays it from the history.
    """

    def __init__(self, inner: WorkflowRunner) -> None:
        self._inner = inner
        self._forget: Callable[[str], None] | None = None

    def attach(self, worker: Worker) -> None:
        """Have this worker forget the workflows to which queries have brought news; without
        it, such a query fails.
        """
        self._forget = eviction_of(worker)

    def prepare_workflow(self, defn: Any) -> None:
        self._inner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(
        self, types: Sequence[type[BaseException]]
    ) -> None:
        self._inner.set_worker_level_failure_exception_types(types)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = self._inner.create_instance(det)
        activate, last, run = instance.activate, _LastNews(), det.info.run_id

        def guarded(act: Any) -> Any:
            drop_large_updates(act)
            if last.came_with_query(act):
                if self._forget is None:
                    raise RuntimeError("this runner knows no worker that could forget the run")
                self._forget(run)
            completion = activate(act)
            last.note(act, completion)
            return completion

        instance.activate = guarded  # type: ignore[method-assign]
        return instance


class _LastNews:
    """Whether the last events that were news to a workflow came with a
    workflow task or with a query.

    The SDK does not say to which of the two an activation belongs. But it returns each flag that an
    activation has set with all activations after the workflow task that reported it to the server,
    and what a query's task has set it reports nowhere. So each activation with news sets a flag
    that is not there yet. Flags mean something to the SDK and its server only below FIRST_FLAG.
    """

    def __init__(self) -> None:
        self._flag: int | None = None

    def note(self, act: Any, completion: Any) -> None:
        """Set a flag for an activation with news; a replay and a query have none."""
        if not act.is_replaying and completion.HasField("successful"):
            self._flag = max(FIRST_FLAG, 1 + max(act.available_internal_flags, default=0))
            completion.successful.used_internal_flags.append(self._flag)

    def came_with_query(self, act: Any) -> bool:
        """Whether this activation is the query that brought them.

        Queries that a workflow task brings have names of their own and come after its news,
        which is as it should be.
        """
        alone = any(job.query_workflow.query_id == QUERY_TASK for job in act.jobs)
        return alone and self._flag is not None and self._flag not in act.available_internal_flags


def drop_large_updates(act: Any) -> None:
    """Leave updates of over 1 MiB without a response; the server then says that no
    worker processes them.

    The SDK sends a copy of an update with its rejection. One over the 2 MiB that a payload may have
    would fail workflow tasks until its sender gives up, and hold up the run as long.
    """
    for place in reversed(range(len(act.jobs))):
        if act.jobs[place].HasField("do_update") and act.jobs[place].ByteSize() > MAX_UPDATE_BYTES:
            del act.jobs[place]
