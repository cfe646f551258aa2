"""Which calls may share an activity, and which of them are short: that is
known, and never guessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sennit.workflows.plan.compile.execution_plan import SHARED, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.nodes import Fuse
from sennit.workflows.plan.limits import MAX_SHORT_MILLIS

ENOUGH_CALLS = 3
"""So many calls of this run tell how long a tool takes, where nobody else says it."""


def why_alone(graph: Graph, node: int, spec: NodeSpec, locks: list[tuple[str, int]]) -> str:
    """Return why a node, or a part of an item of a map, which calls what `spec` says with these
    locks, may share an activity with no other; "" if it may.

    Nothing that writes, asks or holds a lock that another node might want shares one,
    and nothing that may be cancelled because a join has what it needs: then the others
    would be cut off with it.
    """
    reason = _why_apart(spec)
    if reason:
        return reason
    for name, mode in locks:
        if mode != SHARED or name in graph.contended:
            return "it uses what another node may hold alone"
    if graph.specs[node].is_successor:
        return "it stands in for another node"
    if node in graph.early or graph.caller_of(node) >= 0:
        return "what waits for it may go on before all of its inputs are there"
    return ""


def why_not_in_place(spec: NodeSpec, queue: str) -> str:
    """Return why an advance of a program on this queue does not make a call itself,
    however short it is; or "".
    """
    reason = _why_apart(spec)
    if reason:
        return reason
    if spec.deadline:
        return "it waits for a time"
    if spec.locks:
        return "it holds a lock"
    if spec.queue != queue:
        return "workers of another role make it"
    return ""


def _why_apart(spec: NodeSpec) -> str:
    """Return why a call, or each item of a map, may share no activity, whatever is
    around it; "" if it may.
    """
    kind = spec.kind
    if kind == "map":
        kind = spec.item_kind
    if kind != "tool":
        return f"it is of kind {kind}, and only calls of tools share an activity"
    if spec.effect not in ("pure", "read") or spec.approval:
        return "it writes"
    if spec.attempts == 1:
        return "it is attempted once"
    if spec.expires:
        return "it may expire while the others go on"
    return ""


@dataclass(slots=True)
class Timings:
    """How long calls take, as far as this run knows."""

    fuse: Fuse = "off"
    workers: dict[str, int] = field(default_factory=dict)
    """How many workers serve a task queue; 1 where nobody says."""
    known: dict[str, int] = field(default_factory=dict)
    """What workers had measured before, by tool, in milliseconds."""
    measured: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How many calls of this run have ended, by tool, and how long they took in all."""

    @classmethod
    def of(cls, fuse: Fuse, usual: Mapping[str, int]) -> "Timings":
        """Return the timings of a run that has told these by `usual`."""
        measured: dict[str, tuple[int, int]] = {}
        for tool, millis in usual.items():
            measured[tool] = (ENOUGH_CALLS, ENOUGH_CALLS * millis)
        return cls(fuse, measured=measured)

    def usual(self) -> dict[str, int]:
        """Return how long calls of tools take, as far as the run knows that from more
        than what a tool declares.
        """
        usual = dict(self.known)
        for tool, (count, total) in self.measured.items():
            if count < ENOUGH_CALLS:
                continue
            mean = total // count
            if tool not in usual or mean > MAX_SHORT_MILLIS:
                usual[tool] = mean
        return usual

    def note(self, tool: str, millis: int) -> None:
        """A call of this tool has ended after so long."""
        count, total = self.measured.get(tool, (0, 0))
        self.measured[tool] = count + 1, total + millis

    def millis(self, spec: NodeSpec) -> int | None:
        """Return how long a call usually takes: what its tool declares or workers have measured,
        unless this run knows better; None if nobody knows.
        """
        mean = None
        count, total = self.measured.get(spec.tool, (0, 0))
        if count >= ENOUGH_CALLS:
            mean = total // count
        # What others say holds as long as the run has not seen that a call takes long.
        usual = spec.typical or self.known.get(spec.tool)
        if not usual or (mean is not None and mean > MAX_SHORT_MILLIS):
            return mean
        return usual

    def is_short(self, spec: NodeSpec) -> bool:
        """Whether a call may share an activity because of the time it takes. With `on`, any may."""
        if self.fuse != "auto":
            return self.fuse == "on"
        millis = self.millis(spec)
        return millis is not None and millis <= MAX_SHORT_MILLIS

    def length(self, spec: NodeSpec) -> int:
        """Return what a call adds to the time of a shared activity, as far as that is
        bounded: with `on` it is not.
        """
        if self.fuse == "on":
            return 0
        return self.millis(spec) or 0

    def why_alone(self, spec: NodeSpec) -> str:
        """Return why a call that might share an activity does not, because of
        its time; "" if it does.
        """
        if self.fuse == "off":
            return "`fuse: off`"
        if self.is_short(spec):
            return ""
        millis = self.millis(spec)
        if millis is None:
            return f"nobody knows yet how long `{spec.tool}` takes"
        return (
            f"`{spec.tool}` takes {millis / 1000:.1f} s, and only calls up to "
            f"{MAX_SHORT_MILLIS / 1000:g} s share"
        )
