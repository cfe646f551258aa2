"""The agent benchmark still measures what it says: every question fits, and two run by all means, ten times faster."""

from pathlib import Path

import pytest

from benchmarks.agents import oracle as model
from benchmarks.agents.comparison import bench, print_row, print_totals
from benchmarks.agents.oracle import Oracle, lines
from benchmarks.agents.questions import questions
from sennit.activities.toolbox import load_tools
from sennit.testing.model_rules import Asked
from sennit.workflows.plan.checking.validation import parse_plan, problems_of
from sennit.workflows.plan.planner_format.lines import LineReader


def asked(system: str, goal: str, *results: str) -> Asked:
    turns = (("user", goal), *(("tool", result) for result in results))
    return Asked("openai", "test-model", system, turns, (), None, stream=True, headers={}, body={})


def test_there_are_enough_questions_of_all_shapes() -> None:
    assert len(questions()) >= 30
    assert len({question.goal for question in questions()}) == len(questions())
    assert {len(question.planned) for question in questions()} >= {2, 3, 4, 5, 6, 7}
    assert any(question.replanned for question in questions())


def test_a_plan_can_run() -> None:
    catalogue = load_tools(["benchmarks.agents.lookups"]).catalogue()
    tools = {entry["name"]: entry["schema"] for entry in catalogue}
    for question in questions():
        reader = LineReader(tools)
        reader.feed(Oracle().reply(asked("You plan work.", question.goal)).text)
        reader.close()
        assert (reader.errors, reader.warnings) == ([], []), question.name
        plan = parse_plan(reader.plan)
        assert problems_of(plan, catalogue, models=("openai",)) == [], question.name
        kinds = {node.id: node.kind for node in plan.nodes}
        planned = {kinds[f"n{lines(question)[call.number]}"] for call in question.planned}
        assert planned == {"tool"}, question.name


@pytest.mark.parametrize("system", [model.SERIAL, model.PARALLEL])
def test_an_agent_gets_the_answer_only_for_the_results(system: str) -> None:
    for question in questions():
        results: list[str] = []
        by_id = {f"call_{call.number}": str(call.result) for call in question.calls}
        while (reply := Oracle().reply(asked(system, question.goal, *results))).calls:
            assert len(reply.text) == model.THOUGHT_CHARACTERS
            assert len(reply.calls) == 1 or system == model.PARALLEL
            results += [by_id[call.id] for call in reply.calls]
        assert (reply.text, len(results)) == (question.answer, len(question.calls)), question.name
        wrong = Oracle().reply(asked(system, question.goal, *results[:-1], "wrong"))
        assert wrong.text == model.UNKNOWN, question.name


@pytest.mark.server
async def test_two_questions_by_all_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [question for question in questions() if question.name in ("diamond-hobbit", "dead-end-mills")]
    async with bench(Oracle(pace=10.0), tmp_path) as built:
        rows = [await built.row(question) for question in chosen]
    for row in rows:
        assert [timed.same for timed in row.means] == [True] * 4
        assert [timed.calls for timed in row.means] == [len(row.question.calls)] * 4
        assert row.bound <= row.ideal < row.sennit.seconds
        assert 0 < row.overlapped < row.whole.seconds
        assert row.opening < row.first < row.sennit.seconds
        print_row(row)
    assert [row.sennit.turns for row in rows] == [3, 2], "a dead end takes the joiner twice"
    print_totals(rows)
    assert "same answers: yes" in capsys.readouterr().out
