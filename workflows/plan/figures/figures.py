"""The figures of a run: the definitions of `docs/figures.md`, in the order in
which they stand there.

Pure and total: the same record gives the same figures, and no record raises an error. All takes
O(n log n) for n parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from pydantic import Field

from sennit.workflows.plan.figures.failures import class_of
from sennit.workflows.plan.figures.record import Part, Record
from sennit.workflows.plan.figures.speculated import Speculated
from sennit.workflows.plan.language.limits import NO_USAGE, Usage, dollars
from sennit.workflows.plan.language.validation_messages import Frozen
from sennit.workflows.plan.limits import MAX_FIGURE_BRANCHES

Stretch = tuple[int, int]
"""From one millisecond to another."""


class BranchUsage(Frozen):
    """What the calls of one branch have used."""

    branch: str
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Figures(Frozen):
    """What parallelism has brought, for what calls have waited, what branches have used and what
    has failed. Times are milliseconds.
    """

    calls: int = Field(default=0, description="calls of tools and models; containers never count")
    subagents: int = Field(default=0, description="sub-agents, each under way like one call")
    sequential_ms: int = Field(default=0, description="the sum of the calls' own times")
    critical_path_ms: int = Field(
        default=0, description="the longest chain of calls that came after one another"
    )
    makespan_ms: int = Field(
        default=0, description="from the first call's begin to the last one's end"
    )
    paused_ms: int = Field(
        default=0, description="of that, left out: nothing ran, and the run waited for a person"
    )
    saved_ms: int = Field(default=0, description="sequential time less makespan")
    speed_up: float | None = Field(default=None, description="sequential time by makespan")
    parallel_ratio: float | None = Field(
        default=None, description="calls that overlapped another, by all calls"
    )
    mean_width: float | None = Field(default=None, description="calls under way, while any was")
    largest_width: int = Field(default=0, description="the most calls under way at once")
    window: int = 0
    utilisation: float | None = Field(
        default=None, description="sequential time by window times makespan"
    )
    busy_ms: dict[str, int] = Field(
        default_factory=dict, description="the sum of the calls' times, by task queue"
    )
    waited_ms: dict[str, int] = Field(default_factory=dict, description="waiting by cause")
    retries: int = 0
    failures: dict[str, int] = Field(default_factory=dict, description="by class")
    branches: tuple[BranchUsage, ...] = Field(default=(), description="the dearest first")
    branches_left_out: int = 0
    speculation: Speculated | None = Field(
        default=None, description="calls made early, if there were any"
    )


def figures_of(record: Record) -> Figures:
    """Return the figures of a run."""
    timed: list[Part] = []
    calls = 0
    sequential = 0
    retries = 0
    for part in record.parts:
        retries += part.retries
        if part.kind == "container":
            continue
        timed.append(part)
        sequential += part.millis
        if part.kind == "call":
            calls += 1
    makespan, paused = _makespan(timed, record.asked)
    mean, largest = _widths(timed)
    branches = _branches(record.parts)
    return Figures(
        calls=calls,
        subagents=len(timed) - calls,
        sequential_ms=sequential,
        critical_path_ms=critical_path(record.parts)[1],
        makespan_ms=makespan,
        paused_ms=paused,
        saved_ms=sequential - makespan,
        speed_up=_ratio(sequential, makespan),
        parallel_ratio=_ratio(_overlapping(timed), calls),
        mean_width=mean,
        largest_width=largest,
        window=record.window,
        utilisation=_ratio(sequential, record.window * makespan),
        busy_ms=_busy(timed),
        waited_ms=_waited(record),
        retries=retries,
        failures=_failures(record.parts),
        branches=tuple(branches[:MAX_FIGURE_BRANCHES]),
        branches_left_out=max(0, len(branches) - MAX_FIGURE_BRANCHES),
        speculation=record.speculated,
    )


@dataclass(slots=True)
class _Chain:
    """The longest chain that ends with a part: its length, when its last call ended,
    and the part before it.
    """

    millis: int = 0
    ended: int = 0
    before: int | None = None


def critical_path(parts: Sequence[Part]) -> tuple[list[int], int]:
    """Return the calls of the longest chain, by their places in order, and how long these took.

    Of a call only the time after the end of the one before it counts, so that no chain is
    longer than the makespan.
    """
    chains: list[_Chain | None] = [None] * len(parts)
    for place in _in_order(parts):
        part = parts[place]
        best = _Chain(part.millis, _end_of_call(part))
        for earlier in _predecessors(parts, part):
            chain = chains[earlier]
            if chain is None:
                continue
            longer = _prolonged(chain, part, earlier)
            if longer.millis > best.millis:
                best = longer
        chains[place] = best

    # The first of several chains that are as long is taken.
    longest = _Chain()
    last: int | None = None
    for place, chain in enumerate(chains):
        if chain is not None and chain.millis > longest.millis:
            longest = chain
            last = place

    # Walk back from its end.
    path: list[int] = []
    while last is not None:
        if parts[last].millis:
            path.append(last)
        chain = chains[last]
        last = None
        if chain is not None:
            last = chain.before
    return path[::-1], longest.millis


def _predecessors(parts: Sequence[Part], part: Part) -> list[int]:
    """Return the places after which a part came, as far as there are such parts:
    a record may name any.
    """
    return [place for place in part.after if 0 <= place < len(parts)]


def _end_of_call(part: Part) -> int:
    """Return when a part ended that took any time, 0 for any other one."""
    if not part.millis:
        return 0
    return part.ended


def _prolonged(chain: _Chain, part: Part, before: int) -> _Chain:
    """Return a chain, which ends with the part `before`, with another part behind it."""
    own = 0
    if part.millis:
        own = max(0, part.ended - max(part.began, chain.ended))
    return _Chain(chain.millis + own, max(_end_of_call(part), chain.ended), before)


def _in_order(parts: Sequence[Part]) -> list[int]:
    """Return the places of all parts, each behind those after which it came. What goes round in a
    circle, which no run does, is cut somewhere.
    """
    order: list[int] = []
    entered = [False] * len(parts)
    for first in range(len(parts)):
        stack = [(first, False)]
        while stack:
            place, is_left = stack.pop()
            if is_left:
                order.append(place)
            elif not entered[place]:
                entered[place] = True
                stack.append((place, True))
                for before in _predecessors(parts, parts[place]):
                    stack.append((before, False))
    return order


def _makespan(timed: Sequence[Part], asked: Sequence[Stretch]) -> tuple[int, int]:
    """Return the time from the first begin to the last end, and what of that is left out: nothing
    ran, and the run waited for a person.
    """
    if not timed:
        return 0, 0
    gaps: list[Stretch] = []
    ordered = sorted((part.began, part.ended) for part in timed)
    first, last = ordered[0]
    for began, ended in ordered:
        if began > last:
            gaps.append((last, began))
        last = max(last, ended)
    paused = _common(gaps, asked)
    return last - first - paused, paused


def _common(gaps: Sequence[Stretch], asked: Sequence[Stretch]) -> int:
    """Return how long two lists of stretches, each in order and without
    overlaps, have in common.
    """
    common = 0
    at = 0
    for begin, end in asked:
        while at < len(gaps) and gaps[at][1] <= begin:
            at += 1
        here = at
        while here < len(gaps) and gaps[here][0] < end:
            gap_begin, gap_end = gaps[here]
            common += max(0, min(end, gap_end) - max(begin, gap_begin))
            here += 1
    return common


def _widths(timed: Sequence[Part]) -> tuple[float | None, int]:
    """Return the mean width while anything was under way, and the largest."""
    changes: list[tuple[int, int]] = []
    sequential = 0
    for part in timed:
        sequential += part.millis
        if part.millis:
            changes += [(part.began, 1), (part.ended, -1)]
    changes.sort()  # at the same millisecond, ends come first
    width = 0
    largest = 0
    covered = 0
    since = 0
    for at, change in changes:
        if width:
            covered += at - since
        since = at
        width += change
        largest = max(largest, width)
    return _ratio(sequential, covered), largest


def _overlapping(timed: Sequence[Part]) -> int:
    """Return how many calls were under way at the same time as another call, or as a sub-agent."""
    ordered = [part for part in timed if part.millis]
    ordered.sort(key=attrgetter("began", "ended"))
    count = 0
    latest: int | None = None
    for place, part in enumerate(ordered, 1):
        overlaps_earlier = latest is not None and latest > part.began
        overlaps_later = place < len(ordered) and ordered[place].began < part.ended
        if part.kind == "call" and (overlaps_earlier or overlaps_later):
            count += 1
        if latest is None or part.ended > latest:
            latest = part.ended
    return count


def _waited(record: Record) -> dict[str, int]:
    """Return how long the calls have waited, by cause: with the time in which the
    run waited for a person.
    """
    waited = {cause: millis for cause, millis in record.waited.items() if millis > 0}
    person = sum(end - begin for begin, end in record.asked)
    if person:
        waited["person"] = person
    return waited


def _busy(timed: Sequence[Part]) -> dict[str, int]:
    busy: dict[str, int] = {}
    for part in timed:
        if part.kind == "call":
            busy[part.queue] = busy.get(part.queue, 0) + part.millis
    return dict(sorted(busy.items()))


def _failures(parts: Sequence[Part]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in parts:
        if part.error:
            kind = class_of(part.error)
            counts[kind] = counts.get(kind, 0) + 1
    return dict(sorted(counts.items()))


def _branches(parts: Sequence[Part]) -> list[BranchUsage]:
    """Return what each branch has used that has used anything: the dearest first, then
    by tokens, then by name.
    """
    used: dict[str, Usage] = {}
    for part in parts:
        if any(part.used):
            used[part.branch] = used.get(part.branch, NO_USAGE).plus(part.used)

    def rank(name: str) -> tuple[int, int, str]:
        usage = used[name]
        return -usage.cost, -usage.tokens, name

    branches = []
    for name in sorted(used, key=rank):
        usage = used[name]
        cost = dollars(usage.cost)
        branches.append(
            BranchUsage(branch=name, calls=usage.calls, tokens=usage.tokens, cost_usd=cost)
        )
    return branches


def _ratio(above: float, below: float) -> float | None:
    """Return a ratio with three places; None if nothing is below."""
    if not below:
        return None
    return round(above / below, 3)
