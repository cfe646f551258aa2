"""An evaluation as text: a line for each case and model, then why some are not right, then the
figures of each model and what has changed.
"""

from sennit.starter.evaluation.results import CaseResult, Change, Evaluation, Figures
from sennit.starter.terminal.text import columns, counted, fit
from sennit.workflows.plan.language.references import as_text
from sennit.workflows.plan.language.text import one_line

_HEAD = ("case", "model", "right", "seconds", "cost", "tokens", "plan", "repairs")
_SHOWN_ANSWER = 100
"""Columns of a wrong answer."""


def table(evaluation: Evaluation, width: int) -> str:
    """Return the whole evaluation for a person."""
    rows = [_HEAD, *map(_row, evaluation.results)]
    blocks = [_without_empty(rows, width)]
    wrong = [_reason(result) for result in evaluation.results if not result.right]
    if wrong:
        blocks.append("\n".join(["not right:", *wrong]))
    blocks.append("\n".join(map(_sentence, evaluation.figures)))
    blocks += map(_comparison, evaluation.changes)
    return "\n\n".join(blocks)


def _reason(result: CaseResult) -> str:
    """Return why a case is not right, whole: it may name a command. Then comes the
    beginning of its answer.
    """
    model = ""
    if result.model:
        model = f" ({result.model})"
    line = f"  {result.case}{model}: {one_line(result.why)}"
    if result.answer is None:
        return line
    return f"{line}\n    it says: {fit(as_text(result.answer), _SHOWN_ANSWER)}"


def _row(result: CaseResult) -> tuple[str, ...]:
    verdict = "yes" if result.right else "no"
    if result.is_open or result.status == "refused":
        verdict = result.status
    return (
        result.case,
        result.model,
        verdict,
        _seconds(result.seconds),
        _dollars(result.cost_usd),
        f"{result.tokens:,}",
        _plan(result.width, result.depth),
        str(result.repairs),
    )


def _without_empty(rows: list[tuple[str, ...]], width: int) -> str:
    """Return the rows as lines, without the columns in which no case has anything, such as
    that of the only model.
    """
    kept = [column for column in zip(*rows, strict=True) if any(column[1:])]
    return columns(list(zip(*kept, strict=True)), [""] * len(rows), width)


def _sentence(figures: Figures) -> str:
    """Return the figures of a model in a line."""
    share = 100 * figures.right / figures.cases
    parts = [
        f"{figures.right} of {figures.cases} right ({share:.0f} %)",
        f"p50 {_seconds(figures.p50_seconds)} s, p95 {_seconds(figures.p95_seconds)} s",
        _dollars(figures.cost_usd),
        f"{figures.tokens:,} tokens in {figures.calls:,} calls",
        f"plans {_plan(figures.width, figures.depth)} on average",
        counted(figures.repairs, "repair"),
    ]
    if figures.open:
        parts.insert(1, f"{figures.open} not over")
    if figures.judge_cost_usd:
        parts.append(f"{_dollars(figures.judge_cost_usd)} for the judge")
    name = ""
    if figures.model:
        name = f"{figures.model}: "
    return name + " · ".join(parts)


def _comparison(change: Change) -> str:
    """Return what has changed for a model."""
    before, now = change.before, change.now
    earlier = "the earlier result"
    if before.model != now.model:
        earlier += f" of {before.model or 'the models of the workers'}"
    model = ""
    if now.model:
        model = f"{now.model}, "
    lines = [
        f"{model}{now.cases} cases against {earlier}:",
        f"  right    {before.right} -> {now.right}",
        f"  p50, p95 {_times(before)} -> {_times(now)} s",
        f"  cost     {_dollars(before.cost_usd)} -> {_dollars(now.cost_usd)}",
        f"  tokens   {before.tokens:,} -> {now.tokens:,}",
        f"  plans    {_plan(before.width, before.depth)} -> {_plan(now.width, now.depth)}",
        f"  repairs  {before.repairs} -> {now.repairs}",
    ]
    if change.better:
        lines.append(f"  now right: {', '.join(change.better)}")
    if change.worse:
        lines.append(f"  no more right: {', '.join(change.worse)}")
    return "\n".join(lines)


def _times(figures: Figures) -> str:
    return f"{_seconds(figures.p50_seconds)}, {_seconds(figures.p95_seconds)}"


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    return f"{seconds:.1f}"


def _dollars(cost: float) -> str:
    return f"${cost:.4f}"


def _plan(width: float | None, depth: float | None) -> str:
    """Return how wide and how deep a plan is, as `4x2`; a `?` if nobody knows."""
    if width is None or depth is None:
        return "?"
    return f"{width:g}x{depth:g}"
