"""What each kind of node does when its turn comes."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from activities.nodes.binding import work_at
from activities.nodes.context import NodeContext, NodeOutput
from activities.nodes.documents import DocumentRule
from activities.nodes.effect_ledger import EffectLedger
from activities.nodes.error_mapping import SubAgentFailed
from activities.prompts.outputs import handed_on, refers_to_goal
from activities.storage.run_context import ArtifactReader
from activities.toolbox import Registry, ToolContext
from workflows.messages.contracts import SubagentRequest
from workflows.messages.result import usage_in
from workflows.plan.language.nodes import AgentCall, AgentNode, JoinNode, ModelCall, ToolCall


class ModelRunner(Protocol):
    """What makes the model calls of nodes."""

    async def run(self, turn: NodeContext, work: ModelCall) -> NodeOutput:
        """Return the model's output, or a request for more nodes."""


@dataclass(frozen=True, slots=True)
class NodeHandlers:
    """Runs a turn by the kind of its node; holds what a worker offers."""

    registry: Registry
    llm: ModelRunner
    library: ArtifactReader
    cache: Path
    documents: DocumentRule
    ledger: EffectLedger

    def harmful(self, turn: NodeContext) -> bool:
        """Whether a second attempt may do what the first has done already."""
        work = work_at(turn.checked.node(turn.address.id), turn.address)
        return isinstance(work, ToolCall) and self.registry.get(work.tool).harmful

    async def run(self, turn: NodeContext) -> NodeOutput:
        """Return the node's output, with usage where a model was called. Raises whatever went wrong."""
        node = turn.checked.node(turn.address.id)
        work = work_at(node, turn.address)
        if work is not None:
            await turn.binder.load(node, turn.address)
            if isinstance(work, AgentCall):
                return _answered(turn.call.answer, turn.address.path)
            return await (self._tool(turn, work) if isinstance(work, ToolCall) else self.llm.run(turn, work))
        if isinstance(node, JoinNode):
            return NodeOutput(await self._join(turn, node))
        if node.kind == "map":
            return NodeOutput([await self.library.value(turn.run_prefix, item) for item in turn.call.items if item])
        return NodeOutput(turn.call.answer)

    def version(self, turn: NodeContext) -> str:
        """Return the version of the tool behind a node; part of its content key."""
        work = work_at(turn.checked.node(turn.address.id), turn.address)
        return self.registry.get(work.tool).version if isinstance(work, ToolCall) else ""

    async def _tool(self, turn: NodeContext, work: ToolCall) -> NodeOutput:
        tool = self.registry.get(work.tool)
        arguments = turn.binder.bound(work.args)
        path, generation = turn.address.path, turn.address.generation
        context = ToolContext(
            docs=self.documents.folder(turn.checked.docs) if turn.checked.docs else None,
            cache=self.cache,
            run_id=turn.call.run,
            node=path,
            generation=generation,
            attempt=turn.attempts.own,
            idempotency_key=f"{turn.call.run}/{path}/{generation}",
            progress=turn.attempts.progress,
        )
        if not tool.harmful:
            return NodeOutput(await tool.call(arguments, context))
        call = partial(tool.call, arguments, context)
        return NodeOutput(await self.ledger.enter(turn.run_prefix, context.idempotency_key, tool.name, call))

    async def delegation(self, turn: NodeContext) -> SubagentRequest:
        """Return what the sub-agent of a node is started with: outputs that its goal refers to are named in it, and
        given beside it. Raises BindError, BodyMissing, StoreUnavailable."""
        node = turn.checked.node(turn.address.id)
        assert isinstance(node, AgentNode)
        await turn.binder.load(node, turn.address)
        charter = await self.library.charter(turn.run_prefix, turn.checked.charter)
        goal, given = handed_on(node.goal, turn.binder.lookup)
        if refers_to_goal(node.goal):
            given = {**await self.library.given(turn.run_prefix, charter), **given}
        allowed = [entry["name"] for entry in charter.catalogue]
        return SubagentRequest(
            request={
                "goal": goal,
                **({"given": f"{turn.call.run}/{await self.library.put(turn.run_prefix, given)}"} if given else {}),
                "tools": [name for name in allowed if node.tools is None or name in node.tools],
                "docs": charter.docs,
                "approval": charter.approval,
                "budget": node.budget.model_dump(mode="json", exclude_none=True) if node.budget else None,
                "on_failure": "partial",
            }
        )

    async def _join(self, turn: NodeContext, node: JoinNode) -> Any:
        if node.policy == "settled":
            return await turn.binder.settled(node.inputs)
        found = [await turn.binder.value(name) for name in node.inputs if name in turn.call.refs]
        return found[0] if node.policy == "first" else found


def _answered(report: Any, node: str) -> NodeOutput:
    """Return a sub-agent's answer as its node's output, paid with what its run has used.

    An answer with evidence is `{answer, evidence}`, as that of a joiner; `sub.n1` is node n1 of the sub-agent of sub.
    """
    fields = report if isinstance(report, dict) else {}
    if fields.get("answer") is None:
        problem = fields.get("problem") or "it ended without one"
        raise SubAgentFailed(f"the sub-agent gave no answer: {problem}", usage_in(report))
    evidence = [{**piece, "node": f"{node}.{piece['node']}"} for piece in fields.get("evidence") or ()]
    output = {"answer": fields["answer"], "evidence": evidence} if evidence else fields["answer"]
    return NodeOutput(output, usage_in(report))
