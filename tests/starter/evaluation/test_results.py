"""Figures over results, and what has changed since an earlier evaluation."""

import json
from typing import Any

import pytest

from sennit.starter.client.errors import Exit, Refused
from sennit.starter.commands.eval import exit_of
from sennit.starter.evaluation.results import CaseResult, evaluation_of, figures_of, percentile, read_earlier
from sennit.starter.evaluation.table import table


def result(case: str, model: str = "", *, right: bool = True, **more: Any) -> CaseResult:
    fields = {"run": case, "status": "done", "seconds": 1.0, "width": 2, "depth": 3, **more}
    return CaseResult(case=case, model=model, right=right, **fields)


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [(0, 0.5, None), (1, 0.5, 1), (1, 0.95, 1), (2, 0.5, 1), (20, 0.5, 10), (20, 0.95, 19), (21, 0.95, 20)],
)
def test_percentiles_are_values_that_occurred(count: int, share: float, expected: float | None) -> None:
    assert percentile([float(number) for number in range(1, count + 1)], share) == expected


def test_figures_add_up_and_leave_out_what_nobody_knows() -> None:
    results = [
        result("a", cost_usd=0.1, input_tokens=5, output_tokens=2, calls=2, repairs=1, seconds=2.0),
        result("b", right=False, width=None, depth=None, judge_cost_usd=0.02, cost_usd=0.2, seconds=4.0),
        result("c", right=False, status="blocked", seconds=None, width=4, depth=1),
    ]
    figures = figures_of("", results)
    assert (figures.cases, figures.right, figures.open, figures.repairs) == (3, 1, 1, 1)
    assert (figures.p50_seconds, figures.p95_seconds) == (2.0, 4.0)
    assert (figures.cost_usd, figures.judge_cost_usd, figures.tokens, figures.calls) == (0.3, 0.02, 7, 2)
    assert (figures.width, figures.depth) == (3.0, 2.0)


def test_each_model_is_compared_with_itself_or_with_the_only_one_there_was() -> None:
    earlier = evaluation_of("s", [result("a", "x"), result("b", "x", right=False), result("gone", "x")])
    now = [result("a", "x", right=False), result("b", "x"), result("new", "x"), result("a", "y"), result("b", "y")]
    same, other = evaluation_of("s", now, earlier).changes
    assert (same.better, same.worse, same.before.cases, same.now.cases) == (("b",), ("a",), 2, 2)
    assert (other.before.model, other.now.model, other.better, other.worse) == ("x", "y", ("b",), ())


def test_exit_codes() -> None:
    good, bad = result("a"), result("a", right=False)
    assert exit_of(evaluation_of("s", [good])) is Exit.ANSWER
    assert exit_of(evaluation_of("s", [bad])) is Exit.FAILED
    assert exit_of(evaluation_of("s", [bad], evaluation_of("s", [bad]))) is Exit.ANSWER
    assert exit_of(evaluation_of("s", [bad], evaluation_of("s", [good]))) is Exit.FAILED
    refused = result("a", right=False, status="refused")
    assert exit_of(evaluation_of("s", [refused], evaluation_of("s", [bad]))) is Exit.FAILED
    assert exit_of(evaluation_of("s", [result("a", right=False, status="running")])) is Exit.OPEN


def test_the_table_has_a_line_for_each_case_and_what_has_changed() -> None:
    earlier = evaluation_of("s", [result("a"), result("b")])
    shown = table(
        evaluation_of(
            "s", [result("a"), result("b", right=False, why="it is\x1b[31m red", answer="b\x1b[1mlue")], earlier
        ),
        100,
    )
    lines = shown.splitlines()
    assert lines[0].split() == ["case", "right", "seconds", "cost", "tokens", "plan", "repairs"]
    assert lines[1].split() == ["a", "yes", "1.0", "$0.0000", "0", "2x3", "0"]
    assert lines[2].split()[:2] == ["b", "no"]
    assert lines[3:7] == ["", "not right:", "  b: it is red", "    it says: blue"]
    assert lines[8].startswith("1 of 2 right (50 %) · p50 1.0 s, p95 1.0 s · ")
    assert lines[-1] == "  no more right: b"
    assert "\x1b" not in shown


def test_an_evaluation_is_read_as_it_was_written() -> None:
    written = evaluation_of("s", [result("a", answer={"n": [1, None]})])
    assert read_earlier("f", written.model_dump_json()) == written


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"set": "s", "figures": [], "results": [{"case": 1}]})])
def test_what_is_no_evaluation_is_refused(text: str) -> None:
    with pytest.raises(Refused, match=r"--against f: it is no result of an evaluation: .*keep one with: sennit eval"):
        read_earlier("f", text)
