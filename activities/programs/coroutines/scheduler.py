"""Which coroutine of a script goes on, in the order of asyncio: what a script wakes, first in, first out, and only then
the next call that has ended.

So the recorded ends fix the order in which coroutines interleave. A coroutine is known by where it was started:
`/look#2/__ring#1` is the first timer of the second `look` that `main` has started; `main` is "".
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

CANCELLED = ("KeyboardInterrupt", "cancelled")
"""What a coroutine that is cancelled raises: `except Exception` does not catch it."""
LEAVE = "__leave"
"""What the prelude calls to end the script."""
CALLED_FOR = {"__nap": "sleep", "__join": "await"}
"""What the prelude calls for the script, with the line of that, by the word that it is."""

LINE = "__line"
"""The line of a call that the prelude makes later, beside what the script gives it."""


class Fed(NamedTuple):
    """What is fed next: to which futures, with a value, or with an error that fails them."""

    numbers: tuple[int, ...]
    value: Any = None
    error: tuple[str, str] | None = None


class _Waiting(NamedTuple):
    number: int
    line: int
    turn: int


class Coroutines:
    """The coroutines of one session, as the host sees them. `current` is the one that runs.

    Only what waits for calls is left when a script waits; `state` is that, and a Coroutines made of it goes on there.
    In a script without the prelude there is only one, which `is_alone`.
    """

    def __init__(self, state: Mapping[str, Any] | None = None, *, is_alone: bool = False) -> None:
        state = state or {}
        self.current = ""
        self._is_alone = is_alone
        self._owners: dict[int, str] = {int(number): name for number, name in state.get("owners", {}).items()}
        self._waits = {name: _Waiting(place[0], place[1], 0) for name, place in state.get("waits", {}).items()}
        self._idle: list[int] = list(state.get("idle", ()))
        self._more: int = state.get("more", -1)
        self._turns: dict[str, int] = {}
        self._ready: deque[tuple[str, str, int, int]] = deque()
        self._doomed: dict[str, int] = {}

    @property
    def state(self) -> dict[str, Any]:
        """What is to be kept while the script waits."""
        waits = {name: (place.number, place.line) for name, place in self._waits.items()}
        return {"owners": self._owners, "waits": waits, "idle": self._idle, "more": self._more}

    @property
    def own(self) -> frozenset[int]:
        """The futures that are no calls."""
        return frozenset((*(place.number for place in self._waits.values()), *self._idle, self._more))

    @property
    def maker(self) -> str:
        """Who the calls of the current coroutine are counted for: one that is only a call has none of its own."""
        parent, _, last = self.current.rpartition("/")
        return parent if last.startswith("__call#") else self.current

    @property
    def lines(self) -> list[int]:
        """Where coroutines wait for each other."""
        return sorted({place.line for place in self._waits.values()})

    def opened(self, number: int) -> None:
        """A call of the current coroutine is open."""
        if not self._is_alone:
            self._owners[number] = self.current

    def ended(self, number: int) -> None:
        """A call has ended: who made it goes on."""
        self.current = self._owners.pop(number, "")

    def is_open(self, function: str, number: int, args: tuple[Any, ...]) -> bool:
        """Whether what the prelude calls is to be waited for."""
        if function == "__idle":
            self._idle.append(number)
        elif function == "__more":
            self._more = number
        elif function == "__wait":
            turn = self._turns[self.current] = self._turns.get(self.current, 0) + 1
            self._waits[self.current] = _Waiting(number, int(args[0]), turn)
        else:
            return False
        return True

    def answer(self, function: str, args: tuple[Any, ...]) -> Any:
        """Do at once what the prelude calls, and return what it gets."""
        if function == "__me":
            return self.current
        name = str(args[0])
        if function == "__adopt":
            self._adopt(int("".join(filter(str.isdecimal, name))))
        elif function == "__begin":
            self._ready.append(("begin", name, 1, 0))
        elif function == "__wake":
            self._ready.append(("wake", name, int(args[1]), self._turn(name)))
        elif function == "__cancel":
            return self._cancel(name)
        return None

    def _adopt(self, number: int) -> None:
        """Have the current coroutine be the one that a call ends for, whoever has made it."""
        if number in self._owners:
            self._owners[number] = self.current

    def _turn(self, name: str) -> int:
        """Return which of a coroutine's waits a wake is for: the one that it is in, or its next."""
        waiting = self._waits.get(name)
        return waiting.turn if waiting is not None else self._turns.get(name, 0) + 1

    def _cancel(self, name: str) -> bool:
        """Have a coroutine that waits raise CANCELLED. Returns False if it does not wait."""
        waiting = self._waits.get(name)
        if name == self.current or (waiting is None and name not in self._owners.values()):
            return False
        if waiting is not None and any(each[1] == name and each[3] == waiting.turn for each in self._ready):
            self._doomed[name] = waiting.turn
        else:
            self._ready.append(("cancel", name, 1, waiting.turn if waiting is not None else -1))
        return True

    def next(self) -> Fed | None:
        """Return what is fed next of what the script itself has woken, None if nothing is."""
        while self._ready:
            what, name, hops, turn = self._ready.popleft()
            if hops > 1:
                self._ready.append((what, name, hops - 1, turn))
            elif what == "begin":
                if self._idle:
                    self.current = name
                    return Fed((self._idle.pop(0),), name)
                self._ready.appendleft((what, name, hops, turn))
                number, self._more = self._more, -1
                return Fed((number,))
            elif what == "cancel" and turn < 0:
                numbers = tuple(number for number, owner in self._owners.items() if owner == name)
                for number in numbers:
                    del self._owners[number]
                if numbers:
                    self.current = name
                    return Fed(numbers, error=CANCELLED)
            elif name in self._waits and self._waits[name].turn == turn:
                self.current = name
                is_cancelled = what == "cancel" or self._doomed.pop(name, -1) == turn
                return Fed((self._waits.pop(name).number,), error=CANCELLED if is_cancelled else None)
        return None
