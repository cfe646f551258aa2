"""What a report shows of a run: its report, its nodes and when its calls ran."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sennit.starter.client.errors import NoAnswer, Refused
from sennit.starter.client.run import Run
from sennit.starter.terminal.render import report_of, with_nodes
from sennit.workflows.messages.figures import CallLine, FiguresPage
from sennit.workflows.messages.result import RunReport
from sennit.workflows.messages.views import NodeView
from sennit.workflows.plan.figures.figures import Figures

NO_WORKER = "No worker answered, so the report has neither the graph nor the times of single calls."


@dataclass(frozen=True)
class Content:
    """A run for a report. `nodes` are in plan order. Without a worker there are only those of the
    report, no `flow` and no `calls`, and `lacks` says why.
    """

    report: RunReport
    goal: str = ""
    nodes: tuple[NodeView, ...] = ()
    page: FiguresPage = field(default_factory=lambda: FiguresPage(figures=Figures()))
    began: float = 0.0
    closed: float = 0.0
    lacks: str = ""

    @property
    def figures(self) -> Figures:
        """The figures of the report if it has any, else those until now."""
        return self.report.figures or self.page.figures

    @cached_property
    def calls(self) -> Mapping[str, CallLine]:
        """The calls by their nodes."""
        return {call.node: call for call in self.page.calls}

    @cached_property
    def by_id(self) -> Mapping[str, NodeView]:
        """The nodes by their ids."""
        return {node.id: node for node in self.nodes}


async def content_of(run: Run[RunReport], *, is_open: bool) -> Content:
    """Return what a report shows of a run. Asks a worker for its nodes, and goes
    without them if none answers.

    Raises SennitError.
    """
    outcome = None
    if not is_open:
        outcome = await run.outcome()
    began, closed = run.began, run.closed
    try:
        view = await run.view()
        page = await run.figures()
    except (NoAnswer, Refused):
        if outcome is None:
            raise
        nodes = tuple(NodeView(**line.model_dump()) for line in outcome.report.nodes)
        return Content(outcome.report, nodes=nodes, began=began, closed=closed, lacks=NO_WORKER)
    report = report_of(view, run.ui_url)
    if outcome is not None:
        report = with_nodes(outcome.report, view)
    return Content(report, view.goal, view.nodes, page, began, closed)
