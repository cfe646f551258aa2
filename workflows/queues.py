"""Task queues: one for workflows, one for tools, one for each model provider, so that each scales on its own."""

WORKFLOW = "weft.workflow"
TOOLS = "weft.tools"
SANDBOX = "weft.sandbox"
LLM_PREFIX = "weft.llm."


def llm_queue(model: str) -> str:
    """Return the queue of the provider in `provider:model`; a bare provider name is one too."""
    return LLM_PREFIX + model.partition(":")[0]
