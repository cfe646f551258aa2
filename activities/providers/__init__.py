"""Model providers: one module each, found by the part of a model's name before the colon."""

from sennit.activities.providers.model import (
    Message,
    ModelReply,
    ModelRequest,
    Provider,
    ProviderError,
    ReplyForm,
    Stop,
    ToolRequest,
)
from sennit.workflows.plan.language.limits import Usage

__all__ = [
    "Message",
    "ModelReply",
    "ModelRequest",
    "Provider",
    "ProviderError",
    "ReplyForm",
    "Stop",
    "ToolRequest",
    "Usage",
]
