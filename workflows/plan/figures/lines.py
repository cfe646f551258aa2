"""Figures as two lines of text, the same on the board and in a terminal."""

from sennit.workflows.plan.figures.figures import Figures
from sennit.workflows.plan.figures.speculated import Speculated
from sennit.workflows.plan.language.limits import duration_text


def figures_lines(figures: Figures) -> list[str]:
    """Return what parallelism has brought, and how the calls went; nothing of a run
    that has called nothing.
    """
    if not figures.calls and not figures.subagents:
        return []
    return [_times(figures), _course(figures)]


def _times(figures: Figures) -> str:
    sequential = duration_text(figures.sequential_ms)
    makespan = duration_text(figures.makespan_ms)
    text = f"{_counted(figures)} in {makespan}; one after the other {sequential}"
    if figures.speed_up is not None:
        text += f", {figures.speed_up:.1f} times as long"
    text += f"; critical path {duration_text(figures.critical_path_ms)}"
    if figures.paused_ms:
        text += f"; {duration_text(figures.paused_ms)} only waiting for a person left out"
    return text


def _counted(figures: Figures) -> str:
    parts = []
    if figures.calls:
        parts.append(plural(figures.calls, "call"))
    if figures.subagents:
        parts.append(plural(figures.subagents, "sub-agent"))
    return " and ".join(parts)


def _course(figures: Figures) -> str:
    parts = []
    if figures.mean_width is not None:
        parts.append(f"{figures.mean_width:.1f} at once, at most {figures.largest_width:,}")
    if figures.parallel_ratio is not None:
        parts.append(f"{figures.parallel_ratio:.0%} beside another")
    if figures.waited_ms:
        waits = [f"{cause} {duration_text(millis)}" for cause, millis in figures.waited_ms.items()]
        listed = ", ".join(waits)
        parts.append(f"waited for {listed}")
    if figures.speculation is not None:
        parts.append(_early(figures.speculation))
    if figures.retries:
        parts.append(plural(figures.retries, "retry", "retries"))
    if figures.failures:
        failed = [f"{count:,} {kind}" for kind, count in figures.failures.items()]
        listed = ", ".join(failed)
        parts.append(f"failures: {listed}")
    return "; ".join(parts)


def _early(early: Speculated) -> str:
    text = f"{plural(early.calls, 'call')} made early, {early.hits:,} of use"
    if early.hits:
        text += f", {duration_text(early.saved_ms)} saved"
    return text


def plural(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    if count == 1:
        return f"{count:,} {one}"
    return f"{count:,} {many or f'{one}s'}"
