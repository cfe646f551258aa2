"""Results of an evaluation, and the figures of each model. Pure."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Literal

from pydantic import ValidationError

from sennit.starter.client.errors import Refused
from sennit.workflows.messages.result import RunStatus
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.language.validation_messages import Frozen, describe_errors


class CaseResult(Frozen):
    """How one case ended with one model. `why` says why it is not right; `seconds` are those from the run's start to
    its end, as the server has noted them.

    `width` is how many nodes of the plan can run side by side, and `depth` how many stand one behind the other; None if
    no worker has shown the plan. `repairs` is how often the planner was shown what is wrong with its plan. What a judge
    has cost is not a part of `cost_usd`.
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
    """What the cases of one model come to. Times are those of runs that are over, None without any."""

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

    `before` and `now` are the figures of these cases; `better` are cases that have become right, `worse` those that
    were right and are no more.
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


def evaluation_of(name: str, results: Sequence[CaseResult], earlier: Evaluation | None = None) -> Evaluation:
    """Return the evaluation that these results make, compared with an earlier one if there is one."""
    models = list(dict.fromkeys(result.model for result in results))
    figures = tuple(figures_of(model, [each for each in results if each.model == model]) for model in models)
    changes = tuple(_changes(models, results, earlier)) if earlier is not None else ()
    return Evaluation(set=name, figures=figures, results=tuple(results), changes=changes)


def figures_of(model: str, results: Sequence[CaseResult]) -> Figures:
    """Return the figures of one model's results."""
    times = sorted(each.seconds for each in results if each.seconds is not None)
    return Figures(
        model=model,
        cases=len(results),
        right=sum(each.right for each in results),
        open=sum(each.is_open for each in results),
        p50_seconds=percentile(times, 0.5),
        p95_seconds=percentile(times, 0.95),
        cost_usd=round(sum(each.cost_usd for each in results), 6),
        tokens=sum(each.tokens for each in results),
        calls=sum(each.calls for each in results),
        width=_mean([each.width for each in results]),
        depth=_mean([each.depth for each in results]),
        repairs=sum(each.repairs for each in results),
        judge_cost_usd=round(sum(each.judge_cost_usd for each in results), 6),
    )


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the least of the ordered values that this share of them does not exceed; None without values."""
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
        raise Refused(f"--against {one_line(name, 60)}: it is no result of an evaluation: {why}; {way}") from None


def _changes(models: Sequence[str], results: Sequence[CaseResult], earlier: Evaluation) -> list[Change]:
    """Return the changes of each model. One that the earlier evaluation does not have is compared with the only model
    that it has, if it has only one.
    """
    known = list(dict.fromkeys(each.model for each in earlier.results))
    changes: list[Change] = []
    for model in models:
        other = model
        if model not in known and len(known) == 1:
            other = known[0]
        before = {each.case: each for each in earlier.results if each.model == other}
        now = {each.case: each for each in results if each.model == model}
        if before.keys() & now.keys():
            changes.append(_change(model, other, before, now))
    return changes


def _change(model: str, other: str, before: Mapping[str, CaseResult], now: Mapping[str, CaseResult]) -> Change:
    shared = [case for case in now if case in before]
    return Change(
        before=figures_of(other, [before[case] for case in shared]),
        now=figures_of(model, [now[case] for case in shared]),
        better=tuple(case for case in shared if now[case].right and not before[case].right),
        worse=tuple(case for case in shared if before[case].right and not now[case].right),
    )


def _mean(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 2) if known else None
