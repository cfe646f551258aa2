"""How often something is called, from the least to the most, and how such counts add up."""

from collections.abc import Mapping
from typing import NamedTuple

from sennit.workflows.plan.programs.rounds import MANY, Size


class Count(NamedTuple):
    """From the least to the most; `more` comes with rounds that cannot be counted."""

    least: int = 0
    most: int = 0
    more: bool = False

    def __str__(self) -> str:
        if self.more and not self.most:
            return "any number"
        text = f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"
        return f"{text} and more" if self.more else text

    def times(self, size: Size) -> "Count":
        """Return the count of so many rounds."""
        most, more = (size.most, self.more) if size.most < MANY else (size.least, self.more or self.most > 0)
        return Count(min(self.least * size.least, MANY), min(self.most * most, MANY), more)


NONE = Count()
Counts = dict[str, Count]
"""Counts by what is called; a name that is not in it is called never."""
Flow = dict[str, Counts]
"""What has been called when statements end, by how they end: `next`, `break`, `continue`, `return`, `raise`."""


def total(*many: Counts) -> Counts:
    """Return the counts of all, one after the other."""
    found: Counts = {}
    for counts in many:
        for name, (least, most, more) in counts.items():
            before = found.get(name, NONE)
            found[name] = Count(min(before.least + least, MANY), min(before.most + most, MANY), before.more or more)
    return found


def either(*many: Counts) -> Counts:
    """Return the counts of one of them."""
    names = dict.fromkeys(name for counts in many for name in counts)
    each = {name: [counts.get(name, NONE) for counts in many] for name in names}
    return {
        name: Count(min(one.least for one in found), max(one.most for one in found), any(one.more for one in found))
        for name, found in each.items()
    }


def perhaps(counts: Mapping[str, Count]) -> Counts:
    """Return the counts of what may end early, or never begin."""
    return {name: count._replace(least=0) for name, count in counts.items()}


def after(before: Counts, flow: Flow) -> Flow:
    """Return the flow of what comes after `before`."""
    return {way: total(before, counts) for way, counts in flow.items()}


def merged(*flows: Flow) -> Flow:
    """Return the flow of one of them."""
    ways = dict.fromkeys(way for flow in flows for way in flow)
    return {way: either(*(each[way] for each in flows if way in each)) for way in ways}
