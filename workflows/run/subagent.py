"""A sub-agent: a run of its own as a child workflow, with some of its parent's tools and a part of its budget."""

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError
from temporalio.workflow import ParentClosePolicy

from workflows.messages.activity_options import Options, as_keywords
from workflows.messages.contracts import AGENT, PREPARE_AGENT, GroupReply, NodeCall
from workflows.messages.queues import WORKFLOW
from workflows.messages.request import RunRequest
from workflows.run.subagent_status import SubagentStatus

DEEPEST = 3
"""Levels of sub-agents below a run; one further down is refused."""


async def run_subagent(
    call: NodeCall, name: str, ident: str, options: Options, given: dict[str, Any], subagents: SubagentStatus
) -> GroupReply:
    """Bind the goal, run the child, and store its answer as the node's output. Raises the error of the step that
    failed.

    The child is `<parent id>.<name>`; the activities around it have the id `ident`. It ends `partial` where it would
    park, and is asked to cancel when its parent ends. Its request has the fields `given`, and no larger budget than
    they allow.
    """
    if given["depth"] > DEEPEST:
        raise ApplicationError(f"sub-agents are {DEEPEST} deep already", type="TooDeep", non_retryable=True)
    prepared = await workflow.execute_activity(
        PREPARE_AGENT.name, call, activity_id=f"{ident}.goal", result_type=PREPARE_AGENT.gives, **as_keywords(options)
    )
    budget = prepared.request.get("budget")
    if given["budget"]:
        budget = {**given["budget"], **_tighter(budget or {}, given["budget"])}
    request = {**prepared.request, **given, "budget": budget}
    child = await workflow.start_child_workflow(
        "AgentRun",
        request,
        id=f"{workflow.info().workflow_id}.{name}",
        task_queue=WORKFLOW,
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


def inherited(request: RunRequest) -> dict[str, Any]:
    """Return the fields of a sub-agent's request that come from its parent's request."""
    given = {"tenant": request.tenant or None, "approve_replans_above": request.approve_replans_above}
    known = {name: value for name, value in given.items() if value is not None}
    return {"depth": request.depth + 1, "max_replans": request.max_replans, **known}


def _tighter(asked: dict[str, Any], left: dict[str, Any]) -> dict[str, Any]:
    return {name: min(limit, left.get(name, limit)) if name != "time" else limit for name, limit in asked.items()}


def _kept(report: Any) -> dict[str, Any]:
    """Return the part of a child's report that its parent keeps."""
    kept = ("answer", "status", "evidence", "usage", "problem", "id")
    return {name: report.get(name) for name in kept} if isinstance(report, dict) else {"answer": None}
