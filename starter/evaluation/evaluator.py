"""Answers the cases of a set, each by a durable run, and says how each ended."""

import asyncio
import shlex
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from sennit.starter.client.client import Sennit
from sennit.starter.client.errors import Refused, SennitError, ServerUnreachable
from sennit.starter.client.request import RunOptions, checked_new_id, slug
from sennit.starter.client.run import Run
from sennit.starter.evaluation.cases import Case, CaseSet
from sennit.starter.evaluation.judge import Judge, Verdict
from sennit.starter.evaluation.results import CaseResult
from sennit.starter.limits import MAX_VIEW_SECONDS
from sennit.starter.terminal.layers import layers_of
from sennit.workflows.messages.result import RunReport, RunStatus, UsageReport
from sennit.workflows.messages.views import RunView
from sennit.workflows.plan.language.text import format_names, one_line


@dataclass(frozen=True, slots=True)
class Attempt:
    """A case with a model, and the id of the run that answers it; an empty model is what
    the workers are set to.
    """

    case: Case
    model: str
    run: str


def attempts_of(cases: CaseSet, models: Sequence[str], prefix: str) -> list[Attempt]:
    """Return the attempts, model by model. Their runs are named by set, case and model, so that the
    same evaluation finds them again. Raises Refused if two models would have the same runs.
    """
    slugs: dict[str, str] = {}
    for model in models:
        other = slugs.setdefault(slug(model), model)
        if other != model:
            raise Refused(
                f"--model: {other} and {model} cannot be told apart in the ids of runs; evaluate "
                "them apart"
            )
    attempts: list[Attempt] = []
    for model in dict.fromkeys(models) or ("",):
        for case in cases.cases:
            run = f"{prefix}-{case.name}"
            if model:
                run += f"-{slug(model)}"
            attempts.append(Attempt(case, model, checked_new_id(run)))
    return attempts


@dataclass(frozen=True, slots=True)
class Evaluator:
    """How cases are answered. `judge` is the model that judges, None for the one that the workers
    are set to; `limit` is for how many seconds a case is waited for, and then its judge. With
    `again`, runs that are over are started anew.
    """

    sennit: Sennit
    options: RunOptions
    judge: str | None = None
    again: bool = False
    limit: float | None = None

    async def evaluate(
        self, attempts: Sequence[Attempt], at_once: int, on_result: Callable[[CaseResult], None]
    ) -> list[CaseResult]:
        """Return the results in the order of the attempts, of which so many go on at once;
        `on_result` gets each when it is there. However this ends, the runs that have begun go on.

        Raises SennitError if the server goes away.
        """
        room = asyncio.Semaphore(at_once)

        async def one(attempt: Attempt) -> CaseResult:
            async with room:
                result = await self._result(attempt)
            on_result(result)
            return result

        tasks = [asyncio.ensure_future(one(attempt)) for attempt in attempts]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _result(self, attempt: Attempt) -> CaseResult:
        given = {**self.options, **attempt.case.what, "model": attempt.model or None}
        options = RunOptions(**given)  # type: ignore[typeddict-item]
        try:
            run = await self.sennit.start(id=attempt.run, again=self.again, **options)
            view = await self._follow(run)
            if view is not None:
                return _open(attempt, view)
            report = await run.report()
        except ServerUnreachable:
            raise
        except Refused as refused:
            why = one_line(str(refused), 500)
            return CaseResult(
                case=attempt.case.name,
                model=attempt.model,
                run=attempt.run,
                status="refused",
                right=False,
                why=why,
            )
        return await self._judged(attempt, run, report)

    async def _follow(self, run: Run[RunReport]) -> RunView | None:
        """Wait for the end of a run; return its view instead if it waits for
        somebody, or takes too long.
        """
        latest = RunView(id=run.id, run_id=run.run_id, status="running", phase="")
        try:
            async with asyncio.timeout(self.limit), aclosing(run.watch()) as views:
                async for latest in views:
                    if latest.status == "blocked":
                        return latest
        except TimeoutError:
            return latest
        return None

    async def _judged(self, attempt: Attempt, run: Run[RunReport], report: RunReport) -> CaseResult:
        """Return the result of a run that is over. Only a whole answer can be right."""
        failures: list[str] = []
        verdict_fields: dict[str, Any] = {}
        expect = attempt.case.expect
        if report.status != "done":
            failures.append(_ending(report))
        else:
            failures += expect.failures(report.answer)
        # A judge costs money: it is asked only about an answer that may be right.
        if expect.judge and not failures:
            judge = Judge(self.sennit, self.judge, self.options, self._follow)
            verdict = await judge.judge(attempt.run, attempt.case.task, expect.judge, report.answer)
            if verdict.is_open:
                return _unjudged(attempt, report, verdict)
            verdict_fields = {"judge_run": verdict.run, "judge_cost_usd": verdict.cost_usd}
            if verdict.failure:
                failures.append(verdict.failure)

        view = await _last_view(run)
        usage = report.usage
        plan: dict[str, int] = {}
        if view is not None:
            plan = _plan_size(view)
            # A run that failed while it was planning has no report of its own, and yet has spent.
            if not report.nodes:
                usage = view.usage
        ended, _ = await self.sennit.look_up(run.id)
        seconds = None
        if ended.closed:
            seconds = round(ended.closed - ended.began, 3)
        return CaseResult(
            case=attempt.case.name,
            model=attempt.model,
            run=attempt.run,
            status=report.status,
            right=not failures,
            why="; ".join(failures),
            answer=report.answer,
            seconds=seconds,
            **_used(usage),
            **plan,
            repairs=await run.repairs(),
            **verdict_fields,
        )


def _open(attempt: Attempt, view: RunView) -> CaseResult:
    """Return the result of a run that goes on."""
    status: RunStatus = "running"
    if view.status == "blocked":
        status = "blocked"
        nodes = format_names([item.node for item in view.blocked], 3)
        why = f"it waits for you at {nodes}; see: {shlex.join(['sennit', 'status', attempt.run])}"
    else:
        why = f"it goes on; watch it: {shlex.join(['sennit', 'watch', attempt.run])}"
    return CaseResult(
        case=attempt.case.name,
        model=attempt.model,
        run=attempt.run,
        status=status,
        right=False,
        why=why,
        **_used(view.usage),
    )


def _unjudged(attempt: Attempt, report: RunReport, verdict: Verdict) -> CaseResult:
    """Return the result of a run that is over, and whose judge goes on."""
    return CaseResult(
        case=attempt.case.name,
        model=attempt.model,
        run=attempt.run,
        status="running",
        right=False,
        why=verdict.failure,
        answer=report.answer,
        **_used(report.usage),
        judge_run=verdict.run,
        judge_cost_usd=verdict.cost_usd,
    )


def _ending(report: RunReport) -> str:
    """Return how a run ended that has no whole answer."""
    problem = ""
    if report.problem:
        problem = f": {one_line(report.problem, 300)}"
    if report.status == "partial":
        return f"its answer is only a part{problem}"
    return f"the run is {report.status}{problem}"


def _used(usage: UsageReport) -> dict[str, Any]:
    return usage.model_dump(include={"cost_usd", "input_tokens", "output_tokens", "calls"})


async def _last_view(run: Run[RunReport]) -> RunView | None:
    """Return the view of a run that is over, None if no worker shows it in time."""
    try:
        async with asyncio.timeout(MAX_VIEW_SECONDS):
            return await run.view()
    except (TimeoutError, SennitError):
        return None


def _plan_size(view: RunView) -> dict[str, int]:
    """Return the width and depth of the plan of a run."""
    layers = layers_of(view.nodes)
    return {"width": max(map(len, layers), default=0), "depth": len(layers)}
