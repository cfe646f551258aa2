"""Which attempt an activity is on, by its own count: Temporal's, less those that only met a busy provider.

A busy provider's refusal must give the slot back, so it is a failed attempt to Temporal. The policies of activities
that call models allow `REFUSALS` of them on top; the last heartbeat of each attempt carries how many there were, and
an attempt that is the last of its own is made final here. An attempt that a crash cut off counts as its own.
"""

from dataclasses import dataclass
from typing import Self

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.faults import SubAgentFailed, failure
from activities.providers import ProviderError
from activities.providers.limiter import ProviderBusy
from workflows.usage import NOTHING, Usage

LONGEST_BACKOFF = 30.0


@dataclass(slots=True)
class Attempts:
    """The attempts of the activity that runs now; `said` is its progress, for the heartbeat. `spent` is what failed
    model calls of all its attempts used.

    Without `allowed` Temporal alone ends them.
    """

    own: int
    refused: int
    spent: Usage = NOTHING
    said: str = ""
    allowed: int | None = None

    @classmethod
    def of_this_activity(cls) -> Self:
        """Read Temporal's count and the last attempt's heartbeat."""
        info = activity.info()
        if len(info.heartbeat_details) < len(cls(1, 0).beat()):
            return cls(info.attempt, 0)
        _, refused, spent = info.heartbeat_details
        return cls(info.attempt - refused, refused, Usage(*spent))

    def progress(self, line: str) -> None:
        """Note how far the activity is."""
        self.said = line[:200]

    def beat(self) -> tuple[str, int, Usage]:
        """Return the details of a heartbeat."""
        return self.said, self.refused, self.spent

    def allow(self, most: int) -> None:
        """Allow `most` attempts of its own. Raises a final failure when a worker was lost in each of them."""
        self.allowed = most
        if self.own > most:
            message = f"no worker finished it in {most} attempts"
            raise ApplicationError(message, most, type="WorkerLost", non_retryable=True)

    def failed(self, error: BaseException) -> ApplicationError:
        """Return the failure of this attempt: final if it was the last of its own, which a refusal never is."""
        if isinstance(error, ProviderError):
            self.refused += isinstance(error, ProviderBusy)
        if isinstance(error, ProviderError | SubAgentFailed):
            self.spent = self.spent.plus(error.usage)
            activity.heartbeat(*self.beat())
        if isinstance(error, ProviderBusy):
            return failure(error, attempt=self.own, spent=self.spent)
        # Temporal's own backoff has grown with the refusals
        wait = min(2.0 ** (self.own - 1), LONGEST_BACKOFF) if self.refused else None
        final = self.allowed is not None and self.own >= self.allowed
        return failure(error, attempt=self.own, final=final, wait=wait, spent=self.spent)
