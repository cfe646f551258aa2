"""The offline model (being written)."""

from activities.providers.model import ModelReply, ModelRequest, ProviderError


class Offline:
    """Stands in until the rules are here."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Refuse."""
        raise ProviderError("the offline rules are not here yet")
