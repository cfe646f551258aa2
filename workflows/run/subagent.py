"""A sub-agent: a run of its own as a child workflow, with some of its parent's tools and a part of its budget."""

import hashlib
from typing import Any

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError
from temporalio.workflow import ParentClosePolicy

from workflows.messages.activity_options import Options, as_keywords
from workflows.messages.contracts import AGENT, PREPARE_AGENT, GroupReply, NodeCall
from workflows.messages.queues import WORKFLOW
from workflows.messages.request import RunRequest
from workflows.run.subagent_status import SubagentStatus

RUN_ID_CHARACTERS = 36
GIVEN_UP = "the run above it does not need it any more"
SUSPENDED = "the run above it continues as new, and starts it again"
"""Why a run cancels a sub-agent. A server that cancels it because its parent is over gives no reason."""
DEEPEST = 3
"""Levels of sub-agents below a run; one further down is refused."""


async def run_subagent(
    call: NodeCall, name: str, ident: str, options: Options, given: dict[str, Any], subagents: SubagentStatus
) -> GroupReply:
    """Bind the goal, run the child, and store its answer as the node's output. Raises the error of the step that
    failed.

    The child is `<parent id>.<name>`; the activities around it have the id `ident`. It ends `partial` where it would
    park. Its request has the fields `given`, and no larger budget than they allow. It is cancelled when its parent
    ends. If that is not because it was given up, its writes end first. It does not start if a run that this one forks
    has its result.

    A child that was left running by a reset of this run is ended. The new one takes over what is finished, because its
    artifacts have the same place.
    """
    if given["depth"] > DEEPEST:
        raise ApplicationError(f"sub-agents are {DEEPEST} deep already", type="TooDeep", non_retryable=True)
    prepared = await workflow.execute_activity(
        PREPARE_AGENT.name, call, activity_id=f"{ident}.goal", result_type=PREPARE_AGENT.gives, **as_keywords(options)
    )
    if prepared.taken is not None:
        return GroupReply(nodes=(prepared.taken,))
    budget = prepared.request.get("budget")
    if given["budget"]:
        budget = {**given["budget"], **_tighter(budget or {}, given["budget"])}
    request = {**prepared.request, **given, "budget": budget}
    child = await workflow.start_child_workflow(
        "AgentRun",
        request,
        id=f"{workflow.info().workflow_id}.{name}",
        task_queue=WORKFLOW,
        id_reuse_policy=WorkflowIDReusePolicy.TERMINATE_IF_RUNNING,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
        static_summary=str(request.get("goal", ""))[:200],
    )
    subagents.begun(name, child.first_execution_run_id or "")
    try:
        report = await child
    finally:
        subagents.over(name)
    reply: GroupReply = await workflow.execute_activity(
        AGENT.name,
        call.model_copy(update={"answer": _kept(report)}),
        activity_id=ident,
        result_type=AGENT.gives,
        **as_keywords(options),
    )
    return reply


def prefix_below(run_prefix: str, name: str) -> str:
    """Return the run prefix of a sub-agent: the first run id of the root, and what stands for the way down from it."""
    return f"{run_prefix[:RUN_ID_CHARACTERS]}-{hashlib.sha256(f'{run_prefix}/{name}'.encode()).hexdigest()[:16]}"


def inherited(request: RunRequest) -> dict[str, Any]:
    """Return the fields of a sub-agent's request that come from its parent's request."""
    given = {"tenant": request.tenant, "model": request.model, "approve_replans_above": request.approve_replans_above}
    known = {name: value for name, value in given.items() if value not in (None, "")}
    return {"depth": request.depth + 1, "max_replans": request.max_replans, **known}


def _tighter(asked: dict[str, Any], left: dict[str, Any]) -> dict[str, Any]:
    return {name: min(limit, left.get(name, limit)) if name != "time" else limit for name, limit in asked.items()}


def _kept(report: Any) -> dict[str, Any]:
    """Return the part of a child's report that its parent keeps."""
    kept = ("answer", "status", "evidence", "usage", "problem", "id")
    return {name: report.get(name) for name in kept} if isinstance(report, dict) else {"answer": None}
