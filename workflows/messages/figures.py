"""What the query `figures` answers: the figures of a run as it stands, and its calls as they
went, a page at a time.
"""

from pydantic import Field

from sennit.workflows.messages.message import Message
from sennit.workflows.messages.result import UsageReport
from sennit.workflows.plan.figures.figures import Figures


class CallLine(Message):
    """One call of a tool or a model, or a sub-agent: its node, when it began and ended
    in milliseconds of the Unix clock, and on which task queue. `critical` says that it
    is on the critical path.
    """

    node: str
    began: int
    ended: int
    kind: str = "call"
    queue: str = ""
    branch: str = ""
    critical: bool = False
    retries: int = 0
    usage: UsageReport = UsageReport()


class FlowLine(Message):
    """A node as the board draws it: with the nodes it comes `after`, by their places in
    the whole list of nodes.
    """

    node: str
    after: tuple[int, ...] = ()


class FiguresPage(Message):
    """The figures, with those calls of a page of nodes that have begun. `next` is where the next
    page starts. `now` is until when its calls are known.
    """

    figures: Figures
    now: int = 0
    calls: tuple[CallLine, ...] = ()
    flow: tuple[FlowLine, ...] = Field(
        default=(), description="the nodes of the page, but no items of maps"
    )
    next: int | None = Field(default=None)
