"""Answers the queries: small JSON, whatever the request."""

from abc import abstractmethod
from typing import Any

from temporalio import workflow

from sennit.workflows.limits import MAX_PAGE_NODES, MAX_QUERY_BYTES, MAX_SHOWN_GOAL_CHARACTERS
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
_NODE_BYTES = 330
_NEED_BYTES = 12
"""About how long a node is in JSON without its texts, and each of the nodes that it needs."""

HELP: dict[str, Any] = {
    "updates": {
        update.name: {"about": update.about, "example": update.example} for update in UPDATES
    },
    "queries": {
        "plan": {
            "about": "the run, a page of nodes at a time",
            "example": {"from": 0, "limit": MAX_PAGE_NODES},
        },
        "node": {"about": "one node", "example": {"node": "n7"}},
        "sharing": {"about": "which nodes share an activity, and why others do not", "example": {}},
        "costs": {"about": "what each node has used, the dearest first", "example": {}},
        "figures": {
            "about": "what parallelism has brought, and when each call ran",
            "example": {"from": 0},
        },
        "script": {
            "about": "a program's script, and what each line has called",
            "example": {"node": "main"},
        },
        "outputs": {
            "about": "where outputs lie, for workers to read them",
            "example": {"nodes": ["n7"]},
        },
        "state": {
            "about": "where the run stands, for workers to play on from there",
            "example": {"part": 0},
        },
        "events": {
            "about": "what has happened, a page of events at a time",
            "example": {"after": 0},
        },
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

    @workflow.query(
        name="plan",
        description='The run, a page of nodes at a time: {} or {"from": 500, "limit": 500}',
    )
    def query_plan(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a page of the run as `RunView`."""
        del more
        goal = ""
        if self._request is not None:
            goal = self._request.goal
        view = RunView(
            id=workflow.info().workflow_id,
            run_id=workflow.info().run_id,
            status=self._status,
            phase=self._setup.phase,
            progress=self._place.waits_for,
            goal=goal[:MAX_SHOWN_GOAL_CHARACTERS],
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

    @workflow.query(
        name="sharing", description="Which nodes may share an activity, and why others do not"
    )
    def query_sharing(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a sentence for each of the first 500 nodes, or `{"problem": ...}`."""
        del request, more
        if self._engine is None:
            return {"problem": NOT_PLANNED}
        return {"nodes": explained(self._engine.state)}

    @workflow.query(
        name="costs", description="What the run and each of its nodes have used, beside its budget"
    )
    def query_costs(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return the ledger, and tokens, calls and dollars by node."""
        del request, more
        return cost_view(self._engine, self._setup.spent)

    @workflow.query(
        name="figures", description="What parallelism has brought, and when each call ran"
    )
    def query_figures(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a page of calls with the figures of the run as `FiguresPage`,
        or `{"problem": ...}`.
        """
        del more
        if self._engine is None:
            return {"problem": NOT_PLANNED}
        if self._engine.frozen is not None:
            return {"problem": self._engine.frozen.problem}
        start, limit = _page(request)
        speculated = self._engine.speculated
        page = figures_page(self._engine.state, self._setup.spent, start, limit, speculated)
        return page.model_dump(mode="json", exclude_defaults=True)

    @workflow.query(
        name="script",
        description='A program with what each line of it has called: {"node": "main"}',
    )
    def query_script(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a program as `ScriptView`, or `{"problem": ...}`."""
        del more
        if self._engine is None:
            return {"problem": NOT_PLANNED}
        name = _node_name(request)
        view = script_view(self._engine.state, self._engine.replies, name)
        if isinstance(view, str):
            return {"problem": view}
        return view.model_dump(mode="json")

    @workflow.query(
        name="outputs", description='Where outputs lie, for workers to read them: {"nodes": ["n7"]}'
    )
    def query_outputs(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return `OutputPlaces`: of this run alone, whoever asks."""
        del more
        names = asked_for(request)
        engine = self._engine
        if engine is None:
            places = (NO_PLAN,) * len(names)
        else:
            places = output_places(engine.state, names, self._answer_ref, engine.dispatcher.plan)
        return OutputPlaces(places=places).model_dump(mode="json")

    @workflow.query(
        name="state",
        description='Where the run stands, for workers to play on from there: {"part": 0}',
    )
    def query_state(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a piece of `RunStateView` as `RunStatePart`, or `{"problem": ...}`."""
        del more
        if self._engine is None:
            return {"problem": NOT_PLANNED}
        if self._engine.frozen is not None:
            return {"problem": self._engine.frozen.problem}
        return state_part(self._engine, self._setup.run_context, request)

    @workflow.query(
        name="events", description='What has happened, a page at a time: {} or {"after": 500}'
    )
    def query_events(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a page of events as `EventPage`. `through` leaves out what a workflow task
        that began later noted.
        """
        del more
        fields = _fields(request)
        after = fields.get("after")
        if not isinstance(after, int):
            after = 0
        through = fields.get("through")
        if not isinstance(through, int):
            through = None
        page = self._journal.page(after, through)
        previous = workflow.info().continued_run_id or ""
        return page.model_copy(update={"previous": previous}).model_dump(
            mode="json", exclude_defaults=True
        )

    @workflow.query(name="help", description="What can be asked of this run and done to it")
    def query_help(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return the queries and updates with an example each."""
        del request, more
        return HELP


def run_view(view: RunView, engine: Engine | None, request: Any) -> dict[str, Any]:
    """Return `view` with a page of nodes. A request that is not a page gets the first page. Of a
    frozen run, whose state may be wrong, there is only what became of its writes.
    """
    if engine is None:
        return view.model_dump(mode="json")
    if engine.frozen is not None:
        return view.model_copy(update={"writes": engine.writes()}).model_dump(mode="json")
    state = engine.state
    start, limit = _page(request)
    agents = engine.subagents.lines(state, view.id)
    shown = ShownRun(
        state, view.id, engine.blocked_children, view.blocked, forgotten=engine.forgotten
    )
    places = engine.dispatcher.group_places

    # Texts that a person reads count twice: JSON escapes some of their characters.
    nodes: list[NodeView] = []
    size = 0
    for item in shown.blocked:
        size += 2 * text_bytes(item.shown)
    for unit in shown.units[start : start + limit]:
        reply = engine.replies.get(unit)
        agent = agents.get(unit, "")
        used = shown.usage.get(unit, NO_USAGE)
        node = view_of(state, unit, reply, agent, shown.caught, used)
        if unit in places:
            node = node.model_copy(update={"seat": places[unit]})
        size += _NODE_BYTES + _NEED_BYTES * len(node.needs)
        size += 2 * text_bytes(node.preview)
        size += text_bytes(node.summary) + text_bytes(node.error or "")
        if size > MAX_QUERY_BYTES and nodes:
            break
        nodes.append(node)

    next_start: int | None = None
    if start + len(nodes) < len(shown.units):
        next_start = start + len(nodes)
    fields = {
        "counts": shown.counts,
        "budget": ledger(state.budget),
        "quote": shown.quote,
        "warnings": (*view.warnings, *engine.warnings, *run_warnings(state)),
        "log": engine.log.lines(engine.state),
        "blocked": shown.blocked,
        "waits_for": drain_waits_for(state),
        "writes": shown.writes,
        "nodes": tuple(nodes),
        "next": next_start,
    }
    return view.model_copy(update=fields).model_dump(mode="json")


def cost_view(engine: Engine | None, planning: Usage) -> dict[str, Any]:
    """Return the budget, the usage of the planner and of each node (the most expensive
    first, at most 500), and what was wasted on nodes of an earlier plan whose outputs
    this plan does not have.
    """
    rows: list[dict[str, Any]] = []
    if any(planning):
        rows.append(_usage_row("planner", planning))
    budget: dict[str, Any] = {}
    wasted: list[NodeReply | None] = []
    if engine is not None:
        budget = ledger(engine.state.budget)
        wasted = engine.wasted
        for unit, reply in engine.replies.items():
            if any(reply.usage):
                path = engine.state.path(unit)
                rows.append(_usage_row(path, reply.usage))
    rows.sort(key=_by_expense)
    return {
        "budget": budget,
        "nodes": rows[:MAX_PAGE_NODES],
        "more": len(rows) > MAX_PAGE_NODES,
        "wasted": _wasted(wasted),
    }


def _usage_row(node: str, usage: Usage) -> dict[str, Any]:
    return {"node": node, **UsageReport.of(usage).model_dump()}


def _by_expense(row: dict[str, Any]) -> tuple[float, int, str]:
    """Return the key by which the most expensive row sorts first."""
    tokens = row["input_tokens"] + row["output_tokens"]
    return -row["cost_usd"], -tokens, row["node"]


def _wasted(replies: list[NodeReply | None]) -> dict[str, Any]:
    usage = NO_USAGE
    for reply in replies:
        if reply is not None:
            usage = usage.plus(reply.usage)
    return {"nodes": len(replies), **UsageReport.of(usage).model_dump()}


def _page(request: Any) -> tuple[int, int]:
    """Return the first node of a page and the most nodes of it, as far as a request names them."""
    fields = _fields(request)
    start = fields.get("from")
    if not isinstance(start, int) or start < 0:
        start = 0
    limit = fields.get("limit")
    if not isinstance(limit, int) or not 0 < limit <= MAX_PAGE_NODES:
        limit = MAX_PAGE_NODES
    return start, limit


def _fields(request: Any) -> dict[str, Any]:
    """Return the fields of a request, none if it is no JSON object."""
    if not isinstance(request, dict):
        return {}
    return request


def _node_name(request: Any) -> str:
    """Return the node that a request names: in the field `node`, or as the request
    itself. "" if it names none.
    """
    name = request
    if isinstance(request, dict):
        name = request.get("node")
    if not isinstance(name, str):
        return ""
    return name


def node_view(engine: Engine | None, run: str, request: Any) -> dict[str, Any]:
    """Return one node, or `{"problem": ...}` that says what to ask instead. `subagent` is the end
    of a sub-agent's id, behind the run's own id and a dot. A sub-agent that has not started yet
    will have this id too.
    """
    if engine is None:
        return {"problem": NOT_PLANNED}
    state = engine.state
    unit = state.find(_node_name(request))
    if unit is None:
        return {"problem": f'there is no such node; ask with {{"node": "{state.path(0)}"}}'}
    agent = engine.subagents.lines(state, run).get(unit, "")
    used = usage_by_unit(state).get(unit, NO_USAGE)
    reply = engine.replies.get(unit)
    node = view_of(state, unit, reply, agent, handled(state), used)
    view = node.model_dump(mode="json")
    if state.kind_of(unit) == "agent":
        view["subagent"] = state.full_path(unit)
    view["ref"] = state.units[unit].digest
    view["error"] = error_of(state, unit)
    view["generation"] = state.units[unit].generation
    return view
