"""Plan files: what is wrong with them is told with file and line."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starter.plans.catalogue import Catalogue
from starter.plans.plan_file import BadPlan, PlanFile, read_plan, read_yaml
from starter.plans.positions import Misread, plain

GOOD = """\
goal: Which is longer?
nodes:
- {id: a, kind: tool, tool: search, args: {query: "the Nile", k: 3}}
- id: b
  kind: llm
  prompt: How long is $a
answer: $b
"""
CATALOGUE = Catalogue(
    tools=[
        {
            "name": "search",
            "schema": {"type": "object", "properties": {"query": {"type": "string"}, "k": {"type": "integer"}}},
        }
    ]
)


@pytest.fixture
def plan_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def write(text: str | bytes, name: str = "plan.yaml") -> PlanFile:
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return read_plan(name)

    return write


def problem_of(plan_of: Any, text: str | bytes, name: str = "plan.yaml", catalogue: Catalogue | None = None) -> str:
    with pytest.raises(BadPlan) as caught:
        plan_of(text, name).check(catalogue)
    return str(caught.value)


def test_yaml_and_json_of_one_plan_are_the_same_data(plan_of: Any) -> None:
    data = plan_of(GOOD).data
    assert plan_of(json.dumps(data), "plan.json").data == data
    assert [node.id for node in plan_of(GOOD).check(CATALOGUE).nodes] == ["a", "b"]


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("kind: llm", "kind: llm\n  priority: 9", 6, "less than or equal to 5"),
        ("prompt: How", "promt: How", 6, "did you mean `prompt`"),
        ("  prompt: How long is $a\n", "", 4, "`prompt` is missing"),
        ("id: b", "id: 7b", 4, "is no id"),
        ("is $a", "is $c", 6, "refers to no node"),
        ("answer: $b", "answer: b", 7, "holds no reference"),
        ("goal: Which is longer?", "goal: 7", 1, "string"),
        ("- id: b", "- id: a", 4, "used 2 times"),
        ("  kind: llm", "  kind: llm\n  timeout: soon", 6, "is not a duration"),
        ("  kind: llm", "  kind: loop", 5, "not built yet"),
    ],
)
def test_every_problem_names_its_line(plan_of: Any, old: str, new: str, line: int, told: str) -> None:
    said = problem_of(plan_of, GOOD.replace(old, new))
    assert any(part.startswith(f"plan.yaml:{line}: ") and told in part for part in said.splitlines()), said


def test_a_problem_of_an_argument_names_its_line_when_the_tools_are_known(plan_of: Any) -> None:
    assert "plan.yaml:3: " in problem_of(plan_of, GOOD.replace("k: 3", "k: three"), catalogue=CATALOGUE)
    assert "did you mean `search`" in problem_of(
        plan_of, GOOD.replace("tool: search", "tool: serch"), "p.yaml", CATALOGUE
    )


def test_lines_of_a_json_plan_are_those_of_its_file(plan_of: Any) -> None:
    data = plan_of(GOOD).data
    data["nodes"][1]["prompt"] = 7
    text = json.dumps(data, indent=1)
    line = next(number for number, part in enumerate(text.splitlines(), 1) if '"prompt"' in part)
    assert problem_of(plan_of, text, "plan.json").startswith(f"plan.json:{line}: ")


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("nodes: []\nnodes: []", 2, "the key `nodes` is already on line 1"),
        ("nodes:\n- {id: a, id: b}", 2, "the key `id` is already on line 2"),
        ("a: .nan", 1, "is not a number a plan can hold"),
        ("a: 1\nb: -.inf", 2, "is not a number a plan can hold"),
        ("on: 1", 1, "YAML reads the key `on` as true; write it as 'on'"),
        ("a: {No: 1}", 1, "YAML reads the key `No` as false; write it as 'No'"),
        ("1: x", 1, "the key `1` is read as a value"),
        ("? [a]\n: x", 1, "a key is text"),
        ("a: !!python/object:os.system x", 1, "has no meaning in a plan"),
        ("a: !x {b: 1}", 1, "the tag `!x` has no meaning"),
        ("a: &a {b: 1}\nc:\n  <<: *a", 3, "merge keys"),
        ("a: &a [*a]", 1, "cannot contain itself"),
        ("a: 1\nb: *nope", 2, "names an anchor that is not above it"),
        ("a: 1\n---\nb: 1", 2, "a second document"),
        ("a: [1\nb: 2", 2, "expected"),
        ("a:\n\t- b", 2, "tab"),
        ("a: 'x", 1, "quoted scalar"),
        ("", 1, "the file is empty"),
        ("# only this", 1, "the file is empty"),
        ("- a", 1, "a plan is an object with `nodes`, not a list"),
        ("just text", 1, "not text"),
        ("a: !!int x", 1, "`x` is no int"),
        ("a: " + "[" * 150, 1, "nested more than 100 levels"),
        ("a: \x07", 1, "no such character"),
    ],
)
def test_what_is_no_plan_data_is_refused_with_its_line(plan_of: Any, text: str, line: int, told: str) -> None:
    said = problem_of(plan_of, text)
    assert said.startswith(f"plan.yaml:{line}: "), said
    assert told in said


def test_a_word_read_as_true_is_explained_where_it_does_not_fit(plan_of: Any) -> None:
    said = problem_of(plan_of, GOOD.replace("prompt: How long is $a", "prompt: yes"))
    assert "plan.yaml:6: " in said
    assert "YAML reads `yes` as true: to mean the word, write 'yes'" in said


def test_dates_stay_text_and_aliases_are_written_out(plan_of: Any) -> None:
    text = "a: 2026-01-01\nb: &x {c: [1, 2.5, null, ~, true]}\nd: [*x, *x]"
    value = {"c": [1, 2.5, None, None, True]}
    assert plain(read_yaml(text)) == {"a": "2026-01-01", "b": value, "d": [value, value]}


def test_an_alias_bomb_is_a_sentence() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(Misread, match="more than 500,000 values, aliases written out"):
        read_yaml("\n".join(lines))


def test_a_huge_file_is_refused_before_it_is_read(plan_of: Any) -> None:
    assert "over 5 MiB" in problem_of(plan_of, "# " + "x" * (5 * 1024 * 1024))


def test_ten_thousand_and_one_nodes_are_refused_clearly(plan_of: Any) -> None:
    nodes = "\n".join(f"- {{id: n{number}, kind: tool, tool: search}}" for number in range(10_001))
    said = problem_of(plan_of, f"goal: x\nnodes:\n{nodes}")
    assert said.startswith("plan.yaml:3: ")
    assert "10001" in said.replace(",", "")
    assert len(said) < 200


@pytest.mark.parametrize(
    ("body", "told"),
    [(b"\xff\xfea", "plan.yaml:1: not UTF-8"), (b"a: 1\nb: \xff", "plan.yaml:2: not UTF-8")],
)
def test_a_file_in_another_encoding_is_named(plan_of: Any, body: bytes, told: str) -> None:
    assert problem_of(plan_of, body).startswith(told)


def test_a_byte_order_mark_does_no_harm(plan_of: Any) -> None:
    assert plan_of(b"\xef\xbb\xbf" + GOOD.encode()).data["goal"] == "Which is longer?"


@pytest.mark.parametrize("path", ["nowhere.yaml", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadPlan, match=r"(No such file|Is a directory|null)"):
        read_plan(path)


@pytest.mark.parametrize("text", [GOOD, '{"nodes": [{"id": "a", "kind": "tool", "tool": "t"}]}'])
def test_standard_input_may_be_either_form(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert read_plan("-").plan().nodes[0].id == "a"


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.characters(), max_size=60) | st.text("{}[]:,-&*!|>'\"%@ \n\tab01.~?#", max_size=40))
def test_whatever_the_text_it_is_read_or_refused(text: str) -> None:
    try:
        read = plain(read_yaml(text))
    except Misread:
        return
    json.dumps(read, allow_nan=False)


def test_escapes_in_a_plan_do_not_reach_the_terminal(plan_of: Any) -> None:
    said = problem_of(plan_of, '{"nodes": [{"id": "\\u001b[31m", "kind": "tool", "tool": "x"}]}', "p.json")
    assert "\x1b" not in said
