"""Prepares the runs of sub-agents, many at a time, and stores what they have answered.

A sub-agent has its parent's tools, documents and models, or a part of them. So the worker that
binds its goal opens its run as well, and the run begins with its work.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from temporalio.exceptions import ApplicationError

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.runs.prepare import RunPreparer
from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.activities.toolbox.errors import McpUnavailable
from sennit.workflows.limits import MAX_SHARED_BYTES
from sennit.workflows.messages.contracts import (
    GroupReply,
    NodeError,
    NodeReply,
    PrepareCall,
    PreparedAgent,
    PreparedAgents,
)
from sennit.workflows.messages.message import message_bytes
from sennit.workflows.messages.node_calls import AgentNodeCall, AgentsCall, AnswersCall, NodeCall
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.language.nodes import ApprovalPolicy

Rule = Callable[[ApprovalPolicy], Awaitable[ApprovalPolicy]]
"""What approval a run has that asks for one."""
COMMON = ("approval", "on_failure", "tools")
"""Fields of requests that are mostly those of all sub-agents of a call."""
_KEPT = ("docs", "instructions", "material")
"""Fields that only the preparation reads: a run that is prepared finds them in its run context."""


@dataclass(frozen=True, slots=True)
class AgentPreparer:
    """Prepares and ends sub-agents on this worker."""

    nodes: NodeRunner
    preparer: RunPreparer

    async def prepare(
        self,
        run_prefix: str,
        call: AgentsCall,
        rule: Rule,
        attempts: Callable[[], Attempts],
        *,
        is_last: bool,
    ) -> PreparedAgents:
        """Return what the sub-agents are started with, as far as that fits into one
        reply. Safe to repeat.

        One that cannot be started has its error, and the others start. What may be over with
        another attempt fails the activity, unless it `is_last`.
        """
        agents: list[PreparedAgent] = []
        size = 0
        work = []
        for agent_call in _calls(call):
            work.append(self._prepared(run_prefix, agent_call, call, rule))
        for prepared in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(prepared, PreparedAgent):
                agent = prepared
            else:
                agent = _refused(prepared, attempts(), is_last=is_last)
            size += message_bytes(agent, exclude_defaults=True)
            if agents and size > MAX_SHARED_BYTES:
                break
            agents.append(agent)
        missing = len(call.nodes) - len(agents)
        left_out = [PreparedAgent()] * missing
        common = _common(agents)
        agents = [_without(agent, common) for agent in agents]
        return PreparedAgents(agents=(*agents, *left_out), request=common)

    async def _prepared(
        self, run_prefix: str, each: AgentNodeCall, call: AgentsCall, rule: Rule
    ) -> PreparedAgent:
        """Return what one sub-agent is started with."""
        bound, below = await self.nodes.bound_subagent(run_prefix, each)
        if bound.taken is not None:
            return PreparedAgent(taken=bound.taken)
        request = RunRequest.model_validate(
            {**bound.request, **call.inherited, "run_prefix": below}
        )
        opens = PrepareCall(run=below, first_run="", request=request, priced_above=call.priced)
        home = f"{run_prefix.rpartition('/')[0]}/{below}"
        approval = await rule(request.approval)
        prepared = await self.preparer.prepare(home, opens, approval)
        return PreparedAgent(request=_fields_without(bound.request, _KEPT), prepared=prepared)

    async def store(
        self, run_prefix: str, call: AnswersCall, attempts: Callable[[], Attempts], *, is_last: bool
    ) -> GroupReply:
        """Store the answers of sub-agents as the outputs of their nodes. Safe to repeat.

        One that cannot be stored has its error, and the others end. What may be over with another
        attempt fails the activity, unless it `is_last`. Raises StoreUnavailable even then.
        """
        work, owned = [], []
        for each, report in zip(_calls(call), call.reports, strict=True):
            own = attempts()
            ended = each.model_copy(update={"report": report})
            owned.append(own)
            work.append(
                self.nodes.run(ended, each.nodes[0], each.refs, run_prefix=run_prefix, attempts=own)
            )
        ends = await asyncio.gather(*work, return_exceptions=True)
        replies = []
        for end, own in zip(ends, owned, strict=True):
            replies.append(_reply(end, own, is_last=is_last))
        return GroupReply(nodes=tuple(replies))


def _refused(error: BaseException, attempts: Attempts, *, is_last: bool) -> PreparedAgent:
    """Return a sub-agent that cannot be started. Raises what another attempt may get over, and a
    cancellation. A tool that is away is no reason to wait: who needs it fails, as its run would.
    """
    failed = _failure(error, attempts)
    if not (failed.non_retryable or is_last or isinstance(error, McpUnavailable)):
        raise error
    return PreparedAgent(error=NodeError(type=failed.type or "Failed", message=failed.message))


def _reply(found: NodeReply | BaseException, attempts: Attempts, *, is_last: bool) -> NodeReply:
    """Return the reply of a node whose sub-agent has ended. Raises what another attempt may get
    over, and a store that is away, which is none of the node's faults.
    """
    if isinstance(found, NodeReply):
        return found
    failed = _failure(found, attempts)
    has_store = not isinstance(found, StoreUnavailable)
    if not (failed.non_retryable or (is_last and has_store)):
        raise found
    wrong = NodeError(type=failed.type or "Failed", message=failed.message)
    return NodeReply(error=wrong, usage=_usage_in(failed.details))


def _failure(error: BaseException, attempts: Attempts) -> ApplicationError:
    """Return the failure that an error is to a node. Raises a cancellation, which is none."""
    if not isinstance(error, Exception):
        raise error
    return attempts.failed(error)


def _calls(call: NodeCall) -> list[AgentNodeCall]:
    """Return a call for each node."""
    shared: dict[str, Any] = {}
    for name in NodeCall.model_fields:
        if name in call.model_fields_set:
            shared[name] = getattr(call, name)
    calls: list[AgentNodeCall] = []
    for node in call.nodes:
        fields = {**shared, "nodes": (node,)}
        calls.append(AgentNodeCall(**fields))
    return calls


def _common(agents: list[PreparedAgent]) -> dict[str, Any]:
    """Return the fields that all requests have alike."""
    requests = [agent.request for agent in agents if agent.request]
    if not requests:
        return {}
    common: dict[str, Any] = {}
    for name in COMMON:
        value = requests[0][name]
        if all(request.get(name) == value for request in requests):
            common[name] = value
    return common


def _without(agent: PreparedAgent, common: dict[str, Any]) -> PreparedAgent:
    if not agent.request:
        return agent
    return PreparedAgent(request=_fields_without(agent.request, common), prepared=agent.prepared)


def _fields_without(request: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the fields of a request, but for those with these names."""
    return {name: value for name, value in request.items() if name not in names}


def _usage_in(details: Sequence[Any]) -> Usage:
    """Return the usage in the details of a failure of an activity."""
    if len(details) < 2:
        return Usage()
    return Usage(*details[1])
