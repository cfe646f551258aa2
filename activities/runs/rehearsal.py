"""Plays on a run from where it stands, with the run's own scheduler, as far as the
recorded ends of calls reach.

Programs are advanced as the run advances them. A call is never made: its end is looked up in the
run, or in one that it forks, and without a record the call stays open. So the play is what the run
does until it has to make a call. The store of the `runner` is a scratch store: nothing that is
claimed or kept here lasts.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

from sennit.activities.limits import MAX_LOOK_UP_SECONDS
from sennit.activities.nodes.error_mapping import (
    CallFailed,
    OutputRefused,
    ProgramFailed,
    failure,
    message_of,
)
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.nodes.server_time import millis_now
from sennit.activities.storage.artifacts import BodyMissing
from sennit.activities.toolbox.errors import ToolError, UnknownOutcome
from sennit.workflows.messages.contracts import NodeReply, ProgramPage
from sennit.workflows.messages.node_calls import NodeCall, ProgramNodeCall
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.language.conditions import ConditionError
from sennit.workflows.plan.language.facts import FactTooLarge
from sennit.workflows.plan.language.references import BindError
from sennit.workflows.plan.limits import MAX_UNITS
from sennit.workflows.plan.scheduling.call_names import unit_called
from sennit.workflows.plan.scheduling.events import (
    End,
    Event,
    InputsRead,
    NodeEnded,
    Start,
    TimeAdvanced,
)
from sennit.workflows.plan.scheduling.joins import is_open
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.run.outcomes import advance_of, failed_outcome, outcome_of
from sennit.workflows.run.unit_calls import PAID, node_call

_OF_SCRIPT = (CallFailed, ProgramFailed, OutputRefused, BindError)
"""How a script fails by itself, as it would in the run."""
_NOT_RECORDED = (ToolError, BindError, BodyMissing, ConditionError, FactTooLarge)
"""Why a call cannot be looked up: it is for its own activity to say that."""


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run keeps what it stores, and what its activities are told: its plan, the epoch of
    that, and the runs that it forks.
    """

    namespace: str
    run: str
    plan: str
    epoch: int = 1
    origins: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """What its artifacts lie below."""
        return f"{self.namespace}/{self.run}"


class _Begun(NamedTuple):
    """A unit that the scheduler has started, in a generation. It may ask a person first."""

    unit: int
    generation: int
    asks: bool


class Rehearsal:
    """A run that is played on. `called` are the calls that its scripts have made, in order, and
    `started` what the scheduler would have called by now. Of these, `found` has the ends that
    are recorded, and `unknown` and `in_flight` are writes of which nobody knows, or not yet,
    whether they were made.
    """

    def __init__(self, state: RunState, runner: NodeRunner, place: RunPlace) -> None:
        self.state = state
        self.place = place
        self.called: dict[int, None] = {}
        self.started: dict[int, None] = {}
        self.found: dict[int, NodeReply] = {}
        self.unknown: dict[int, str] = {}
        self.in_flight: dict[int, None] = {}
        self.has_ended = False
        self._runner = runner
        self._calls: deque[_Begun] = deque()
        self._advances: deque[_Begun] = deque()
        self._left = _lift_limits(state)

    async def play(self, event: Event) -> None:
        """Take an event, and go on until nothing more is recorded.

        All ends that are recorded are told before a script goes on, as in a run that knows them
        already. Raises InterpreterCrashed, BodyMissing, StoreUnavailable, ScratchFull.
        """
        self._take(event)
        while self._calls or self._advances:
            if not self._calls:
                await self._advance(self._advances.popleft())
                continue
            await self._look_up(self._calls.popleft())
            if not self._calls:
                self._take(TimeAdvanced())

    def _take(self, event: Event) -> None:
        """Have the scheduler take an event, and note what it starts."""
        for decision in step(self.state, event, millis_now()):
            if isinstance(decision, End):
                self.has_ended = True
            if not isinstance(decision, Start):
                continue
            units = decision.units
            if decision.following >= 0:
                units = (*units, decision.following)
            for unit in units:
                begun = _Begun(unit, self.state.units[unit].generation, decision.asks)
                if self.state.kind_of(unit) == "program":
                    self._advances.append(begun)
                else:
                    self._calls.append(begun)
                self.started[unit] = None

    async def _look_up(self, begun: _Begun) -> None:
        """Have a call end if its end is recorded. One that a person confirms first
        stays open all the same.
        """
        unit = begun.unit
        spec = self.state.spec_of(unit)
        if not self._is_wanted(begun):
            return
        call = self._node_call(unit, asks=begun.asks)
        try:
            reply = await self._recorded_end(call)
        except UnknownOutcome as error:
            self.unknown[unit] = message_of(error)
            return
        except _NOT_RECORDED:
            return
        except TimeoutError:
            self.in_flight[unit] = None
            return
        if reply is None or reply.question is not None:
            return
        self.found[unit] = reply
        if not (reply.more or spec.confirms):
            ended = NodeEnded(unit, begun.generation, outcome_of(reply), more=True)
            self._take(ended)

    async def _recorded_end(self, call: NodeCall) -> NodeReply | None:
        """Return the recorded end of a call. Raises TimeoutError for a write that
        may still be under way.
        """
        async with asyncio.timeout(MAX_LOOK_UP_SECONDS):
            return await self._runner.recorded_end(
                call, call.nodes[0], call.refs, run_prefix=self.place.prefix
            )

    async def _advance(self, begun: _Begun) -> None:
        """Make an advance of a program, unless what its script waits for is still open."""
        unit, state = begun.unit, self.state
        if not self._is_wanted(begun):
            return
        waits = state.sessions[unit].waits
        if waits and all(is_open(state.units[node].status) for node in waits):
            return
        self._take(InputsRead(unit))
        call = self._node_call(unit)
        assert isinstance(call, ProgramNodeCall)
        repeats = state.sessions[unit].may_take_over
        call = call.model_copy(update={"repeats": repeats, "left": self._left})
        try:
            reply = await self._runner.advance_alone(
                call, call.nodes[0], call.refs, run_prefix=self.place.prefix
            )
        except _OF_SCRIPT as error:
            outcome = failed_outcome(failure(error, final=True))
            self._take(NodeEnded(unit, begun.generation, outcome))
            return
        ended = NodeEnded(unit, begun.generation, outcome_of(reply))
        if reply.page is None:
            self._take(ended)
        else:
            self._go_on(reply.page, ended)

    def _go_on(self, page: ProgramPage, ended: NodeEnded) -> None:
        """Go on with what an advance has called, as the run does."""
        state, program = self.state, ended.unit
        event, ends = advance_of(state, page, ended)
        for spec in event.calls:
            spec.fills |= spec.kind == "gate" and bool(self.place.origins)
            spec.locks = []
        names = [spec.id for spec in event.calls]
        self._take(event)
        for name in names:
            self.called[unit_called(state, program, name)] = None
        for name, reply in ends:
            self.found[unit_called(state, program, name)] = reply

    def _node_call(self, unit: int, *, asks: bool = False) -> NodeCall:
        place = self.place
        common: dict[str, Any] = {}
        if place.origins:
            common["origins"] = place.origins
        if place.epoch > 1:
            common["epoch"] = place.epoch
        plan = self.state.spec_of(unit).page or place.plan
        return node_call(self.state, place.run, plan, (unit,), asks=asks, **common)

    def _is_wanted(self, begun: _Begun) -> bool:
        """Whether a unit still runs: it may have been given up since it was started."""
        return self.state.runs(begun.unit, begun.generation)


def _lift_limits(state: RunState) -> dict[str, int]:
    """Have nothing hold a call back but what it waits for, and return what the budget has left: a
    call that is taken over costs nothing and holds no lock, and the others are not made.
    """
    budget = state.budget
    left: dict[str, int] = {}
    if budget is not None:
        for name in PAID:
            if name in budget.limits:
                left[name] = budget.left(name)
    state.budget = None
    state.rates = {}
    state.timings = Timings()
    state.window = state.in_flight = MAX_UNITS
    state.draining = False
    for spec in state.graph.specs:
        spec.locks = []
        spec.approval &= not spec.is_program  # nobody needs to approve what is only shown
    return left
