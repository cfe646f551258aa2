"""Starts, follows and cancels the activities of nodes: the one place that touches activity handles.

A workflow task emits at most 500 starts and 1 MiB of them; the rest wait for the next task, because one transaction
holds 4 MiB and a run that breaks that is terminated.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from temporalio import workflow

from sennit.workflows.limits import (
    COMMAND_BYTES,
    MAX_NAMED_MEMBERS,
    MAX_QUESTION_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
    MAX_STARTS,
    MIN_QUESTION_CHARACTERS,
)
from sennit.workflows.messages import contracts
from sennit.workflows.messages.activity_ids import ActivityId
from sennit.workflows.messages.activity_options import Options, look_up_options, node_options
from sennit.workflows.messages.contracts import Call, GroupReply, NodeReply
from sennit.workflows.messages.message import message_bytes
from sennit.workflows.messages.node_calls import (
    AskingCall,
    BudgetedCall,
    GateNodeCall,
    GroupCall,
    JoinNodeCall,
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
from sennit.workflows.plan.scheduling.completion import may_write
from sennit.workflows.plan.scheduling.events import Event, InputsRead, NodeEnded, Start
from sennit.workflows.plan.scheduling.joins import lost, makers, manifest
from sennit.workflows.plan.scheduling.programs import (
    activity_generation,
    activity_name,
    activity_page,
    beginning,
    last_told,
)
from sennit.workflows.plan.scheduling.ready import grant, in_place
from sennit.workflows.plan.scheduling.session import Session
from sennit.workflows.plan.scheduling.state import RUNNING, SUCCEEDED, RunState
from sennit.workflows.run import outcomes
from sennit.workflows.run.outcomes import End, Handle, InFlight, Key
from sennit.workflows.run.shared_activities import AgentActivities
from sennit.workflows.run.subagent import GIVEN_UP, SUSPENDED, prefix_below, run_subagent
from sennit.workflows.run.subagent_status import SubagentStatus

Units = tuple[int, ...]
_CALLS: dict[str, Call[Any, Any]] = {call.name: call for call in contracts.CALLS} | {"map": contracts.JOIN}
PAID = ("tokens", "cost", "calls")
"""The limits that every attempt of a model call uses up."""

SHARED_BY_SUBAGENTS = "sub-agents share activities"
"""The change since which runs prepare sub-agents, and store their answers, in activities that several of them share."""


class Dispatcher:
    """The activities in flight of one run. `wake` is called when one ends; `settled` then returns its outcome.

    `plan` is the plan of the run's own nodes, by its digest, and `epoch` which one this is: 1, or 2 for the plan that
    replaced a streamed beginning. `replans` says how many more times the model of the answering node may ask for nodes.
    `tell` has the scheduler take an event, and returns whether it could.
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
        self._ended: deque[InFlight] = deque()
        self._waiting: deque[tuple[Start, list[Key]]] = deque()
        self._put_back: list[NodeEnded] = []
        self.started = 0
        self.child_defaults: dict[str, Any] = {}
        self.origins: tuple[str, ...] = ()
        self.replans = 0
        self._moved: dict[int, bool] = {}
        """Calls that their programs were told to have ended later than by the clocks of their workers."""
        self._task = -1
        self._starts = 0
        self._bytes = 0

    def successor(self, plan: str) -> "Dispatcher":
        """Cancel everything and return the dispatcher of the plan that replaces this one."""
        for flight in dict.fromkeys(self._flights.values()):
            flight.handle.cancel(GIVEN_UP)
        other = Dispatcher(
            self._state, self._run, plan, self._wake, self._subagent_status, tell=self._tell, epoch=self.epoch + 1
        )
        other.child_defaults, other.replans, other.origins = self.child_defaults, self.replans, self.origins
        other.reports = self.reports
        other._task, other._starts, other._bytes = self._task, self._starts, self._bytes
        return other

    @property
    def busy(self) -> bool:
        """Whether any activity is in flight or waits for the next workflow task."""
        return bool(self._flights or self._waiting or self._ended or self._put_back or self._reported)

    def owes_usage(self) -> bool:
        """Whether a model call or a sub-agent is in flight, or its end has not been taken yet."""
        return any(flight.is_paid for flight in (*self._flights.values(), *self._ended))

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
        for flight in dict.fromkeys(self._flights.values()):
            if not flight.handle.done():
                flight.is_suspended = False
                flight.handle.cancel(GIVEN_UP)

    def hold(self) -> None:
        """Start nothing more."""
        self._waiting.clear()

    def start(self, decision: Start) -> None:
        """Start these units in one activity when `start_waiting` is called next, or in a later workflow task."""
        units = decision.units if decision.following < 0 else (*decision.units, decision.following)
        self._waiting.append((decision, [(unit, self._state.generation[unit]) for unit in units]))

    def start_waiting(self) -> None:
        """Start as many waiting units as this workflow task may."""
        task = workflow.info().get_current_history_length()
        if task != self._task:
            self._task, self._starts, self._bytes = task, 0, 0
        while self._waiting and self._starts < MAX_STARTS and self._bytes < MAX_TASK_BYTES:
            decision, keys = self._waiting.popleft()
            if all(self._still_wanted(*key) for key in keys):
                self._start(decision)
            else:  # one was cancelled meanwhile, and has not begun; other members of its group start alone
                self._put_back += [NodeEnded(*key, outcomes.START_AGAIN) for key in keys]
                self._wake()

    def _still_wanted(self, unit: int, generation: int) -> bool:
        return self._state.status.get(unit) == RUNNING and self._state.generation[unit] == generation

    def _start(self, decision: Start) -> None:
        state, units, asks, following = self._state, decision.units, decision.asks, decision.following
        ended: dict[int, int] = {}
        if state.kind_of(units[0]) == "program":
            ended = {node: state.ended_at.get(node, 0) for node in state.sessions[units[0]].waits}
            if not self._tell(InputsRead(units[0])):
                return  # the run is frozen
        call = self._node_call(units, asks=asks)
        if isinstance(call, ProgramNodeCall):
            self._moved |= {node: True for node, at in ended.items() if at != state.ended_at.get(node, 0)}
            moved = tuple(state.path(node) for node in ended if node in self._moved)
            call = call.model_copy(update=_known(moved=moved))
        if following >= 0:
            then = self._node_call((following,))
            after = last_told(state, state.sessions[following])
            then = then.model_copy(update={"refs": {}, "lost": {}, "ends": {}, "follows": True, "after": after})
            call = call.model_copy(update={"then": then})
        self._starts += 1
        self.started += 1
        self._bytes += COMMAND_BYTES + message_bytes(call, exclude_unset=True)
        first = units[0]
        contract, spec, item = contract_of(state, units, asks=asks), state.spec_of(first), state.is_item(first)
        is_call = state.kind_of(first) in ("tool", "llm") and contract is not contracts.GATE
        specs = [state.spec_of(unit) for unit in units]
        if isinstance(call, ToolNodeCall) and call.tried:
            specs = [replace(spec, attempts=max(1, spec.attempts - call.tried))]
        options = node_options(specs, item=item, is_call=is_call)
        ident = ActivityId(
            activity_name(state, first),
            activity_generation(state, first),
            others=len(units) - 1,
            work="question" if asks else "",
            epoch=self.epoch,  # no two ids of one run are under way at once
        )
        name = ident.full_path if len(units) == 1 else f"{ident.full_path}+{len(units) - 1}"
        options.setdefault("summary", self._summary(units, name, spec.summary))
        if asks:
            options["summary"] = for_bar(f"{name} asks: {spec.summary.partition(' ')[2]}")
        handle: Handle
        subagent = ""
        if contract is contracts.AGENT:
            place = name.replace(spec.id, spec.key, 1) if spec.key else name  # its writes are known by that
            home = prefix_below(self._run, place)
            budget = limit_fields(decision.limits) if decision.limits is not None else None
            inherited = {**self.child_defaults, "budget": budget, "run_prefix": home}
            subagent = state.subagent(first)
            shared = self._shared if workflow.patched(SHARED_BY_SUBAGENTS) else None
            handle = asyncio.create_task(
                run_subagent(call, subagent, ident, options, inherited, self._subagent_status, shared)
            )
        else:
            handle = _started(contract, call, ident, options)
        units = units if following < 0 else (*units, following)
        generations = tuple(state.generation[unit] for unit in units)
        named = call.digest() if isinstance(call, GroupCall) else ""
        flight = InFlight(units, generations, handle, is_followed=following >= 0, subagent=subagent, call=named)
        flight.is_paid = isinstance(call, LlmNodeCall) or bool(subagent)
        self._follow(flight)

    def look_up(self, unit: int, generation: int) -> None:
        """Learn from the ledger of effects what became of a write that was cut off in this generation."""
        state, spec = self._state, self._state.spec_of(unit)
        name = state.full_path(unit, generation)
        plan = spec.page or self.plan
        call = WriteNodeCall(run=self._run, plan=plan, nodes=(name,), looks_up=True, **self._common)
        options = look_up_options(spec, item=state.is_item(unit))
        options["summary"] = for_bar(f"{name}: was it made?")
        ident = ActivityId(state.path(unit), generation, work="ledger", epoch=self.epoch)
        handle = _started(contracts.WRITE, call, ident, options)
        self._follow(InFlight((unit,), (generation,), handle, looks_up=True))

    @property
    def _common(self) -> dict[str, Any]:
        """What all calls of this plan have in common."""
        return _known(epoch=self.epoch if self.epoch > 1 else 0, origins=self.origins)

    def _node_call(self, units: Units, *, asks: bool = False) -> NodeCall:
        """Return the call for these units, with what the budget has left for it."""
        state, unit = self._state, units[0]
        plan = activity_page(state, unit) or self.plan
        call = node_call(state, self._run, plan, units, asks=asks, **self._common)
        limits: dict[str, Any] = {}
        if isinstance(call, BudgetedCall) and state.budget is not None:
            limits["left"] = {name: rest for name, rest in state.budget.rest(unit).items() if name in PAID}
        if isinstance(call, ProgramNodeCall):
            limits |= in_place(state, unit, limits.get("left", {}))
            limits["rates"] = {queue: rate.limit for queue, rate in state.rates.items()}
            limits["running"] = self._model_calls()
            limits["slots"] = min(state.window, state.in_flight)
        if isinstance(call, LlmNodeCall):
            limits |= {"grant": grant(state, unit, limits.get("left", {})), "is_measured": unit in state.prompts}
        if isinstance(call, LlmNodeCall) and unit in state.graph.answering:
            limits |= {"replans": self.replans, "objections": state.objections.get(unit)}
        return call.model_copy(update=_known(**limits))

    def _model_calls(self) -> dict[str, int]:
        """Return how many model calls are under way, by their queue."""
        found: dict[str, int] = {}
        for unit, _ in self._flights:
            if self._state.kind_of(unit) == "llm":
                queue = self._state.spec_of(unit).queue
                found[queue] = found.get(queue, 0) + 1
        return found

    def _follow(self, flight: InFlight) -> None:
        self._flights.update(dict.fromkeys(flight.keys, flight))
        flight.handle.add_done_callback(lambda _: self._done(flight))

    def _summary(self, units: Units, name: str, summary: str) -> str:
        if len(units) > MAX_NAMED_MEMBERS:  # a longer label does not fit beside its bar in the timeline
            return f"{name} … {self._state.path(units[-1])}"[:120]
        if len(units) > 1:
            return " ".join([name, *(self._state.path(unit) for unit in units)])[:120]
        return f"{name} {summary.partition(' ')[2]}"[:120]

    def _done(self, flight: InFlight) -> None:
        if not flight.handle.cancelled():
            flight.handle.exception()  # an exception that nobody retrieves would be logged
        for key in flight.keys:
            if self._flights.get(key) is flight:  # else it has started again: that was told before
                del self._flights[key]
        self._ended.append(flight)
        self._wake()

    def tell(self, request: object, *more: object) -> None:
        """Take what an activity of several units tells of those that have ended, and ignore what comes from none."""
        self.reports += 1
        progress = outcomes.progress_of(request, *more)
        flight = next((each for each in self._flights.values() if progress and each.call == progress.call), None)
        if progress is None or flight is None or flight.is_suspended:
            return
        for event, reply in flight.tell(progress):
            self._reported.append((event, reply))
            if event.outcome.again:
                self._flights.pop((event.unit, event.generation), None)
        self._wake()

    @property
    def seats(self) -> dict[int, tuple[str, int]]:
        """Of each unit that runs in an activity with others: the unit that this is called by, and its place there."""
        groups = [flight for flight in dict.fromkeys(self._flights.values()) if flight.call]
        return {unit: (self._state.path(each.units[0]), at) for each in groups for at, unit in enumerate(each.units)}

    def cancel(self, unit: int, generation: int) -> None:
        """Cancel what runs for a unit; it ends all the same. If an advance of a program follows, that is not cancelled
        alone.
        """
        flight = self._flights.get((unit, generation))
        if flight is None or flight.handle.done() or (flight.is_followed and unit == flight.units[1]):
            return
        flight.is_suspended = False  # it does not start again
        flight.handle.cancel(GIVEN_UP)

    def suspend(self) -> None:
        """Put back what waits to start, and cancel what runs, so that it starts again later. Writes that have begun
        come to their end first.
        """
        self._put_back += [NodeEnded(*key, outcomes.START_AGAIN) for _, keys in self._waiting for key in keys]
        self._waiting.clear()
        for flight in dict.fromkeys(self._flights.values()):
            if any(self._still_wanted(*key) for key in flight.keys) and not flight.is_suspended:
                flight.is_suspended = True
                flight.handle.cancel(SUSPENDED)
        if self._put_back:
            self._wake()

    def settled(self) -> list[End]:
        """Return the units that have ended since the last call, in order, each with its reply if there is one."""
        found: list[End] = [*((event, None) for event in self._put_back), *self._reported]
        self._put_back, self._reported = [], []
        while self._ended:
            flight = self._ended.popleft()
            count = 1 if flight.is_followed else len(flight.units)
            ends = outcomes.ends_of(flight.handle, count, is_followed=flight.is_followed)
            if flight.is_followed and (len(ends) < 2 or not self._still_wanted(*flight.keys[0])):
                ends[1:] = [(outcomes.START_AGAIN, None)]  # it may have read what a person has skipped meanwhile
            if flight.subagent:
                effects = self._subagent_status.effects_of(flight.subagent)
                ends = [(replace(outcome, effects=effects), reply) for outcome, reply in ends]
                used = self._subagent_status.usage_of(flight.subagent)
                if used is not None:  # it was cancelled
                    ends = [(replace(outcome, usage=used), NodeReply(usage=used)) for outcome, _ in ends]
            if flight.is_suspended:
                spec = self._state.spec_of(flight.units[0])
                is_write = may_write(self._state, flight.units[0]) and not flight.subagent
                ends = [outcomes.restart(spec, outcome, reply, is_write=is_write) for outcome, reply in ends]
            found += flight.ends(
                [(outcomes.looked_up(outcome), reply) for outcome, reply in ends] if flight.looks_up else ends
            )
        return found


def _started(contract: Call[NodeCall, GroupReply], call: NodeCall, ident: ActivityId, options: Options) -> Handle:
    return workflow.start_activity(contract.name, call, activity_id=str(ident), result_type=contract.gives, **options)


def contract_of(state: RunState, units: Units, *, asks: bool) -> Call[NodeCall, GroupReply]:
    """Return the activity that runs these units."""
    if len(units) > 1:
        return contracts.GROUP
    kind, spec = state.kind_of(units[0]), state.spec_of(units[0])
    if units[0] in state.answers:
        return contracts.GATE
    return contracts.WRITE if kind == "tool" and spec.effect == "write" and not asks else _CALLS[kind]


def node_call(state: RunState, run: str, plan: str, units: Units, *, asks: bool = False, **common: Any) -> NodeCall:
    """Return what the activity of these units needs: paths, the digests of the outputs they read, and what their kind
    has.
    """
    takes, unit = contract_of(state, units, asks=asks).takes, units[0]
    names = [ActivityId(activity_name(state, each), activity_generation(state, each)).full_path for each in units]
    common |= {"run": run, "plan": plan, "nodes": tuple(names)}
    if unit in state.answers:
        return GateNodeCall(**common, answer=state.answers[unit])
    spec = state.spec_of(unit)
    gathers = takes is JoinNodeCall
    session = state.sessions[unit] if unit in state.sessions and state.sessions[unit].has_begun else None
    read = [unit] if gathers else [*(node for each in units for node in _read_by(state, each)), *spec.inputs]
    if session is not None:
        read = list(session.last.told)
    repeated = [node for node in makers(state, read) if state.generation[node] > 1]
    fields = _known(repeated=tuple(state.full_path(node) for node in repeated))
    if gathers:
        fields["refs"] = {state.path(unit): manifest(state, unit)}
    else:
        fields["refs"] = _reads(state, units)
    if session is not None:
        return takes(**common, **_known(**fields | _told(state, session)))
    if issubclass(takes, AskingCall) and (asks or spec.approval):
        fields["room"] = _room(state, unit)
    if takes is GateNodeCall:
        fields["asks"] = asks
    if takes is ToolNodeCall:
        fields["tried"] = int(unit in state.alone)  # it has been attempted beside others
    elif takes is WriteNodeCall:
        fields |= {"resumes": unit in state.resumed, "approved": state.approved.get(unit)}
    elif takes is ProgramNodeCall:
        fields["approved"] = state.approved.get(unit)
        fields |= beginning(state, unit)
    if spec.inputs and spec.kind != "join":
        fields |= _gathered(state, unit, spec, fields["refs"])
    return takes(**common, **_known(**fields))


def _known(**fields: Any) -> dict[str, Any]:
    """Return the fields that say something: only those are sent."""
    return {name: value for name, value in fields.items() if value}


def _room(state: RunState, unit: int) -> int:
    """Return how long a question may be if many are asked, 0 for the usual length."""
    siblings = len(state.items.get(state.node_of(unit), ()))
    room = MAX_SHOWN_CHARACTERS // max(1, len(state.questions), siblings)
    return 0 if room >= MAX_QUESTION_CHARACTERS else max(MIN_QUESTION_CHARACTERS, room)


def _gathered(state: RunState, unit: int, spec: NodeSpec, refs: dict[str, str]) -> dict[str, Any]:
    """Return the extra fields of a model with `inputs`."""
    chosen = state.chosen[unit]
    found: dict[str, Any] = {"refs": refs | {state.path(node): state.digest[node] or "" for node in chosen}}
    if spec.policy == "settled":
        taken = dict.fromkeys(chosen)
        losses = lost(state, [node for node in spec.inputs if node not in taken])
        found["lost"] = {state.path(node): loss for node, loss in losses.items()}
    return found


def _told(state: RunState, session: Session) -> dict[str, Any]:
    """Return what an advance of a program is told: the outputs of calls that have ended, how others have, and when."""
    told = session.last.told
    have_value = [call for call in told if state.status[call] == SUCCEEDED]
    losses = lost(state, [call for call in told if state.status[call] != SUCCEEDED])
    return {
        "refs": {state.path(call): state.digest[call] or "" for call in have_value},
        "lost": {state.path(call): loss for call, loss in losses.items()},
        "ends": {state.path(call): state.ended_at.get(call, 0) for call in told},
    }


def _reads(state: RunState, units: Units) -> dict[str, str]:
    inside = dict.fromkeys(units)
    nodes = dict.fromkeys(node for unit in units for node in _read_by(state, unit) if node not in inside)
    if len(units) > 1:
        nodes |= dict.fromkeys(node for unit in units for node in state.spec_of(unit).needs if node not in inside)
    return {state.path(node): state.digest[node] or "" for node in nodes if state.status[node] == SUCCEEDED}


def _read_by(state: RunState, unit: int) -> list[int]:
    """Return the units whose outputs a unit's activity may read."""
    return [*state.spec_of(unit).reads, *(state.read_by(unit) if state.is_item(unit) else ())]
