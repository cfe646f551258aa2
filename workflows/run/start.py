"""Starts the engine of a run: on a plan, or from where the last run of a chain has stopped."""

from collections.abc import Callable

from sennit.workflows.messages.contracts import CheckResult
from sennit.workflows.messages.request import ContinuedState, RunRequest, has_plan
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.limits import FEWER_AGENTS_BELOW, MAX_MAPPED_AGENTS
from sennit.workflows.plan.scheduling.events import CostCharged, TimeAdvanced
from sennit.workflows.plan.scheduling.snapshot import load
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.run.engine import Engine
from sennit.workflows.run.outcomes import graph_of
from sennit.workflows.run.setup import RunSetup
from sennit.workflows.run.subagent_status import SubagentStatus
from sennit.workflows.views.journal import Journal, RunLog

REPLANS_ARE_NOT_ASKED_ABOUT = (
    "`approve_replans_above` is not a setting any more, so nobody was asked about replans; bound "
    "them with `budget`"
)


def start_engine(
    request: RunRequest,
    checked: CheckResult,
    setup: RunSetup,
    subagents: SubagentStatus,
    changed: Callable[[], None],
    journal: Journal,
    *,
    more: bool = False,
    carry: ContinuedState | None = None,
) -> Engine:
    """Return an engine that has started on a plan, or that goes on from where the last run of
    the chain has stopped.
    """
    graph = graph_of(checked.execution_plan)
    parts = (setup, subagents, checked.plan, changed, journal)
    if carry is not None:
        state = load(graph, carry.snapshot)
        journal.restore(state)
        engine = Engine(state, *parts, epoch=carry.epoch, has_grown=bool(carry.execution_plan))
        engine.dispatcher.replans = carry.replans
        engine.warnings = dict.fromkeys(carry.warnings)
        engine.log = RunLog(carry.log, carry.log_cut)
        engine.follow(request)
        engine.speculate(setup.speculation, carry.speculated)
        engine.post(TimeAdvanced())
        return engine
    fuse = request.fuse or graph.execution_plan.fuse
    state = RunState(
        graph,
        window=request.window,
        park_for=round(request.park_for * 1000),
        on_failure=request.on_failure,
        rates=setup.rates,
        forks=bool(request.origins),
        in_flight=request.in_flight,
        most_agents=MAX_MAPPED_AGENTS // FEWER_AGENTS_BELOW**request.depth,
        timings=Timings(fuse, setup.workers, setup.timings),
    )
    engine = Engine(state, *parts)
    if not has_plan(request):
        engine.dispatcher.replans = request.max_replans
    engine.follow(request)
    engine.speculate(setup.speculation)
    if request.approve_replans_above is not None:
        engine.warnings[REPLANS_ARE_NOT_ASKED_ABOUT] = None
    engine.warnings.update(dict.fromkeys(setup.bounds))
    if setup.budget is not None:
        engine.limit(setup.budget, setup.ceilings)
        engine.post(CostCharged(setup.spent))
    engine.begin(checked, more=more)
    return engine
