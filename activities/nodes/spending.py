"""What the call of a tool says that it has used: models of other frameworks,
or services that bill.
"""

import math
import threading
from dataclasses import dataclass, field

from sennit.activities.nodes.attempts import Attempts
from sennit.workflows.plan.language.limits import NO_USAGE, Usage, micro_dollars


@dataclass(slots=True)
class Spending:
    """Adds up what a call has used. The attempt knows it at once, so that it counts
    whatever becomes of the call.
    """

    attempts: Attempts
    total: Usage = NO_USAGE
    _adding: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *, tokens: int = 0, cost: float = 0.0) -> None:
        """Add tokens, and a cost in US dollars. Raises ValueError for what is
        no amount from zero on.
        """
        if type(tokens) is not int or tokens < 0:
            raise ValueError(f"spent: tokens is a whole number from 0, not {tokens!r}")
        if not math.isfinite(cost) or cost < 0:
            raise ValueError(f"spent: cost is US dollars from 0, not {cost!r}")
        used = Usage(input_tokens=tokens, cost=micro_dollars(cost))
        with self._adding:
            self.total = self.total.plus(used)
            self.attempts.open = self.attempts.open.plus(used)
