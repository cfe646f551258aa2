"""Carries out the scheduler's decisions: events in, decisions out, activities between.

The engine is plain code on workflow time, and never decides. It passes every event to `step` in
the order of arrival and carries out the decisions in the order in which `step` returns them, so
a replay with the same events does the same.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from sennit.workflows.limits import MAX_KEPT_REPLIES, MAX_RUN_WARNINGS
from sennit.workflows.messages.contracts import (
    AskedCall,
    CheckResult,
    LedgerLine,
    NodeReply,
    PlanPage,
    ProgramPage,
)
from sennit.workflows.messages.ends import CallEnd
from sennit.workflows.messages.message import message_in
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.messages.result import RunStatus, WriteLine
from sennit.workflows.messages.updates import Finish, Update
from sennit.workflows.messages.views import SubagentView
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.digests import digest_in
from sennit.workflows.plan.figures.speculated import Speculated
from sennit.workflows.plan.language.limits import NO_USAGE, Limits
from sennit.workflows.plan.limits import MAX_UNITS
from sennit.workflows.plan.scheduling.call_names import unit_called
from sennit.workflows.plan.scheduling.events import (
    BudgetRaised,
    Cancel,
    CostCharged,
    Decision,
    End,
    EndStatus,
    Event,
    LedgerRead,
    LookUp,
    NodeEnded,
    NodesAppended,
    Outcome,
    PlanHeld,
    PlanReplaced,
    ProgramAdvanced,
    ProgramEdited,
    Question,
    RunStarted,
    Start,
    StopRequested,
    TimeAdvanced,
    Written,
)
from sennit.workflows.plan.scheduling.programs import known_as, log_name
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step, unit_of
from sennit.workflows.plan.scheduling.termination import is_asleep
from sennit.workflows.plan.scheduling.unit import RUNNING
from sennit.workflows.plan.speculation.follower import PastSpeculation, Speculation
from sennit.workflows.run.dispatcher import Dispatcher
from sennit.workflows.run.drain import Drain
from sennit.workflows.run.extension import PlanExtender
from sennit.workflows.run.freeze import Freeze, frozen_by
from sennit.workflows.run.outcomes import (
    EarlyEnded,
    Ended,
    advance_of,
    graph_of,
    invalid_result,
    page_of,
)
from sennit.workflows.run.setup import RunSetup
from sennit.workflows.run.speculation import EarlyCalls
from sennit.workflows.run.subagent import inherited
from sennit.workflows.run.subagent_status import SubagentStatus
from sennit.workflows.run.timer import DeadlineTimer, milliseconds
from sennit.workflows.run.update_rules import Verdict, judge
from sennit.workflows.views.joins import joined
from sennit.workflows.views.journal import Journal, RunLog
from sennit.workflows.views.writes import writes_of

LAST_WORDS = timedelta(seconds=5)
"""How long a run that is over waits for the usage of calls that it has cancelled. Workers hear
of that within a second.
"""

FIRST_LEDGER_PAUSE, LAST_LEDGER_PAUSE = timedelta(seconds=1), timedelta(seconds=30)
"""Between two looks at the ledger of effects, while a write is in flight that the
run does not wait for.
"""


class Engine:
    """One run's scheduler with its activities. `changed` is called after every batch of events."""

    def __init__(
        self,
        state: RunState,
        setup: RunSetup,
        subagents: SubagentStatus,
        plan: str,
        changed: Callable[[], None],
        journal: Journal,
        *,
        epoch: int = 1,
        has_grown: bool = False,
    ) -> None:
        self.state = state
        self.has_grown = has_grown  # so that the plan in the store is not what it runs
        self.replies: dict[int, NodeReply] = {}
        self.usage = NO_USAGE
        self.warnings: dict[str, None] = {}
        self.log = RunLog()
        # Of an earlier plan's nodes; None for a cancelled one.
        self.abandoned: list[NodeReply | None] = []
        self.status: EndStatus | None = None
        self.frozen: Freeze | None = None
        self._status_of_frozen: EndStatus | None = None  # once a person has ended the run
        self.updates = 0
        self.approves_plan = False  # whether a person is asked about each plan before it starts
        self._changed = changed
        self._journal = journal
        self._setup = setup
        self._must_read_ledger = False
        self._ledger: asyncio.Task[None] | None = None
        # Writes from before a reset, of nodes that there are not yet.
        self.forgotten: tuple[Written, ...] = ()
        self.subagents = subagents
        self._awake = self._is_outdated = False
        self._alarm = DeadlineTimer(self.wake)
        self.extender = PlanExtender(self, setup)
        self._drain = Drain()
        self._broken: BaseException | None = None
        self.dispatcher = Dispatcher(
            state, setup.run_prefix, plan, self.wake, subagents, tell=self._step, epoch=epoch
        )
        self.early: EarlyCalls | None = None
        # What models have asked for since the last turn, in replies that still come.
        self._asked_calls: list[AskedCall] = []

    def post(self, event: Event) -> None:
        """Take an event from outside at once, so that the next update is checked
        against the changed state.
        """
        if self.frozen is not None:
            if isinstance(event, StopRequested):
                self._stop_frozen(event.status)
            return
        self.has_grown |= isinstance(event, ProgramEdited)
        self._step(event)
        self.dispatcher.start_waiting()
        self._call_early()
        self.wake()

    def wake(self) -> None:
        """Have the run check again what it can do."""
        self._awake = True

    @property
    def shown_status(self) -> RunStatus:
        """The run's status as people see it. A run is also blocked when nothing runs but blocked
        sub-agents. One in which a program sleeps goes on by itself, whatever else it asks.
        """
        if self.status is not None:
            return self.status
        if self.frozen is not None:
            return "blocked"
        is_waiting = bool(self.state.waiting or self.blocked_children)
        goes_on = bool(self.moving) or is_asleep(self.state)
        if self.state.parked or (is_waiting and not goes_on):
            return "blocked"
        return "running"

    @property
    def is_frozen(self) -> bool:
        """Whether the scheduler has broken an invariant."""
        return self.frozen is not None

    @property
    def moving(self) -> int:
        """How many nodes run without waiting for a person: all but blocked sub-agents."""
        moving = self.state.running
        for view in self.blocked_children.values():
            if view.is_blocked:
                moving -= 1
        return moving

    @property
    def blocked_children(self) -> dict[int, SubagentView]:
        """What the running sub-agents wait for, by their nodes."""
        return self.subagents.blocked_children(self.state)

    def inline_answer(self) -> tuple[Any, str] | None:
        """Return (value, digest) of the answering node when this run still has both."""
        nodes = self.state.graph.execution_plan.answer
        if not nodes:
            return None
        answering = self.state.graph.last_of(nodes[0])
        reply = self.replies.get(answering)
        if reply is None or not reply.has_value:
            return None
        return reply.value, reply.ref or ""

    @property
    def quiet(self) -> bool:
        """Whether nothing is in flight: the only instants at which a run may continue as new."""
        if self.dispatcher.busy or self.extender.busy or self.subagents.busy:
            return False
        if self._ledger is not None:
            return False
        if self.state.running or self.state.streaming:
            return False
        return workflow.all_handlers_finished()

    def judge(self, update: Update) -> Verdict:
        if self.frozen is not None:
            return self._judge_frozen(update)
        if self.state.ended:
            rejection = "the run ends; it only waits for writes in flight"
            if self.status:
                rejection = f"the run has ended: {self.status}"
            return Verdict(rejection=rejection, is_final=True)
        return judge(self.state, update)

    def final_rejection(self, update: Update) -> str:
        """Return the rejection of an update that does not fit now and will not fit later either;
        "" if it may still fit.
        """
        if self.frozen is not None:
            return self.judge(update).rejection
        if not self.state.ended and (self.extender.busy or self.state.streaming):
            return ""
        verdict = self.judge(update)
        may_change = self.dispatcher.busy or bool(self.state.deadlines)
        if may_change and not verdict.is_final:
            return ""
        return verdict.rejection

    def writes(self, *, all_made: bool = False) -> tuple[WriteLine, ...]:
        """Return what became of writes, as `writes_of` does; of a frozen run also of those
        that have ended since.
        """
        known = writes_of(self.state, all_made=all_made, forgotten=self.forgotten)
        if self.frozen is not None:
            return self.frozen.writes(known)
        return known

    async def run(self) -> bool:
        """Work until the run ends (True) or is to continue as new (False). Raises
        what `fail` was given.
        """
        while True:
            self._turn()
            if self.status is not None:
                await self._hear_of_cancelled_calls()
                if self._broken is not None:
                    raise self._broken
                return True
            if self._should_continue():
                return False
            await self._rest()

    async def stop(self, status: EndStatus) -> None:
        """End the run now, and return as soon as none of its writes is in flight."""
        self.post(StopRequested(status))
        while self.status is None:
            await self._rest()
            self._turn()
        await self._hear_of_cancelled_calls()

    async def _hear_of_cancelled_calls(self) -> None:
        """Wait a moment for the model calls and sub-agents that were cancelled, so that the report
        has what they have used. A worker that is gone says nothing.
        """
        if not self.dispatcher.owes_usage():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS.total_seconds()):
                while self.dispatcher.owes_usage():
                    self._turn()
                    if self.dispatcher.owes_usage():
                        await workflow.wait_condition(lambda: self._awake)

    def _turn(self) -> None:
        """Handle everything that has arrived."""
        self._awake = False
        if self.frozen is not None:
            self._turn_frozen()
            return
        self._begin_to_read_ledger()
        passed = self._alarm.passed(self.state)
        drain = self._drain.update(self.state, self.dispatcher, self.updates, passed)
        if drain is not None:
            self._step(drain)

        ended = self.dispatcher.settled()
        units = _unit_count(ended)
        for end in ended:
            if isinstance(end, EarlyEnded):
                self._take_early_end(end.number)
                continue
            event, reply = end
            if self.is_frozen:
                self._pass_by(event, reply)
                continue
            # So that short calls that become ready together share an activity.
            event.more = units > 1
            has_restarted = not self.state.has_generation(event.unit, event.generation)
            if reply is not None and has_restarted:
                # Of a call that was cancelled, and whose node runs again.
                self.usage = self.usage.plus(reply.usage)
            elif reply is not None:
                self._note(event.unit, reply)
                if reply.page is not None and self.expects(event):
                    self._go_on(reply.page, event)
                    continue
                if reply.more and self.expects(event):
                    self.extender.take(event, reply)
                    continue
            self._step(event, reply)

        # Several ends at once are told as parts of one whole, which a last event closes. Deadlines
        # may have come up with them.
        passed = self._alarm.passed(self.state)
        due = self.state.next_due()
        is_due = due is not None and due <= passed
        if units > 1 or is_due:
            self._step(TimeAdvanced(passed))
        asked, self._asked_calls = self._asked_calls, []
        self._speculate(lambda early: early.asked(asked, milliseconds()))
        self.dispatcher.start_waiting()
        self._call_early()
        self._changed()

    def _go_on(self, page: ProgramPage, ended: NodeEnded) -> None:
        """Go on with what an advance of a program has called, or fail the program."""
        try:
            event, ends = advance_of(self.state, page, ended)
            new_calls = [spec for spec in event.calls if known_as(self.state, spec) < 0]
            self._check_room(len(new_calls))
        except ApplicationError as error:
            failed = Outcome(error=(error.type or "", error.message))
            self._step(replace(ended, outcome=failed))
            return
        for spec in event.calls:
            if spec.kind == "gate" and self.dispatcher.origins:
                spec.fills = True  # it may have been answered in the run that this one forks
        self.has_grown = True
        self._step(event, page.end, ends)
        self.wake()

    def _check_room(self, count: int) -> None:
        """Raise ApplicationError if the run would get too many nodes by so many more."""
        if len(self.state.units) + count > MAX_UNITS:
            full = (
                f"the run would have over {MAX_UNITS:,} nodes and items; give a part of the work "
                "to another run"
            )
            raise ApplicationError(full, type="TooManyCalls", non_retryable=True)

    def expects(self, event: NodeEnded) -> bool:
        """Whether this unit's end is still open: neither the run nor the unit has
        stopped or started again.
        """
        state = self.state
        if self.frozen is not None or state.ended:
            return False
        return state.runs(event.unit, event.generation)

    def begin(self, checked: CheckResult, *, more: bool) -> None:
        """Start on the plan, or ask a person about it first. `more` says that
        its planner still writes.
        """
        question = self._question(checked, self.state.graph)
        if question is not None:
            self.post(PlanHeld(question))
        else:
            self.post(RunStarted(more))

    def _question(self, checked: CheckResult, graph: Graph) -> Question | None:
        """Return what a person is asked about a plan before it starts, if they are. A plan that is
        one program asks by itself, before it begins and with the arguments in place.
        """
        is_program = len(graph.specs) == 1 and graph.specs[0].is_program
        if not self.approves_plan or is_program:
            return None
        return Question(checked.forecast, checked.plan)

    def append(
        self,
        page: PlanPage,
        ended: NodeEnded | None = None,
        reply: NodeReply | None = None,
        *,
        more: bool = False,
    ) -> None:
        """Go on with the nodes of a page, unless the run has ended: with the end of the
        node that has asked for them by its `reply`, or as a part of a plan of which there
        may be `more` to come.

        Raises ApplicationError if it is no page of this plan, or the run gets too many nodes by it.
        """
        graph = self.state.graph
        added = page_of(graph, page)
        # The nodes of a program's page are found by the page; all others extend the run's own plan.
        is_of_page = ended is not None and bool(self.state.spec_of(ended.unit).page)
        if is_of_page:
            self._check_room(len(added.specs))
            for spec in added.specs:
                spec.page = page.plan
        else:
            is_taken = any(spec.id in graph.by_id for spec in added.specs)
            if page.base != self.dispatcher.plan or is_taken:
                raise invalid_result()
            self._check_room(len(added.specs))
            self.dispatcher.plan = page.plan
        facts = _by_node(graph, page.facts)
        fallbacks = _by_node(graph, page.fallbacks)
        self.has_grown = True
        self._step(NodesAppended(added, ended, facts, fallbacks, more), reply)
        self.wake()

    def replace_plan(self, checked: CheckResult) -> None:
        """Start on another plan from its beginning, and cancel what runs. The results of equal work
        are found again. If people approve plans, they are asked about this one first.

        The same calls have other activity ids in both plans, because an id must not repeat in a
        run, but the same content keys.
        """
        state, graph = self.state, graph_of(checked.execution_plan)
        for end in self.dispatcher.settled():
            if isinstance(end, EarlyEnded):
                self._take_early_end(end.number)
                continue
            event, reply = end
            is_current = state.has_generation(event.unit, event.generation)
            if reply is not None and is_current:
                self._note(event.unit, reply)
        for unit in state.numbers():
            if state.units[unit].status == RUNNING or state.units[unit].attempts:
                self.abandoned.append(self.replies.get(unit))
        self.replies = {}
        self.has_grown = False
        self.dispatcher = self.dispatcher.successor(checked.plan)
        question = self._question(checked, graph)
        if question is not None:
            self.post(PlanHeld(question, graph))
        else:
            self.post(PlanReplaced(graph))

    @property
    def wasted(self) -> list[NodeReply | None]:
        """The replies of an earlier plan whose outputs no node of this plan has."""
        kept = {digest_in(reply.ref or "") for reply in self.replies.values()}
        wasted: list[NodeReply | None] = []
        for reply in self.abandoned:
            is_kept = reply is not None and digest_in(reply.ref or "") in kept
            if not is_kept:
                wasted.append(reply)
        return wasted

    def follow(self, request: RunRequest) -> None:
        """Set what the run's calls, and its sub-agents, inherit from its request."""
        self.dispatcher.child_defaults = inherited(request)
        self.dispatcher.origins = request.origins
        self.approves_plan = request.approve_plan

    def limit(self, limits: Limits, ceilings: Limits | None) -> None:
        """Set the limits of the whole run from now on, and what a person may
        raise them to at most.
        """
        millis = None
        if limits.time is not None:
            millis = round(limits.time * 1000)
        highest = None
        if ceilings is not None:
            highest = ceilings.amounts()
        self.post(BudgetRaised(limits.amounts(), millis, highest))

    def read_ledger(self) -> None:
        """Have the run learn, with its next turn, what it has written and
        forgotten because it was reset.

        The callback of a reset calls this, and no event loop runs in that.
        """
        self._must_read_ledger = True
        self.wake()

    def _begin_to_read_ledger(self) -> None:
        if self._must_read_ledger and self._ledger is None:
            self._must_read_ledger = False
            self._ledger = asyncio.create_task(self._read_ledger())
            self._ledger.add_done_callback(self._has_read_ledger)

    async def _read_ledger(self) -> None:
        """Ask until nothing is in flight that was begun before the reset, and that this
        run does not wait for.

        What the run waited for when it asked decides whether it asks again. What it waits for when
        the reply comes would not do: a worker may take the reply together with the end of a write,
        or with a person's update, and a replay may take each by itself.
        """
        pause = FIRST_LEDGER_PAUSE
        while True:
            running = dict.fromkeys(self.state.units_in(RUNNING))
            lines = await self._setup.ledger()
            known = tuple(map(_written, lines))
            self.forgotten = tuple(write for write in known if unit_of(self.state, write) is None)
            self.post(LedgerRead(known))
            if self._waits_for_all(known, running):
                return
            await workflow.sleep(pause, summary="a write that was in flight before the reset")
            pause = min(2 * pause, LAST_LEDGER_PAUSE)

    def _waits_for_all(self, known: Iterable[Written], running: Mapping[int, None]) -> bool:
        """Whether each write in flight is that of a unit that was `running`, and for
        whose end the run waits.
        """
        for write in known:
            if write.status != "in flight":
                continue
            if unit_of(self.state, write) not in running:
                return False
        return True

    def _has_read_ledger(self, task: asyncio.Task[None]) -> None:
        self._ledger = None
        if not task.cancelled() and task.exception() is not None:
            self.warnings[f"what was written before the reset is not known: {task.exception()}"] = (
                None
            )
        self.wake()

    async def has_read_ledger(self) -> None:
        """Return when the ledger of effects has been read, if the run was reset."""
        self._begin_to_read_ledger()
        await workflow.wait_condition(lambda: self._ledger is None)

    def fail(self, error: BaseException) -> None:
        """End `run` with this error, and cancel what runs. Has no effect on a
        run that ends already.
        """
        if not self.state.ended and self.frozen is None:
            self._broken = error
            self.post(StopRequested("failed"))

    def _note(self, unit: int, reply: NodeReply) -> None:
        """Keep a reply for queries and the answer, and count its usage."""
        has_room = len(self.replies) < MAX_KEPT_REPLIES
        if has_room or reply.has_value or unit in self.replies:
            self.replies[unit] = reply
        self.usage = self.usage.plus(reply.usage)
        warnings = [*self.warnings, *reply.warnings]
        self.warnings = dict.fromkeys(warnings[:MAX_RUN_WARNINGS])
        name = log_name(self.state, unit)
        self.log.note(name, reply.log)

    def _step(
        self, event: Event, reply: NodeReply | None = None, ends: Iterable[CallEnd] = ()
    ) -> bool:
        """Have the scheduler take an event, with the `reply` of its node and the `ends` of calls of
        a program, and do what it decides.

        If that breaks an invariant, the run freezes: it does nothing of what this step has
        decided, and takes no later event. Returns False then. A replay freezes at the same event,
        as long as the fault is there.
        """
        if self.frozen is not None:
            return False
        self._speculate(lambda early: early.before(event))
        try:
            decisions = step(self.state, event, milliseconds())
        except Exception as error:  # noqa: BLE001  whatever it is, the state may be wrong from here on
            self._freeze(event, error)
            return False
        if isinstance(event, ProgramAdvanced):
            self._note_advance(event.ended.unit, reply, ends)
        if len(self.replies) < MAX_KEPT_REPLIES:
            self.replies |= joined(self.state, self.replies)
        if isinstance(event, NodeEnded) and reply is not None and reply.question is not None:
            self._journal.ruled(self.state, event.unit, reply.question)
        self._journal.observe(self.state, self.replies, reply)
        self._speculate(lambda early: early.after(event, reply, decisions))
        self._carry_out(decisions)
        return True

    def _note_advance(self, program: int, reply: NodeReply | None, ends: Iterable[CallEnd]) -> None:
        """Keep how calls of a program have ended in its advance, and how the
        program has, if it is over.
        """
        for name, end_reply in ends:
            self._note(unit_called(self.state, program, name), end_reply)
        if reply is not None:
            self._note(program, reply)

    def _carry_out(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Start):
                self.dispatcher.start(decision)
            elif isinstance(decision, Cancel):
                self.dispatcher.cancel(decision.unit, decision.generation)
            elif isinstance(decision, LookUp):
                self.dispatcher.look_up(decision.unit, decision.generation)
            elif isinstance(decision, End):
                self.status = decision.status

    # calls that are made early

    def speculate(
        self, speculation: Speculation | None, past: PastSpeculation | None = None
    ) -> None:
        """Make calls early from now on, if the run may. `past` is what the runs before it
        in its chain have made.
        """
        if speculation is not None:
            self.early = EarlyCalls(
                speculation, self.state, lambda number: self.dispatcher.note_early_end(number)
            )
            if past is not None:
                self.early.go_on(past)
            self.dispatcher.early_fields = self._early_fields

    @property
    def speculated(self) -> Speculated | None:
        """What has become of calls made early; None if there were none."""
        if self.early is None:
            return None
        return self.early.figures

    @property
    def past_speculation(self) -> PastSpeculation | None:
        """What the run that goes on from here has to know of calls made early;
        None if it makes none.
        """
        if self.early is None:
            return None
        return self.early.past

    def hear_of_call(self, request: object, *more: object) -> None:
        """Take that a model has asked for a call, in a reply that still comes. Ignores
        what is no such message.

        Signals are heard before what ended in the same task, and a replay may have joined that with
        the task before. So what is made of this one is decided behind all ends.
        """
        call = message_in(AskedCall, request, *more)
        if call is not None and self.early is not None:
            self._asked_calls.append(call)
            self.wake()

    def forget_early(self) -> None:
        """The run was reset, so that nothing is used that was called early.
        It decides no command.
        """
        if self.early is not None:
            self.early.reset()

    def _speculate(self, take: Callable[[EarlyCalls], None]) -> None:
        """Let what is called early follow the run. If that breaks, the run goes on without it."""
        if self.early is None:
            return
        try:
            take(self.early)
        except Exception as error:  # noqa: BLE001  the run does not depend on it
            workflow.logger.error("speculation broke; the run goes on without it", exc_info=error)
            self.warnings[f"nothing more was called early: {type(error).__name__}: {error}"] = None
            self.early.give_up()
            self.early = None
            self._setup.speculation = None  # nor does the run that goes on from here speculate

    def _call_early(self) -> None:
        self._speculate(lambda early: early.carry_out(self.dispatcher.node_call_of))

    def _early_fields(self, unit: int) -> dict[str, Any]:
        if self.early is None:
            return {}
        return self.early.fields_of(unit)

    def _take_early_end(self, number: int) -> None:
        """Take the end of a call that was made early. What it has used counts once: here."""
        if self.early is None:
            return
        usage = self.early.take_end(number)
        if any(usage):
            self.usage = self.usage.plus(usage)
            self._step(CostCharged(usage))
        if not self.is_frozen:
            self._speculate(lambda early: early.follow(number))

    # a run whose scheduler has broken an invariant

    def _freeze(self, event: Event, error: Exception) -> None:
        workflow.logger.error("the scheduler broke an invariant; the run is frozen", exc_info=error)
        # The event behind the start of this workflow task.
        task = workflow.info().get_current_history_length() + 1
        self.frozen = frozen_by(error, event, self.state, task)
        self.dispatcher.hold()
        self._speculate(EarlyCalls.give_up)
        self.wake()

    def _turn_frozen(self) -> None:
        """Note what writes have come to. Once a person has ended the run, it is over
        when nothing of it runs.
        """
        for end in self.dispatcher.settled():
            if not isinstance(end, EarlyEnded):
                self._pass_by(*end)
        if not self.dispatcher.in_flight:
            self.status = self._status_of_frozen
        self._changed()

    def _pass_by(self, event: NodeEnded, reply: NodeReply | None) -> None:
        """Keep of an end that the scheduler does not learn of what was
        written and what was used.
        """
        assert self.frozen is not None
        self.frozen.note_ends(self.state, [event])
        if reply is not None:
            self.usage = self.usage.plus(reply.usage)

    def _stop_frozen(self, status: EndStatus) -> None:
        """End a frozen run for a person, without its scheduler: what runs is
        cancelled, and writes end first.
        """
        if self._status_of_frozen is None or status == "cancelled":
            self._status_of_frozen = status
        self.dispatcher.give_up()
        self.wake()

    def _judge_frozen(self, update: Update) -> Verdict:
        assert self.frozen is not None
        if self._status_of_frozen is not None:
            return Verdict(
                rejection="the run ends; it only waits for what still runs", is_final=True
            )
        if isinstance(update, Finish):
            return Verdict(StopRequested("partial"), "the run ends now with what there is")
        return Verdict(rejection=f"{self.frozen.problem} It takes `finish` only.", is_final=True)

    def _should_continue(self) -> bool:
        if self.frozen is not None:
            return False
        suggested = workflow.info().is_continue_as_new_suggested()
        return self.quiet and (self.state.draining or self._is_outdated or suggested)

    async def _rest(self) -> None:
        """Wait for something to arrive, for the earliest deadline, or for the next
        workflow task to start more.

        A task that the server hands out together with the answer to the last one says of every
        pinned run that its version is outdated. So the task of a timer has to say it too.
        """
        if self.frozen is not None:
            await workflow.wait_condition(lambda: self._awake)
            return
        if self.dispatcher.held_up:
            await workflow.sleep(timedelta(milliseconds=1), summary="starting more nodes")
            return
        if self.quiet and workflow.info().is_target_worker_deployment_version_changed():
            await workflow.sleep(
                timedelta(milliseconds=1), summary="looking for a newer version of the workers"
            )
            self._is_outdated = workflow.info().is_target_worker_deployment_version_changed()
            return
        self._alarm.set(self.state)
        await workflow.wait_condition(lambda: self._awake)


def _unit_count(ends: Iterable[Ended]) -> int:
    """Return how many of these are ends of units, and not of calls made early."""
    count = 0
    for end in ends:
        if not isinstance(end, EarlyEnded):
            count += 1
    return count


def _by_node(
    graph: Graph, fields: Mapping[str, Mapping[str, JsonValue]]
) -> dict[int, dict[str, Any]]:
    """Return the fields that a page has of older nodes, by the places of these nodes."""
    by_node: dict[int, dict[str, Any]] = {}
    for name, of_node in fields.items():
        by_node[graph.by_id[name]] = dict(of_node)
    return by_node


def _written(line: LedgerLine) -> Written:
    """Return a write as the scheduler takes it."""
    return Written(line.node, line.call, line.generation, line.status, line.below)
