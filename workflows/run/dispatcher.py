"""Starts, follows and cancels the activities of nodes: the one place that touches activity handles.

A workflow task emits at most 500 starts and 1 MiB of them; the rest wait for the next task, because
one transaction holds 4 MiB and a run that breaks that is terminated.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from temporalio import workflow

from sennit.workflows.limits import COMMAND_BYTES, MAX_NAMED_MEMBERS, MAX_STARTS
from sennit.workflows.messages import contracts
from sennit.workflows.messages.activity_ids import ActivityId
from sennit.workflows.messages.activity_options import Options, look_up_options, node_options
from sennit.workflows.messages.contracts import Call, GroupProgress, GroupReply, NodeReply
from sennit.workflows.messages.message import message_bytes, message_in
from sennit.workflows.messages.node_calls import (
    BudgetedCall,
    GroupCall,
    LlmNodeCall,
    NodeCall,
    ProgramNodeCall,
    ToolNodeCall,
    WriteNodeCall,
)
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.limits import limit_fields
from sennit.workflows.plan.language.summary import for_bar
from sennit.workflows.plan.limits import MAX_TASK_BYTES
from sennit.workflows.plan.scheduling.call_names import name_of
from sennit.workflows.plan.scheduling.completion import may_write
from sennit.workflows.plan.scheduling.events import Event, InputsRead, NodeEnded, Outcome, Start
from sennit.workflows.plan.scheduling.programs import advance_number, last_told
from sennit.workflows.plan.scheduling.ready import grant, in_place
from sennit.workflows.plan.scheduling.slices import left_in_tasks, left_of
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.run import outcomes
from sennit.workflows.run.outcomes import EarlyEnded, End, Ended, Handle, InFlight, Key
from sennit.workflows.run.shared_activities import AgentActivities
from sennit.workflows.run.subagent import GIVEN_UP, SUSPENDED, prefix_below, run_subagent
from sennit.workflows.run.subagent_status import SubagentStatus
from sennit.workflows.run.unit_calls import PAID, Units, contract_of, fields_set, node_call

SHARED_BY_SUBAGENTS = "sub-agents share activities"
"""The change since which runs prepare sub-agents, and store their answers, in activities that
several of them share.
"""
_LABEL_CHARACTERS = 120
"""A longer label does not fit beside its bar in the timeline."""


class Dispatcher:
    """The activities in flight of one run. `wake` is called when one ends; `settled`
    then returns its outcome.

    `plan` is the plan of the run's own nodes, by its digest, and `epoch` which one this is: 1, or
    2 for the plan that replaced a streamed beginning. `replans` says how many more times the
    model of the answering node may ask for nodes. `tell` has the scheduler take an event, and
    returns whether it could.
    """

    def __init__(
        self,
        state: RunState,
        run: str,
        plan: str,
        wake: Callable[[], None],
        subagents: SubagentStatus,
        *,
        tell: Callable[[Event], bool],
        epoch: int = 1,
    ) -> None:
        self.epoch = epoch
        self._tell = tell
        self._state = state
        self._run = run
        self.plan = plan
        self._wake = wake
        self._subagent_status = subagents
        self._shared = AgentActivities()
        self._flights: dict[Key, InFlight] = {}
        self._reported: list[End] = []
        self.reports = 0
        self._ended: deque[InFlight | EarlyEnded] = deque()
        self._waiting: deque[tuple[Start, list[Key]]] = deque()
        self._put_back: list[End] = []
        self.started = 0
        self.child_defaults: dict[str, Any] = {}
        self.origins: tuple[str, ...] = ()
        self.replans = 0
        self.early_fields: Callable[[int], dict[str, Any]] = _nothing_early
        """Gives the fields of a unit's call that are about calls made early."""
        self._moved: set[int] = set()
        """Calls that their programs were told to have ended later than by the
        clocks of their workers.
        """
        self._task = -1
        """The length of the history at the workflow task to which the next two figures belong."""
        self._starts = 0
        self._bytes = 0

    def successor(self, plan: str) -> "Dispatcher":
        """Cancel everything and return the dispatcher of the plan that replaces this one."""
        for flight in self._activities():
            flight.handle.cancel(GIVEN_UP)
        successor = Dispatcher(
            self._state,
            self._run,
            plan,
            self._wake,
            self._subagent_status,
            tell=self._tell,
            epoch=self.epoch + 1,
        )
        successor.child_defaults = self.child_defaults
        successor.replans = self.replans
        successor.origins = self.origins
        successor.reports = self.reports
        successor.early_fields = self.early_fields
        # What this workflow task has started counts against the same transaction.
        successor._task = self._task
        successor._starts = self._starts
        successor._bytes = self._bytes
        return successor

    @property
    def busy(self) -> bool:
        """Whether any activity is in flight or waits for the next workflow task."""
        return bool(
            self._flights or self._waiting or self._ended or self._put_back or self._reported
        )

    def owes_usage(self) -> bool:
        """Whether a model call or a sub-agent is in flight, or its end has not been taken yet."""
        flights = list(self._flights.values())
        for end in self._ended:
            if isinstance(end, InFlight):
                flights.append(end)
        return any(flight.is_paid for flight in flights)

    @property
    def held_up(self) -> bool:
        """Whether starts wait for the next workflow task."""
        return bool(self._waiting)

    @property
    def in_flight(self) -> bool:
        """Whether any activity is under way."""
        return bool(self._flights)

    def give_up(self) -> None:
        """Cancel what runs. Writes that have begun come to their end first."""
        for flight in self._activities():
            if not flight.handle.done():
                flight.is_suspended = False
                flight.handle.cancel(GIVEN_UP)

    def hold(self) -> None:
        """Start nothing more."""
        self._waiting.clear()

    def start(self, decision: Start) -> None:
        """Start these units in one activity when `start_waiting` is called next, or in
        a later workflow task.
        """
        keys: list[Key] = []
        for unit in _units_of(decision):
            keys.append((unit, self._state.units[unit].generation))
        self._waiting.append((decision, keys))

    def start_waiting(self) -> None:
        """Start as many waiting units as this workflow task may."""
        task = workflow.info().get_current_history_length()
        if task != self._task:
            self._task = task
            self._starts = 0
            self._bytes = 0
        while self._waiting and self._starts < MAX_STARTS and self._bytes < MAX_TASK_BYTES:
            decision, keys = self._waiting.popleft()
            if all(self._state.runs(*key) for key in keys):
                self._start(decision)
            else:
                # One was cancelled before it began. The other members of its group start alone.
                self._put_back_all(keys)
                self._wake()

    def _put_back_all(self, keys: list[Key]) -> None:
        """Have units that have not begun start again later."""
        for key in keys:
            end = NodeEnded(*key, outcomes.START_AGAIN)
            self._put_back.append((end, None))

    def _start(self, decision: Start) -> None:
        state = self._state
        unit = decision.units[0]

        # A program reads how its calls have ended now. The scheduler may move some of
        # these ends to a later time.
        ends_before: dict[int, int] = {}
        if state.kind_of(unit) == "program":
            for awaited in state.sessions[unit].waits:
                ends_before[awaited] = state.units[awaited].ended_at or 0
            if not self._tell(InputsRead(unit)):
                return  # the run is frozen

        call = self._node_call(decision.units, asks=decision.asks)
        if isinstance(call, ProgramNodeCall):
            moved = self._moved_ends(unit, ends_before)
            call = call.model_copy(update=fields_set(moved=moved))
        is_followed = decision.following >= 0
        if is_followed:
            following = self._following_call(decision.following, unit)
            call = call.model_copy(update={"then": following})
        if isinstance(call, ToolNodeCall | LlmNodeCall) and not decision.asks:
            call = call.model_copy(update=fields_set(**self.early_fields(unit)))

        # The command counts against the limits of this workflow task.
        self.started += 1
        self._starts += 1
        self._bytes += COMMAND_BYTES + message_bytes(call, exclude_unset=True)

        ident = ActivityId(
            state.path(unit),
            state.units[unit].generation,
            others=len(decision.units) - 1,
            work="question" if decision.asks else "",
            epoch=self.epoch,  # no two ids of one run are under way at once
            advance=advance_number(state, unit),
        )
        contract = contract_of(state, decision.units, asks=decision.asks)
        options = self._options(decision, contract, call, ident)
        subagent = ""
        if contract is contracts.AGENT:
            subagent = state.full_path(unit)
            handle = self._start_subagent(decision, call, ident, options)
        else:
            handle = _started(contract, call, ident, options)

        units = _units_of(decision)
        generations = tuple(state.units[each].generation for each in units)
        flight = InFlight(units, generations, handle, is_followed=is_followed, subagent=subagent)
        flight.is_paid = isinstance(call, LlmNodeCall) or bool(subagent)
        if isinstance(call, GroupCall):
            flight.call = call.digest()
        self._follow(flight)

    def _moved_ends(self, program: int, ends_before: dict[int, int]) -> tuple[str, ...]:
        """Return which of these calls end later than by the clocks of their workers, now or
        since an advance before.
        """
        moved: list[str] = []
        for call, ended_at in ends_before.items():
            if ended_at != (self._state.units[call].ended_at or 0):
                self._moved.add(call)
            if call in self._moved:
                moved.append(name_of(self._state, program, call))
        return tuple(moved)

    def _following_call(self, program: int, unit: int) -> NodeCall:
        """Return the call of an advance that follows the call of a unit in its activity, and
        reads that call alone.
        """
        call = self._node_call((program,))
        after = last_told(self._state, self._state.sessions[program])
        follows = name_of(self._state, program, unit)
        return call.model_copy(
            update={"refs": {}, "lost": {}, "ends": {}, "follows": follows, "after": after}
        )

    def _options(
        self,
        decision: Start,
        contract: Call[NodeCall, GroupReply],
        call: NodeCall,
        ident: ActivityId,
    ) -> Options:
        """Return the queue, the timeouts, the attempts and the label of an activity."""
        state = self._state
        unit = decision.units[0]
        specs: list[NodeSpec] = []
        for member in decision.units:
            spec = state.spec_of(member)
            if isinstance(call, ToolNodeCall) and call.tried:
                # Attempts in an activity of several units count too.
                attempts = max(1, spec.attempts - call.tried)
                spec = replace(spec, attempts=attempts)
            specs.append(spec)
        is_call = state.kind_of(unit) in ("tool", "llm") and contract is not contracts.GATE
        options = node_options(specs, item=state.is_item(unit), is_call=is_call)

        # The label beside its bar in the timeline.
        name = _label_name(ident, decision)
        summary = state.spec_of(unit).summary
        options.setdefault("summary", self._summary(decision.units, name, summary))
        if decision.asks:
            question = summary.partition(" ")[2]
            options["summary"] = for_bar(f"{name} asks: {question}")
        return options

    def _start_subagent(
        self, decision: Start, call: NodeCall, ident: ActivityId, options: Options
    ) -> Handle:
        state = self._state
        unit = decision.units[0]
        spec = state.spec_of(unit)
        name = _label_name(ident, decision)
        if spec.key:  # the writes of a program's sub-agent are known by the key of its call
            name = name.replace(spec.id, spec.key, 1)
        budget = None
        if decision.limits is not None:
            budget = limit_fields(decision.limits)
        inherited = {
            **self.child_defaults,
            "budget": budget,
            "run_prefix": prefix_below(self._run, name),
        }
        shared = None
        if workflow.patched(SHARED_BY_SUBAGENTS):
            shared = self._shared
        path = state.full_path(unit)
        work = run_subagent(call, path, ident, options, inherited, self._subagent_status, shared)
        return asyncio.create_task(work)

    def look_up(self, unit: int, generation: int) -> None:
        """Learn from the ledger of effects what became of a write that was cut
        off in this generation.
        """
        state = self._state
        spec = state.spec_of(unit)
        name = state.full_path(unit, generation)
        plan = spec.page or self.plan
        call = WriteNodeCall(run=self._run, plan=plan, nodes=(name,), looks_up=True, **self._common)
        options = look_up_options(spec, item=state.is_item(unit))
        options["summary"] = for_bar(f"{name}: was it made?")
        ident = ActivityId(state.path(unit), generation, work="ledger", epoch=self.epoch)
        handle = _started(contracts.WRITE, call, ident, options)
        flight = InFlight((unit,), (generation,), handle, looks_up=True)
        self._follow(flight)

    @property
    def _common(self) -> dict[str, Any]:
        """The fields that all calls of this plan have."""
        epoch = 0
        if self.epoch > 1:
            epoch = self.epoch
        return fields_set(epoch=epoch, origins=self.origins)

    def _node_call(self, units: Units, *, asks: bool = False) -> NodeCall:
        """Return the call for these units, with what the budget has left for it."""
        state = self._state
        unit = units[0]
        plan = state.spec_of(unit).page or self.plan
        call = node_call(state, self._run, plan, units, asks=asks, **self._common)

        left: dict[str, int] = {}
        if isinstance(call, BudgetedCall):
            left = _of_paid(left_of(state, unit))
        limits: dict[str, Any] = {"left": left}
        if isinstance(call, ProgramNodeCall):
            limits |= in_place(state, unit, left)
            limits["rates"] = {queue: rate.limit for queue, rate in state.rates.items()}
            limits["running"] = self._model_calls()
            limits["slots"] = min(state.window, state.in_flight)
            limits["task_left"] = left_in_tasks(state, unit)
            if state.budget is not None:
                limits["limits"] = _of_paid(state.budget.limits)
        if isinstance(call, LlmNodeCall):
            limits["grant"] = grant(state, unit, left)
            limits["is_measured"] = state.units[unit].prompt_tokens > 0
            if unit in state.graph.answering:
                limits["replans"] = self.replans
                limits["objections"] = state.units[unit].objections
        return call.model_copy(update=fields_set(**limits))

    def node_call_of(self, unit: int) -> NodeCall:
        """Return what the activity of a unit is given now, or would be."""
        return self._node_call((unit,))

    def note_early_end(self, number: int) -> None:
        """Note that a call has ended that was made early, in its turn among the ends of units."""
        self._ended.append(EarlyEnded(number))
        self._wake()

    def _model_calls(self) -> dict[str, int]:
        """Return how many model calls are under way, by their queue."""
        calls: dict[str, int] = {}
        for unit, _ in self._flights:
            if self._state.kind_of(unit) == "llm":
                queue = self._state.spec_of(unit).queue
                calls[queue] = calls.get(queue, 0) + 1
        return calls

    def _activities(self) -> list[InFlight]:
        """Return each activity under way once, in the order of the starts."""
        return list(dict.fromkeys(self._flights.values()))

    def _follow(self, flight: InFlight) -> None:
        self._flights.update(dict.fromkeys(flight.keys, flight))
        flight.handle.add_done_callback(lambda _: self._done(flight))

    def _summary(self, units: Units, name: str, summary: str) -> str:
        """Return the label of an activity: the call itself, or the paths of several units
        as far as there is room.
        """
        if len(units) > MAX_NAMED_MEMBERS:
            last = self._state.path(units[-1])
            label = f"{name} … {last}"
        elif len(units) > 1:
            paths = map(self._state.path, units)
            label = " ".join([name, *paths])
        else:
            label = f"{name} {summary.partition(' ')[2]}"
        return label[:_LABEL_CHARACTERS]

    def _done(self, flight: InFlight) -> None:
        if not flight.handle.cancelled():
            flight.handle.exception()  # an exception that nobody retrieves would be logged
        for key in flight.keys:
            # A unit that has started again belongs to another activity: this one
            # told of its end before.
            if self._flights.get(key) is flight:
                del self._flights[key]
        self._ended.append(flight)
        self._wake()

    def tell(self, request: object, *more: object) -> None:
        """Take what an activity of several units tells of those that have ended. Ignores reports of
        any other form, and reports of activities that are not under way.
        """
        self.reports += 1
        progress = message_in(GroupProgress, request, *more)
        if progress is None:
            return
        flight = self._group_of(progress.call)
        if flight is None or flight.is_suspended:
            return
        for event, reply in flight.tell(progress):
            self._reported.append((event, reply))
            if event.outcome.again:
                self._flights.pop((event.unit, event.generation), None)
        self._wake()

    def _group_of(self, call: str) -> InFlight | None:
        """Return the activity of several units whose call has this digest, if it is under way."""
        for flight in self._flights.values():
            if flight.call == call:
                return flight
        return None

    @property
    def group_places(self) -> dict[int, tuple[str, int]]:
        """For each unit in an activity with others: the unit by which the activity is
        called, and the unit's place.
        """
        places: dict[int, tuple[str, int]] = {}
        for flight in self._activities():
            if flight.call:
                name = self._state.path(flight.units[0])
                for place, unit in enumerate(flight.units):
                    places[unit] = (name, place)
        return places

    def cancel(self, unit: int, generation: int) -> None:
        """Cancel what runs for a unit; it ends all the same. If an advance of a program follows,
        that is not cancelled alone.
        """
        flight = self._flights.get((unit, generation))
        if flight is None or flight.handle.done():
            return
        if flight.is_followed and unit == flight.units[1]:
            return
        flight.is_suspended = False  # it does not start again
        flight.handle.cancel(GIVEN_UP)

    def suspend(self) -> None:
        """Put back what waits to start, and cancel what runs, so that it starts again later. Writes
        that have begun come to their end first.
        """
        for _, keys in self._waiting:
            self._put_back_all(keys)
        self._waiting.clear()
        for flight in self._activities():
            is_wanted = any(self._state.runs(*key) for key in flight.keys)
            if is_wanted and not flight.is_suspended:
                flight.is_suspended = True
                flight.handle.cancel(SUSPENDED)
        if self._put_back:
            self._wake()

    def settled(self) -> list[Ended]:
        """Return the units that have ended since the last call, in order, each with its reply if
        there is one, and between them the early calls that have ended.
        """
        ends: list[Ended] = [*self._put_back, *self._reported]
        self._put_back = []
        self._reported = []
        while self._ended:
            flight = self._ended.popleft()
            if isinstance(flight, EarlyEnded):
                ends.append(flight)
            else:
                ends += flight.ends(self._outcomes_of(flight))
        return ends

    def _outcomes_of(self, flight: InFlight) -> list[tuple[Outcome, NodeReply | None]]:
        """Return the outcome of each unit of an activity that is over, with its reply."""
        count = len(flight.units)
        if flight.is_followed:
            count = 1
        ends = outcomes.ends_of(flight.handle, count, is_followed=flight.is_followed)

        # The advance that follows may not have run, or may have read a value that a person
        # has skipped meanwhile.
        if flight.is_followed:
            is_valid = len(ends) > 1 and self._state.runs(*flight.keys[0])
            if not is_valid:
                ends[1:] = [(outcomes.START_AGAIN, None)]

        settled: list[tuple[Outcome, NodeReply | None]] = []
        for outcome, reply in ends:
            end = self._end_in(flight, outcome, reply)
            settled.append(end)
        return settled

    def _end_in(
        self, flight: InFlight, outcome: Outcome, reply: NodeReply | None
    ) -> tuple[Outcome, NodeReply | None]:
        """Return the outcome of a unit as it counts for the run, which knows
        what the activity was for.
        """
        # A sub-agent has told of its writes, and one that was cancelled of its usage,
        # in reports of its own.
        if flight.subagent:
            outcome = replace(outcome, effects=self._subagent_status.effects_of(flight.subagent))
            used = self._subagent_status.usage_of(flight.subagent)
            if used is not None:
                outcome = replace(outcome, usage=used)
                reply = NodeReply(usage=used)
        if flight.is_suspended:
            unit = flight.units[0]
            spec = self._state.spec_of(unit)
            is_write = may_write(self._state, unit) and not flight.subagent
            outcome, reply = outcomes.restart(spec, outcome, reply, is_write=is_write)
        if flight.looks_up:
            outcome = outcomes.looked_up(outcome)
        return outcome, reply


def _units_of(decision: Start) -> Units:
    """Return the units of an activity, with the advance that follows in it."""
    if decision.following < 0:
        return decision.units
    return (*decision.units, decision.following)


def _of_paid(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return the amounts of those limits that every attempt of a model call uses up."""
    return {name: amount for name, amount in amounts.items() if name in PAID}


def _label_name(ident: ActivityId, decision: Start) -> str:
    """Return the name of an activity for people: the first unit's, and the number of the others."""
    others = len(decision.units) - 1
    if others == 0:
        return ident.label
    return f"{ident.label}+{others}"


def _started(
    contract: Call[NodeCall, GroupReply], call: NodeCall, ident: ActivityId, options: Options
) -> Handle:
    return workflow.start_activity(
        contract.name, call, activity_id=str(ident), result_type=contract.gives, **options
    )


def _nothing_early(_: int) -> dict[str, Any]:
    """Return nothing: the run makes no calls early."""
    return {}
