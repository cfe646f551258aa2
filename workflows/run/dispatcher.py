"""Starts, follows and cancels the activities of nodes: the one place that touches activity handles.

A workflow task emits at most 500 starts and 1 MiB of them; the rest wait for the next task, because one transaction
holds 4 MiB and a run that breaks that is terminated.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio import workflow

from workflows.messages.activity_options import as_keywords, node_options, working_time
from workflows.messages.contracts import (
    AGENT,
    GATE,
    GROUP,
    JOIN,
    LLM,
    MAP,
    PROGRAM,
    TOOL,
    Call,
    GroupReply,
    NodeCall,
    NodeReply,
    WriteApproval,
)
from workflows.plan.compile.graph import NodeSpec
from workflows.plan.language.limits import limit_fields
from workflows.plan.language.summary import for_bar
from workflows.plan.scheduling.events import NodeEnded, Outcome
from workflows.plan.scheduling.joins import take_ended
from workflows.plan.scheduling.state import ENDED, RUNNING, STATUS_NAMES, SUCCEEDED, RunState
from workflows.run.outcomes import ends_of
from workflows.run.subagent import GIVEN_UP, SUSPENDED, prefix_below, run_subagent
from workflows.run.subagent_status import SubagentStatus

LOSS_CHARACTERS = 300
LOST_CHARACTERS = 100_000
"""How much of the errors of its lost inputs a model or a join gets, of each and of all: one payload holds 2 MiB."""
MOST_SHOWN, LEAST_SHOWN, SHOWN_CHARACTERS = 4_000, 200, 64_000
"""What a person is shown of one question, and of all that wait together: the history keeps it."""
Units = tuple[int, ...]
MOST_STARTS = 500
MOST_BYTES = 1024 * 1024
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

AGAIN = Outcome(attempts=0, again=True)
"""The outcome of a unit that starts again later, as if it had not started."""

Handle = asyncio.Task[GroupReply]
"""What is under way: an activity's handle is a task, and so is a sub-agent with the activities around it."""


@dataclass(slots=True, eq=False)
class InFlight:
    """One activity under way: the units it runs, and in which generations. Suspended, they start again later.

    With `steps` the second unit is the step of a program that follows the first, if that has a value.
    """

    units: Units
    generations: Units
    handle: Handle
    is_suspended: bool = False
    steps: bool = False

    @property
    def keys(self) -> list[tuple[int, int]]:
        return list(zip(self.units, self.generations, strict=True))


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
        epoch: int = 1,
    ) -> None:
        self.epoch = epoch
        self._state = state
        self._run = run
        self._plan = plan
        self._wake = wake
        self._subagent_status = subagents
        self._flights: dict[tuple[int, int], InFlight] = {}
        self._ended: deque[InFlight] = deque()
        self._waiting: deque[tuple[Units, Units, bool, bool]] = deque()
        self._put_back: list[NodeEnded] = []
        self.started = 0
        self.child_defaults: dict[str, Any] = {}
        self.origins: tuple[str, ...] = ()
        self.replans = 0
        self._task = -1
        self._starts = 0
        self._bytes = 0

    def successor(self, state: RunState, plan: str) -> "Dispatcher":
        """Cancel everything and return the dispatcher of the plan that replaces this one."""
        for flight in dict.fromkeys(self._flights.values()):
            flight.handle.cancel(GIVEN_UP)
        other = Dispatcher(state, self._run, plan, self._wake, self._subagent_status, epoch=self.epoch + 1)
        other.child_defaults, other.replans, other.origins = self.child_defaults, self.replans, self.origins
        other._task, other._starts, other._bytes = self._task, self._starts, self._bytes
        return other

    @property
    def busy(self) -> bool:
        """Whether any activity is in flight or waits for the next workflow task."""
        return bool(self._flights or self._waiting or self._ended or self._put_back)

    @property
    def held_up(self) -> bool:
        """Whether starts wait for the next workflow task."""
        return bool(self._waiting)

    def start(self, units: Units, *, asks: bool = False, step: int = -1) -> None:
        """Start these units in one activity when `start_waiting` is called next, or in a later workflow task; with
        `asks` only for their question, else with the `step` of a program behind it.
        """
        units = units if step < 0 else (*units, step)
        self._waiting.append((units, tuple(self._state.generation[unit] for unit in units), asks, step >= 0))

    def start_waiting(self) -> None:
        """Start as many waiting units as this workflow task may."""
        task = workflow.info().get_current_history_length()
        if task != self._task:
            self._task, self._starts, self._bytes = task, 0, 0
        while self._waiting and self._starts < MOST_STARTS and self._bytes < MOST_BYTES:
            units, generations, asks, steps = self._waiting.popleft()
            live = [key for key in zip(units, generations, strict=True) if self._still_wanted(*key)]
            if len(live) == len(units):
                self._start(units[:1] if steps else units, asks, units[1] if steps else -1)
            elif live:  # a member of the group was cancelled meanwhile: the others start alone
                self._put_back += [NodeEnded(*key, AGAIN) for key in live]
                self._wake()

    def _still_wanted(self, unit: int, generation: int) -> bool:
        return self._state.status[unit] == RUNNING and self._state.generation[unit] == generation

    def _start(self, units: Units, asks: bool, following: int = -1) -> None:
        state = self._state
        if following < 0 and not state.is_item(units[0]):
            take_ended(state, units[0])
        call = self._with_limits(self._node_call(units, asks=asks), units[0])
        if following >= 0:
            then = self._with_limits(self._node_call((following,)), following)
            then = then.model_copy(update={"refs": {}, "lost": {}})
            call = call.model_copy(update={"then": then})
        self._starts += 1
        self.started += 1
        self._bytes += weight(call)
        first = units[0]
        spec, item, is_answered = state.spec_of(first), state.is_item(first), call.answered
        kind = "gate" if is_answered else state.kind_of(first)
        contract = GROUP if len(units) > 1 else _CALLS[kind]
        own_work = (item or kind in ("tool", "llm")) and not is_answered
        options = node_options([state.spec_of(unit) for unit in units], item=item, own_work=own_work)
        name = state.address(first) if len(units) == 1 else f"{state.address(first)}+{len(units) - 1}"
        options.setdefault("summary", self._summary(units, name, spec.summary))
        if asks:
            options["summary"] = for_bar(f"{name} asks: {spec.summary.partition(' ')[2]}")
        ident = f"{name}.question" if asks else name
        ident = ident if self.epoch == 1 else f"{ident}@{self.epoch}"  # no two ids of one run are under way at once
        handle: Handle
        if kind == "agent":
            place = name.replace(spec.id, spec.call, 1) if spec.key else name  # its writes are known by that
            home = prefix_below(self._run, place)
            given = {**self.child_defaults, "budget": self._part(first), "run_prefix": home}
            own = name.replace(spec.id, spec.formerly[0], 1) if spec.formerly else name
            handle = asyncio.create_task(run_subagent(call, own, ident, options, given, self._subagent_status))
        else:
            handle = workflow.start_activity(
                contract.name, call, activity_id=ident, result_type=contract.gives, **as_keywords(options)
            )
        self._follow(units if following < 0 else (*units, following), handle, steps=following >= 0)

    def _node_call(self, units: Units, *, asks: bool = False) -> NodeCall:
        plan = self._state.spec_of(units[0]).page or self._plan
        call = node_call(self._state, self._run, plan, units, asks=asks)
        return call.model_copy(update={"origins": self.origins}) if self.origins else call

    def _follow(self, units: Units, handle: Handle, *, steps: bool = False) -> None:
        flight = InFlight(units, tuple(self._state.generation[unit] for unit in units), handle, steps=steps)
        self._flights.update(dict.fromkeys(flight.keys, flight))
        handle.add_done_callback(lambda _: self._done(flight))

    def _part(self, unit: int) -> dict[str, Any] | None:
        """Reserve and return a sub-agent's limits, its part of the rest of the budget; None without a budget."""
        budget = self._state.budget
        if budget is None:
            return None
        return limit_fields(budget.share(unit, self._sharers(unit)))

    def _sharers(self, unit: int) -> int:
        """Return how many sub-agents share the rest of the budget: this one, and those that have no part of it yet."""
        state = self._state
        agents = [each for each, spec in enumerate(state.graph.specs) if spec.kind == "agent" and not spec.tokens]
        others = [each for each in agents if each != unit and state.status[each] not in ENDED]
        return 1 + sum((other, state.generation[other]) not in self._flights for other in others)

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
        if len(units) > 1:
            return " ".join([name, *(self._state.path(unit) for unit in units)])[:120]
        return f"{name} {summary.partition(' ')[2]}"[:120]

    def _done(self, flight: InFlight) -> None:
        if not flight.handle.cancelled():
            flight.handle.exception()  # an exception that nobody retrieves would be logged
        for key in flight.keys:
            self._flights.pop(key, None)
        self._ended.append(flight)
        self._wake()

    def cancel(self, unit: int, generation: int) -> None:
        flight = self._flights.get((unit, generation))
        if flight is not None and not flight.handle.done() and not (flight.steps and unit == flight.units[1]):
            flight.handle.cancel(GIVEN_UP)

    def suspend(self, *, writes: bool) -> None:
        """Put back what waits to start, and cancel what runs, so that it starts again later; writes with `writes`."""
        for units, generations, *_ in self._waiting:
            self._put_back += [NodeEnded(*key, AGAIN) for key in zip(units, generations, strict=True)]
        self._waiting.clear()
        for flight in dict.fromkeys(self._flights.values()):
            if not flight.is_suspended and (writes or not self._write_time(flight)):
                flight.is_suspended = True
                flight.handle.cancel(SUSPENDED)
        if self._put_back:
            self._wake()

    @property
    def longest_write(self) -> int:
        """In how many milliseconds the writes in flight have ended."""
        return max(map(self._write_time, self._flights.values()), default=0)

    def _write_time(self, flight: InFlight) -> int:
        """Return the milliseconds that a write may take, and 0 for all else: a sub-agent waits for its own writes."""
        first = flight.units[0]
        spec, item = self._state.spec_of(first), self._state.is_item(first)
        if spec.effect != "write" or first in self._state.answers or self._state.kind_of(first) == "agent":
            return 0
        return working_time([spec], item=item) // timedelta(milliseconds=1)

    def settled(self) -> list[tuple[NodeEnded, NodeReply | None]]:
        """Return the units that have ended since the last call, in order, each with its reply if there is one."""
        found: list[tuple[NodeEnded, NodeReply | None]] = [(event, None) for event in self._put_back]
        self._put_back.clear()
        while self._ended:
            flight = self._ended.popleft()
            ends = ends_of(flight.handle, 1 if flight.steps else len(flight.units))
            if flight.steps and (len(ends) < 2 or not self._still_wanted(*flight.keys[0])):
                ends[1:] = [(AGAIN, None)]  # it may have read what a person has skipped meanwhile
            if flight.is_suspended:
                spec = self._state.spec_of(flight.units[0])
                ends = [(_again(spec, outcome), None) if outcome.error else (outcome, reply) for outcome, reply in ends]
            found += [
                (NodeEnded(*key, outcome), reply) for key, (outcome, reply) in zip(flight.keys, ends, strict=True)
            ]
        return found

    def renumber(self, move: Callable[[int], int], plan: str) -> None:
        """Follow a plan that has grown: units have new numbers, and later starts belong to the new plan."""
        self._plan = plan
        flights = list(dict.fromkeys(self._flights.values()))
        for flight in (*flights, *self._ended):
            flight.units = tuple(map(move, flight.units))
        self._flights = {key: flight for flight in flights for key in flight.keys}
        self._waiting = deque(
            (tuple(map(move, units)), gens, asks, steps) for units, gens, asks, steps in self._waiting
        )
        self._put_back = [replace(event, unit=move(event.unit)) for event in self._put_back]


def _again(spec: NodeSpec, outcome: Outcome) -> Outcome:
    """Return the outcome of a unit that was cut off and starts again. A model call is charged: for one that was
    cancelled nobody knows what. A sub-agent's next run counts what this one has used.
    """
    if not spec.calls_model:
        return AGAIN
    return replace(AGAIN, usage=None if outcome.error and outcome.error[0] == "Cancelled" else outcome.usage)


def node_call(state: RunState, run: str, plan: str, units: Units, *, asks: bool = False) -> NodeCall:
    """Return what an activity needs to run these units: paths, and the digests of the outputs they read."""
    fields: dict[str, Any] = {"run": run, "plan": plan, "nodes": tuple(state.address(unit) for unit in units)}
    first = units[0]
    spec = state.spec_of(first)
    if first in state.answers:
        return NodeCall(**fields, answer=state.answers[first], answered=True)
    fields |= _asking(state, first, asks)
    if state.is_item(first) or asks or spec.kind not in ("join", "map"):
        fields |= _reads(state, units)
    if spec.inputs:
        fields |= _gathered(state, first, spec, fields.get("refs", {}))
    elif spec.kind == "map" and not state.is_item(first):
        fields["items"] = tuple(state.digest[item] for item in state.items[first])
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
    """Return the extra fields of a join, of a model with `inputs`, or of a program's step."""
    chosen = state.chosen[unit]
    if spec.policy == "any":
        chosen = tuple(node for node in chosen if state.status[node] == SUCCEEDED)
    found: dict[str, Any] = {"refs": refs | {state.path(node): state.digest[node] or "" for node in chosen}}
    if spec.policy in ("settled", "any"):
        taken = dict.fromkeys(chosen)
        read = spec.inputs if spec.policy == "settled" else state.chosen[unit]
        lost = [node for node in read if node not in taken]
        room = min(LOSS_CHARACTERS, LOST_CHARACTERS // max(1, len(lost)))
        found["lost"] = {state.path(node): _loss(state, node, room) for node in lost}
    return found


def _reads(state: RunState, units: Units) -> dict[str, Any]:
    inside = dict.fromkeys(units)
    nodes = dict.fromkeys(node for unit in units for node in state.spec_of(unit).reads if node not in inside)
    if len(units) > 1:
        nodes |= dict.fromkeys(node for unit in units for node in state.spec_of(unit).needs if node not in inside)
    refs = {state.path(node): state.digest[node] or "" for node in nodes if state.status[node] == SUCCEEDED}
    return {"refs": refs} if refs else {}


def _loss(state: RunState, node: int, room: int) -> tuple[str, str | None]:
    note = state.notes.get(node)
    status = STATUS_NAMES[state.status[node]]
    return ("skipped" if status == "pending" else status), (f"{note[0]}: {note[1]}"[:room] if note else None)


def weight(call: NodeCall) -> int:
    """Return roughly how many bytes the command to start this call takes."""
    size = 600 + sum(len(path) + 4 for path in (*call.nodes, *call.origins)) + 44 * len(call.items)
    size += sum(len(name) + len(digest) + 6 for name, digest in call.refs.items())
    size += sum(
        len(name) + len(status) + len((error or "").encode()) + 10 for name, (status, error) in call.lost.items()
    )
    return size + (len(str(call.answer).encode()) if call.answer is not None else 0)
