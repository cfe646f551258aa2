"""Asks a model for a plan of the run's goal."""

from dataclasses import dataclass

from activities.artifacts import ArtifactStore, encode
from activities.charter import Library
from activities.kinds import DEFAULT_MODEL, usage_of
from activities.providers import ModelRequest, Provider
from workflows.contracts import PlanCall, Planned


@dataclass(frozen=True, slots=True)
class Planning:
    """Plans with the providers of this worker."""

    store: ArtifactStore
    library: Library
    providers: dict[str, Provider]

    async def plan(self, home: str, call: PlanCall) -> Planned:
        """Store the planner's draft, unchecked. Raises ProviderError, BodyMissing, StoreUnavailable."""
        charter = await self.library.charter(home, call.charter)
        request = ModelRequest(
            role="planner",
            model=DEFAULT_MODEL,
            goal=charter.goal,
            prompt=charter.goal,
            template=charter.goal,
            tools=tuple(charter.catalogue),
        )
        reply = await self.providers[DEFAULT_MODEL].complete(request)
        draft = await self.store.put(home, encode(reply.output, canonical=False))  # people read arguments as written
        return Planned(draft=draft, usage=usage_of(reply.usage))
