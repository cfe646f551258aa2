"""What people read of the quotes of a run's programs."""

import pytest
from doubles.plan.play import Play, node

from sennit.workflows.messages.contracts import Conclusion
from sennit.workflows.messages.updates import RaiseBudget
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, Quoted
from sennit.workflows.plan.scheduling.budget import Budget
from sennit.workflows.run.update_rules import judge
from sennit.workflows.views.board import board
from sennit.workflows.views.questions import blocked_on
from sennit.workflows.views.quote import budget_warnings, quote_line
from sennit.workflows.views.report import report_of
from sennit.workflows.views.shown_run import ShownRun

QUOTED = Quoted("calls 6; tokens about 9,000; writes none", 6, 9_000, 2_000_000)


def program(*names: str, **limits: int) -> Play:
    run = Play(*(node(name, kind="program", quote=QUOTED) for name in names), answer=names)
    run.state.budget = Budget(limits)
    return run


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["main"], QUOTED.text),
        (["a", "b"], f"a: {QUOTED.text} · b: {QUOTED.text}"),
        (["a", "b", "c", "d", "e"], " · ".join([*(f"{name}: {QUOTED.text}" for name in "abc"), "and 2 more"])),
    ],
)
def test_quotes_stand_in_one_line(names: list[str], line: str) -> None:
    run = program(*names)
    assert quote_line(run.state) == line
    assert [line for line in board(ShownRun(run.state, "r"), title="t").splitlines() if line.startswith("quote&#58; ")]
    assert ExecutionPlan.unpack(run.graph.execution_plan.pack()).specs[0].quote == QUOTED


def test_a_guess_that_is_more_than_the_budget_is_a_warning() -> None:
    run = program("main", tokens=5_000, cost=1_000_000)
    assert run.begin() == ["start main"]
    assert budget_warnings(run.state) == [
        "`main` takes about 9,000 tokens by its quote; the budget has 5,000 tokens",
        "`main` takes about $2.0000 by its quote; the budget has $1.0000",
    ]
    assert budget_warnings(program("main", tokens=9_000).state) == []


def test_what_blocks_a_program_says_how_many_calls_the_budget_lacks() -> None:
    run = program("main", calls=2, tokens=100_000)
    run.begin()
    [item] = blocked_on(run.state, "run-1", {})
    assert item.question == "`main` makes at least 6 model calls; the budget has 2 left; 1 node is ready and waits"
    assert item.command == "sennit update run-1 raise_budget calls=6"
    event = judge(run.state, RaiseBudget.model_validate(item.example)).event
    assert event is not None
    assert run.act(event) == ["start main"]


def test_the_report_of_a_program_that_never_began_says_why() -> None:
    run = program("main", calls=2)
    run.state.on_failure = "partial"
    assert run.begin() == ["end partial"]
    report = report_of(ShownRun(run.state), "partial", Conclusion(), "")
    assert (report.problem, report.quote) == (
        "`main` makes at least 6 model calls; the budget has 2 left", QUOTED.text
    )  # fmt: skip
