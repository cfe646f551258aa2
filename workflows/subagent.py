"""A sub-agent: a run of its own as a child workflow, with some of its parent's tools and a part of its budget."""

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError
from temporalio.workflow import ParentClosePolicy

from workflows.contracts import AGENT, DELEGATE, GroupReply, NodeCall
from workflows.policies import Options, as_keywords
from workflows.queues import WORKFLOW

DEEPEST = 3
"""Sub-agents below a run; one further down is refused."""


async def run_subagent(
    call: NodeCall, name: str, options: Options, budget: dict[str, Any] | None, depth: int
) -> GroupReply:
    """Bind the goal, run the child, keep its answer as the node's output. Raises what failed of these.

    The child is `<parent id>.<node>`, ends `partial` where it would park, and is asked to cancel when its parent ends.
    """
    if depth >= DEEPEST:
        raise ApplicationError(f"sub-agents are {DEEPEST} deep already", type="TooDeep", non_retryable=True)
    delegation = await workflow.execute_activity(
        DELEGATE.name, call, activity_id=f"{name}.goal", result_type=DELEGATE.gives, **as_keywords(options)
    )
    request = {**delegation.request, "depth": depth + 1}
    if budget:
        request["budget"] = {**budget, **_tighter(request.get("budget") or {}, budget)}
    report = await workflow.execute_child_workflow(
        "AgentRun",
        request,
        id=f"{workflow.info().workflow_id}.{name}",
        task_queue=WORKFLOW,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
        static_summary=str(request.get("goal", ""))[:200],
    )
    kept: GroupReply = await workflow.execute_activity(
        AGENT.name,
        call.model_copy(update={"answer": _told(report)}),
        activity_id=name,
        result_type=AGENT.gives,
        **as_keywords(options),
    )
    return kept


def _tighter(asked: dict[str, Any], left: dict[str, Any]) -> dict[str, Any]:
    return {name: min(limit, left.get(name, limit)) if name != "time" else limit for name, limit in asked.items()}


def _told(report: Any) -> dict[str, Any]:
    """Return of a child's report what its parent keeps."""
    kept = ("answer", "status", "evidence", "usage", "problem", "id")
    return {name: report.get(name) for name in kept} if isinstance(report, dict) else {"answer": None}
