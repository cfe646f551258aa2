"""How a run gets its place in the quota of its namespace: from the workflow `RunQuota`,
one in each namespace.

A worker that serves tools asks for the place by an update, which starts that workflow where there
is none. A run that ends gives its place back by a signal. A run that waits is told by a signal
that there is a place now.
"""

from typing import Final

from pydantic import Field

from sennit.workflows.messages.contracts import Call
from sennit.workflows.messages.message import Message, RunName
from sennit.workflows.plan.language.limits import Limits
from sennit.workflows.plan.quota import PlaceReply, PlaceRequest, QuotaLimits, Spending

QUOTA_TYPE: Final = "RunQuota"
QUOTA_ID: Final = "sennit-quota"
"""The id of its workflow. No run that Sennit names has it."""
ASK_UPDATE: Final = "ask"
GIVE_BACK_SIGNAL: Final = "give_back"
PLACE_SIGNAL: Final = "place_free"
"""Sent to a run that waits."""
STATE_QUERY: Final = "quota"


class PlaceCall(Message):
    """Asks for a place for a run that may spend its `budget`."""

    run: str
    first_run: str
    budget: Limits | None = None


class PlaceAsked(Message):
    """The update to the quota: a run's request, and the limits that its worker knows."""

    request: PlaceRequest
    limits: QuotaLimits


class PlaceEnd(Message):
    """The signal of a run that is over."""

    first_run: str
    used: Spending


class QuotaRuns(Message):
    """Runs that hold a place or wait for one: their workflow ids, by their first run ids."""

    runs: dict[RunName, str] = Field(default_factory=dict)


class EndedRuns(Message):
    """Those of them that are over, by their first run ids."""

    first_runs: tuple[RunName, ...] = ()


TAKE_PLACE = Call("take_place", PlaceCall, PlaceReply)
ENDED_RUNS = Call("ended_runs", QuotaRuns, EndedRuns)
