"""What has happened in a run, event by event, each with a number that it keeps: what the
query `events` answers.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.message import message_bytes
from sennit.workflows.messages.result import BlockedOn, RunStatus
from sennit.workflows.messages.updates import Update
from sennit.workflows.messages.views import EventKind, EventPage, RunEvent
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.admission import asks
from sennit.workflows.plan.scheduling.completion import REJECTED
from sennit.workflows.plan.scheduling.events import Question
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import PENDING, RUNNING, STATUS_NAMES
from sennit.workflows.views.nodes import error_at_place

PAGE_EVENTS, PAGE_BYTES = 500, 400_000
LOG_CHARACTERS = 64 << 10
"""Of all logs of a run together, which each payload of the run takes."""
_KINDS: Mapping[str, EventKind] = {
    "running": "started",
    "succeeded": "succeeded",
    "failed": "failed",
    "skipped": "skipped",
    "cancelled": "cancelled",
}


class RunLog:
    """What the scripts of a run have logged, by advance, so that an advance that is made again says
    it once. The last of it is kept; `cut` counts the lines that are not.
    """

    def __init__(
        self, advances: Mapping[str, tuple[str, ...]] = MappingProxyType({}), cut: int = 0
    ) -> None:
        self.advances = dict(advances)
        self.cut = cut
        self._size = 0
        for lines in self.advances.values():
            self._size += _characters(lines)

    def note(self, name: str, lines: tuple[str, ...]) -> None:
        """Keep what the advance of this name has logged, in the place of what it logged
        when it was made before.
        """
        self._size -= _characters(self.advances.pop(name, ()))
        if lines:
            self.advances[name] = lines
            self._size += _characters(lines)

        # The oldest lines go first.
        while self._size > LOG_CHARACTERS:
            oldest = next(iter(self.advances))
            line, *rest = self.advances[oldest]
            self._size -= len(line)
            self.cut += 1
            if rest:
                self.advances[oldest] = tuple(rest)
            else:
                del self.advances[oldest]

    def lines(self, state: RunState) -> tuple[str, ...]:
        """Return what is kept, without what scripts have logged in advances that are
        made again, or in others.
        """
        names: dict[str, None] = {}
        for program, session in state.sessions.items():
            names[state.path(program)] = None
            for advance in session.advances:
                names[advance.session] = None

        shown = []
        if self.cut:
            noun = "line" if self.cut == 1 else "lines"
            shown.append(f"({self.cut:,} earlier {noun} of the log cut)")
        for name, lines in self.advances.items():
            if name in names:
                shown += lines
        return tuple(shown)


def _characters(lines: Sequence[str]) -> int:
    return sum(map(len, lines))


class Moment(NamedTuple):
    """When something is noted: the length of the history at the workflow task that does
    it, and the time in ms.
    """

    history: int
    at: int


class _Entry(NamedTuple):
    number: int
    moment: Moment
    kind: EventKind
    fields: dict[str, Any]


class Journal:
    """The events of one run of a chain, beginning with number `first`.

    It is made of what the run has recorded, and a replay makes it again, so that numbers never
    change. Each event knows the workflow task that has noted it: one that the history does not have
    yet is not told (see `page`).
    """

    def __init__(self, clock: Callable[[], Moment], first: int = 1) -> None:
        self.first = self.next = first
        self._clock = clock
        self._entries: list[_Entry] = []
        self._graph: Graph | None = None
        self._nodes = 0
        self._noted: dict[int, tuple[str, int]] = {}
        self._asked: dict[tuple[str, str, str], None] = {}

    def note(self, kind: EventKind, moment: Moment | None = None, **fields: Any) -> None:
        """Add an event, of this moment unless it is given. Fields that are empty are left out."""
        moment = moment or self._clock()
        details = {name: value for name, value in fields.items() if value not in ("", None, 0)}
        entry = _Entry(self.next, moment, kind, details)
        self._entries.append(entry)
        self.next += 1

    def restore(self, state: RunState) -> None:
        """Go on with nodes whose events the run before this one of the chain has noted."""
        self._graph = state.graph
        self._nodes = len(state.graph.specs)
        self._noted = {unit: _standing(state, unit) for unit in state.units}

    def reset(self) -> None:
        """Note that the run was reset. The note has a number that no event can have which the reset
        took back: the milliseconds of the clock, and no run has an event each.

        What the run noted before this call keeps the numbers that it had before the reset.
        """
        moment = self._clock()
        self.next = max(self.next, moment.at)
        self.note("reset", moment)

    def observe(
        self, state: RunState, replies: Mapping[int, NodeReply], reply: NodeReply | None = None
    ) -> None:
        """Note what a step of the scheduler has made of the nodes, at once: the next step
        forgets it. `reply` is that of the activity whose end was the step's event;
        `replies` may not keep it.
        """
        self._note_plan(state.graph)
        moment = self._clock()
        for unit in sorted(state.touched):
            standing = _standing(state, unit)
            has_changed = self._noted.get(unit) != standing
            self._noted[unit] = standing
            if has_changed or _starts_again(state, unit):
                known = (reply, replies.get(unit))
                self._note_status(state, unit, known, moment)

    def _note_plan(self, graph: Graph) -> None:
        """Note a plan that is new, and nodes that were added to the one there was."""
        if graph is not self._graph:
            status = ""
            if self._graph is not None:
                status = "replaced"
            self.note("planned", nodes=len(graph.specs), status=status)
            self._noted.clear()
        elif len(graph.specs) > self._nodes:
            added = len(graph.specs) - self._nodes
            self.note("planned", nodes=added)
        self._graph = graph
        self._nodes = len(graph.specs)

    def _note_status(
        self, state: RunState, unit: int, replies: Sequence[NodeReply | None], moment: Moment
    ) -> None:
        spec = state.spec_of(unit)
        kind = _KINDS.get(_status_of(state, unit))
        if kind is None:
            return
        if kind == "started" and asks(state, unit):
            return
        if kind == "started":
            text = spec.summary
        elif kind == "succeeded":
            text = _preview(state, unit, replies)
        else:
            text = error_at_place(state, unit)
        generation = state.units[unit].generation
        if generation == 1:  # as usual, so that the event does not say it
            generation = 0
        self.note(kind, moment, node=state.path(unit), text=text, generation=generation)

    def ask(self, items: Sequence[BlockedOn]) -> bool:
        """Note what the run waits for now and did not wait for at the last call. Return whether
        that has changed, so that this workflow task must write a command: a replay may join one
        without a command with the next, and then sees only what that one left.
        """
        open_now: dict[tuple[str, str, str], None] = {}
        for item in items:
            digest = str(item.example.get("digest", ""))
            key = (item.node, item.why, digest)
            open_now[key] = None
            if key not in self._asked:
                self.note("asked", node=item.node, text=item.question, asks=item)
        has_changed = open_now.keys() != self._asked.keys()
        self._asked = open_now
        return has_changed

    def answered(self, update: Update) -> None:
        """Note an update that the run has accepted, and with whom it came."""
        self.note(
            "answered",
            node=getattr(update, "node", ""),
            text=getattr(update, "reason", ""),
            update=update.name,
            by=getattr(update, "by", ""),
            digest=getattr(update, "digest", ""),
        )

    def ruled(self, state: RunState, unit: int, question: Question) -> None:
        """Note that a rule of the operator has decided about a write, if it has: in
        the place of a person.
        """
        if unit not in state.units:  # it has been dropped meanwhile
            return
        approval = state.units[unit].approved
        update = ""
        is_by_rule = approval is not None and approval.rule == question.rule
        is_rejected = state.notes.get(unit, ("",))[0] == REJECTED
        if question.ruling == "allow" and is_by_rule:
            update = "approve"
        elif question.ruling == "refuse" and is_rejected:
            update = "reject"
        if update:
            self.note(
                "answered",
                node=state.path(unit),
                text=question.text,
                update=update,
                rule=question.rule,
                digest=question.token(),
            )

    def ended(self, status: RunStatus, problem: str = "") -> None:
        """Note the end of the run."""
        self.note("ended", text=problem, status=status)

    def page(self, after: int, through: int | None = None) -> EventPage:
        """Return the events that follow number `after`, of the workflow tasks that the history has:
        those up to event `through` of it, with which the last one was completed. A query may know
        more, but not yet for certain.
        """
        known = len(self._entries)
        if through is not None:
            known = bisect_right(self._entries, through, key=lambda entry: entry.moment.history)
        start = bisect_right(self._entries, after, key=lambda entry: entry.number)
        end = min(known, start + PAGE_EVENTS)

        # A page has at least one event, however long that is.
        events: list[RunEvent] = []
        size = 0
        for entry in self._entries[start:end]:
            at = entry.moment.at / 1000
            event = RunEvent(number=entry.number, at=at, kind=entry.kind, **entry.fields)
            size += message_bytes(event, exclude_defaults=True)
            if events and size > PAGE_BYTES:
                break
            events.append(event)

        following = self.next
        if known < len(self._entries):
            following = self._entries[known].number
        is_over = known > 0 and self._entries[known - 1].kind == "ended"
        return EventPage(first=self.first, following=following, ended=is_over, events=tuple(events))


def _preview(state: RunState, unit: int, replies: Sequence[NodeReply | None]) -> str:
    """Return the preview of the reply that a unit has as its output, not of one of an earlier
    generation, or of one from before its fallback; "" if none of them is.
    """
    for reply in replies:
        if reply is not None and reply.ref == state.units[unit].digest:
            return reply.preview
    return ""


def _standing(state: RunState, unit: int) -> tuple[str, int]:
    """Return the status and the generation of a unit: an event tells of each change."""
    return _status_of(state, unit), state.units[unit].generation


def _status_of(state: RunState, unit: int) -> str:
    """Return the status as it is told: a map whose items have ended still runs."""
    status = state.units[unit].status
    if status == PENDING and unit in state.items:
        return "running"
    return STATUS_NAMES[status]


def _starts_again(state: RunState, unit: int) -> bool:
    """Whether a unit runs that was made pending in the same step, for another reason than
    to put a map together.
    """
    if state.units[unit].status != RUNNING or unit in state.items:
        return False
    return state.touched[unit]
