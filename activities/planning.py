"""Asks a model for a plan of the run's goal."""

from collections.abc import Callable
from dataclasses import dataclass

from activities.artifacts import ArtifactStore, encode
from activities.charter import Library
from activities.kinds import usage_of
from activities.llm import OFFLINE
from activities.providers import ModelRequest
from activities.providers.models import Models
from workflows.contracts import PlanCall, Planned


@dataclass(frozen=True, slots=True)
class Planning:
    """Plans with the providers of this worker."""

    store: ArtifactStore
    library: Library
    models: Models

    async def plan(self, home: str, call: PlanCall, attempt: int, progress: Callable[[str], None]) -> Planned:
        """Store the planner's draft, unchecked. Raises ProviderError, BodyMissing, StoreUnavailable."""
        charter = await self.library.charter(home, call.charter)
        request = ModelRequest(
            role="planner",
            model="",
            goal=charter.goal,
            prompt=charter.goal,
            template=charter.goal,
            tools=tuple(charter.catalogue),
            progress=progress,
        )
        reply = await self.models.complete(request, charter.models.get("planner") or OFFLINE, attempt)
        draft = await self.store.put(home, encode(reply.output, canonical=False))  # people read arguments as written
        return Planned(draft=draft, usage=usage_of(reply.usage))
