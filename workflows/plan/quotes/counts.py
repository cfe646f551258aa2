"""How often something is called, from the least to the most, and how such counts add up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Count(NamedTuple):
    """From the least to the most; None is no upper bound."""

    least: int = 0
    most: int | None = 0

    def __str__(self) -> str:
        if self.most is None:
            if self.least == 0:
                return "any number"
            return f"at least {self.least:,}"
        if self.least == self.most:
            return f"{self.least:,}"
        return f"{self.least:,} to {self.most:,}"

    def times(self, least: int, most: int | None) -> "Count":
        """Return the count of so many rounds; None is any number of them."""
        if self.most == 0:
            return self
        if self.most is None or most is None:
            return Count(self.least * least, None)
        return Count(self.least * least, self.most * most)

    def plus(self, count: "Count") -> "Count":
        """Return the count of both, one after the other."""
        least = self.least + count.least
        if self.most is None or count.most is None:
            return Count(least, None)
        return Count(least, self.most + count.most)


NONE = Count()
ANY = Count(0, None)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts by the name that is called; a name that is not among them is never called. A part
    of a script that raises does not come to its end (`ends`): a run in which that happens does
    not count for the least.
    """

    by_name: dict[str, Count] = field(default_factory=dict)
    ends: bool = True

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def of(self, name: str) -> Count:
        """Return how often this name is called."""
        return self.by_name.get(name, NONE)

    def times(self, least: int, most: int | None) -> "Counts":
        """Return the counts of so many rounds; None is any number of them."""
        repeated: dict[str, Count] = {}
        for name, count in self.by_name.items():
            repeated[name] = count.times(least, most)
        return Counts(repeated)

    def at_most(self, limits: Mapping[str, int]) -> "Counts":
        """Return the counts with upper bounds for some of them."""
        found = dict(self.by_name)
        for name, limit in limits.items():
            count = self.of(name)
            most = limit
            if count.most is not None:
                most = min(count.most, limit)
            if name in found:
                least = min(count.least, limit)
                found[name] = Count(least, most)
        return Counts(found, self.ends)

    @property
    def perhaps(self) -> "Counts":
        """The counts of a part that may end early, or never begin."""
        return self.times(0, 1)


NOTHING = Counts()


def total(*many: Counts) -> Counts:
    """Return the counts of all of these parts, one after the other."""
    sums: dict[str, Count] = {}
    ends = True
    for counts in many:
        ends = ends and counts.ends
        for name, count in counts.by_name.items():
            sums[name] = sums.get(name, NONE).plus(count)
    return Counts(sums, ends)


def either(*many: Counts) -> Counts:
    """Return the counts of one of these parts, whichever runs."""
    ending = [counts for counts in many if counts.ends]
    counted = ending or many
    names: dict[str, None] = {}
    for counts in many:
        names |= dict.fromkeys(counts)

    chosen: dict[str, Count] = {}
    for name in names:
        least = min(counts.of(name).least for counts in counted)
        most: int | None = 0
        for counts in many:
            part_most = counts.of(name).most
            if most is None or part_most is None:
                most = None
            else:
                most = max(most, part_most)
        chosen[name] = Count(least, most)
    return Counts(chosen, bool(ending))
