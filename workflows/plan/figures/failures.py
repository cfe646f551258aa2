"""Three classes of failures, and each type of error in one of them: a fixed table.

The classes are those of MAST (https://arxiv.org/abs/2503.13657), which has found them in the
traces of many agents.
"""

from collections.abc import Mapping
from typing import Literal

FailureClass = Literal["specification", "coordination", "verification", "tool"]
"""What was asked for was wrong; who works when and with whom failed; a result did not hold; or a
tool has raised an error of its own, of which nobody here knows what it means.
"""

_SPECIFICATION = (
    # the plan, or the script
    "BindError", "ConditionError", "InvalidRequest", "InvalidUpdate", "ProgramFailed",
    "ToolArgumentError", "TooDeep", "TooManyCalls", "UnknownTool", "ValidationError",
    "PlanTooLarge", "InvalidPlan",
    # what it names is not there, or not allowed
    "AddressRefused", "BadMedia", "DocsNotFound", "DocumentNotFound", "DocumentUnreadable",
    "ExpressionRefused", "CalculationFailed", "ContentRefused", "IndexUnusable", "PathRefused",
    "TooManyFiles", "WorkspaceRefused",
    # the model, its key and its limits
    "CallRefused", "ContextTooLong", "ExtraMissing", "KeyRefused", "MediaRefused", "ModelRefused",
    "OfflineCannot", "UnknownModel", "McpCredentialsRefused", "McpToolChanged",
    "A2aCredentialsRefused",
    # too little was granted
    "BudgetExceeded", "GrantTooSmall", "QuotaExceeded", "QuotaUsedUp", "SandboxLimit",
)  # fmt: skip
_COORDINATION = (
    # workers, and the time that they have
    "Cancelled", "Failed", "LoopBlocked", "NodeTimeout", "OtherPython", "StoreUnavailable",
    "TimeoutError", "ToolExit",
    "WorkerLost", "SandboxFailed",
    # servers of others
    "A2aUnavailable", "FetchFailed", "HttpStatusError", "McpUnavailable", "ModelTimeout",
    "ProviderBusy", "ProviderError", "RateLimited", "ServerFailed", "ServerUnreachable",
    # nodes that wait for each other, sub-agents and people
    "A2aNeedsInput", "CallFailed", "ConversationGone", "GateTimeout", "JoinDeadline", "JoinFailed",
    "MapFailed", "SubAgentFailed", "RunFailed", "OriginMissing", "BodyMissing",
    # writes
    "AlreadyWritten", "NotWritten", "UnknownOutcome",
)  # fmt: skip
_VERIFICATION = (
    # what a tool or a model has returned
    "A2aFailed", "BadOutput", "BadReply", "FactTooLarge", "McpToolFailed", "OutputCut",
    "OutputRefused", "ReplyCut", "ReplyTooLarge", "SchemaMismatch", "ToolError", "ToolResultError",
    # somebody has judged it
    "InvalidResult", "PlanRejected", "Rejected",
)  # fmt: skip

CLASSES: Mapping[str, FailureClass] = {
    **dict.fromkeys(_SPECIFICATION, "specification"),
    **dict.fromkeys(_COORDINATION, "coordination"),
    **dict.fromkeys(_VERIFICATION, "verification"),
}
"""The class of each error that Sennit itself knows."""
NO_FAILURES = ("Skipped", "NotNeeded", "Replaced")
"""Reasons for an end without a value that are no failures."""


def class_of(error: str) -> FailureClass:
    """Return the class of an error by its type."""
    return CLASSES.get(error, "tool")
