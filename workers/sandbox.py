"""How workflow code is run: sandboxed, with modules that only compute shared instead of loaded again."""

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

PASSED_THROUGH = (
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
    "workflows.plan",
    "workflows.admissible",
    "workflows.board",
    "workflows.contracts",
    "workflows.evidence",
    "workflows.policies",
    "workflows.queues",
    "workflows.reporting",
    "workflows.request",
    "workflows.result",
    "workflows.updates",
    "workflows.view",
)
"""Shared with the process: a class must be one class on both sides of the sandbox, and loading it again for every run
would cost more than a run's first workflow task. None of them may keep state, read a clock or touch the SDK's API."""


def workflow_runner() -> SandboxedWorkflowRunner:
    """Return the runner of every Weft worker and replayer."""
    return SandboxedWorkflowRunner(SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))
