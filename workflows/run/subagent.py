"""A sub-agent: a run of its own as a child workflow, with some of its parent's tools
and a part of its budget.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, ChildWorkflowError
from temporalio.workflow import ParentClosePolicy

from sennit.workflows.limits import MAX_ITEM_LINES, MAX_SUBAGENT_LEVELS
from sennit.workflows.messages.activity_ids import ActivityId
from sennit.workflows.messages.activity_options import Options
from sennit.workflows.messages.contracts import (
    AGENT,
    PREPARE_AGENT,
    GroupReply,
    NodeReply,
    PreparedAgent,
    SubagentRequest,
)
from sennit.workflows.messages.node_calls import AgentsCall, AnswersCall, NodeCall
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.run.outcomes import invalid_result, result_of
from sennit.workflows.run.search_attributes import at_start, of_subagents
from sennit.workflows.run.shared_activities import AgentActivities
from sennit.workflows.run.subagent_status import SubagentStatus

RUN_ID_CHARACTERS = 36
_WAY = re.compile(r"[0-9a-f]{16}")
GIVEN_UP = "the run above it does not need it any more"
SUSPENDED = "the run above it continues as new, and starts it again"
"""Why a run cancels a sub-agent. A server that cancels a sub-agent because its parent
is over gives no reason.
"""


async def run_subagent(
    call: NodeCall,
    name: str,
    ident: ActivityId,
    options: Options,
    inherited: dict[str, Any],
    subagents: SubagentStatus,
    shared: AgentActivities | None,
) -> GroupReply:
    """Prepare the child, run it, and store its answer as the node's output. Raises the error
    of the step that failed.

    The child is `<parent id>.<name>`; the activities around it have the id `ident`, with `shared`
    ones that of the first who shares them. Without `shared`, as in runs that began with an earlier
    version, each step is an activity of its own, and the child prepares itself. It ends `partial`
    where it would park. Its request has the fields `inherited`, and no larger budget than they
    allow. It is cancelled when its parent ends, and its writes end first. It does not start if a
    run that this one forks has its result.

    A child that was left running by a reset of this run is ended. The new one takes over what is
    finished, because its artifacts have the same place.
    """
    if inherited["depth"] > MAX_SUBAGENT_LEVELS:
        raise ApplicationError(
            f"sub-agents are {MAX_SUBAGENT_LEVELS} deep already", type="TooDeep", non_retryable=True
        )

    # A worker binds the goal, and opens the child's run. It may find that nothing is left to do.
    prepared = await _prepared(call, replace(ident, work="goal"), options, inherited, shared)
    if prepared.taken is not None:
        return GroupReply(nodes=(prepared.taken,))
    if isinstance(prepared, PreparedAgent) and prepared.error is not None:
        return GroupReply(nodes=(NodeReply(error=prepared.error),))

    # The child runs, and its parent knows it by name as long as it does.
    request = _request(prepared, inherited)
    attributes: Sequence[SearchAttributePair[Any]] = ()
    if isinstance(prepared, PreparedAgent):
        if prepared.prepared is None:
            raise invalid_result()
        opened = prepared.prepared
        attributes = at_start(opened.attributes, inherited.get("tenant", ""))
        opened = opened.model_copy(update={"attributes": of_subagents(opened.attributes)})
        request["prepared"] = opened.model_dump(mode="json", exclude_defaults=True)
    search_attributes = None
    if attributes:
        search_attributes = TypedSearchAttributes(attributes)
    title = str(request.get("goal") or request.get("title") or "")
    child = await workflow.start_child_workflow(
        "AgentRun",
        request,
        id=f"{workflow.info().workflow_id}.{name}",
        task_queue=WORKFLOW,
        id_reuse_policy=WorkflowIDReusePolicy.TERMINATE_IF_RUNNING,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
        static_summary=title[:200],
        search_attributes=search_attributes,
    )
    subagents.begun(name, child.first_execution_run_id or "")
    try:
        report = await child
        subagents.wrote(name, report)
    except ChildWorkflowError as error:
        subagents.wrote(name, _report_in(error))
        raise
    finally:
        subagents.ended(name)

    # A worker stores the answer as the node's output.
    kept = _kept(report, inherited["run_prefix"], of_item="draft" in request)
    if shared is not None:
        answer = AnswersCall(**_fields_of(call), reports=(kept,))
        stored = await shared.answers.ask(answer, ident, options)
        return GroupReply(nodes=(stored,))
    reply: GroupReply = await workflow.execute_activity(
        AGENT.name,
        call.model_copy(update={"report": kept}),
        activity_id=str(ident),
        result_type=AGENT.gives,
        **options,
    )
    return reply


async def _prepared(
    call: NodeCall,
    ident: ActivityId,
    options: Options,
    inherited: dict[str, Any],
    shared: AgentActivities | None,
) -> SubagentRequest:
    """Return what the child is started with."""
    if shared is not None:
        above = dict(inherited)
        del above["budget"], above["run_prefix"]
        priced = "cost_usd" in (inherited["budget"] or {})
        goals = AgentsCall(**_fields_of(call), inherited=above, priced=priced)
        return await shared.goals.ask(goals, ident, options)
    prepared = await workflow.execute_activity(
        PREPARE_AGENT.name, call, activity_id=str(ident), result_type=PREPARE_AGENT.gives, **options
    )
    return result_of(PREPARE_AGENT, prepared)


def _fields_of(call: NodeCall) -> dict[str, Any]:
    """Return the fields of a call that say something, in the order in which it has them."""
    given: dict[str, Any] = {}
    for name in type(call).model_fields:
        if name in call.model_fields_set:
            given[name] = getattr(call, name)
    return given


def _report_in(error: ChildWorkflowError) -> Any:
    """Return the report of a sub-agent that failed, empty if it has none; None if it
    came to no end of its own.
    """
    if not isinstance(error.cause, ApplicationError):
        return None
    for detail in error.cause.details:
        if isinstance(detail, dict):
            return detail
    return {}


def prefix_below(run_prefix: str, name: str) -> str:
    """Return the run prefix of a sub-agent: the first run id of the root, and a digest
    of the way down from it.
    """
    root = run_prefix[:RUN_ID_CHARACTERS]
    way = hashlib.sha256(f"{run_prefix}/{name}".encode()).hexdigest()
    return f"{root}-{way[:16]}"


def is_below(run_prefix: str, above: str) -> bool:
    """Whether a run prefix has the form of a sub-agent's in the tree of the run
    with the prefix `above`.
    """
    root, _, way = run_prefix.rpartition("-")
    return root == above[:RUN_ID_CHARACTERS] and _WAY.fullmatch(way) is not None


def inherited(request: RunRequest) -> dict[str, Any]:
    """Return the fields of a sub-agent's request that come from its parent's request."""
    fields: dict[str, Any] = {"depth": request.depth + 1, "max_replans": request.max_replans}
    if request.tenant:
        fields["tenant"] = request.tenant
    if request.model:
        fields["model"] = request.model
    if request.agents_above:
        fields["agents_above"] = request.agents_above
    if request.settings is not None:
        fields["settings"] = request.settings.model_dump(mode="json")
    return fields


def _request(prepared: SubagentRequest, inherited: dict[str, Any]) -> dict[str, Any]:
    """Return what the child runs with: its own request, and what comes from its parent."""
    if not prepared.request:
        raise invalid_result()
    budget = prepared.request.get("budget")
    if inherited["budget"]:
        own: dict[str, Any] = {}
        if isinstance(budget, dict):
            own = budget
        budget = _tightest(own, inherited["budget"])
    request = {**prepared.request, **inherited, "budget": budget}
    return {name: value for name, value in request.items() if value is not None}


def _tightest(own: dict[str, Any], left: dict[str, Any]) -> dict[str, Any]:
    """Return the budget of a sub-agent: its own limits, none of them above
    what its parent has left.
    """
    limits = dict(left)
    for name, limit in own.items():
        if name == "time":  # its own time counts as it is
            limits[name] = limit
        else:
            limits[name] = min(limit, left.get(name, limit))
    return limits


def _kept(report: Any, run_prefix: str, *, of_item: bool) -> dict[str, Any]:
    """Return the part of a child's report that its parent keeps, and where the answer is if it is
    cut there. The report of an item's run also tells how the nodes of the map's `do` have ended,
    which are the first of its plan.
    """
    if not isinstance(report, dict):
        return {"answer": None}
    kept: dict[str, Any] = {"answer": report.get("answer")}
    for name in ("status", "evidence", "usage", "problem", "id"):
        if report.get(name):
            kept[name] = report[name]
    if of_item:
        nodes: list[dict[str, Any]] = []
        for line in (report.get("nodes") or ())[:MAX_ITEM_LINES]:
            nodes.append(
                {"id": line.get("id"), "status": line.get("status"), "error": line.get("error")}
            )
        kept["nodes"] = nodes
    if report.get("answer_ref"):
        kept["whole"] = f"{run_prefix}/{report['answer_ref']}"
    return kept
