"""A planner before a model server."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from doubles.stores import new_store

from sennit.activities.llm.models import Models
from sennit.activities.nodes.attempts import Attempts
from sennit.activities.programs.reading import read
from sennit.activities.providers.settings import ModelSettings, PlanFormat, Server
from sennit.activities.runs.planner import Planner
from sennit.activities.storage.learned import LearnedStore
from sennit.activities.storage.run_context import ArtifactReader, RunContext
from sennit.activities.toolbox import load_tools
from sennit.testing.models import ModelServer
from sennit.workflows.messages.contracts import PlanCall, PlanResult

HOME = "default/run"
GOAL = "Which is longer, the Nile or the Amazon?"
LINES = '1. search("Nile length")\n2. search("Amazon length", 5)\n3. answer($1, $2)\n'

Nodes = list[dict[str, Any]]


class Desk:
    """A planner before a model server, and what was asked of it."""

    def __init__(
        self, place: Path, server: ModelServer, planner: str = "openai:test-model", plan_format: PlanFormat = "auto"
    ) -> None:
        self.server = server
        self.store = new_store(place)
        self.library = ArtifactReader(self.store)
        servers = {"openai": Server("openai", server.openai_url)}
        self.models = Models.of(ModelSettings(servers=servers, plan_format=plan_format))
        self._planner = planner
        self.run_context = ""
        self.fault = ""
        self.learned: LearnedStore | None = None

    async def ask(
        self,
        *,
        tools: tuple[str, ...] = ("search", "read"),
        on_nodes: Callable[[Nodes], Awaitable[None]] | None = None,
        goal: str = GOAL,
        material: str = "",
        **fields: Any,
    ) -> PlanResult:
        catalogue = [entry for entry in load_tools([]).catalogue() if entry["name"] in tools]
        models = {"planner": [self._planner]}
        run_context = RunContext(
            goal=goal, inputs={}, docs=None, approval="writes", catalogue=catalogue, models=models, material=material
        )
        self.run_context = await self.library.keep(HOME, run_context)
        call = PlanCall(run="run", run_context=self.run_context, **fields)
        planning = Planner(self.store, self.library, self.models, read, self.learned)
        self.attempts = Attempts(1, 0, fault=self.fault)
        return await planning.plan(HOME, call, self.attempts, on_nodes)

    async def plan(self, planned: PlanResult) -> Any:
        return await self.library.value(HOME, planned.draft)
