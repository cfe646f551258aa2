"""Limits of a model server in tests: how many calls a second it takes, or how many at once.
What is more gets a 429.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sennit.testing.model_rules import Asked, Reply

REFUSED = 429


@dataclass
class CallRate:
    """Takes `per_second` calls a second, and bursts of `burst`: a token bucket. To be used
    as the reply of a rule.

    Calls that it takes get `reply`. With `hint` a refusal says in whole seconds when to come back.
    `taken` and `refused` count calls.
    """

    reply: Reply
    per_second: float
    burst: int
    hint: bool = True
    clock: Callable[[], float] = time.monotonic
    taken: int = 0
    refused: int = 0
    _tokens: float = field(init=False)
    _filled: float = field(init=False)

    def __post_init__(self) -> None:
        self._tokens, self._filled = float(self.burst), self.clock()

    def __call__(self, asked: Asked) -> Reply:
        """Return the reply, or a refusal."""
        del asked
        now = self.clock()
        self._tokens = min(float(self.burst), self._tokens + (now - self._filled) * self.per_second)
        self._filled = now
        if self._tokens >= 1:
            self._tokens -= 1
            self.taken += 1
            return self.reply
        self.refused += 1
        seconds = math.ceil((1 - self._tokens) / self.per_second)
        headers = {"retry-after": str(seconds)} if self.hint else {}
        return Reply(
            "too many requests", status=REFUSED, code="rate_limit_exceeded", headers=headers
        )


@dataclass
class CallsAtOnce:
    """Takes `most` calls at once: `running` says how many the server has, with this one.
    Used as `CallRate` is.
    """

    reply: Reply
    most: int
    running: Callable[[], int]
    taken: int = 0
    refused: int = 0

    def __call__(self, asked: Asked) -> Reply:
        """Return the reply, or a refusal."""
        del asked
        if self.running() <= self.most:
            self.taken += 1
            return self.reply
        self.refused += 1
        return Reply("too many requests", status=REFUSED, code="rate_limit_exceeded")
