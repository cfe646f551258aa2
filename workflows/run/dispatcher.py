"""Starts, follows and cancels the activities of nodes: the one place that touches activity handles.

A workflow task emits at most 500 starts and 1 MiB of them; the rest wait for the next task, because one transaction
holds 4 MiB and a run that breaks that is terminated.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from temporalio import workflow

from sennit.workflows.messages.activity_ids import ActivityId
from sennit.workflows.messages.activity_options import as_keywords, look_up_options, node_options
from sennit.workflows.messages.contracts import (
    AGENT,
    GATE,
    GROUP,
    JOIN,
    LLM,
    MAP,
    PROGRAM,
    TOOL,
    WRITE,
    Call,
    GroupReply,
    NodeCall,
    WriteApproval,
)
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.limits import limit_fields
from sennit.workflows.plan.language.summary import for_bar
from sennit.workflows.plan.limits import MAX_TASK_BYTES
from sennit.workflows.plan.scheduling.completion import may_write
from sennit.workflows.plan.scheduling.events import Event, InputsRead, NodeEnded, Start
from sennit.workflows.plan.scheduling.joins import lost, manifest
from sennit.workflows.plan.scheduling.state import RUNNING, SUCCEEDED, RunState
from sennit.workflows.run.outcomes import AGAIN, End, Handle, InFlight, Key, ends_of, looked_up, progress_of, restart
from sennit.workflows.run.subagent import GIVEN_UP, SUSPENDED, prefix_below, run_subagent
from sennit.workflows.run.subagent_status import SubagentStatus

MOST_SHOWN, LEAST_SHOWN, SHOWN_CHARACTERS = 4_000, 200, 64_000
"""What a person is shown of one question, and of all that wait together: the history keeps it."""
Units = tuple[int, ...]
MOST_STARTS, MOST_NAMED = 500, 5
_CALLS: dict[str, Call[NodeCall, GroupReply]] = {
    "tool": TOOL,
    "llm": LLM,
    "join": JOIN,
    "map": MAP,
    "gate": GATE,
    "agent": AGENT,
    "program": PROGRAM,
}

PAID = ("tokens", "cost", "calls")
"""The limits that every attempt of a model call uses up."""


class Dispatcher:
    """The activities in flight of one run. `wake` is called when one ends; `settled` then returns its outcome."""

    def __init__(
        self,
        state: RunState,
        run: str,
        plan: str,
        wake: Callable[[], None],
        subagents: SubagentStatus,
        *,
        tell: Callable[[Event], None],
        epoch: int = 1,
    ) -> None:
        self.epoch = epoch
        self._tell = tell
        self._state = state
        self._run = run
        self.plan = plan
        self._wake = wake
        self._subagent_status = subagents
        self._flights: dict[Key, InFlight] = {}
        self._told: list[End] = []
        self.reports = 0
        self._ended: deque[InFlight] = deque()
        self._waiting: deque[tuple[Start, list[Key]]] = deque()
        self._put_back: list[NodeEnded] = []
        self.started = 0
        self.child_defaults: dict[str, Any] = {}
        self.origins: tuple[str, ...] = ()
        self.replans = 0
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
        return bool(self._flights or self._waiting or self._ended or self._put_back or self._told)

    @property
    def held_up(self) -> bool:
        """Whether starts wait for the next workflow task."""
        return bool(self._waiting)

    def start(self, decision: Start) -> None:
        """Start these units in one activity when `start_waiting` is called next, or in a later workflow task."""
        units = decision.units if decision.step < 0 else (*decision.units, decision.step)
        self._waiting.append((decision, [(unit, self._state.generation[unit]) for unit in units]))

    def start_waiting(self) -> None:
        """Start as many waiting units as this workflow task may."""
        task = workflow.info().get_current_history_length()
        if task != self._task:
            self._task, self._starts, self._bytes = task, 0, 0
        while self._waiting and self._starts < MOST_STARTS and self._bytes < MAX_TASK_BYTES:
            decision, keys = self._waiting.popleft()
            if all(self._still_wanted(*key) for key in keys):
                self._start(decision)
            else:  # one was cancelled meanwhile, and has not begun; other members of its group start alone
                self._put_back += [NodeEnded(*key, AGAIN) for key in keys]
                self._wake()

    def _still_wanted(self, unit: int, generation: int) -> bool:
        return self._state.status.get(unit) == RUNNING and self._state.generation[unit] == generation

    def _start(self, decision: Start) -> None:
        state, units, asks, following = self._state, decision.units, decision.asks, decision.step
        if state.kind_of(units[0]) == "program":
            self._tell(InputsRead(units[0]))
        call = self._with_limits(self._node_call(units, asks=asks), units[0])
        if following >= 0:
            then = self._with_limits(self._node_call((following,)), following)
            then = then.model_copy(update={"refs": {}, "lost": {}, "ends": {}})
            call = call.model_copy(update={"then": then})
        self._starts += 1
        self.started += 1
        self._bytes += weight(call)
        first = units[0]
        spec, item, is_answered = state.spec_of(first), state.is_item(first), call.answered
        kind = "gate" if is_answered else state.kind_of(first)
        contract = GROUP if len(units) > 1 else _CALLS[kind]
        contract = WRITE if kind == "tool" and spec.effect == "write" and not asks else contract
        own_work = (item or kind in ("tool", "llm")) and not is_answered
        specs = [state.spec_of(unit) for unit in units]
        if call.tried:
            specs = [replace(spec, attempts=max(1, spec.attempts - call.tried))]
        options = node_options(specs, item=item, own_work=own_work)
        ident = ActivityId(
            state.path(first),
            state.generation[first],
            others=len(units) - 1,
            work="question" if asks else "",
            epoch=self.epoch,  # no two ids of one run are under way at once
        )
        name = state.address(first) if len(units) == 1 else f"{state.address(first)}+{len(units) - 1}"
        options.setdefault("summary", self._summary(units, name, spec.summary))
        if asks:
            options["summary"] = for_bar(f"{name} asks: {spec.summary.partition(' ')[2]}")
        handle: Handle
        own = ""
        if kind == "agent":
            place = name.replace(spec.id, spec.call, 1) if spec.key else name  # its writes are known by that
            home = prefix_below(self._run, place)
            budget = limit_fields(decision.limits) if decision.limits is not None else None
            given = {**self.child_defaults, "budget": budget, "run_prefix": home}
            own = state.subagent(first)
            handle = asyncio.create_task(run_subagent(call, own, ident, options, given, self._subagent_status))
        else:
            handle = workflow.start_activity(
                contract.name, call, activity_id=str(ident), result_type=contract.gives, **as_keywords(options)
            )
        units = units if following < 0 else (*units, following)
        generations = tuple(state.generation[unit] for unit in units)
        named = call.digest() if contract is GROUP else ""
        self._follow(InFlight(units, generations, handle, steps=following >= 0, subagent=own, call=named))

    def look_up(self, unit: int, generation: int) -> None:
        """Learn from the ledger of effects what became of a write that was cut off in this generation."""
        state, spec = self._state, self._state.spec_of(unit)
        name = state.address(unit, generation)
        fields = {"epoch": self.epoch} if self.epoch > 1 else {}
        call = NodeCall(run=self._run, plan=spec.page or self.plan, nodes=(name,), looks_up=True, **fields)
        options = look_up_options(spec, item=state.is_item(unit))
        options["summary"] = for_bar(f"{name}: was it made?")
        ident = ActivityId(state.path(unit), generation, work="ledger", epoch=self.epoch)
        handle = workflow.start_activity(
            WRITE.name, call, activity_id=str(ident), result_type=WRITE.gives, **as_keywords(options)
        )
        self._follow(InFlight((unit,), (generation,), handle, looks_up=True))

    def _node_call(self, units: Units, *, asks: bool = False) -> NodeCall:
        plan = self._state.spec_of(units[0]).page or self.plan
        call = node_call(self._state, self._run, plan, units, asks=asks)
        fields: dict[str, Any] = {"origins": self.origins} if self.origins else {}
        if units[0] in self._state.resumed:
            fields["resumes"] = True
        if units[0] in self._state.alone:  # it has been attempted beside others
            fields["tried"] = 1
        return call.model_copy(update=fields)

    def _follow(self, flight: InFlight) -> None:
        self._flights.update(dict.fromkeys(flight.keys, flight))
        flight.handle.add_done_callback(lambda _: self._done(flight))

    def _with_limits(self, call: NodeCall, unit: int) -> NodeCall:
        """Add the limits of a model call, or of a program's step: what the budget has left for it and, if a model's
        output is the answer, how often it may ask for more nodes and what was wrong with its last request.
        """
        state, fields = self._state, dict[str, Any]()
        if self.epoch > 1:
            fields["epoch"] = self.epoch
        spec = state.spec_of(unit)
        if (not spec.calls_model and spec.kind != "program") or call.answered:
            return call.model_copy(update=fields)
        if state.budget is not None:
            fields["left"] = {name: rest for name, rest in state.budget.rest(unit).items() if name in PAID}
        if spec.kind == "llm" and unit in state.graph.answers:
            fields |= {"replans": self.replans, "objections": state.objections.get(unit)}
        return call.model_copy(update={name: value for name, value in fields.items() if value})

    def _summary(self, units: Units, name: str, summary: str) -> str:
        if len(units) > MOST_NAMED:  # a longer label does not fit beside its bar in the timeline
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
        progress = progress_of(request, *more)
        flight = next((each for each in self._flights.values() if progress and each.call == progress.call), None)
        if progress is None or flight is None or flight.is_suspended:
            return
        for event, reply in flight.tell(progress):
            self._told.append((event, reply))
            if event.outcome.again:
                self._flights.pop((event.unit, event.generation), None)
        self._wake()

    @property
    def seats(self) -> dict[int, tuple[str, int]]:
        """Of each unit that runs in an activity with others: the unit that this is called by, and its place there."""
        groups = [flight for flight in dict.fromkeys(self._flights.values()) if flight.call]
        return {unit: (self._state.path(each.units[0]), at) for each in groups for at, unit in enumerate(each.units)}

    def cancel(self, unit: int, generation: int) -> None:
        """Cancel what runs for a unit; it ends all the same. If the step of a program follows, that is not cancelled
        alone.
        """
        flight = self._flights.get((unit, generation))
        if flight is None or flight.handle.done() or (flight.steps and unit == flight.units[1]):
            return
        flight.is_suspended = False  # it does not start again
        flight.handle.cancel(GIVEN_UP)

    def suspend(self) -> None:
        """Put back what waits to start, and cancel what runs, so that it starts again later. Writes that have begun
        come to their end first.
        """
        self._put_back += [NodeEnded(*key, AGAIN) for _, keys in self._waiting for key in keys]
        self._waiting.clear()
        for flight in dict.fromkeys(self._flights.values()):
            if any(self._still_wanted(*key) for key in flight.keys) and not flight.is_suspended:
                flight.is_suspended = True
                flight.handle.cancel(SUSPENDED)
        if self._put_back:
            self._wake()

    def settled(self) -> list[End]:
        """Return the units that have ended since the last call, in order, each with its reply if there is one."""
        found: list[End] = [*((event, None) for event in self._put_back), *self._told]
        self._put_back, self._told = [], []
        while self._ended:
            flight = self._ended.popleft()
            ends = ends_of(flight.handle, 1 if flight.steps else len(flight.units), steps=flight.steps)
            if flight.steps and (len(ends) < 2 or not self._still_wanted(*flight.keys[0])):
                ends[1:] = [(AGAIN, None)]  # it may have read what a person has skipped meanwhile
            if flight.subagent:
                told = self._subagent_status.effects_of(flight.subagent)
                ends = [(replace(outcome, effects=told), reply) for outcome, reply in ends]
            if flight.is_suspended:
                spec = self._state.spec_of(flight.units[0])
                is_write = may_write(self._state, flight.units[0]) and not flight.subagent
                ends = [restart(spec, outcome, reply, is_write=is_write) for outcome, reply in ends]
            if flight.looks_up:
                ends = [(looked_up(outcome), reply) for outcome, reply in ends]
            found += flight.ends(ends)
        return found


def node_call(state: RunState, run: str, plan: str, units: Units, *, asks: bool = False) -> NodeCall:
    """Return what an activity needs to run these units: paths, and the digests of the outputs they read."""
    fields: dict[str, Any] = {"run": run, "plan": plan, "nodes": tuple(state.address(unit) for unit in units)}
    first = units[0]
    spec = state.spec_of(first)
    if first in state.answers:
        return NodeCall(**fields, answer=state.answers[first], answered=True)
    fields |= _asking(state, first, asks)
    if spec.kind == "program" and not spec.inputs:
        fields |= {"ends": {spec.id: state.ended_at[first]}} if first in state.ended_at else {}
        fields |= {"since": state.now} if state.generation[first] > 1 else {}
    if state.is_item(first) or asks or spec.kind not in ("join", "map"):
        fields |= _reads(state, units)
    read = [*state.values(first)] if spec.kind == "map" and not state.is_item(first) else []
    if not read:
        read = [*dict.fromkeys((*(node for unit in units for node in _read_by(state, unit)), *spec.inputs))]
    read = _makers(state, read)
    if repeated := tuple(state.address(node) for node in read if state.generation[node] > 1):
        fields["repeated"] = repeated
    if spec.kind == "join":
        fields["refs"] = {state.path(first): manifest(state, first)}
    elif spec.inputs:
        fields |= _gathered(state, first, spec, fields.get("refs", {}))
    elif spec.kind == "map" and not state.is_item(first):
        fields["items"] = tuple(state.digest[item] for item in state.values(first))
    return NodeCall(**fields)


def _asking(state: RunState, unit: int, asks: bool) -> dict[str, Any]:
    """Return the fields of a node that asks a person, or has asked."""
    if not (asks or state.spec_of(unit).approval):
        return {}
    found: dict[str, Any] = {"asks": True} if asks else {}
    if unit in state.approved:
        digest, target, args, *_ = state.approved[unit]
        found["approved"] = WriteApproval(digest=digest, target=target, args=args)
    siblings = len(state.items.get(state.node_of(unit), ()))
    room = SHOWN_CHARACTERS // max(1, len(state.questions), siblings)
    return found if room >= MOST_SHOWN else {**found, "room": max(LEAST_SHOWN, room)}


def _gathered(state: RunState, unit: int, spec: NodeSpec, refs: dict[str, str]) -> dict[str, Any]:
    """Return the extra fields of a model with `inputs`, or of a program's step."""
    chosen = state.chosen[unit]
    if spec.policy == "any":
        chosen = tuple(node for node in chosen if state.status[node] == SUCCEEDED)
    found: dict[str, Any] = {"refs": refs | {state.path(node): state.digest[node] or "" for node in chosen}}
    if spec.policy in ("settled", "any"):
        taken = dict.fromkeys(chosen)
        read = spec.inputs if spec.policy == "settled" else state.chosen[unit]
        losses = lost(state, [node for node in read if node not in taken])
        found["lost"] = {state.path(node): loss for node, loss in losses.items()}
    if spec.policy == "any":
        found["ends"] = {state.path(node): state.ended_at.get(node, 0) for node in state.chosen[unit]}
    return found


def _makers(state: RunState, units: Sequence[int]) -> list[int]:
    """Return these units, and in the place of joins those that have made their values."""
    found = list(units)
    for unit in found:  # which grows
        found += [node for node in state.chosen.get(unit, ()) if state.kind_of(unit) == "join" and node not in found]
    return found


def _reads(state: RunState, units: Units) -> dict[str, Any]:
    inside = dict.fromkeys(units)
    nodes = dict.fromkeys(node for unit in units for node in _read_by(state, unit) if node not in inside)
    if len(units) > 1:
        nodes |= dict.fromkeys(node for unit in units for node in state.spec_of(unit).needs if node not in inside)
    refs = {state.path(node): state.digest[node] or "" for node in nodes if state.status[node] == SUCCEEDED}
    return {"refs": refs} if refs else {}


def _read_by(state: RunState, unit: int) -> list[int]:
    """Return the units whose outputs a unit's activity may read."""
    return [*state.spec_of(unit).reads, *(state.read_by(unit) if state.is_item(unit) else ())]


def weight(call: NodeCall) -> int:
    """Return roughly how many bytes the command to start this call takes."""
    size = 600 + sum(len(part or "") + 4 for part in (*call.nodes, *call.origins, *call.items))
    size += sum(len(name) + len(digest) + 6 for name, digest in call.refs.items())
    size += sum(len(name) + len(how) + len((error or "").encode()) + 10 for name, (how, error) in call.lost.items())
    return size + (len(str(call.answer).encode()) if call.answer is not None else 0)
