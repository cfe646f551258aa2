"""Files of cases, right and wrong: whatever is wrong is named with its line, before anything is started."""

from pathlib import Path

import pytest

from benchmarks.agents.questions import questions
from sennit.folders import CORPUS
from sennit.starter.client.errors import Refused
from sennit.starter.evaluation.cases import read_cases
from sennit.starter.evaluation.expectations import numbers_in
from sennit.starter.plans.plan_file import BadPlan, read_plan

SHIPPED = CORPUS.parent / "evaluations"
FIRST = "cases:\n- name: one\n  goal: Why?\n"


def _file(folder: Path, text: str) -> str:
    path = folder / "Some cases.yaml"
    path.write_text(text)
    return str(path)


def test_a_case_runs_a_goal_a_plan_or_a_program_with_documents(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "plan.yaml").write_text(
        "goal: Add\ninputs: {n: {type: integer}}\nnodes:\n- {id: a, kind: llm, prompt: $input.n}\nanswer: $a\n"
    )
    (tmp_path / "twice.py").write_text('"""Double it."""\n\n\nasync def main(n: int):\n    return 2 * n\n')
    text = """\
docs: texts
cases:
- {name: why, goal: Why?, expect: {contains: because}}
- {name: sum, plan: plan.yaml, inputs: {n: 3}, docs: own, expect: {equals: 3}}
- {name: twice, program: twice.py, inputs: {n: 3}, expect: {number: 6}}
"""
    found = read_cases(_file(tmp_path, text))
    why, total, twice = found.cases
    assert found.name == "some-cases"
    assert why.what == {"goal": "Why?", "docs": str(tmp_path / "texts")}
    assert total.what["inputs"] == {"n": 3}
    assert total.what["plan"]["goal"] == "Add"
    assert total.what["docs"] == str(tmp_path / "own")
    assert total.task == "Add\nIts inputs: {'n': 3}"
    assert "return 2 * n" in twice.what["program"]
    assert [case.name for case in found.only(["twice"]).cases] == ["twice"]
    with pytest.raises(Refused, match="--case twise: there is no such case; did you mean `twice`"):
        found.only(["twise"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: the file is empty"),
        ("[1]", ": a file of cases is an object with `cases`"),
        ("cases: []\n", ":1: cases: is empty; give at least one"),
        ("cases:\n- {name: [}\n", ":2: "),
        (f"{FIRST}", ":2: cases[0]: `expect` is missing"),
        (f"{FIRST}  expect: {{}}\n", ":4: cases[0].expect: expects nothing; write one of equals, contains"),
        (
            f"{FIRST}  expect:\n    contain: x\n",
            ":5: cases[0].expect.contain: there is no such field; did you mean `contains`?",
        ),
        (
            f"{FIRST}  gaol: x\n  expect: {{equals: 1}}\n",
            ":4: cases[0].gaol: there is no such field; did you mean `goal`?",
        ),
        (f"{FIRST}  expect: {{number: many}}\n", ":4: cases[0].expect.number: must be a number"),
        (f"{FIRST}  expect: {{number: 3, within: -1}}\n", ":4: cases[0].expect.within: "),
        (f"{FIRST}  expect: {{within: 1}}\n", "expects nothing"),
        (f"{FIRST}  expect: {{contains: x, within: 1}}\n", "`within` says how far a `number` may be off"),
        (f"{FIRST}  expect: {{contains: ['']}}\n", "an empty text, which every answer contains"),
        (f"{FIRST}  expect: {{schema: {{typo: string}}}}\n", ":4: cases[0].expect.schema.typo: schema keyword `typo`"),
        (
            f"{FIRST}  inputs: {{a: 1}}\n  expect: {{equals: 1}}\n",
            ":4: cases[0].inputs: only a plan or a program has inputs",
        ),
        (
            f"{FIRST}  plan: p.yaml\n  expect: {{equals: 1}}\n",
            ":2: cases[0]: a case has one of goal, plan and program; it has goal",
        ),
        (
            "cases:\n- name: one\n  expect: {equals: 1}\n",
            ":2: cases[0]: a case has one of goal, plan and program; it has none",
        ),
        (
            "cases:\n- name: One!\n  goal: x\n  expect: {equals: 1}\n",
            ":2: cases[0].name: a name is words of a-z and 0-9",
        ),
        ("cases:\n- name: one\n  plan: no.yaml\n  expect: {equals: 1}\n", ":3: cases[0].plan: there is no file `"),
        (
            "cases:\n- name: one\n  plan: no.py\n  expect: {equals: 1}\n",
            ":3: cases[0].plan: `plan` names a plan, NAME.yaml",
        ),
        (
            "cases:\n- name: one\n  program: no.yaml\n  expect: {equals: 1}\n",
            ":3: cases[0].program: `program` names a program",
        ),
        (f"docs: nowhere\n{FIRST}  expect: {{equals: 1}}\n", ":1: docs: there is no folder `"),
        (f"{FIRST}  docs: nowhere\n  expect: {{equals: 1}}\n", ":4: cases[0].docs: there is no folder `"),
        (
            f"{FIRST}  expect: {{equals: 1}}\n- name: one\n  goal: How?\n  expect: {{equals: 1}}\n",
            ":5: cases[1].name: the case `one` is already there, as number 1",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadPlan) as caught:
        read_cases(_file(tmp_path, text))
    place, _, sentence = str(caught.value).partition("Some cases.yaml")
    assert place == f"{tmp_path}/"
    assert message in sentence


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        "inputs: {n: {type: integer}}\nnodes:\n- {id: a, kind: llm, prompt: $input.n}\nanswer: $a\n"
    )
    text = """\
cases:
- {name: a, plan: plan.yaml, inputs: {m: 1}, expect: {equals: 1}}
- {name: a, goal: "  ", expect: {equals: 1}}
"""
    with pytest.raises(BadPlan) as caught:
        read_cases(_file(tmp_path, text))
    lines = [line.partition("Some cases.yaml")[2] for line in str(caught.value).splitlines()]
    assert len(lines) == 4
    assert any("no input `m`" in line for line in lines)
    assert any("these inputs are missing: n" in line for line in lines)
    assert any("is already there" in line for line in lines)
    assert any("the goal is empty" in line for line in lines)


def test_a_plan_with_problems_is_named_with_its_own_lines(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("nodes:\n- {id: a, kind: jion}\n")
    with pytest.raises(BadPlan, match=r"plan\.yaml:2: "):
        read_cases(_file(tmp_path, "cases:\n- {name: a, plan: plan.yaml, expect: {equals: 1}}\n"))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadPlan, match="No such file"):
        read_cases(str(tmp_path / "none.yaml"))


def test_the_questions_of_the_benchmark_ship_with_facts_and_accept_its_answers() -> None:
    found = read_cases(str(SHIPPED / "benchmark.yaml"))
    cases = {case.name: case for case in found.cases}
    facts = (SHIPPED / "facts" / "facts.csv").read_text()
    assert list(cases) == [question.name for question in questions()]
    assert len(cases) == 40
    for question in questions():
        case = cases[question.name]
        assert case.task == question.goal
        assert list(case.expect.failures(question.answer)) == [], question.name
        assert list(case.expect.failures("I do not know.")), question.name
        for call in question.calls:
            if call.tool == "fact" and not str(call.result).startswith("no entry"):
                bound = question.bound(call)
                assert f"{bound['subject']},{bound['property']},{call.result}\n" in facts


def test_twenty_questions_over_the_corpus_ship_whose_figures_are_in_it() -> None:
    found = read_cases(str(SHIPPED / "corpus.yaml"))
    numbers = [number for path in CORPUS.rglob("*.md") for number in numbers_in(path.read_text())]
    assert len(found.cases) == 20
    for case in found.cases:
        assert case.what["docs"] == str(CORPUS.resolve())
        wanted = case.expect.number
        is_difference = "how much" in case.task.lower() and "than" in case.task
        if wanted is not None and not is_difference:
            assert any(abs(number - wanted) <= case.expect.within for number in numbers), case.name


def test_a_file_of_cases_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(BadPlan):
        read_plan(_file(tmp_path, f"{FIRST}  expect: {{equals: 1}}\n")).check(None)
