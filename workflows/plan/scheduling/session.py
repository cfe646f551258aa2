"""Where a program stands: which calls its script has made, for which it waits, and of which ends
it was told, in order.

The graph knows a program as one node. What its script calls are units like all others; this record
says who waits for them. A script comes from one wait to the next in *advances*, each an activity.
When a call ends otherwise than the script was told, the program goes back to the advance that was
told it, and forgets what came later.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Advance:
    """One advance of a script: where it begins, and what the script is told in it."""

    session: str = ""
    """The digest of where the script stands in the store; "" for the first advance."""
    told: tuple[int, ...] = ()
    """The calls of whose ends the script is told in it."""
    past: tuple[int, ...] = ()
    """The calls for which the script has not waited any more behind it."""


@dataclass(slots=True)
class Session:
    """The program session of one program. Its last advance is under way, or begins when
    the script is told more.
    """

    advances: list[Advance] = field(default_factory=lambda: [Advance()])
    calls: dict[int, int] = field(default_factory=dict)
    """By the calls and tasks of the script, as it is now, the number of the
    advance that has made each.
    """
    heard: dict[int, int] = field(default_factory=dict)
    """By the calls of whose ends the script was told, the number of the advance that
    has gone on with that.
    """
    waits: dict[int, None] = field(default_factory=dict)
    """The calls for which the script waits."""
    left: dict[int, None] = field(default_factory=dict)
    """What it has called when it ran before and not yet again: it is given up when
    the script waits or ends.
    """
    spared: dict[int, None] = field(default_factory=dict)
    """What of that was not given up, because it had ended: the script may still call it again."""
    names: dict[int, str] = field(default_factory=dict)
    """What the script calls the units that it has taken over, where that is not their id."""
    units: dict[str, int] = field(default_factory=dict)
    """These units by those names."""

    @property
    def last(self) -> Advance:
        """The advance that is under way, or that comes next."""
        return self.advances[-1]

    @property
    def number(self) -> int:
        """The number of that advance; the first one has 0."""
        return len(self.advances) - 1

    @property
    def may_take_over(self) -> bool:
        """Whether a call of the script may be one that it has made when it ran before."""
        return bool(self.left or self.spared)

    @property
    def has_begun(self) -> bool:
        """Whether the script has come to its first wait."""
        return self.number > 0

    def take_calls(self, calls: Iterable[int]) -> None:
        """Note calls that the advance under way has made, or made again."""
        for call in calls:
            self.calls[call] = self.number
            self.left.pop(call, None)
            self.spared.pop(call, None)

    def take_over(self, call: int, name: str) -> None:
        """Note what the script calls a unit that it has taken over."""
        self.names[call] = name
        self.units[name] = call

    def end_advance(
        self, waits: Iterable[int], past: Sequence[int], made: Iterable[int], following: Advance
    ) -> None:
        """Have the script wait: for these calls beside those for which it waited before, and
        not for the `past` ones.

        The advance has `made` calls itself. It has gone on with the ends of those for which
        the script does not wait.
        """
        advance = self.last
        advance.past = tuple(past)
        for call in past:
            self.waits.pop(call, None)
        self.waits |= dict.fromkeys(waits)

        told: list[int] = []
        for call in (*advance.told, *made):
            if call not in self.waits:
                told.append(call)
        advance.told = tuple(told)
        self.heard |= dict.fromkeys(told, self.number)
        self.advances.append(following)

    def go_back(self, number: int) -> None:
        """Stand where the script stood before an advance: it waits for what it waited for then."""
        later = self.advances[number:]

        # The script waits again for the calls that it had made by then, also for those that
        # it has heard of since.
        waited: list[int] = []
        for advance in later:
            waited += advance.past
        waited += self.waits
        self.waits = {}
        for call in waited:
            if self.calls.get(call, number) < number:
                self.waits[call] = None

        # It forgets the ends that it was told since then, and has not made the calls that
        # it has made since then.
        for advance in later:
            for call in advance.told:
                self.heard.pop(call, None)

        gone = self.made_from(number)
        for call in gone:
            del self.calls[call]
        self.left |= dict.fromkeys(gone)

        anew = Advance(later[0].session)
        self.advances[number:] = [anew]

    def is_told(self, call: int) -> bool:
        """Whether the script was told, or is being told, how a call has ended."""
        return call in self.heard or call in self.last.told

    def told_in(self, call: int) -> int:
        """Return the number of the advance that was told how a call has ended; -1 if none was."""
        if call in self.last.told:
            return self.number
        return self.heard.get(call, -1)

    def told_at_begin(self, number: int) -> list[int]:
        """Return the calls of whose ends the script was told as an advance began: not those
        that it has made itself.
        """
        told: list[int] = []
        for call in self.advances[number].told:
            if self.calls.get(call, -1) < number:
                told.append(call)
        return told

    def made_from(self, number: int) -> list[int]:
        """Return the calls that an advance and those behind it have made."""
        return [call for call, maker in self.calls.items() if maker >= number]
