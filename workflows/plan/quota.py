"""The quota of a namespace: how many runs go on at once, what all of them spend in a day,
and who waits in line.

A run that begins asks for a place. What it may spend at most is reserved with the place, and counts
for the day (in UTC) on which the run began. When it ends, the place is free, and only what it has
really used still counts.

Runs get places in the order in which they first asked: a run never passes another one that waits. A
run that asks again gets the same answer, so a lost reply does no harm.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import Field

from sennit.workflows.plan.language.limits import dollars_text
from sennit.workflows.plan.language.text import text_bytes
from sennit.workflows.plan.language.validation_messages import Frozen
from sennit.workflows.plan.limits import MAX_QUOTA_BYTES, MAX_QUOTA_LOOKED_AT

MILLIS_A_DAY: Final = 86_400_000
ENTRY_BYTES: Final = 250
"""What a run takes in the state of the quota at most, beside its workflow id."""


class Spending(Frozen):
    """What a run uses, or may use at most. `cost` is in millionths of a US dollar."""

    tokens: int = Field(default=0, ge=0)
    cost: int = Field(default=0, ge=0)

    def plus(self, other: "Spending") -> "Spending":
        """Return the sum of both."""
        return Spending(tokens=self.tokens + other.tokens, cost=self.cost + other.cost)


class QuotaLimits(Frozen):
    """What the operator lets a namespace have, each limit optional: runs at once, and
    tokens and cost a day.
    """

    runs: int | None = Field(default=None, ge=1)
    tokens_a_day: int | None = Field(default=None, ge=1)
    cost_a_day: int | None = Field(default=None, ge=1)

    def lets(self, runs: int, spending: Spending) -> bool:
        """Whether so many runs may go on at once, and so much may be spent in a day."""
        return (
            _is_within(runs, self.runs)
            and _is_within(spending.tokens, self.tokens_a_day)
            and _is_within(spending.cost, self.cost_a_day)
        )


class PlaceRequest(Frozen):
    """A run that asks for a place. `tokens` and `cost` are what its budget lets it
    spend; None is no limit.
    """

    run: str
    """The id of its workflow."""
    first_run: str
    """The first run id of its chain, by which the quota knows it."""
    tokens: int | None = None
    cost: int | None = None

    @property
    def spending(self) -> Spending:
        """What it may spend at most. A limit that it does not have counts as
        nothing; see `Quota.refusal`.
        """
        return Spending(tokens=self.tokens or 0, cost=self.cost or 0)


class Place(Frozen):
    """A run that goes on, with what is reserved for it, and the day on which it began."""

    run: str
    day: int
    reserved: Spending


class QuotaState(Frozen):
    """A quota as it travels when its workflow continues as new."""

    limits: QuotaLimits = QuotaLimits()
    day: int = 0
    spent: Spending = Spending()
    places: dict[str, Place] = Field(default_factory=dict)
    line: dict[str, PlaceRequest] = Field(default_factory=dict)

    @property
    def reserved(self) -> Spending:
        """What the runs that began on this day and go on may spend at most."""
        return _reserved_on(self.day, self.places)


class PlaceReply(Frozen):
    """The answer to a run that asks for a place. Without one, the run waits, or ends if
    it `can_wait` for none.
    """

    granted: bool = False
    can_wait: bool = True
    reason: str = ""


class Quota:
    """The places of a namespace and the line before them. `day` is always the
    number of the day, in UTC.
    """

    def __init__(self, state: QuotaState) -> None:
        self._limits = state.limits
        self._day = state.day
        self._spent = state.spent
        self._places = dict(state.places)
        self._line = dict(state.line)
        self._called: dict[str, None] = {}
        """Of those who wait, those who were told that there is a place,
        and have not asked since.
        """
        self._next_look = 0
        """The place of the run at which the next look begins, among those that go
        on and those that wait.
        """

    @property
    def state(self) -> QuotaState:
        """The quota as another workflow goes on with it."""
        return QuotaState(
            limits=self._limits,
            day=self._day,
            spent=self._spent,
            places=self._places,
            line=self._line,
        )

    @property
    def is_empty(self) -> bool:
        """Whether no run goes on or waits."""
        return not self._places and not self._line

    @property
    def has_line(self) -> bool:
        """Whether a run waits."""
        return bool(self._line)

    def begin_day(self, day: int) -> None:
        """Count what is spent from nothing, if this is another day."""
        if day != self._day:
            self._day = day
            self._spent = Spending()

    def ask(self, request: PlaceRequest, limits: QuotaLimits) -> PlaceReply:
        """Give a run a place, or a place in the line. The newest `limits` count, for all runs."""
        self._limits = limits
        self._called.pop(request.first_run, None)
        if request.first_run in self._places:
            return PlaceReply(granted=True)
        refusal = self._refusal(request)
        if refusal:
            self._line.pop(request.first_run, None)
            return PlaceReply(can_wait=False, reason=refusal)

        is_new = request.first_run not in self._line
        if is_new and self._bytes() + _entry_bytes(request.run) > MAX_QUOTA_BYTES:
            return PlaceReply(
                can_wait=False, reason=f"{len(self._line):,} runs wait already; start it later"
            )

        # There must be room for those who asked before as well: nobody passes them.
        self._line[request.first_run] = request
        if request not in self._entering():
            ahead = list(self._line).index(request.first_run)
            return PlaceReply(reason=self._why_not_yet(ahead))
        del self._line[request.first_run]
        self._places[request.first_run] = Place(
            run=request.run, day=self._day, reserved=request.spending
        )
        return PlaceReply(granted=True)

    def give_back(self, first_run: str, used: Spending | None) -> None:
        """Free the place of a run that is over, or its place in the line. Without what it
        has `used`, all that was reserved for it counts as spent. A run that the quota does
        not know changes nothing.
        """
        self._line.pop(first_run, None)
        self._called.pop(first_run, None)
        place = self._places.pop(first_run, None)
        if place is not None and place.day == self._day:
            self._spent = self._spent.plus(used if used is not None else place.reserved)

    def to_call(self) -> list[PlaceRequest]:
        """Return the runs of the line for which there is a place now, and note that they are told.
        A run that was told is not returned again before it has asked.
        """
        to_call: list[PlaceRequest] = []
        for request in self._entering():
            if request.first_run not in self._called:
                self._called[request.first_run] = None
                to_call.append(request)
        return to_call

    def next_to_look_at(self) -> dict[str, str]:
        """Return the workflow ids of runs that go on or wait, by their first run ids: so many as
        one look takes. If there are more, the next look begins behind these.
        """
        known: dict[str, Place | PlaceRequest] = {**self._places, **self._line}
        names = list(known)
        if self._next_look >= len(names):
            self._next_look = 0
        in_turn = names[self._next_look : self._next_look + MAX_QUOTA_LOOKED_AT]
        self._next_look += len(in_turn)
        return {first_run: known[first_run].run for first_run in in_turn}

    def _bytes(self) -> int:
        """Return about how many bytes the state has, which travels as one payload."""
        known: Iterable[Place | PlaceRequest] = (*self._places.values(), *self._line.values())
        return sum(_entry_bytes(entry.run) for entry in known)

    def _entering(self) -> list[PlaceRequest]:
        """Return the first runs of the line, as many as there is room for."""
        total = self._spent.plus(_reserved_on(self._day, self._places))
        entering: list[PlaceRequest] = []
        for request in self._line.values():
            total = total.plus(request.spending)
            if not self._limits.lets(len(self._places) + len(entering) + 1, total):
                break
            entering.append(request)
        return entering

    def _refusal(self, request: PlaceRequest) -> str:
        """Return why a run can have no place today whatever ends, "" if it can."""
        tokens_a_day = self._limits.tokens_a_day
        cost_a_day = self._limits.cost_a_day
        if tokens_a_day is not None:
            if request.tokens is None:
                return _without_limit("tokens")
            if self._spent.tokens + request.tokens > tokens_a_day:
                return _used_up(
                    f"{self._spent.tokens:,} of {tokens_a_day:,} tokens", f"{request.tokens:,}"
                )
        if cost_a_day is not None:
            if request.cost is None:
                return _without_limit("cost_usd")
            if self._spent.cost + request.cost > cost_a_day:
                spent = f"{dollars_text(self._spent.cost)} of {dollars_text(cost_a_day)}"
                return _used_up(spent, dollars_text(request.cost))
        return ""

    def _why_not_yet(self, ahead: int) -> str:
        """Return what a run waits for with so many runs before it in the line."""
        going = len(self._places)
        if self._limits.runs is not None and going >= self._limits.runs:
            reason = f"{going:,} of {self._limits.runs:,} runs of the namespace go on"
        elif ahead:
            reason = "the runs that asked before have not begun yet"
        else:
            reason = "the runs that go on may still spend what is left of the day"
        if ahead:
            noun = "run waits" if ahead == 1 else "runs wait"
            reason += f", and {ahead:,} {noun} before this one"
        return reason


def _reserved_on(day: int, places: Mapping[str, Place]) -> Spending:
    """Return what the runs of these places that began on a day may spend at most."""
    total = Spending()
    for place in places.values():
        if place.day == day:
            total = total.plus(place.reserved)
    return total


def _entry_bytes(run: str) -> int:
    return ENTRY_BYTES + text_bytes(run)


def _is_within(amount: int, limit: int | None) -> bool:
    return limit is None or amount <= limit


def _without_limit(name: str) -> str:
    return (
        f"the namespace has a quota of {name} a day, and this run has no limit of them: start it "
        f"with --budget {name}=N, or have the operator set SENNIT_BUDGET_DEFAULT"
    )


def _used_up(spent: str, asked: str) -> str:
    return (
        f"the runs of the namespace have used {spent} today, and this one may use {asked}: give it "
        "a smaller --budget, or start it after midnight UTC"
    )
