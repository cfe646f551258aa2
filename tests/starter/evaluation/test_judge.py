"""How a judge's run is started and waited for."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from sennit.starter.client.request import RunOptions
from sennit.starter.client.run import Run
from sennit.starter.evaluation.judge import Judge, Verdict
from sennit.workflows.messages.result import RunReport, RunStatus
from sennit.workflows.messages.views import RunView

MEETS = {"reason": "it does", "meets_rubric": True}


@dataclass
class JudgeRun:
    status: RunStatus
    joined: bool = False

    async def report(self) -> RunReport:
        answer = MEETS if self.status == "done" else None
        return RunReport(id="j", run_id="r", status=self.status, answer=answer, problem="no model")


@dataclass
class Starts:
    """A client whose runs are those given, one after the other."""

    runs: list[JudgeRun]
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def start(self, **options: Any) -> JudgeRun:
        self.asked.append(options)
        return self.runs.pop(0)


async def to_its_end(_: Run[RunReport]) -> RunView | None:
    return None


async def not_so_long(_: Run[RunReport]) -> RunView | None:
    return RunView(id="j", run_id="r", status="running", phase="")


async def verdict_of(starts: Starts, options: RunOptions, follow: Any = to_its_end) -> Verdict:
    return await Judge(cast("Any", starts), None, options, follow).judge("a", "Say hello", "It is polite.", "Hello")


async def test_a_judge_that_takes_too_long_is_left() -> None:
    verdict = await verdict_of(Starts([JudgeRun("running")]), {}, not_so_long)
    assert verdict.is_open
    assert verdict.failure == f"its judge goes on; watch it: sennit watch {verdict.run}"


@pytest.mark.parametrize(
    ("runs", "failure"),
    [
        ([JudgeRun("failed", joined=True), JudgeRun("done")], ""),
        ([JudgeRun("failed", joined=True), JudgeRun("failed")], "it was not judged: no model"),
        ([JudgeRun("failed")], "it was not judged: no model"),
        ([JudgeRun("done", joined=True)], ""),
    ],
)
async def test_a_judge_that_failed_before_is_asked_once_more(runs: list[JudgeRun], failure: str) -> None:
    count, starts = len(runs), Starts(list(runs))
    assert (await verdict_of(starts, {})).failure == failure
    assert [asked.get("again", False) for asked in starts.asked] == [False, True][:count]


async def test_a_judge_has_the_tenant_and_the_budget_of_its_evaluation() -> None:
    starts = Starts([JudgeRun("done"), JudgeRun("done")])
    bounds: RunOptions = {"tenant": "blue", "budget": {"tokens": 500}}
    bound = await verdict_of(starts, {**bounds, "window": 3})
    free = await verdict_of(starts, {})
    assert (starts.asked[0]["tenant"], starts.asked[0]["budget"]) == ("blue", {"tokens": 500})
    assert "window" not in starts.asked[0]
    assert (starts.asked[1]["tenant"], starts.asked[1]["budget"]) == (None, None)
    assert bound.run != free.run, "a judge within other bounds is another run"
