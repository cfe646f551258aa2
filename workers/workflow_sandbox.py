"""Runs workflow code in the SDK's sandbox in tests, and without it in workers.

The sandbox finds code that is not deterministic; every test and replay runs in it. In workers it would find nothing new
and cost 1.5 ms of CPU a node, a quarter of all they need, because every payload enters it again.
SENNIT_WORKFLOW_SANDBOX=1 turns it on.
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
"""Modules that the sandbox shares with the process: a class must be the same on both sides, and loading it for each
run would cost more than its first workflow task. None may keep state, read a clock or use the SDK's API."""


def workflow_runner() -> SandboxedWorkflowRunner:
    """Return the sandboxed runner of tests, replays and workers that ask for it."""
    return SandboxedWorkflowRunner(SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))


def runner_for(sandboxed: bool) -> WorkflowRunner:
    """Return the runner of a worker."""
    return workflow_runner() if sandboxed else UnsandboxedWorkflowRunner()
