"""Results of an evaluation, and the figures of each model. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Literal

from pydantic import ValidationError

from sennit.starter.client.errors import Refused
from sennit.workflows.messages.result import RunStatus
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.language.validation_messages import Frozen, describe_errors


class CaseResult(Frozen):
    """How one case ended with one model. `why` says why it is not right; `seconds` are those from
    the run's start to its end, as the server has noted them.

    `width` is how many nodes of the plan can run side by side, and `depth` how many stand one
    behind the other; None if no worker has shown the plan. `repairs` is how often the planner was
    shown what is wrong with its plan. What a judge has cost is not a part of `cost_usd`.
    """

    case: str
    model: str = ""
    run: str
    status: RunStatus | Literal["refused"]
    right: bool
    why: str = ""
    answer: Any = None
    seconds: float | None = None
    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    width: int | None = None
    depth: int | None = None
    repairs: int = 0
    judge_run: str = ""
    judge_cost_usd: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the run goes on, so that the same evaluation may find it right later."""
        return self.status in ("running", "blocked")

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Figures(Frozen):
    """What the cases of one model come to. Times are those of runs that are
    over, None without any.
    """

    model: str = ""
    cases: int
    right: int
    open: int = 0
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    cost_usd: float = 0.0
    tokens: int = 0
    calls: int = 0
    width: float | None = None
    depth: float | None = None
    repairs: int = 0
    judge_cost_usd: float = 0.0


class Change(Frozen):
    """What has changed for one model since an earlier evaluation, over the cases that both have.

    `before` and `now` are the figures of these cases; `better` are cases that have become right,
    `worse` those that were right and are no more.
    """

    before: Figures
    now: Figures
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()


class Evaluation(Frozen):
    """A whole evaluation, as `sennit eval --output json` writes it and `--against` reads it."""

    set: str
    figures: tuple[Figures, ...]
    results: tuple[CaseResult, ...]
    changes: tuple[Change, ...] = ()


_Results = Mapping[str, Mapping[str, CaseResult]]
"""Results by model and case."""


def evaluation_of(
    name: str, results: Sequence[CaseResult], earlier: Evaluation | None = None
) -> Evaluation:
    """Return the evaluation that these results make, compared with an
    earlier one if there is one.
    """
    by_model = _by_model(results)
    figures = [figures_of(model, list(cases.values())) for model, cases in by_model.items()]
    changes: list[Change] = []
    if earlier is not None:
        changes = _changes(by_model, _by_model(earlier.results))
    return Evaluation(
        set=name, figures=tuple(figures), results=tuple(results), changes=tuple(changes)
    )


def figures_of(model: str, results: Sequence[CaseResult]) -> Figures:
    """Return the figures of one model's results."""
    totals: Counter[str] = Counter()
    cost, judge_cost = 0.0, 0.0
    times: list[float] = []
    widths: list[int] = []
    depths: list[int] = []
    for result in results:
        totals["right"] += result.right
        totals["open"] += result.is_open
        totals["tokens"] += result.tokens
        totals["calls"] += result.calls
        totals["repairs"] += result.repairs
        cost += result.cost_usd
        judge_cost += result.judge_cost_usd
        if result.seconds is not None:
            times.append(result.seconds)
        if result.width is not None and result.depth is not None:
            widths.append(result.width)
            depths.append(result.depth)
    times.sort()
    return Figures(
        model=model,
        cases=len(results),
        p50_seconds=percentile(times, 0.5),
        p95_seconds=percentile(times, 0.95),
        cost_usd=round(cost, 6),
        judge_cost_usd=round(judge_cost, 6),
        width=_mean(widths),
        depth=_mean(depths),
        **totals,
    )


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the least of the ordered values that this share of them does not
    exceed; None without values.
    """
    if not ordered:
        return None
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def read_earlier(name: str, text: str) -> Evaluation:
    """Return an evaluation that was written as JSON before; raises Refused."""
    try:
        return Evaluation.model_validate_json(text)
    except ValidationError as error:
        why = describe_errors(error, Evaluation.model_fields)
        way = "keep one with: sennit eval CASES.yaml --output json > FILE"
        raise Refused(
            f"--against {one_line(name, 60)}: it is no result of an evaluation: {why}; {way}"
        ) from None


def _by_model(results: Sequence[CaseResult]) -> dict[str, dict[str, CaseResult]]:
    """Return the results of each model by case, in their order."""
    found: dict[str, dict[str, CaseResult]] = {}
    for result in results:
        found.setdefault(result.model, {})[result.case] = result
    return found


def _changes(now: _Results, before: _Results) -> list[Change]:
    """Return the changes of each model. One that the earlier evaluation does not have is compared
    with the only model that it has, if it has only one.
    """
    changes: list[Change] = []
    for model, cases in now.items():
        other = model
        if model not in before and len(before) == 1:
            (other,) = before
        earlier = before.get(other, {})
        if earlier.keys() & cases.keys():
            changes.append(_change(model, other, earlier, cases))
    return changes


def _change(
    model: str, other: str, before: Mapping[str, CaseResult], now: Mapping[str, CaseResult]
) -> Change:
    # Only cases that both have can be compared.
    earlier: list[CaseResult] = []
    later: list[CaseResult] = []
    better: list[str] = []
    worse: list[str] = []
    for case, result in now.items():
        if case not in before:
            continue
        earlier.append(before[case])
        later.append(result)
        if result.right and not before[case].right:
            better.append(case)
        elif before[case].right and not result.right:
            worse.append(case)
    return Change(
        before=figures_of(other, earlier),
        now=figures_of(model, later),
        better=tuple(better),
        worse=tuple(worse),
    )


def _mean(values: Sequence[int]) -> float | None:
    if not values:
        return None
    return round(fmean(values), 2)
