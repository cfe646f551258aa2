"""Limits on tokens, money, model calls, nodes and the calls that a provider takes in a minute.

A start reserves its estimate, and its end books what it used, in all branches. A start is
allowed if its estimate fits beside what is spent and reserved, or if nothing is reserved and the
limit is not reached yet. A wrong estimate therefore never stalls a run, and a run exceeds a
limit by one call at most.
"""

from dataclasses import astuple, dataclass, field, replace
from typing import Any

from sennit.workflows.plan.compile.forecast import GUESSED_TOKENS
from sennit.workflows.plan.language.limits import Usage, format_amount
from sennit.workflows.plan.scheduling.events import Outcome

UNSEEN = 10
"""How many times a model call may use what it was granted, before the run has seen one: a server
may count otherwise than Sennit, and ignore the limit that it is sent.
"""


@dataclass(slots=True)
class Amounts:
    """Tokens, millionths of a dollar, model calls, nodes."""

    tokens: int = 0
    cost: int = 0
    calls: int = 0
    nodes: int = 0

    @classmethod
    def of(cls, usage: Usage, nodes: int = 0) -> "Amounts":
        """Return what model calls have used, with so many nodes."""
        return cls(usage.tokens, usage.cost, usage.calls, nodes)

    def add(self, other: "Amounts", sign: int = 1) -> None:
        """Add, or with -1 take away."""
        self.tokens += sign * other.tokens
        self.cost += sign * other.cost
        self.calls += sign * other.calls
        self.nodes += sign * other.nodes


@dataclass(slots=True)
class Budget:
    """The limits by the names of `Amounts`, what is spent, and what each
    running unit has reserved.
    """

    limits: dict[str, int] = field(default_factory=dict)
    spent: Amounts = field(default_factory=Amounts)
    reserved: dict[int, Amounts] = field(default_factory=dict)
    held: Amounts = field(default_factory=Amounts)
    late: dict[tuple[int, int], Amounts] = field(default_factory=dict)
    """What cancelled model calls had reserved, by unit and generation, until they
    tell what they have used.
    """
    grants: dict[int, int] = field(default_factory=dict)
    """The tokens that running model calls were granted, for prompt and reply."""
    extras: dict[int, Amounts] = field(default_factory=dict)
    """What each running sub-agent was given beyond what it needs to start."""
    spare: Amounts = field(default_factory=Amounts)
    """The sum of these."""
    seen: int = 0
    """How many model calls of nodes have told what they used."""
    ceilings: dict[str, int] = field(default_factory=dict)
    """What a person may raise a limit to at most, by the names of `Amounts`."""

    @property
    def mean(self) -> int:
        """The tokens that a model call has used on the average, 0 before the first."""
        if not self.spent.calls:
            return 0
        return self.spent.tokens // self.spent.calls

    def granted(self, prompt: int, reply: int, rivals: int) -> int:
        """Return the tokens to grant a call whose prompt takes about `prompt` and whose
        reply may take `reply`.

        The reply gets its share of what is left, one of `rivals` equal parts, but room for twice
        what a call has used on the average. With 0 for `rivals`, and before any call has told what
        it used, it gets all that it may take.
        """
        if self.seen and rivals and "tokens" in self.limits:
            share = self.left("tokens") // rivals - prompt
            reply = min(reply, max(share, 2 * self.mean))
        least = self.mean if self.seen else 0
        return max(prompt + reply, least)

    def wanted(self, granted: int, price: int) -> Amounts:
        """Return what a start with this grant reserves. Before any call has told what it used, that
        is much more, but never more than there is: the first calls go nearly alone.
        """
        amounts = Amounts(granted, _cost_of(granted, price), 1, 1)
        if self.seen:
            return amounts
        for name in ("tokens", "cost"):
            if name in self.limits:
                least = getattr(amounts, name)
                most = min(UNSEEN * least, self.left(name))
                setattr(amounts, name, max(least, most))
        return amounts

    def estimate(self, tokens: int, *, model: bool, price: int = 0) -> Amounts:
        """Return what one start is expected to use: the plan's `tokens`, or the mean of the calls
        so far. The cost is the mean so far. While no call has cost anything, it is these tokens at
        `price` for a million.
        """
        if not model:
            return Amounts(tokens=tokens, nodes=1)
        mean, mean_cost = GUESSED_TOKENS, 0
        if self.spent.calls:
            mean = self.spent.tokens // self.spent.calls
            mean_cost = self.spent.cost // self.spent.calls
        expected = tokens or mean
        cost = mean_cost or _cost_of(expected, price)
        return Amounts(expected, cost, 1, 1)

    def least_part(self, calls: int, tokens: int = 0, *, price: int = 0) -> Amounts:
        """Return what a sub-agent needs to start: what so many calls are expected to use, unless
        the plan gives it `tokens`. One that may call no model needs nothing but its node.
        """
        call = self.estimate(0, model=True, price=price)
        least = Amounts(calls * call.tokens, calls * call.cost, calls, 1)
        if tokens:
            least.tokens = tokens
        if calls and "cost" in self.limits:
            least.cost = max(1, least.cost)
        return least

    def used(self, unit: int, outcome: Outcome) -> Amounts:
        """Return the usage in an outcome. An attempt whose usage is not known counts with
        all that it had reserved.
        """
        usage = outcome.usage
        ends = not outcome.again and outcome.question is None
        # A unit is one node, however often it starts.
        if usage is not None:
            return Amounts.of(usage, int(ends))
        reserved = self.reserved.get(unit, Amounts())
        if ends:
            return reserved
        return replace(reserved, nodes=0)

    def lacks(self, wanted: Amounts, *, beside_extras: bool = True) -> str:
        """Return the first limit that does not allow a start with this estimate now; "" if all do.
        What sub-agents hold beyond what they need counts as free unless it is `beside_extras`.
        """
        for name, limit in self.limits.items():
            amount = getattr(wanted, name)
            held = getattr(self.held, name)
            if not beside_extras:
                held -= getattr(self.spare, name)
            if self._over(name, limit, amount, held):
                return name
        return ""

    def _over(self, name: str, limit: int, wanted: int, held: int) -> bool:
        """Whether a limit does not allow a start that wants so much of it, beside what is held."""
        if not wanted:
            return False
        used: int = getattr(self.spent, name)
        return used + held + wanted > limit and (held > 0 or used >= limit)

    def reserve(self, unit: int, wanted: Amounts) -> None:
        """Reserve the estimate of a start."""
        self.reserved[unit] = wanted
        self.held.add(wanted)

    def settle(self, unit: int, used: Amounts | None) -> None:
        """Book what an ended start used, or all that it had reserved if its usage is not known."""
        wanted = self.reserved.pop(unit, None)
        self.grants.pop(unit, None)
        self._take_back_extra(unit)
        if wanted is None:
            return
        self.held.add(wanted, -1)
        self.spent.add(used if used is not None else wanted)
        if used is not None and wanted.calls and used.tokens:
            self.seen += used.calls

    def put_off(self, unit: int, generation: int) -> None:
        """A model call or a sub-agent was cancelled. Until it tells what it has used,
        its reservation stays.
        """
        wanted = self.reserved.pop(unit, None)
        self.grants.pop(unit, None)
        self._take_back_extra(unit)
        if wanted is not None and any(astuple(wanted)):
            self.late[unit, generation] = wanted

    def settle_late(self, unit: int, generation: int, usage: Usage | None) -> None:
        """Book what a cancelled model call has used, or all that it had
        reserved if nobody knows it.
        """
        wanted = self.late.pop((unit, generation), None)
        if wanted is not None:
            self.held.add(wanted, -1)
            used = wanted
            if usage is not None:
                used = Amounts.of(usage, wanted.nodes)
            self.spent.add(used)

    def share(
        self, unit: int, parts: int, *, tokens: int = 0, held_by_others: Amounts
    ) -> dict[str, int]:
        """Reserve a sub-agent's part: the `tokens` that the plan gives it, and one of `parts` equal
        parts of every other limit. Those that share with it and start at the same time have
        reserved `held_by_others`, what each needs to start: it gets no less, and leaves them that.
        It also gets that if others hold all that is left.

        Returns its limits by name. What it does not use becomes free when it settles.
        """
        reserved = self.reserved.get(unit, Amounts())
        limits: dict[str, int] = {}
        for name, left in self.rest(unit).items():
            shared: int = left + getattr(held_by_others, name)
            part = max(shared // parts, getattr(reserved, name))
            if name == "tokens" and tokens:
                part = tokens
            limits[name] = max(1, getattr(reserved, name), min(left, part))
        part = replace(reserved, **limits)
        self.held.add(reserved, -1)
        self.reserve(unit, part)

        # What it needs to start is what it had reserved before.
        self._take_back_extra(unit)
        extra = replace(part)
        extra.add(reserved, -1)
        self.extras[unit] = extra
        self.spare.add(extra)
        return limits

    def _take_back_extra(self, unit: int) -> None:
        """Have a unit hold nothing any more beyond what it needs."""
        extra = self.extras.pop(unit, None)
        if extra is not None:
            self.spare.add(extra, -1)

    def rest(self, unit: int) -> dict[str, int]:
        """Return what a running unit may still use of each limit: what it has reserved itself,
        but not what others have.
        """
        reserved = self.reserved.get(unit, Amounts())
        rest: dict[str, int] = {}
        for name, limit in self.limits.items():
            own: int = getattr(reserved, name)
            others = self._used(name) - own
            rest[name] = max(0, limit - others)
        return rest

    def left(self, name: str) -> int:
        """Return how much of a limit is neither spent nor reserved."""
        return max(0, self.limits[name] - self._used(name))

    def _used(self, name: str) -> int:
        """Return how much of a limit is spent or reserved."""
        spent: int = getattr(self.spent, name)
        held: int = getattr(self.held, name)
        return spent + held

    def short(self) -> list[str]:
        """Return the names of the limits that are reached."""
        reached: list[str] = []
        for name, limit in self.limits.items():
            if getattr(self.spent, name) >= limit:
                reached.append(name)
        return reached

    def dump(self) -> dict[str, Any]:
        """Return everything as JSON; `Budget.load` reads it back."""
        reserved: list[list[int]] = []
        for unit, wanted in self.reserved.items():
            reserved.append([unit, *astuple(wanted)])
        late: list[list[int]] = []
        for (unit, generation), wanted in self.late.items():
            late.append([unit, generation, *astuple(wanted)])
        return {
            "limits": self.limits,
            "spent": astuple(self.spent),
            "reserved": reserved,
            "late": late,
            "extras": [[unit, *astuple(extra)] for unit, extra in self.extras.items()],
            "grants": list(self.grants.items()),
            "seen": self.seen,
            "ceilings": self.ceilings,
        }

    @classmethod
    def load(cls, data: dict[str, Any]) -> "Budget":
        """Return what `dump` wrote."""
        limits = dict(data["limits"])
        spent = Amounts(*data["spent"])
        budget = cls(limits, spent, seen=data["seen"])
        for unit, generation, *amounts in data["late"]:
            wanted = Amounts(*amounts)
            budget.late[unit, generation] = wanted
            budget.held.add(wanted)
        budget.grants = dict(data["grants"])
        budget.ceilings = dict(data.get("ceilings", {}))
        for unit, *amounts in data["reserved"]:
            budget.reserve(unit, Amounts(*amounts))
        for unit, *amounts in data.get("extras", ()):
            budget.extras[unit] = Amounts(*amounts)
            budget.spare.add(budget.extras[unit])
        return budget


def _cost_of(tokens: int, price: int) -> int:
    """Return what tokens cost at a price for a million, rounded up."""
    return -(-tokens * price // 1_000_000)


def ledger(budget: Budget | None) -> dict[str, dict[str, Any]]:
    """Return the limit, the spent and the reserved amount of all that a run
    counts. `cost` is in dollars.
    """
    if budget is None:
        return {}
    return {name: _row(budget, name) for name in ("tokens", "cost", "calls", "nodes")}


def _row(budget: Budget, name: str) -> dict[str, Any]:
    """Return the row of one limit."""
    limit: Any = budget.limits.get(name)
    if limit is not None:
        limit = format_amount(name, limit)
    spent = getattr(budget.spent, name)
    held = getattr(budget.held, name)
    return {
        "limit": limit,
        "spent": format_amount(name, spent),
        "reserved": format_amount(name, held),
    }


@dataclass(slots=True)
class Slice:
    """What the calls of one task of a script may spend.

    `waiting` is a heap of ready units as (priority, rank, unit). Some of them
    may have been cancelled.
    """

    budget: Budget
    waiting: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Rate:
    """A provider takes `limit` calls a minute. `running` nodes call it now; the `ended`
    nodes so far made `calls`.

    `waiting` is a heap of ready units as (priority, rank, unit). Some of them
    may have been cancelled.
    """

    limit: int
    calls: int = 0
    ended: int = 0
    running: int = 0
    waiting: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def room(self) -> int:
        """How many more nodes may start: the rate divided by the calls a node makes (the mean so
        far, or one). At least one, so that a run never stalls.
        """
        most = self.limit
        if self.calls > self.ended:
            most = self.limit * self.ended // self.calls
        return max(1, most) - self.running

    def count(self, calls: int) -> None:
        """A node has ended, after so many calls."""
        self.calls += max(1, calls)
        self.ended += 1
