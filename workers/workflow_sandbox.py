"""How workflow code is run: in the sandbox wherever it is tested, without it where it serves.

The sandbox finds code that is not deterministic, and every test and replay runs in it. At work it would find nothing
new and cost 1.5 ms of CPU a node, a quarter of a worker's share: it is entered anew for every payload.
SENNIT_WORKFLOW_SANDBOX=1 brings it back.
"""

from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

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
"""Shared with the process: a class must be one class on both sides of the sandbox, and loading it again for every run
would cost more than a run's first workflow task. None of them may keep state, read a clock or touch the SDK's API."""


def workflow_runner() -> SandboxedWorkflowRunner:
    """Return the sandboxed runner: of tests, of replays, and of workers that ask for it."""
    return SandboxedWorkflowRunner(SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))


def runner_for(sandboxed: bool) -> WorkflowRunner:
    """Return a worker's runner."""
    return workflow_runner() if sandboxed else UnsandboxedWorkflowRunner()
