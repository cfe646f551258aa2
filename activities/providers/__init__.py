"""Model providers: one module each, found by the part of a model's name before the colon."""

from activities.providers.model import ModelReply, ModelRequest, Provider, ProviderError, Usage

__all__ = ["ModelReply", "ModelRequest", "Provider", "ProviderError", "Usage"]
