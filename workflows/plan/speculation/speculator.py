"""Which calls a run makes early, and which of these a real call may use: decided by the
order of the run's events.

The speculator stands beside the scheduler. It reads the state behind each step and changes nothing
of it, so that a run decides the same with and without it. It reads no clock to decide what starts:
a choice is made once, for one end, with the state as it is behind that end, and never again. So it
does not depend on how workflow tasks were joined.

An early call that a model has asked for may be the first of a pair too, once it has given
something. So calls make chains, such as search, open, extract, while the reply that asks for the
search still comes. No chain begins behind a call that only a pattern expects: where calls follow
the patterns less often than expected, most of it would be waste.

No output is used that could be stale. A call starts early only while no write is under way that
it might see, and what has started is dropped when such a write begins. Only the age of an
output is a matter of time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.figures.speculated import Speculated, speculated
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.scheduling.events import (
    Decision,
    Event,
    LedgerRead,
    NodeEnded,
    PlanReplaced,
    ProgramEdited,
    RunStarted,
    Start,
    TimeAdvanced,
)
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import ENDED, PENDING, RUNNING, SUCCEEDED
from sennit.workflows.plan.speculation.follower import (
    EarlyTool,
    Follower,
    PastSpeculation,
    ReadCall,
    Speculation,
)
from sennit.workflows.plan.speculation.limits import (
    MAX_ASKED,
    MAX_LIVE,
    MAX_WALKED,
    SHARE,
    SLOW_MILLIS,
    THRESHOLD,
)
from sennit.workflows.plan.speculation.writes import (
    ANYTHING,
    WritesUnderWay,
    conflicts,
    resource_kinds,
)


@dataclass(slots=True, eq=False)
class EarlyCall:
    """A call that is made early: of what is expected behind the end of `unit`, of `unit` itself, or
    of what the model of `unit` has asked for in a reply that still comes. One of a chain is
    expected behind the early call `first`, and has the unit of that.
    """

    number: int
    unit: int
    generation: int
    tool: str
    kind: str
    """The kind of resource that it reads."""
    fresh_for: int
    millis: int
    """How long it usually takes; 0 where nobody knows."""
    queue: str
    timeout: int
    """How long it may take, in milliseconds."""
    follower: Follower | None = None
    first: "EarlyCall | None" = None
    """The early call from which its arguments are made, in place of those of the unit."""
    arguments: str = ""
    """The artifact with the arguments that the model has written."""
    probability: float = 1.0
    """With which one of a chain is expected. A model has asked for the first call of
    the chain, which is certain.
    """
    depth: int = 1
    """How many calls were made early one behind the other, up to this one."""
    status: Literal["chosen", "running", "ready", "over"] = "chosen"
    """Real calls that begin in the same moment do not wait for one that is only chosen. One that
    was used, or has failed, is over. One that was dropped keeps the status that it had.
    """
    began: int = 0
    """When it began. One of a chain is as old as the first call of that."""
    chained: list["EarlyCall"] = field(default_factory=list)
    """The calls that were begun behind this one."""


@dataclass(slots=True)
class Begin:
    """Make a call early."""

    call: EarlyCall


@dataclass(slots=True)
class Drop:
    """Cancel a call that runs early: what it gives is not used."""

    number: int


Choice = Begin | Drop


@dataclass(slots=True)
class Speculator:
    """Decides what one run calls early. `live` has the calls that run or whose outputs may
    still be used, by number.
    """

    speculation: Speculation
    made: int = 0
    hits: int = 0
    missed: int = 0
    saved: int = 0
    used: Usage = NO_USAGE
    writes: WritesUnderWay = field(default_factory=WritesUnderWay)
    live: dict[int, EarlyCall] = field(default_factory=dict)
    is_stopped: bool = False
    """Whether the run was reset: it may have written what it does not remember, so that
    nothing would be used.
    """
    _chosen_for: dict[tuple[int, int], None] = field(default_factory=dict)
    _undecided: list[int] = field(default_factory=list)
    """Units that have ended, and for whose followers the choice comes behind
    the starts of this step.
    """
    _taken_over: dict[int, EarlyCall] = field(default_factory=dict)
    """The early calls whose outputs undecided units have taken over."""
    _asked: dict[tuple[int, int], int] = field(default_factory=dict)
    """How many calls of each model call were made while its reply still came."""

    def before(self, state: RunState, event: Event) -> list[Choice]:
        """Return what is to be done before the scheduler takes an event."""
        # Behind the ends of one task comes an event that starts what they have made ready.
        if isinstance(event, TimeAdvanced):
            return []
        return self._choose(state)

    def after(self, state: RunState, event: Event, decisions: Sequence[Decision]) -> list[Choice]:
        """Return what is to be done once the scheduler has taken an event, and has decided this."""
        choices: list[Choice] = []
        if isinstance(event, NodeEnded):
            self.writes.end(event)
        elif isinstance(event, LedgerRead):
            self.is_stopped = True
            choices += self._drop_all()
        elif isinstance(event, PlanReplaced):
            choices += self._drop_all()
            self.writes.leave_units()
            self._chosen_for.clear()
            self._asked.clear()
        elif isinstance(event, ProgramEdited):
            choices += self._drop_all()
        choices += self._give_way_to_writes(state, decisions)
        choices += self._give_way_to_work(state)

        self._note(state, event)
        is_last = not (isinstance(event, NodeEnded) and event.more)
        if is_last:
            choices += self._choose(state)
        return choices

    def wanted(self, state: RunState) -> tuple[str, ...]:
        """Return the tools whose calls may begin while the reply that asks for them still comes;
        none where no call may, so that nobody tells of them.
        """
        if self.is_stopped or not self._most_at_once(state):
            return ()
        if not self._is_within_budget(state):
            return ()
        return tuple(tool.name for tool in self.speculation.tools)

    def asked(
        self, state: RunState, unit: int, name: str, arguments: str, now: int
    ) -> list[Choice]:
        """Return what is to be done now that the model of a unit has asked for a call, in a
        reply that still comes.
        """
        tool = self._early_tool(name)
        if tool is None or not state.has_status(unit, RUNNING):
            return []
        if state.kind_of(unit) != "llm":
            return []
        call = _known(state, unit, name, tool)
        call.arguments = arguments
        # A model that is asked again asks for the same calls again.
        if self._is_made(call):
            return []
        count = self._asked.get((unit, call.generation), 0)
        if count >= MAX_ASKED or not self._may_begin(state, call):
            return []
        self._asked[unit, call.generation] = count + 1
        return [self._begin(call, now)]

    def after_early(self, state: RunState, number: int) -> list[Choice]:
        """Return what is to be done now that an early call has ended: the calls that usually
        follow it begin, if it is still to be used.
        """
        first = self.live.get(number)
        if first is None or not self._leads_on(state, first):
            return []
        choices: list[Choice] = []
        for follower in self._expected_behind(first.tool):
            probability = first.probability * follower.probability
            if probability < THRESHOLD:
                continue
            call = _following(state, first.unit, follower)
            call.probability = probability
            call.first = first
            call.depth = first.depth + 1
            # It takes a free place: the outputs that are there are of calls that are surer.
            has_place = len(self.live) < MAX_LIVE
            if has_place and self._may_begin(state, call):
                first.chained.append(call)
                choices.append(self._begin(call, first.began))
        return choices

    def alike(self, call: EarlyCall) -> tuple[int, ...]:
        """Return the other calls of the same tool that run or may still be used: one of
        them may be the same call.
        """
        numbers: list[int] = []
        for number, other in self.live.items():
            if other.tool == call.tool and number != call.number:
                numbers.append(number)
        return tuple(numbers)

    def _early_tool(self, name: str) -> EarlyTool | None:
        for tool in self.speculation.tools:
            if tool.name == name:
                return tool
        return None

    def _is_made(self, call: EarlyCall) -> bool:
        """Whether a call that runs or may still be used is one that the same model has asked
        for in the same words.
        """
        for other in self.live.values():
            is_alike = other.tool == call.tool and other.arguments == call.arguments
            if other.unit == call.unit and is_alike:
                return True
        return False

    def has_begun(self, number: int) -> None:
        """Take that a call is under way which was to begin early."""
        self.live[number].status = "running"

    def ended(self, number: int, usage: Usage, *, has_output: bool) -> None:
        """Take the end of a call that was made early."""
        self.used = self.used.plus(usage)
        call = self.live.get(number)
        if call is None:
            return
        if has_output:
            call.status = "ready"
        else:
            call.status = "over"
            del self.live[number]

    def usable(self, state: RunState, unit: int, now: int) -> tuple[int, ...]:
        """Return which early calls a real call that starts now may use, if they are the same
        call: by their numbers.
        """
        spec = state.spec_of(unit)
        is_first = state.units[unit].generation == 1 and not state.units[unit].attempts
        if not is_first or not _is_speculative(state, unit) or self.is_stopped:
            return ()
        found = []
        for call in self.live.values():
            is_fresh = now - call.began <= call.fresh_for
            if call.tool == spec.tool and call.status != "chosen" and is_fresh:
                found.append(call.number)
        return tuple(found)

    def used_by(self, unit: int, number: int | None, millis: int, took: int) -> None:
        """Take that the real call of a unit has used an early one, which has taken `millis`, in
        the time `took`; or none of those that it was offered.
        """
        if number is None:
            self.missed += 1
            return
        call = self.live.pop(number, None)
        if call is not None:
            call.status = "over"
            self._taken_over[unit] = call
            self.hits += 1
            self.saved += max(0, millis - took)

    @property
    def figures(self) -> Speculated | None:
        """What speculation has come to; None if nothing was called early."""
        return speculated(self.made, self.hits, self.missed, self.saved)

    @property
    def past(self) -> PastSpeculation:
        """What the run that goes on from here has to know."""
        figures = Speculated(
            calls=self.made, hits=self.hits, missed=self.missed, saved_ms=self.saved
        )
        return PastSpeculation(
            **dict(figures), used=self.used, unsure_writes=self.writes.all_kinds()
        )

    def go_on(self, past: PastSpeculation) -> None:
        """Count on from where the last run of the chain has stopped. Its early calls
        are not used any more.
        """
        self.made = past.calls
        self.hits = past.hits
        self.missed = past.missed
        self.saved = past.saved_ms
        self.used = past.used
        self.writes.take_over(past.unsure_writes)

    # what is given up

    def _drop_all(self) -> list[Choice]:
        dropped = list(self.live.values())
        self.live.clear()
        self._undecided.clear()
        self._taken_over.clear()
        return _cancelled(dropped)

    def _give_way_to_writes(self, state: RunState, decisions: Sequence[Decision]) -> list[Choice]:
        """Drop what a write that begins may change, or needs the lock of."""
        written: dict[str, None] = {}
        for decision in decisions:
            if isinstance(decision, Start):
                written |= dict.fromkeys(self.writes.begin(state, decision))
        kinds = tuple(written)
        stale = [call for call in self.live.values() if conflicts(call.kind, kinds)]
        for call in stale:
            del self.live[call.number]
        return _cancelled(stale)

    def _give_way_to_work(self, state: RunState) -> list[Choice]:
        """Drop what runs in a place that real work needs: the latest first."""
        running = self._running
        room = max(0, state.window - state.activities)
        if state.ended or state.draining:
            room = 0
        surplus = running[room:]
        for call in surplus:
            del self.live[call.number]
        return _cancelled(surplus)

    # what is chosen

    def _note(self, state: RunState, event: Event) -> None:
        """Note the units behind which something may be called early."""
        if isinstance(event, RunStarted):
            self._undecided.append(-1)
        if not isinstance(event, NodeEnded):
            return
        key = (event.unit, event.generation)
        if state.has_status(event.unit, SUCCEEDED) and key not in self._chosen_for:
            self._chosen_for[key] = None
            self._undecided.append(event.unit)
        elif event.unit not in self._undecided:
            # Its end counts for nothing, so that nothing will be chosen behind it.
            self._taken_over.pop(event.unit, None)

    def _choose(self, state: RunState) -> list[Choice]:
        """Return the calls that begin early behind the units that have ended."""
        choices: list[Choice] = []
        ended = self._undecided
        self._undecided = []
        for unit in ended:
            expected: list[EarlyCall] = []
            if unit >= 0:
                expected += self._followers(state, unit)
            expected += self._branches(state, unit)
            self._taken_over.pop(unit, None)
            for call in expected:
                if self._may_begin(state, call):
                    choices.append(self._begin(call, state.now))
        return choices

    def _begin(self, call: EarlyCall, began: int) -> Begin:
        """Return the choice to make a call, which has its number from now on."""
        self._make_room()
        self.made += 1
        call.number = self.made
        call.began = began
        self.live[call.number] = call
        return Begin(call)

    def _followers(self, state: RunState, unit: int) -> list[EarlyCall]:
        """Return the calls that usually follow one that has ended, where a model or a
        script decides what follows.
        """
        spec = state.spec_of(unit)
        if state.is_item(unit) or unit in state.taken_over:
            return []
        if not _leads_to_a_choice(state, unit):
            return []
        expected: list[EarlyCall] = []
        for follower in self._expected_behind(spec.tool):
            if self._was_made_behind(self._taken_over.get(unit), follower):
                continue
            expected.append(_following(state, unit, follower))
        return expected

    def _expected_behind(self, tool: str) -> list[Follower]:
        """Return what usually follows a call of a tool, and is worth a call of its own."""
        expected: list[Follower] = []
        for follower in self.speculation.followers:
            is_worth_it = follower.probability >= THRESHOLD and follower.millis >= SLOW_MILLIS
            if follower.first == tool and is_worth_it:
                expected.append(follower)
        return expected

    def _was_made_behind(self, first: EarlyCall | None, follower: Follower) -> bool:
        """Whether this follower was made behind an early call already. One that the run has
        dropped counts as not made.
        """
        if first is None:
            return False
        for call in first.chained:
            is_kept = call.number in self.live or call.status == "over"
            if call.follower == follower and is_kept:
                return True
        return False

    def _leads_on(self, state: RunState, call: EarlyCall) -> bool:
        """Whether calls may be made behind an early one: it has an output, it is in a chain, and
        the model that decides on what follows it is at work.
        """
        if call.status != "ready" or call.depth >= self.speculation.chain:
            return False
        # A chain begins with a call that the model has asked for.
        is_asked = bool(call.arguments)
        if not is_asked and call.first is None:
            return False
        if not state.has_generation(call.unit, call.generation):
            return False
        return state.has_status(call.unit, RUNNING, SUCCEEDED)

    def _branches(self, state: RunState, unit: int) -> list[EarlyCall]:
        """Return the calls that wait for nothing but a decision, since this unit has given what
        they read; with -1, those that read nothing.
        """
        waiting: list[int] = []
        if unit < 0:
            for node, spec in enumerate(state.graph.specs):
                if not spec.reads:
                    waiting.append(node)
        elif not state.is_item(unit):
            for node in state.graph.consumers[unit]:
                if unit in state.graph.specs[node].reads:
                    waiting.append(node)
        return [_early(state, node) for node in waiting if _waits_for_a_decision(state, node)]

    def _may_begin(self, state: RunState, call: EarlyCall) -> bool:
        """Whether there is an idle place for a call now, and what it reads is not written."""
        is_over = state.ended or state.draining or state.parked or self.is_stopped
        if is_over or self.writes.conflict(call.kind):
            return False
        running = len(self._running)
        if running >= self._most_at_once(state):
            return False
        if state.activities + running >= state.window:
            return False
        return self._is_within_budget(state)

    def _most_at_once(self, state: RunState) -> int:
        """Return how many calls may run early at once: none in a run with a narrow window."""
        return min(MAX_LIVE, state.window // SHARE)

    def _is_within_budget(self, state: RunState) -> bool:
        """Whether speculation may use more of the budget. Nobody knows what a
        call of a tool will cost.
        """
        budget = state.budget
        if budget is None:
            return True
        if "cost" in budget.limits:
            return False
        own = {"tokens": self.used.tokens, "calls": self.used.calls, "nodes": self.made + 1}
        for name, limit in budget.limits.items():
            taken = getattr(budget.spent, name) + getattr(budget.held, name)
            is_nearly_used_up = taken * SHARE >= limit * (SHARE - 1)
            if is_nearly_used_up or own.get(name, 0) * SHARE > limit:
                return False
        return True

    def _make_room(self) -> None:
        """Let go of the oldest output that nothing has used, if there are
        as many as there may be.
        """
        ready = [call for call in self.live.values() if call.status == "ready"]
        if len(self.live) >= MAX_LIVE and ready:
            del self.live[ready[0].number]

    @property
    def _running(self) -> list[EarlyCall]:
        return [call for call in self.live.values() if call.status != "ready"]


def _cancelled(calls: Sequence[EarlyCall]) -> list[Choice]:
    return [Drop(call.number) for call in calls if call.status != "ready"]


def _is_speculative(state: RunState, unit: int) -> bool:
    """Whether a unit is a call that may be made early: of a tool that only reads, and about
    which nobody is asked.
    """
    spec = state.spec_of(unit)
    if state.kind_of(unit) != "tool" or not spec.tool:
        return False
    if spec.effect not in ("pure", "read") or spec.approval:
        return False
    return unit not in state.answers


def _leads_to_a_choice(state: RunState, unit: int) -> bool:
    """Whether a model with tools, or a script, may decide on the next call
    once this one has ended.
    """
    spec = state.spec_of(unit)
    if not _is_speculative(state, unit):
        return False
    if spec.maker >= 0:
        return True
    for node in state.graph.consumers[unit]:
        reader = state.graph.specs[node]
        if reader.kind in ("llm", "program"):
            return True
    return False


def _waits_for_a_decision(state: RunState, node: int) -> bool:
    """Whether a node has all that it reads, and waits for its condition, or for a person. Behind a
    person stand only calls that are `pure`, or whose tools say that they may be made `early`.
    """
    spec = state.graph.specs[node]
    is_waiting = state.units[node].status == PENDING and state.units[node].generation == 1
    if not is_waiting or not _is_speculative(state, node) or spec.is_successor:
        return False
    for source in spec.reads:
        if state.units[source].status != SUCCEEDED:
            return False
    usual = state.timings.millis(spec)
    if usual is not None and usual < SLOW_MILLIS:
        return False
    before = _open_before(state, node)
    if not before:
        return False
    asks = False
    for earlier in before:
        other = state.graph.specs[earlier]
        if _may_write_later(other):  # then the call would only be dropped again
            return False
        if other.kind == "gate" or other.approval:
            asks = True
    if asks:
        return spec.effect == "pure" or spec.early
    return spec.when is not None


def _may_write_later(spec: NodeSpec) -> bool:
    """Whether a node that has not ended may write. A program says so only by
    what its script calls.
    """
    if spec.kind == "program":
        return True
    if spec.kind not in ("tool", "agent", "map"):
        return False
    return any(part.effect == "write" for part in (spec, *spec.stages))


def _open_before(state: RunState, node: int) -> list[int]:
    """Return the nodes that have to end before this one can start; none if they are
    too many to be looked at.
    """
    found: dict[int, None] = {}
    waiting = [node]
    while waiting:
        later = waiting.pop()
        for earlier in (*state.graph.deps[later], *state.graph.specs[later].inputs):
            if state.units[earlier].status not in ENDED and earlier not in found:
                found[earlier] = None
                waiting.append(earlier)
        if len(found) > MAX_WALKED:
            return []
    return list(found)


def _known(state: RunState, unit: int, tool: str, known: ReadCall) -> EarlyCall:
    """Return a call of a tool that is made early behind a unit, by what is known of such calls."""
    return EarlyCall(
        number=0,
        unit=unit,
        generation=state.units[unit].generation,
        tool=tool,
        kind=known.kind,
        fresh_for=known.fresh_for,
        millis=known.millis,
        queue=known.queue,
        timeout=known.timeout,
    )


def _following(state: RunState, unit: int, follower: Follower) -> EarlyCall:
    """Return the call that usually follows one of a unit."""
    call = _known(state, unit, follower.second, follower)
    call.follower = follower
    return call


def _early(state: RunState, node: int) -> EarlyCall:
    """Return the call of a node, as it is made early."""
    spec = state.graph.specs[node]
    return EarlyCall(
        number=0,
        unit=node,
        generation=state.units[node].generation,
        tool=spec.tool,
        kind=_kind(spec),
        fresh_for=spec.fresh_for,
        millis=state.timings.millis(spec) or 0,
        queue=spec.queue,
        timeout=spec.timeout,
    )


def _kind(spec: NodeSpec) -> str:
    """Return the kind of resource that a call reads; one without locks may read anything."""
    kinds = resource_kinds(spec)
    if len(kinds) != 1:
        return ANYTHING
    return kinds[0]
