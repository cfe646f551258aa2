"""Carries out the scheduler's decisions: events in, decisions out, activities between. Plain code on workflow time.

The engine never decides. It passes every event to `step` in the order of arrival and carries out the decisions in the
order they come, so a replay with the same events does the same.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from temporalio import workflow

from workflows.messages.contracts import CheckResult, NodeReply, PlanPage
from workflows.messages.request import ContinuedState, RunRequest, has_plan
from workflows.messages.result import RunStatus
from workflows.messages.updates import Update
from workflows.messages.views import SubagentView
from workflows.plan.compile.graph import ExecutionPlan, Graph, NodeSpec
from workflows.plan.language.limits import NO_USAGE, Limits, Usage
from workflows.plan.scheduling.budget import Rate
from workflows.plan.scheduling.events import (
    BudgetRaised,
    Cancel,
    CostCharged,
    Decision,
    End,
    EndStatus,
    Event,
    Expand,
    NodeEnded,
    NodesAppended,
    Outcome,
    PlanExtended,
    ProgramEdited,
    RunStarted,
    Start,
    StopRequested,
    TimeAdvanced,
)
from workflows.plan.scheduling.extension import renumbered, successor
from workflows.plan.scheduling.snapshot import load
from workflows.plan.scheduling.state import DRAIN, OVERTIME, RUNNING, RunState
from workflows.plan.scheduling.step import step
from workflows.run.dispatcher import Dispatcher
from workflows.run.drain import Drain
from workflows.run.extension import PlanExtender
from workflows.run.setup import RunSetup
from workflows.run.subagent import inherited
from workflows.run.subagent_status import SubagentStatus
from workflows.run.timer import DeadlineTimer, milliseconds
from workflows.run.update_rules import Verdict, judge

KEPT_REPLIES = 2_000
MOST_NODES = 24_000
"""Nodes of a run to which programs still add some. What it hands on when it continues as new grows by 60 bytes a node,
and 1.5 MB are the most.
"""
FULL = Outcome(error=("TooManyCalls", f"the run has {MOST_NODES:,} nodes; give a part of the work to another run"))


class Engine:
    """One run's scheduler with its activities. `changed` is called after every batch of events."""

    def __init__(
        self,
        state: RunState,
        setup: RunSetup,
        subagents: SubagentStatus,
        plan: str,
        changed: Callable[[], None],
        *,
        epoch: int = 1,
    ) -> None:
        self.state = state
        self.plan = plan
        self._is_paged = any(spec.page for spec in state.graph.specs)
        self.replies: dict[int, NodeReply] = {}
        self.usage = NO_USAGE
        self.abandoned: list[NodeReply | None] = []  # of an earlier plan's nodes; None for a cancelled one
        self.status: EndStatus | None = None
        self.updates = 0
        self._changed = changed
        self.subagents = subagents
        self._awake = self._is_outdated = False
        self._alarm = DeadlineTimer(self.wake)
        self.extender = PlanExtender(self, setup)
        self._drain = Drain()
        self._broken: BaseException | None = None
        self._dispatcher = Dispatcher(state, setup.run_prefix, plan, self.wake, subagents, epoch=epoch)

    def post(self, event: Event) -> None:
        """Take an event from outside at once, so that the next update is checked against the changed state."""
        self.state.now = milliseconds()
        self._is_paged |= isinstance(event, ProgramEdited)
        self._carry_out(step(self.state, event))
        self._dispatcher.start_waiting()
        self.wake()

    def wake(self) -> None:
        """Have the run check again what it can do."""
        self._awake = True

    @property
    def shown_status(self) -> RunStatus:
        """The run's status as people see it. A run is also blocked when nothing runs but blocked sub-agents."""
        if self.status is not None:
            return self.status
        waiting = self.state.waiting or self.blocked_children
        return "blocked" if self.state.parked or (waiting and not self.moving) else "running"

    @property
    def moving(self) -> int:
        """How many nodes run without waiting for a person: all but blocked sub-agents."""
        return self.state.running - sum(view.is_blocked for view in self.blocked_children.values())

    @property
    def blocked_children(self) -> dict[int, SubagentView]:
        """What the running sub-agents wait for, by their nodes."""
        return self.subagents.blocked_children(self.state)

    @property
    def started(self) -> int:
        return self._dispatcher.started

    def inline_answer(self) -> tuple[Any, str] | None:
        """Return (value, digest) of the answering node when this run still has both."""
        nodes = self.state.graph.execution_plan.answer
        reply = self.replies.get(nodes[0]) if nodes else None
        return (reply.value, reply.ref or "") if reply is not None and reply.has_value else None

    @property
    def is_paged(self) -> bool:
        """Whether a program has added nodes to the plan, or has another script than the plan says."""
        return self._is_paged

    @property
    def quiet(self) -> bool:
        """Whether nothing is in flight: the only instants at which a run may continue as new."""
        busy = self._dispatcher.busy or self.extender.busy or self.subagents.busy
        return not (busy or self.state.running or self.state.streaming) and workflow.all_handlers_finished()

    def judge(self, update: Update) -> Verdict:
        if self.status is not None:
            return Verdict(rejection=f"the run has ended: {self.status}", is_final=True)
        return judge(self.state, update)

    def final_rejection(self, update: Update) -> str:
        """Return the rejection of an update that does not fit now and will not fit later either; "" if it may still
        fit.
        """
        if self.status is None and (self.extender.busy or self.state.streaming):
            return ""
        verdict = self.judge(update)
        may_change = self._dispatcher.busy or bool(self.state.deadlines)
        return verdict.rejection if verdict.is_final or not may_change else ""

    async def run(self) -> bool:
        """Work until the run ends (True) or is to continue as new (False). Raises what `fail` was given."""
        while True:
            self._turn()
            if self._broken is not None:
                raise self._broken
            if self.status is not None:
                return True
            if self._should_continue():
                self.state.deadlines.pop(DRAIN, None)
                return False
            await self._rest()

    async def suspend(self) -> None:
        """Start nothing more, cancel what runs, but let writes end."""
        self._drain.force()
        self._turn()
        while self._dispatcher.busy and self.status is None:
            await self._rest()
            self._turn()

    def _turn(self) -> None:
        """Handle everything that has arrived."""
        self._awake = False
        self.state.now = milliseconds()
        if self._drain.update(self.state, self._dispatcher, self.updates):
            self._carry_out(step(self.state, TimeAdvanced()))
        settled = deque(self._dispatcher.settled())
        while settled:
            event, reply = settled.popleft()
            if reply is not None and self.state.generation[event.unit] == event.generation:
                self._note(event.unit, reply)
                if reply.page is not None and self.expects(event):
                    move = self.append(reply.page, event)
                    settled = deque((replace(other, unit=move(other.unit)), later) for other, later in settled)
                    continue
                if reply.more and self.expects(event):
                    self.extender.take(event, reply)
                    continue
            self._carry_out(step(self.state, event))
        due = self.state.next_due()
        if due is not None and due <= self.state.now:
            self._carry_out(step(self.state, TimeAdvanced()))
        self._dispatcher.start_waiting()
        self._changed()

    def expects(self, event: NodeEnded) -> bool:
        """Whether this unit's end is still open: neither the run nor the unit has stopped or started again."""
        unit, state = event.unit, self.state
        running = unit < len(state.status) and state.status[unit] == RUNNING
        return self.status is None and running and state.generation[unit] == event.generation

    def begins(self, longer: ExecutionPlan) -> bool:
        """Whether a plan begins with the nodes of this one, and has more."""
        own = [spec.id for spec in self.state.graph.specs]
        return len(longer.specs) > len(own) and [spec.id for spec in longer.specs[: len(own)]] == own

    def grow(self, checked: CheckResult, longer: ExecutionPlan | None = None, *, more: bool = False) -> None:
        """Continue with a longer plan, unless the run has ended. `longer` is the plan of `checked`, if it is unpacked
        already.

        `more` says that the plan is not complete yet.
        """
        if self.status is not None:
            return
        graph = Graph(longer or ExecutionPlan.unpack(checked.execution_plan))
        old, added = len(self.state.graph.specs), len(graph.specs) - len(self.state.graph.specs)
        self.plan = checked.plan
        self._dispatcher.renumber(lambda unit: renumbered(unit, old, added), checked.plan)
        self.replies = {renumbered(unit, old, added): reply for unit, reply in self.replies.items()}
        self.post(PlanExtended(graph, {graph.by_id[name]: dict(facts) for name, facts in checked.facts.items()}, more))

    def append(self, page: PlanPage, ended: NodeEnded) -> Callable[[int], int]:
        """Take over the nodes that a step of a program, or a turn in it, has added, with its end.

        Returns what gives each unit its new number.
        """
        self.state.now = milliseconds()
        old, specs = len(self.state.graph.specs), _specs_of(self.state.graph, page)
        for spec in specs if self._dispatcher.origins else ():
            spec.fills |= spec.kind == "gate"  # an activity looks whether it has been answered
        if old + len(specs) > MOST_NODES:
            self._carry_out(step(self.state, replace(ended, outcome=FULL)))
            return lambda unit: unit
        delegated = replace(ended, outcome=replace(ended.outcome, delegated=True))
        decisions = step(self.state, NodesAppended(specs, delegated))
        added = len(self.state.graph.specs) - old

        def move(unit: int) -> int:
            return renumbered(unit, old, added)

        if self.state.owner:
            self._dispatcher.renumber(move, self.plan)
            self.replies = {move(unit): reply for unit, reply in self.replies.items()}
        self._carry_out(decisions)
        self._is_paged = True
        return move

    def replace_plan(self, checked: CheckResult) -> None:
        """Start on another plan from its beginning, and cancel what runs. The results of equal work are found again.

        The same calls have other activity ids in both plans, because an id must not repeat in a run, but the same
        content keys.
        """
        old = self.state
        for event, reply in self._dispatcher.settled():
            if reply is not None and old.generation[event.unit] == event.generation:
                self._note(event.unit, reply)
        for unit, status in enumerate(old.status):
            if status == RUNNING or old.attempts[unit]:
                self.abandoned.append(self.replies.get(unit))
        self.plan, self.replies = checked.plan, {}
        self.state = successor(old, Graph(ExecutionPlan.unpack(checked.execution_plan)))
        self._dispatcher = self._dispatcher.successor(self.state, checked.plan)
        self.post(RunStarted())

    @property
    def wasted(self) -> list[NodeReply | None]:
        """The replies of an earlier plan whose outputs no node of this plan has."""
        found = {reply.ref: True for reply in self.replies.values()}
        return [reply for reply in self.abandoned if reply is None or reply.ref not in found]

    @property
    def epoch(self) -> int:
        """Which plan of the run this is: 1, or 2 for the plan that replaced a streamed beginning."""
        return self._dispatcher.epoch

    @property
    def replans(self) -> int:
        """How many more times the model of the answering node may ask for nodes."""
        return self._dispatcher.replans

    def allow_replans(self, times: int) -> None:
        """Set how many more times the model of the answering node may ask for nodes."""
        self._dispatcher.replans = times

    def follow(self, request: RunRequest) -> None:
        """Set what the run's calls, and its sub-agents, inherit from its request."""
        self._dispatcher.child_defaults, self._dispatcher.origins = inherited(request), request.origins
        self.state.forks = bool(request.origins)

    def limit(self, limits: Limits) -> None:
        """Set the limits of the whole run, from now on."""
        self.post(BudgetRaised(limits.amounts()))
        if limits.time is not None:
            self.state.deadlines[OVERTIME] = self.state.now + round(limits.time * 1000)

    def charge(self, spent: Usage) -> None:
        """Book usage outside the nodes."""
        self.post(CostCharged(spent))

    def fail(self, error: BaseException) -> None:
        """End `run` with this error, and cancel what runs. Has no effect on a run that has ended."""
        if self.status is None:
            self._broken = error
            self.post(StopRequested("failed"))

    def _note(self, unit: int, reply: NodeReply) -> None:
        """Keep a reply for queries and the answer, and count its usage."""
        if len(self.replies) < KEPT_REPLIES or reply.has_value or unit in self.replies:
            self.replies[unit] = reply
        self.usage = self.usage.plus(reply.usage)

    def _carry_out(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Start):
                self._dispatcher.start(decision.units, asks=decision.asks, step=decision.step)
            elif isinstance(decision, Expand):
                self.extender.resume(decision.unit)
            elif isinstance(decision, Cancel):
                self._dispatcher.cancel(decision.unit, decision.generation)
            elif isinstance(decision, End):
                self.status = decision.status

    def _should_continue(self) -> bool:
        suggested = workflow.info().is_continue_as_new_suggested()
        return self.quiet and (self.state.draining or self._is_outdated or suggested)

    async def _rest(self) -> None:
        """Wait for something to arrive, for the earliest deadline, or for the next workflow task to start more.

        A task that the server hands out together with the answer to the last one says of every pinned run that its
        version is outdated. So the task of a timer has to say it too.
        """
        if self._dispatcher.held_up:
            await workflow.sleep(timedelta(milliseconds=1), summary="starting more nodes")
            return
        if self.quiet and workflow.info().is_target_worker_deployment_version_changed():
            await workflow.sleep(timedelta(milliseconds=1), summary="looking for a newer version of the workers")
            self._is_outdated = workflow.info().is_target_worker_deployment_version_changed()
            return
        self._alarm.set(self.state)
        await workflow.wait_condition(lambda: self._awake)


def _specs_of(graph: Graph, page: PlanPage) -> list[NodeSpec]:
    """Return the nodes of a page with their indices in the whole plan."""
    own = ExecutionPlan.unpack(page.specs).specs
    places = [graph.by_id[name] for name in page.known]
    places += range(len(graph.specs), len(graph.specs) + len(own))
    for spec in own:
        spec.page = page.plan
        spec.needs = [places[index] for index in spec.needs]
        spec.inputs = [places[index] for index in spec.inputs]
        spec.reads = [places[index] for index in spec.reads]
    return own


def start_engine(
    request: RunRequest,
    checked: CheckResult,
    setup: RunSetup,
    subagents: SubagentStatus,
    changed: Callable[[], None],
    *,
    more: bool = False,
    carry: ContinuedState | None = None,
) -> Engine:
    """Return an engine that has started on a plan, or that goes on from where the last run of the chain has stopped."""
    graph = Graph(ExecutionPlan.unpack(checked.execution_plan))
    if carry is not None:
        engine = Engine(load(graph, carry.snapshot), setup, subagents, checked.plan, changed, epoch=carry.epoch)
        engine.allow_replans(carry.replans)
        engine.follow(request)
        engine.post(TimeAdvanced())
        return engine
    state = RunState(graph, window=request.window, park_for=round(request.park_for * 1000))
    state.on_failure = request.on_failure or state.on_failure
    state.approve_above = request.approve_replans_above
    state.streaming = more
    state.rates = {queue: Rate(limit) for queue, limit in setup.rates.items()}
    engine = Engine(state, setup, subagents, checked.plan, changed)
    engine.allow_replans(0 if has_plan(request) else request.max_replans)
    engine.follow(request)
    if request.budget is not None:
        engine.limit(request.budget)
        engine.charge(setup.spent)
    engine.post(RunStarted())
    return engine
