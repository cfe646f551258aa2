"""Runs workflow code in the SDK's sandbox in tests, and without it in workers.

The sandbox finds code that is not deterministic; every test and replay runs in it. In workers it would find nothing new
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
    "workflows.messages.evidence",
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


def runner_for(sandboxed: bool) -> WorkflowRunner:
    """Return the runner of a worker."""
    return SmallUpdatesOnly(workflow_runner() if sandboxed else UnsandboxedWorkflowRunner())


class SmallUpdatesOnly(WorkflowRunner):
    """Leaves updates of over 1 MiB without a response; the server then says that no worker processes them.

    The SDK sends a copy of an update with its rejection. One over the 2 MiB that a payload may have would fail
    workflow tasks until its sender gives up, and hold up the run as long.
    """

    def __init__(self, inner: WorkflowRunner) -> None:
        self._inner = inner

    def prepare_workflow(self, defn: Any) -> None:
        self._inner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        self._inner.set_worker_level_failure_exception_types(types)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = self._inner.create_instance(det)
        activate = instance.activate

        def activate_without(act: Any) -> Any:
            for place in reversed(range(len(act.jobs))):
                if act.jobs[place].HasField("do_update") and act.jobs[place].ByteSize() > MAX_UPDATE_BYTES:
                    del act.jobs[place]
            return activate(act)

        instance.activate = activate_without  # type: ignore[method-assign]
        return instance
