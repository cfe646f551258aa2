"""Figures as text for people: of one run in two lines and a table, of many runs in one table."""

from sennit.starter.terminal.text import padded
from sennit.workflows.plan.figures.figures import BranchUsage, Figures
from sennit.workflows.plan.figures.lines import figures_lines, plural
from sennit.workflows.plan.figures.many import ManyFigures
from sennit.workflows.plan.figures.speculated import Speculated
from sennit.workflows.plan.language.limits import duration_text
from sennit.workflows.plan.language.text import one_line

_NAMES = {
    "makespan_ms": "makespan",
    "sequential_ms": "one after the other",
    "critical_path_ms": "critical path",
    "saved_ms": "latency saved",
    "speed_up": "speed-up",
    "parallel_ratio": "beside another call",
    "mean_width": "mean width",
    "utilisation": "utilisation of the window",
    "calls": "calls",
}
_SHARES = ("parallel_ratio", "utilisation")
_COLUMN, _NUMBER = 28, 12


def figures_text(figures: Figures) -> str:
    """Return the figures of one run."""
    lines = figures_lines(figures)
    if not lines:
        return "nothing was called, so there are no figures"
    for field, name in _NAMES.items():
        value = getattr(figures, field)
        if value is not None:
            lines.append("  " + _line(name, _written(field, value)))
    if figures.speculation is not None:
        for line in _early_lines(figures.speculation):
            lines.append(f"  {line}")
    for queue, millis in figures.busy_ms.items():
        name = f"busy on {one_line(queue)}"
        lines.append("  " + _line(name, duration_text(millis)))
    for branch in figures.branches:
        lines.append("  " + _branch(branch))
    left = figures.branches_left_out
    if left:
        lines.append(f"  and {plural(left, 'branch', 'branches')} that cost less")
    return "\n".join(lines)


def many_text(figures: ManyFigures) -> str:
    """Return the figures of many runs: half of the runs have at most the first number,
    nine of ten the second.
    """
    lines = [_line("", "median", "90 %")]
    for field, spread in figures.spreads.items():
        median = _written(field, spread.median)
        p90 = _written(field, spread.p90)
        lines.append(_line(_NAMES[field], median, p90))
    lines.append("")
    total = f"all: {plural(figures.calls, 'call')} in {duration_text(figures.makespan_ms)}"
    total += f"; one after the other {duration_text(figures.sequential_ms)}"
    if figures.speed_up is not None:
        total += f", {figures.speed_up:.1f} times as long"
    lines.append(total)
    if figures.waited_ms:
        waits = [f"{cause} {duration_text(millis)}" for cause, millis in figures.waited_ms.items()]
        lines.append(f"waited for {', '.join(waits)}")
    failed = [f"{count:,} {kind}" for kind, count in figures.failures.items()]
    retries = plural(figures.retries, "retry", "retries")
    lines.append(f"{retries}; failures: {', '.join(failed) or 'none'}")
    if figures.speculation is not None:
        lines += ["", *_early_lines(figures.speculation)]
    return "\n".join(lines)


def _early_lines(early: Speculated) -> list[str]:
    return [
        _line("early calls of use", f"{early.hits:,} of {early.calls:,}"),
        _line("saved by early calls", duration_text(early.saved_ms)),
        _line("calls that early ones missed", f"{early.missed:,}"),
    ]


def _line(name: str, *values: str) -> str:
    line = padded(name, _COLUMN)
    for value in values:
        line += value.rjust(_NUMBER)
    return line


def _written(field: str, value: float) -> str:
    if field in _SHARES:
        return f"{value:.0%}"
    if field == "calls":
        return f"{value:,.0f}"
    if not field.endswith("_ms"):
        return f"{value:.1f}"
    if value < 0:
        return f"-{duration_text(-value)}"
    return duration_text(value)


def _branch(branch: BranchUsage) -> str:
    text = padded(one_line(branch.branch), _COLUMN)
    text += f"{plural(branch.calls, 'model call')}, {branch.tokens:,} tokens"
    if branch.cost_usd:
        text += f", ${branch.cost_usd:.4f}"
    return text
