"""Answers the queries: small JSON, whatever the request."""

from abc import abstractmethod
from typing import Any

from temporalio import workflow

from sennit.workflows.limits import MAX_PAGE_NODES, MAX_QUERY_BYTES
from sennit.workflows.messages.contracts import CheckResult, NodeReply
from sennit.workflows.messages.outputs import OutputPlaces
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.messages.result import BlockedOn, RunStatus, UsageReport
from sennit.workflows.messages.updates import UPDATES
from sennit.workflows.messages.views import NodeView, RunView
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.language.text import text_bytes
from sennit.workflows.plan.scheduling.budget import ledger
from sennit.workflows.plan.scheduling.termination import handled
from sennit.workflows.run.engine import Engine
from sennit.workflows.run.place import RunPlace
from sennit.workflows.run.setup import RunSetup
from sennit.workflows.run.state_query import state_part
from sennit.workflows.views.figures import figures_page
from sennit.workflows.views.journal import Journal
from sennit.workflows.views.nodes import drain_waits_for, error_of, usage_by_unit, view_of
from sennit.workflows.views.outputs import NO_PLAN, asked_for, output_places
from sennit.workflows.views.script import script_view
from sennit.workflows.views.sharing import explained
from sennit.workflows.views.shown_run import ShownRun
from sennit.workflows.views.warnings import run_warnings

NOT_PLANNED = "there is no plan yet"

HELP: dict[str, Any] = {
    "updates": {update.name: {"about": update.about, "example": update.example} for update in UPDATES},
    "queries": {
        "plan": {"about": "the run, a page of nodes at a time", "example": {"from": 0, "limit": MAX_PAGE_NODES}},
        "node": {"about": "one node", "example": {"node": "n7"}},
        "sharing": {"about": "which nodes share an activity, and why others do not", "example": {}},
        "costs": {"about": "what each node has used, the dearest first", "example": {}},
        "figures": {"about": "what parallelism has brought, and when each call ran", "example": {"from": 0}},
        "script": {"about": "a program's script, and what each line has called", "example": {"node": "main"}},
        "outputs": {"about": "where outputs lie, for workers to read them", "example": {"nodes": ["n7"]}},
        "state": {"about": "where the run stands, for workers to play on from there", "example": {"part": 0}},
        "events": {"about": "what has happened, a page of events at a time", "example": {"after": 0}},
        "help": {"about": "this", "example": {}},
    },
}


class QueryHandlers:
    """The queries of a run. Each takes one JSON object of any shape and always has an answer."""

    _request: RunRequest | None
    _setup: RunSetup
    _place: RunPlace
    _checked: CheckResult
    _engine: Engine | None
    _answer_ref: str
    _journal: Journal

    @property
    @abstractmethod
    def _status(self) -> RunStatus: ...

    @property
    @abstractmethod
    def _spent(self) -> Usage: ...

    @property
    @abstractmethod
    def _halted_by(self) -> tuple[BlockedOn, ...]: ...

    @workflow.query(name="plan", description='The run, a page of nodes at a time: {} or {"from": 500, "limit": 500}')
    def query_plan(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a page of the run as `RunView`."""
        del more
        view = RunView(
            id=workflow.info().workflow_id,
            run_id=workflow.info().run_id,
            status=self._status,
            phase=self._setup.phase,
            progress=self._place.waits_for,
            goal=self._request.goal[:2000] if self._request else "",
            blocked=self._halted_by,
            usage=UsageReport.of(self._spent),
            warnings=self._checked.warnings,
        )
        return run_view(view, self._engine, request)

    @workflow.query(name="node", description='One node: {"node": "n7"}')
    def query_node(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return one node as `NodeView`, or `{"problem": ...}`."""
        del more
        return node_view(self._engine, workflow.info().workflow_id, request)

    @workflow.query(name="sharing", description="Which nodes may share an activity, and why others do not")
    def query_sharing(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a sentence for each of the first 500 nodes, or `{"problem": ...}`."""
        del request, more
        return {"nodes": explained(self._engine.state)} if self._engine is not None else {"problem": NOT_PLANNED}

    @workflow.query(name="costs", description="What the run and each of its nodes have used, beside its budget")
    def query_costs(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return the ledger, and tokens, calls and dollars by node."""
        del request, more
        return cost_view(self._engine, self._setup.spent)

    @workflow.query(name="figures", description="What parallelism has brought, and when each call ran")
    def query_figures(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a page of calls with the figures of the run as `FiguresPage`, or `{"problem": ...}`."""
        del more
        if self._engine is None:
            return {"problem": NOT_PLANNED}
        if self._engine.frozen is not None:
            return {"problem": self._engine.frozen.problem}
        start, limit = _page(request)
        page = figures_page(self._engine.state, self._setup.spent, start, limit)
        return page.model_dump(mode="json", exclude_defaults=True)

    @workflow.query(name="script", description='A program with what each line of it has called: {"node": "main"}')
    def query_script(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a program as `ScriptView`, or `{"problem": ...}`."""
        del more
        if self._engine is None:
            return {"problem": NOT_PLANNED}
        name = request.get("node") if isinstance(request, dict) else request
        found = script_view(self._engine.state, self._engine.replies, name if isinstance(name, str) else "")
        return {"problem": found} if isinstance(found, str) else found.model_dump(mode="json")

    @workflow.query(name="outputs", description='Where outputs lie, for workers to read them: {"nodes": ["n7"]}')
    def query_outputs(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return `OutputPlaces`: of this run alone, whoever asks."""
        del more
        names, engine = asked_for(request), self._engine
        if engine is None:
            places = (NO_PLAN,) * len(names)
        else:
            places = output_places(engine.state, names, self._answer_ref, engine.dispatcher.plan)
        return OutputPlaces(places=places).model_dump(mode="json")

    @workflow.query(name="state", description='Where the run stands, for workers to play on from there: {"part": 0}')
    def query_state(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a piece of `RunStateView` as `RunStatePart`, or `{"problem": ...}`."""
        del more
        if self._engine is None:
            return {"problem": NOT_PLANNED}
        if self._engine.frozen is not None:
            return {"problem": self._engine.frozen.problem}
        return state_part(self._engine, self._setup.run_context, request)

    @workflow.query(name="events", description='What has happened, a page at a time: {} or {"after": 500}')
    def query_events(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a page of events as `EventPage`. `through` leaves out what a workflow task that began later noted."""
        del more
        asked = request if isinstance(request, dict) else {}
        after, through = asked.get("after", 0), asked.get("through")
        page = self._journal.page(after if isinstance(after, int) else 0, through if isinstance(through, int) else None)
        previous = workflow.info().continued_run_id or ""
        return page.model_copy(update={"previous": previous}).model_dump(mode="json", exclude_defaults=True)

    @workflow.query(name="help", description="What can be asked of this run and done to it")
    def query_help(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return the queries and updates with an example each."""
        del request, more
        return HELP


def run_view(view: RunView, engine: Engine | None, request: Any) -> dict[str, Any]:
    """Return `view` with a page of nodes. A request that is not a page gets the first page. Of a frozen run, whose
    state may be wrong, there is only what became of its writes.
    """
    if engine is None:
        return view.model_dump(mode="json")
    if engine.frozen is not None:
        return view.model_copy(update={"writes": engine.writes()}).model_dump(mode="json")
    state = engine.state
    start, limit = _page(request)
    agents = engine.subagents.lines(state, view.id)
    shown = ShownRun(state, view.id, engine.blocked_children, view.blocked, forgotten=engine.forgotten)
    nodes: list[NodeView] = []
    size = 2 * sum(text_bytes(item.shown) for item in shown.blocked)
    places = engine.dispatcher.group_places
    for unit in shown.units[start : start + limit]:
        reply, used = engine.replies.get(unit), shown.usage.get(unit, NO_USAGE)
        node = view_of(state, unit, reply, agents.get(unit, ""), shown.caught, used)
        if unit in places:
            node = node.model_copy(update={"seat": places[unit]})
        size += 330 + text_bytes(node.summary) + text_bytes(node.preview) * 2 + text_bytes(node.error or "")
        size += 12 * len(node.needs)
        if size > MAX_QUERY_BYTES and nodes:
            break
        nodes.append(node)
    end = start + len(nodes)
    return view.model_copy(
        update={
            "counts": shown.counts,
            "budget": ledger(state.budget),
            "quote": shown.quote,
            "warnings": (*view.warnings, *engine.warnings, *run_warnings(state)),
            "log": engine.log.lines(engine.state),
            "blocked": shown.blocked,
            "waits_for": drain_waits_for(state),
            "writes": shown.writes,
            "nodes": tuple(nodes),
            "next": end if end < len(shown.units) else None,
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
            rows.append({"node": state.shown(unit), **UsageReport.of(reply.usage).model_dump()})
    rows.sort(key=lambda row: (-row["cost_usd"], -row["input_tokens"] - row["output_tokens"], row["node"]))
    return {
        "budget": ledger(state.budget) if state is not None else {},
        "nodes": rows[:MAX_PAGE_NODES],
        "more": len(rows) - MAX_PAGE_NODES > 0,
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
    start, limit = asked.get("from", 0), asked.get("limit", MAX_PAGE_NODES)
    start = start if isinstance(start, int) and start > 0 else 0
    return start, limit if isinstance(limit, int) and 0 < limit <= MAX_PAGE_NODES else MAX_PAGE_NODES


def node_view(engine: Engine | None, run: str, request: Any) -> dict[str, Any]:
    """Return one node, or `{"problem": ...}` that says what to ask instead. `subagent` is what follows the run's id in
    that of a sub-agent that the node has, or will have, in its present generation.
    """
    if engine is None:
        return {"problem": NOT_PLANNED}
    name = request.get("node") if isinstance(request, dict) else request
    unit = engine.state.find(name) if isinstance(name, str) else None
    if unit is None:
        return {"problem": f'there is no such node; ask with {{"node": "{engine.state.path(0)}"}}'}
    agent = engine.subagents.lines(engine.state, run).get(unit, "")
    used = usage_by_unit(engine.state).get(unit, NO_USAGE)
    reply, caught = engine.replies.get(unit), handled(engine.state)
    view = view_of(engine.state, unit, reply, agent, caught, used).model_dump(mode="json")
    extra = {"subagent": engine.state.subagent(unit)} if engine.state.kind_of(unit) == "agent" else {}
    whole = {"ref": engine.state.digest[unit], "error": error_of(engine.state, unit)}
    return {**view, **extra, **whole, "generation": engine.state.generation[unit]}
