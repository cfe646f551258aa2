"""Makes calls of a run early, as its speculator decides, and offers real calls
what these have given.

No end of such a call is an event of the scheduler, and none fails the run. Their ends
come in the same queue as those of real calls, so that the speculator hears of both in the
order in which they came.
"""

import asyncio
from collections.abc import Callable, Sequence

from temporalio import workflow

from sennit.workflows.messages import contracts
from sennit.workflows.messages.activity_options import prefetch_options
from sennit.workflows.messages.contracts import AskedCall, NodeReply, PrefetchReply
from sennit.workflows.messages.node_calls import NodeCall, PrefetchCall
from sennit.workflows.plan.figures.speculated import Speculated
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.language.summary import for_bar
from sennit.workflows.plan.scheduling.events import Decision, Event, NodeEnded, PlanReplaced
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.speculation.follower import PastSpeculation, Speculation
from sennit.workflows.plan.speculation.speculator import Begin, Choice, EarlyCall, Speculator

PREFETCH_ID = "run:early"
"""What the ids of these activities begin with: they belong to no node."""
GIVEN_UP = "nothing needs it any more, or real work needs its place"
NodeCallOf = Callable[[int], NodeCall]
"""Gives what an activity needs of the unit behind which, or for which, a call is made early."""
Handle = asyncio.Task[PrefetchReply]


class EarlyCalls:
    """The calls of one run that are made early. `ended` is called with the number of each
    that has come to its end.
    """

    def __init__(
        self, speculation: Speculation, state: RunState, ended: Callable[[int], None]
    ) -> None:
        self.speculation = speculation
        self._state = state
        self._ended = ended
        self._speculator = Speculator(speculation)
        self._handles: dict[int, Handle] = {}
        self._choices: list[Choice] = []
        self._offered: dict[tuple[int, int], None] = {}
        self._chain = workflow.info().run_id
        self._was_reset = False
        self.took: dict[int, int] = {}
        """How long the calls took that were taken over, by the units that have taken them over."""

    def go_on(self, past: PastSpeculation) -> None:
        """Count on from where the last run of the chain has stopped. Its early calls
        are not used any more.
        """
        self._speculator.go_on(past)

    @property
    def past(self) -> PastSpeculation:
        """What the run that goes on from here has to know."""
        return self._speculator.past

    @property
    def figures(self) -> Speculated | None:
        """What speculation has come to so far; None if nothing was called early."""
        return self._speculator.figures

    def reset(self) -> None:
        """The run was reset: what was called early before that may be older than writes which
        the run has forgotten. This decides no command, because a replay may learn of the
        reset in another task.
        """
        self._was_reset = True

    def before(self, event: Event) -> None:
        """Take that the scheduler is about to take an event."""
        self._choices += self._speculator.before(self._state, event)

    def after(self, event: Event, reply: NodeReply | None, decisions: Sequence[Decision]) -> None:
        """Take what the scheduler has decided on an event."""
        if isinstance(event, NodeEnded):
            self._note_use(event, reply)
        elif isinstance(event, PlanReplaced):  # whose units have the same numbers
            self._offered.clear()
            self.took.clear()
        self._choices += self._speculator.after(self._state, event, decisions)

    def asked(self, calls: Sequence[AskedCall], now: int) -> None:
        """Take that models have asked for calls, in replies that still come."""
        for call in calls:
            unit = self._state.find(call.node)
            if unit is not None and self._state.units[unit].generation == call.generation:
                self._choices += self._speculator.asked(
                    self._state, unit, call.tool, call.arguments, now
                )

    def fields_of(self, unit: int) -> dict[str, tuple[str, ...]]:
        """Return what the call of a unit that starts now is told: a model's, of which calls the run
        wants to know while the reply comes; a tool's, which early calls it may use.
        """
        if self._state.kind_of(unit) == "llm":
            return {"early_tools": self._speculator.wanted(self._state)}
        return {"early": self.offer(unit)}

    def offer(self, unit: int) -> tuple[str, ...]:
        """Return the names of the early calls whose outputs a call that starts now may use."""
        if self._was_reset:
            return ()
        numbers = self._speculator.usable(self._state, unit, self._state.now)
        if numbers:
            self._offered[unit, self._state.units[unit].generation] = None
        return tuple(map(self._name, numbers))

    def take_end(self, number: int) -> Usage:
        """Take the end of an early call, and return what it has used. What follows it is begun
        by `follow`, once that is counted.
        """
        handle = self._handles.pop(number)
        reply = PrefetchReply(problem="it did not come to its end")
        if not handle.cancelled() and handle.exception() is None:
            found = handle.result()
            if isinstance(found, PrefetchReply):
                reply = found
        self._speculator.ended(number, reply.usage, has_output=not reply.problem)
        return reply.usage

    def follow(self, number: int) -> None:
        """Go on behind an early call that has ended."""
        self._choices += self._speculator.after_early(self._state, number)

    def carry_out(self, call_of: NodeCallOf) -> None:
        """Begin and cancel what was chosen. What was dropped before it has begun does not begin."""
        choices, self._choices = self._choices, []
        for choice in choices:
            if isinstance(choice, Begin):
                if choice.call.number in self._speculator.live:
                    self._begin(choice.call, call_of)
            elif choice.number in self._handles:
                self._handles[choice.number].cancel(GIVEN_UP)

    def give_up(self) -> None:
        """Cancel what runs."""
        for handle in self._handles.values():
            handle.cancel(GIVEN_UP)

    def _note_use(self, event: NodeEnded, reply: NodeReply | None) -> None:
        """Count what a real call has made of what it was offered."""
        key = (event.unit, event.generation)
        if key not in self._offered:
            return
        del self._offered[key]
        if reply is None or reply.ref is None:
            return
        began, ended = reply.span
        number = _number(reply.early)
        self._speculator.used_by(event.unit, number, reply.millis, ended - began)
        if number is not None:
            self.took[event.unit] = reply.millis

    def _begin(self, call: EarlyCall, call_of: NodeCallOf) -> None:
        sent = self._call(call, call_of(call.unit))
        summary = for_bar(f"early: {call.tool}")
        options = prefetch_options(call.queue, call.timeout, summary=summary)
        handle: Handle = workflow.start_activity(
            contracts.PREFETCH.name,
            sent,
            activity_id=f"{PREFETCH_ID}~{call.number}",
            result_type=PrefetchReply,
            **options,
        )
        self._handles[call.number] = handle
        self._speculator.has_begun(call.number)
        handle.add_done_callback(lambda _: self._done(call.number, handle))

    def _done(self, number: int, handle: Handle) -> None:
        if not handle.cancelled():
            handle.exception()  # an exception that nobody retrieves would be logged
        self._ended(number)

    def _call(self, call: EarlyCall, node: NodeCall) -> PrefetchCall:
        fields = node.model_dump(
            exclude_unset=True, include=dict.fromkeys(NodeCall.model_fields, True)
        )
        fields |= {"name": self._name(call.number), "tool": call.tool}
        fields |= {"usual": call.millis, "fresh_for": call.fresh_for}
        if call.follower is not None:
            fields |= {"patterns": self.speculation.patterns, "place": call.follower.place}
        if call.first is not None:
            fields["first"] = self._name(call.first.number)
        elif call.follower is not None:
            path = self._state.path(call.unit)
            ref = self._state.units[call.unit].digest or ""
            fields["refs"] = {**node.refs, path: ref}
        elif call.arguments:
            fields["arguments"] = call.arguments
        if call.follower is not None or call.arguments:
            names = map(self._name, self._speculator.alike(call))
            fields["alike"] = tuple(names)
        return PrefetchCall(**fields)

    def _name(self, number: int) -> str:
        return f"{self._chain}/{number}"


def _number(name: str) -> int | None:
    """Return the number of an early call that a reply names. Before the run was reset it
    had another run id, so the rest of the name says nothing: a reply can only name what
    this workflow has offered.
    """
    _, slash, number = name.partition("/")
    if not slash or not number.isdecimal():
        return None
    return int(number)
