"""Contents of reports without a run: a small one, a large one, and one whose every text wants to be markup."""

import random

from sennit.starter.report.content import Content
from sennit.workflows.messages.contracts import Evidence
from sennit.workflows.messages.figures import FiguresPage, FlowLine
from sennit.workflows.messages.result import RunReport, UsageReport, WriteLine
from sennit.workflows.messages.views import NodeView
from sennit.workflows.plan.figures.figures import critical_path, figures_of
from sennit.workflows.plan.figures.record import Part, Record
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.views.figures import line_of

BEGAN = 1_764_000_000_000
HOSTILE = (
    "</script></style></title></svg><script>document.title='broken'</script><img src=x onerror=alert(1)>"
    "<a href=\"javascript:alert(2)\" style='color:red' onclick=alert(3)>\"'`&amp;<!--]]>\u202e\x1b[31m\ud800"
)


def layered(count: int, width: int, *, text: str = "", seed: int = 7) -> Content:
    """A run of `count` nodes in layers of `width`, each after one or two of the layer before, with `text` in all."""
    draw = random.Random(seed)
    ends: list[int] = []
    parts: list[Part] = []
    after: list[tuple[int, ...]] = []
    for number in range(count):
        layer = number // width
        before = range((layer - 1) * width, layer * width) if layer else range(0)
        needs = tuple(sorted(draw.sample(before, min(len(before), draw.randint(1, 2))))) if before else ()
        began = max([BEGAN, *(ends[need] for need in needs)]) + draw.randint(1, 40)
        ends.append(began + round(draw.lognormvariate(6, 0.6)))
        is_model = number % 3 == 2
        used = (
            Usage(draw.randint(200, 900), draw.randint(20, 300), draw.randint(100, 9_000), 1) if is_model else Usage()
        )
        queue = "sennit.llm.offline" if is_model else "sennit.tools"
        error = "HttpStatusError" if number % 41 == 40 else ""
        parts.append(
            Part(f"n{number}", "call", began, ends[-1], needs, f"n{number}", queue, number % 29 // 28, used, error)
        )
        after.append(needs)
    record = Record(tuple(parts), 100, {"slot": 812, "dependency": 70_400})
    figures = figures_of(record)
    critical = {parts[place].name for place in _path(record)}
    calls = tuple(line_of(part, is_critical=part.name in critical) for part in parts)
    nodes = tuple(_node(part, number, text) for number, part in enumerate(parts))
    flow = tuple(FlowLine(node=part.name, after=needs) for part, needs in zip(parts, after, strict=True))
    failed = sum(bool(part.error) for part in parts)
    answer = f"Of {count:,} sources, most agree [1]. {text}"
    report = RunReport(
        id="layers-1",
        run_id="r",
        status="partial" if failed else "done",
        answer=answer,
        evidence=(Evidence(n=1, node="n0", source=f"rivers/nile.md {text}", quote=f"It is long. {text}"),),
        counts={"succeeded": count - failed, **({"failed": failed} if failed else {})},
        usage=UsageReport(input_tokens=61_000, output_tokens=9_000, calls=count // 3, cost_usd=0.42),
        problem=f"n40: HttpStatusError: 503 {text}" if failed else None,
        warnings=(f"a warning {text}",) if text else (),
        writes=(WriteLine(node="n3", status="unknown"),) if text else (),
        log=(f"line one {text}", "line two"),
        figures=figures,
    )
    page = FiguresPage(figures=figures, calls=calls, flow=flow)
    return Content(report, f"Read {count:,} sources and weigh them {text}", nodes, page, BEGAN / 1000, max(ends) / 1000)


def _path(record: Record) -> list[int]:
    return critical_path(record.parts)[0]


def _node(part: Part, number: int, text: str) -> NodeView:
    is_model = number % 3 == 2
    return NodeView(
        id=part.name,
        kind="llm" if is_model else "tool",
        status="failed" if part.error else "succeeded",
        attempts=1 + part.retries,
        duration_ms=part.millis,
        error=f"{part.error}: 503 {text}" if part.error else None,
        summary=f'{part.name} {"worker What does it say?" if is_model else "search"} "source {number}" {text}',
        preview=f'{{"query":"source {number}","items":[{{"path":"rivers/nile.md","passage":"The Nile"}}]}} {text}',
    )
