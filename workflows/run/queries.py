"""Answers the queries: small JSON, whatever the request."""

from abc import abstractmethod
from typing import Any

from temporalio import workflow

from workflows.messages.contracts import CheckResult, NodeReply
from workflows.messages.request import RunRequest
from workflows.messages.result import RunStatus, UsageReport
from workflows.messages.updates import UPDATES
from workflows.messages.views import PAGE, NodeView, RunView
from workflows.plan.language.limits import NO_USAGE, Usage
from workflows.plan.scheduling.budget import ledger
from workflows.run.engine import Engine
from workflows.run.setup import RunSetup
from workflows.views.quote import quote_line, quote_warnings
from workflows.views.report import blocked_on, counts, drain_waits_for, error_of, view_of, visible_units
from workflows.views.script import script_view

PAGE_BYTES = 200_000

HELP: dict[str, Any] = {
    "queries": {
        "plan": {"about": "the run, a page of nodes at a time", "example": {"from": 0, "limit": PAGE}},
        "node": {"about": "one node", "example": {"node": "n7"}},
        "costs": {"about": "what each node has used, the dearest first", "example": {}},
        "script": {"about": "a program's script, and what each line has called", "example": {"node": "main"}},
        "help": {"about": "this", "example": {}},
    },
    "updates": {update.name: {"about": update.about, "example": update.example} for update in UPDATES},
}


class QueryHandlers:
    """The queries of a run. Each takes one JSON object of any shape and always has an answer."""

    _request: RunRequest | None
    _setup: RunSetup
    _checked: CheckResult
    _engine: Engine | None

    @property
    @abstractmethod
    def _status(self) -> RunStatus: ...

    @property
    @abstractmethod
    def _spent(self) -> Usage: ...

    @workflow.query(name="plan", description='The run, a page of nodes at a time: {} or {"from": 500, "limit": 500}')
    def query_plan(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a page of the run as `RunView`."""
        del more
        view = RunView(
            id=workflow.info().workflow_id,
            run_id=workflow.info().run_id,
            status=self._status,
            phase=self._setup.phase,
            goal=self._request.goal[:2000] if self._request else "",
            blocked=self._setup.outage.blocked,
            usage=UsageReport.of(self._spent),
            warnings=self._checked.warnings,
        )
        return run_view(view, self._engine, request)

    @workflow.query(name="node", description='One node: {"node": "n7"}')
    def query_node(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return one node as `NodeView`, or `{"problem": ...}`."""
        del more
        return node_view(self._engine, workflow.info().workflow_id, request)

    @workflow.query(name="costs", description="What the run and each of its nodes have used, beside its budget")
    def query_costs(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return the ledger, and tokens, calls and dollars by node."""
        del request, more
        return cost_view(self._engine, self._setup.spent)

    @workflow.query(name="script", description='A program with what each line of it has called: {"node": "main"}')
    def query_script(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a program as `ScriptView`, or `{"problem": ...}`."""
        del more
        if self._engine is None:
            return {"problem": "there is no plan yet"}
        name = request.get("node") if isinstance(request, dict) else request
        found = script_view(self._engine.state, self._engine.replies, name if isinstance(name, str) else "")
        return {"problem": found} if isinstance(found, str) else found.model_dump(mode="json")

    @workflow.query(name="help", description="What can be asked of this run and done to it")
    def query_help(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return the queries and updates with an example each."""
        del request, more
        return HELP


def run_view(view: RunView, engine: Engine | None, request: Any) -> dict[str, Any]:
    """Return `view` with a page of nodes. A request that is not a page gets the first page."""
    if engine is None:
        return view.model_dump(mode="json")
    state = engine.state
    start, limit = _page(request)
    agents = engine.subagents.lines(state, view.id)
    units = visible_units(state)
    nodes: list[NodeView] = []
    blocked = (*view.blocked, *blocked_on(state, view.id, engine.blocked_children))
    size = 2 * sum(len(item.shown) for item in blocked)
    for unit in units[start : start + limit]:
        node = view_of(state, unit, engine.replies.get(unit), agents.get(unit, ""))
        size += 160 + len(node.summary) + len(node.preview) * 2 + len(node.error or "") + 12 * len(node.needs)
        if size > PAGE_BYTES and nodes:
            break
        nodes.append(node)
    end = start + len(nodes)
    return view.model_copy(
        update={
            "counts": counts(state),
            "budget": ledger(state.budget),
            "quote": quote_line(state),
            "warnings": (*view.warnings, *quote_warnings(state)),
            "blocked": blocked,
            "waits_for": drain_waits_for(state),
            "nodes": tuple(nodes),
            "next": end if end < len(units) else None,
        }
    ).model_dump(mode="json")


def cost_view(engine: Engine | None, planning: Usage) -> dict[str, Any]:
    """Return the budget, the usage of the planner and of each node (the most expensive first, at most 500), and what
    was wasted on nodes of an earlier plan whose outputs this plan does not have.
    """
    state = engine.state if engine is not None else None
    rows = [{"node": "planner", **UsageReport.of(planning).model_dump()}] if any(planning) else []
    for unit, reply in engine.replies.items() if engine is not None else ():
        if any(reply.usage) and state is not None:
            rows.append({"node": state.path(unit), **UsageReport.of(reply.usage).model_dump()})
    rows.sort(key=lambda row: (-row["cost_usd"], -row["input_tokens"] - row["output_tokens"], row["node"]))
    return {
        "budget": ledger(state.budget) if state is not None else {},
        "nodes": rows[:PAGE],
        "more": len(rows) - PAGE > 0,
        "wasted": _wasted(engine.wasted if engine is not None else []),
    }


def _wasted(replies: list[NodeReply | None]) -> dict[str, Any]:
    usage = NO_USAGE
    for reply in replies:
        if reply is not None:
            usage = usage.plus(reply.usage)
    return {"nodes": len(replies), **UsageReport.of(usage).model_dump()}


def _page(request: Any) -> tuple[int, int]:
    asked = request if isinstance(request, dict) else {}
    start, limit = asked.get("from", 0), asked.get("limit", PAGE)
    start = start if isinstance(start, int) and start > 0 else 0
    return start, limit if isinstance(limit, int) and 0 < limit <= PAGE else PAGE


def node_view(engine: Engine | None, run: str, request: Any) -> dict[str, Any]:
    """Return one node, or `{"problem": ...}` that says what to ask instead."""
    if engine is None:
        return {"problem": "there is no plan yet"}
    name = request.get("node") if isinstance(request, dict) else request
    unit = engine.state.find(name) if isinstance(name, str) else None
    if unit is None:
        return {"problem": f'there is no such node; ask with {{"node": "{engine.state.path(0)}"}}'}
    agent = engine.subagents.lines(engine.state, run).get(unit, "")
    view = view_of(engine.state, unit, engine.replies.get(unit), agent).model_dump(mode="json")
    return {**view, "generation": engine.state.generation[unit], "error": error_of(engine.state, unit)}
