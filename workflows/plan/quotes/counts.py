"""How often something is called, from the least to the most, and how such counts add up."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Count(NamedTuple):
    """From the least to the most; None is no upper bound."""

    least: int = 0
    most: int | None = 0

    def __str__(self) -> str:
        if self.most is None:
            return f"at least {self.least:,}" if self.least else "any number"
        if self.least == self.most:
            return f"{self.least:,}"
        return f"{self.least:,} to {self.most:,}"

    def times(self, least: int, most: int | None) -> "Count":
        """Return the count of so many rounds; None is any number of them."""
        if self.most == 0:
            return self
        whole = None if self.most is None or most is None else self.most * most
        return Count(self.least * least, whole)


NONE = Count()
ANY = Count(0, None)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts by what is called; a name that is not in it is called never. A `raise` does not come to an end: a run in
    which it happens does not count for the least.
    """

    by_name: dict[str, Count] = field(default_factory=dict)
    ends: bool = True

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def of(self, name: str) -> Count:
        """Return how often that is called."""
        return self.by_name.get(name, NONE)

    def times(self, least: int, most: int | None) -> "Counts":
        """Return the counts of so many rounds; None is any number of them."""
        return Counts({name: count.times(least, most) for name, count in self.by_name.items()})

    @property
    def perhaps(self) -> "Counts":
        """The counts of what may end early, or never begin."""
        return Counts({name: count._replace(least=0) for name, count in self.by_name.items()})


NOTHING = Counts()


def total(*many: Counts) -> Counts:
    """Return the counts of all, one after the other."""
    found: dict[str, Count] = {}
    for counts in many:
        for name, count in counts.by_name.items():
            before = found.get(name, NONE)
            most = None if before.most is None or count.most is None else before.most + count.most
            found[name] = Count(before.least + count.least, most)
    return Counts(found, all(counts.ends for counts in many))


def either(*many: Counts) -> Counts:
    """Return the counts of one of them."""
    ending = [counts for counts in many if counts.ends] or many
    found: dict[str, Count] = {}
    for name in dict.fromkeys(name for counts in many for name in counts):
        mosts = [counts.of(name).most for counts in many]
        known = [most for most in mosts if most is not None]
        most = max(known) if len(known) == len(mosts) else None
        found[name] = Count(min(counts.of(name).least for counts in ending), most)
    return Counts(found, any(counts.ends for counts in many))
