"""What each kind of node does when its turn comes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from activities.binding import Address, Binder
from activities.charter import CheckedPlan, Library
from activities.documents import DocumentRule
from activities.providers import ModelReply, ModelRequest, Usage
from activities.providers.models import Models
from activities.toolbox import Registry, ToolContext
from workflows.contracts import NodeCall
from workflows.plan import edges
from workflows.plan.model import JoinNode, ModelCall, ToolCall

OFFLINE = ("offline",)
"""What serves a role for which a run has no models: it was opened before there were any."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One node's turn: what is to run and with what."""

    checked: CheckedPlan
    address: Address
    call: NodeCall
    binder: Binder
    home: str
    attempt: int
    progress: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Kinds:
    """Runs a turn by the kind of its node; holds what a worker offers."""

    registry: Registry
    models: Models
    library: Library
    cache: Path
    documents: DocumentRule

    async def run(self, turn: Turn) -> ModelReply:
        """Return the node's output, with usage where a model was called. Raises whatever went wrong."""
        node = turn.checked.node(turn.address.id)
        work = edges.work_of(node)
        if work is not None and (turn.address.item is not None or node.kind != "map"):
            await turn.binder.load(node, turn.address)
            return await (self._tool(turn, work) if isinstance(work, ToolCall) else self._model(turn, work))
        if isinstance(node, JoinNode):
            return ModelReply(await self._join(turn, node))
        if node.kind == "map":
            return ModelReply([await self.library.value(turn.home, item) for item in turn.call.items if item])
        return ModelReply(turn.call.answer)

    def version(self, turn: Turn) -> str:
        """Return the version of the tool behind a node; part of its content key."""
        work = edges.work_of(turn.checked.node(turn.address.id))
        return self.registry.get(work.tool).version if isinstance(work, ToolCall) else ""

    async def _tool(self, turn: Turn, work: ToolCall) -> ModelReply:
        tool = self.registry.get(work.tool)
        arguments = turn.binder.bound(work.args)
        path, generation = turn.address.path, turn.address.generation
        context = ToolContext(
            docs=self.documents.folder(turn.checked.docs) if turn.checked.docs else None,
            cache=self.cache,
            run_id=turn.call.run,
            node=path,
            generation=generation,
            attempt=turn.attempt,
            idempotency_key=f"{turn.call.run}/{path}/{generation}",
            progress=turn.progress,
        )
        return ModelReply(await tool.call(arguments, context))

    async def _model(self, turn: Turn, work: ModelCall) -> ModelReply:
        node = turn.checked.node(turn.address.id)
        models = (work.model,) if work.model else turn.checked.models.get(work.role) or OFFLINE
        request = ModelRequest(
            role=work.role,
            model="",
            goal=turn.checked.goal,
            prompt=str(turn.binder.bound(f"{work.prompt} ")).rstrip(),
            template=work.prompt,
            inputs=turn.binder.inputs(node),
            output_schema=work.output_schema,
            progress=turn.progress,
            seconds=turn.checked.spec(turn.address.id).timeout / 1000,
        )
        reply = await self.models.complete(request, models, turn.attempt)
        if reply.stop == "length":
            return replace(reply, output=f"{reply.text}\n[cut at {request.max_output_tokens:,} tokens]")
        return reply

    async def _join(self, turn: Turn, node: JoinNode) -> Any:
        refs, lost = turn.call.refs, turn.call.lost
        values = {name: await turn.binder.value(name) for name in node.inputs if name in refs}
        if node.policy == "settled":
            return [_settled(name, values, lost) for name in node.inputs]
        found = [values[name] for name in node.inputs if name in values]
        return found[0] if node.policy == "first" else found


def _settled(name: str, values: dict[str, Any], lost: dict[str, tuple[str, str | None]]) -> dict[str, Any]:
    status, error = lost.get(name, ("succeeded", None))
    return {"id": name, "status": status, "value": values.get(name), "error": error}


def usage_of(usage: Usage) -> tuple[int, int, int]:
    """Return usage as it travels."""
    return usage.input_tokens, usage.output_tokens, usage.cost
