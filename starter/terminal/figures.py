"""Figures as text for people: of one run in two lines and a table, of many runs in one table."""

from sennit.starter.terminal.text import padded
from sennit.workflows.plan.figures.figures import BranchUsage, Figures
from sennit.workflows.plan.figures.lines import figures_lines, plural
from sennit.workflows.plan.figures.many import ManyFigures
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
    for name in _NAMES:
        if getattr(figures, name) is not None:
            lines.append(f"  {padded(_NAMES[name], _COLUMN)}{_value(name, getattr(figures, name)):>{_NUMBER}}")
    for queue, millis in figures.busy_ms.items():
        lines.append(f"  {padded(f'busy on {one_line(queue)}', _COLUMN)}{duration_text(millis):>{_NUMBER}}")
    lines += [f"  {_branch(branch)}" for branch in figures.branches]
    if figures.branches_left_out:
        lines.append(f"  and {plural(figures.branches_left_out, 'branch', 'branches')} that cost less")
    return "\n".join(lines)


def many_text(figures: ManyFigures) -> str:
    """Return the figures of many runs: half of the runs have at most the first number, nine of ten the second."""
    lines = [f"{padded('', _COLUMN)}{'median':>{_NUMBER}}{'90 %':>{_NUMBER}}"]
    for name, spread in figures.spreads.items():
        median, p90 = _value(name, spread.median), _value(name, spread.p90)
        lines.append(f"{padded(_NAMES[name], _COLUMN)}{median:>{_NUMBER}}{p90:>{_NUMBER}}")
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
    lines.append(f"{plural(figures.retries, 'retry', 'retries')}; failures: {', '.join(failed) or 'none'}")
    return "\n".join(lines)


def _value(name: str, value: float) -> str:
    if name.endswith("_ms"):
        return f"-{duration_text(-value)}" if value < 0 else duration_text(value)
    if name in _SHARES:
        return f"{value:.0%}"
    if name == "calls":
        return f"{value:,.0f}"
    return f"{value:.1f}"


def _branch(branch: BranchUsage) -> str:
    cost = f", ${branch.cost_usd:.4f}" if branch.cost_usd else ""
    name = padded(one_line(branch.branch), _COLUMN)
    return f"{name}{plural(branch.calls, 'model call')}, {branch.tokens:,} tokens{cost}"
