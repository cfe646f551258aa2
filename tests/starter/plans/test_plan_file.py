"""Plan files: a problem names the file and the line, or the path in JSON."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from sennit.starter.plans.catalogue import Catalogue
from sennit.starter.plans.plan_file import BadPlan, PlanFile, read_plan
from sennit.workflows.plan.language.parser import parse_plan

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
    ("old", "new", "line", "message"),
    [
        ("kind: llm", "kind: llm\n  priority: 9", 6, "at most 5"),
        ("prompt: How", "promt: How", 6, "did you mean `prompt`"),
        ("  prompt: How long is $a\n", "", 4, "`prompt` is missing"),
        ("id: b", "id: 7b", 4, "is not an id"),
        ("is $a", "is $c", 6, "refers to no node"),
        ("answer: $b", "answer: b", 7, "has no reference"),
        ("goal: Which is longer?", "goal: 7", 1, "string"),
        ("- id: b", "- id: a", 4, "used 2 times"),
        ("  kind: llm", "  kind: llm\n  timeout: soon", 6, "is not a duration"),
        ("  kind: llm", "  kind: loop", 5, "write a `program`"),
    ],
)
def test_every_problem_names_its_line(plan_of: Any, old: str, new: str, line: int, message: str) -> None:
    text = problem_of(plan_of, GOOD.replace(old, new))
    assert any(part.startswith(f"plan.yaml:{line}: ") and message in part for part in text.splitlines()), text


def test_a_problem_of_an_argument_names_its_line_when_the_tools_are_known(plan_of: Any) -> None:
    assert "plan.yaml:3: " in problem_of(plan_of, GOOD.replace("k: 3", "k: three"), catalogue=CATALOGUE)
    assert "did you mean `search`" in problem_of(
        plan_of, GOOD.replace("tool: search", "tool: serch"), "p.yaml", CATALOGUE
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,\n "a": 2}', "plan.json: the key `a` stands twice in one object, that of a"),
        ('{"b": [{}, {"a": 1, "c": 3, "a": 2}]}', "the key `a` stands twice in one object, that of a, c"),
        ('{"a": NaN}', "plan.json: a: NaN is no number that JSON can hold"),
        ('{"a": [1, -Infinity]}', "plan.json: a[1]: -Infinity is no number"),
        ('{"a": 1e999}', "plan.json: a: Infinity is no number"),
        ('{"a": ' + "9" * 5000 + "}", "plan.json: Exceeds the limit (4300 digits)"),
        ('{"a": "\\ud800"}', "holds half a surrogate pair; write the character whole"),
        ('{"\\ud800": 1}', "plan.json: the field `\\ud800` holds half a surrogate pair"),
        ('{"a": ' + "[" * 150 + "]" * 150 + "}", "nested more than 60 levels deep"),
        ('{"a": ' + "[" * 100_000, "plan.json: nested more than 60 levels deep"),
        ('{"a": [' + "1," * 1_000_001 + "1]}", "plan.json: holds over 1,000,000 values"),
        ('{"a":\n\n}', "plan.json:3: not JSON: expecting value"),
        ("", "plan.json:1: not JSON: expecting value"),
        ("{}\n{}", "plan.json:2: not JSON: extra data"),
        ("[]", "plan.json: a plan is an object with `nodes`, not an empty list"),
    ],
)
def test_json_that_is_no_plan_data_is_refused(plan_of: Any, text: str, problem: str) -> None:
    assert problem in problem_of(plan_of, text, "plan.json")


@pytest.mark.parametrize(("text", "kind"), [("- a", "a list of 1"), ("just text", '"just text"'), ("~", "null")])
def test_a_yaml_plan_is_an_object(plan_of: Any, text: str, kind: str) -> None:
    text = problem_of(plan_of, text)
    assert text == f"plan.yaml:1: a plan is an object with `nodes`, not {kind}"


def test_a_word_read_as_true_is_explained_where_it_does_not_fit(plan_of: Any) -> None:
    text = problem_of(plan_of, GOOD.replace("prompt: How long is $a", "prompt: yes"))
    assert "plan.yaml:6: " in text
    assert "YAML reads `yes` as true: to mean the word, write 'yes'" in text


def test_an_alias_bomb_is_a_sentence(plan_of: Any) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "holds over 1,000,000 values; use a `map`" in problem_of(plan_of, "\n".join(lines))
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 3_000))]
    assert "nested more than 60 levels deep" in problem_of(plan_of, "\n".join(lines))


def test_a_huge_file_is_refused_before_it_is_read(plan_of: Any) -> None:
    assert "over 5 MiB" in problem_of(plan_of, "# " + "x" * (5 * 1024 * 1024))


def test_ten_thousand_and_one_nodes_are_refused_clearly(plan_of: Any) -> None:
    nodes = "\n".join(f"- {{id: n{number}, kind: tool, tool: search}}" for number in range(10_001))
    text = problem_of(plan_of, f"goal: x\nnodes:\n{nodes}")
    assert text.startswith("plan.yaml:3: ")
    assert "10001" in text.replace(",", "")
    assert len(text) < 200


@pytest.mark.parametrize(
    ("body", "message"),
    [(b"\xff\xfea", "plan.yaml:1: not UTF-8"), (b"a: 1\nb: \xff", "plan.yaml:2: not UTF-8")],
)
def test_a_file_in_another_encoding_is_named(plan_of: Any, body: bytes, message: str) -> None:
    assert problem_of(plan_of, body).startswith(message)


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
    assert read_plan("-").check(None).nodes[0].id == "a"


def test_escapes_in_a_plan_do_not_reach_the_terminal(plan_of: Any) -> None:
    text = problem_of(plan_of, '{"nodes": [{"id": "\\u001b[31m", "kind": "tool", "tool": "x"}]}', "p.json")
    assert "\x1b" not in text


PROGRAM = '''"""Looks something up.

More.
"""
async def main(topic: str, k: int = 3, names: list[str] | None = None):
    return await search(query=topic, k=k)
'''


def test_a_program_is_a_plan_of_one_node_with_the_arguments_of_main_as_inputs(plan_of: Any) -> None:
    file = plan_of(PROGRAM, "look.py")
    plan = file.check(CATALOGUE)
    assert {name: spec.type for name, spec in plan.inputs.items()} == {
        "topic": "string",
        "k": "integer",
        "names": "array",
    }
    assert [name for name, spec in plan.inputs.items() if "default" not in spec.model_fields_set] == ["topic"]
    assert (plan.answer, file.title) == ("$main", "Looks something up.")
    assert plan.nodes[0].script == f"{PROGRAM}# ==== main: look.py ====\n", "workers name the file of a problem"


@pytest.mark.parametrize(
    ("script", "catalogue", "expected"),
    [
        (
            PROGRAM + "    import os\n    yield 1\n",
            None,
            ["look.py:7: there is no module `os`", "look.py:8: `main` and tasks return one value"],
        ),
        (PROGRAM.replace("search(", "serch("), CATALOGUE, ["look.py:6: there is no `serch`; did you mean `search`?"]),
        ("def (", None, ["look.py:1: this is not Python"]),
        ("", None, ["look.py:1: a script has an `async def main(...)`"]),
        (b"# \xff", None, ["look.py:1: not UTF-8 text"]),
        (PROGRAM + "#" * (1 << 20), None, ["look.py:1: the script is too large: it has more than 1 MB"]),
    ],
)
def test_what_is_wrong_with_a_program_has_the_line(
    plan_of: Any, script: str | bytes, catalogue: Catalogue | None, expected: list[str]
) -> None:
    lines = problem_of(plan_of, script, "look.py", catalogue).splitlines()
    assert len(lines) == len(expected)
    assert all(line.startswith(start) for line, start in zip(lines, expected, strict=True)), lines


def test_the_model_that_serves_every_role_has_the_price_of_a_quote(plan_of: Any) -> None:
    file = plan_of("async def main():\n    return await llm('a', role='critic')\n", "ask.py")
    prices = {"worker": (0, 0), "critic": (0, 0), "openai:big": (1_000_000, 2_000_000)}
    catalogue = CATALOGUE.model_copy(update={"prices": prices})
    assert file.quote(catalogue).cost == (0, 0)
    assert file.quote(catalogue, model="openai:big").cost == (0.001, 0.002)
    assert file.quote(catalogue, model="openai:other").cost is None


def test_a_problem_of_a_script_in_a_plan_has_its_line_in_the_file(plan_of: Any) -> None:
    plan = "nodes:\n- id: a\n  kind: program\n  script: |\n    async def main():\n        return open('x')\n"
    assert problem_of(plan_of, plan).startswith("plan.yaml:6: there is no `open`")
    data = {"nodes": [{"id": "a", "kind": "program", "script": "async def main():\n    return open('x')\n"}]}
    assert problem_of(plan_of, json.dumps(data), "plan.json").startswith(
        "plan.json: nodes[0].script, line 2: there is no"
    )


CHOICES = "YAML reads `yes` and `no` here as true and false; if you mean the words, quote them"
BAD = """\
goal: Which?
nodes:
- {id: a, kind: tool, tool: serch, args: {query: x}}
- {id: b, kind: llm, prompt: 7, timeout: soon}
- id: c
  kind: llm
  prompt: $b.length and $d
- {id: e, kind: tool, tool: write, args: {path: a}}
- {id: f, kind: tool, tool: github_find, args: {}}
- {id: g, kind: tool, tool: search, args: {query: 7}}
- id: h
  kind: program
  script: |
    async def main():
        return open("x")
on_failure: shrug
answer: $c
"""
OFF = CATALOGUE.model_copy(
    update={
        "left_out": {"write": "no folder"},
        "unavailable": {"github_": "the server is away"},
        "models": ("offline",),
    }
)


def test_all_that_is_wrong_is_said_at_once_in_the_order_of_the_lines(plan_of: Any) -> None:
    lines = problem_of(plan_of, BAD, catalogue=OFF).splitlines()
    numbers = [int(line.split(":")[1]) for line in lines]
    assert numbers == sorted(numbers)
    expected = [
        (3, "there is no tool `serch`; did you mean `search`?"),
        (4, "string"),
        (4, "'soon' is not a duration"),
        (7, "refers to no node"),
        (8, "the tool `write` is off here: no folder"),
        (9, "the tool `github_find` is off here: the server is away"),
        (10, "string"),
        (15, "there is no `open`"),
        (16, "on_failure"),
    ]
    assert len(lines) == len(expected), lines
    for line, (number, message) in zip(lines, expected, strict=True):
        assert line.startswith(f"plan.yaml:{number}: "), line
        assert message in line


def test_problems_of_json_name_their_paths_in_the_order_of_the_file(plan_of: Any) -> None:
    data = {"answer": "$x", "nodes": [{"id": "a", "kind": "llm"}, {"id": "b", "kind": "llm", "prompt": "$y"}]}
    places = [line.split(": ")[1] for line in problem_of(plan_of, json.dumps(data), "plan.json").splitlines()]
    assert places == ["answer", "nodes[0]", "nodes[1].prompt"]


@pytest.mark.parametrize("name", ["7b", "a", None, ["x"]])
def test_where_a_wrong_node_has_no_id_nothing_is_said_of_who_refers_to_it(plan_of: Any, name: Any) -> None:
    data = {"nodes": [{"id": name, "kind": "llm", "prompt": 7}, {"id": "b", "kind": "llm", "prompt": "$a"}]}
    lines = problem_of(plan_of, json.dumps(data), "plan.json", OFF).splitlines()
    assert all("nodes[0]" in line for line in lines), lines


def test_unused_nodes_and_words_that_yaml_reads_as_true_are_warnings(plan_of: Any) -> None:
    file = plan_of("""\
nodes:
- {id: a, kind: tool, tool: search, args: {query: x}}
- {id: b, kind: llm, prompt: "x", tools: [search], max_turns: 2}
- {id: c, kind: tool, tool: send, args: {}}
- {id: d, kind: gate, question: "Go on?", schema: {type: string, enum: [yes, no, 'off']}}
- {id: e, kind: agent, goal: x}
- {id: f, kind: join, inputs: [d, e]}
- {id: g, kind: tool, tool: search, args: {query: [yes]}, on_error: {instead: h}}
- {id: h, kind: llm, prompt: x}
- {id: i, kind: agent, goal: "$g"}
answer: $e
""")
    tools = [*CATALOGUE.tools, {"name": "send", "effect": "write"}]
    tools[0] = {"name": "search", "effect": "read"}
    catalogue = CATALOGUE.model_copy(update={"tools": tools})
    assert file.warnings(parse_plan(file.data), catalogue) == [
        "plan.yaml:2: nodes[0].id: nothing uses `a`; it runs all the same. Refer to it, or take it out",
        "plan.yaml:3: nodes[1].id: nothing uses `b`; it runs all the same. Refer to it, or take it out",
        f"plan.yaml:5: nodes[3].schema.enum: {CHOICES}",
        "plan.yaml:7: nodes[5].id: nothing uses `f`; it runs all the same. Refer to it, or take it out",
    ]
    assert file.warnings(None, catalogue) == [f"plan.yaml:5: nodes[3].schema.enum: {CHOICES}"]


def test_a_program_has_all_its_problems_at_once(plan_of: Any) -> None:
    script = PROGRAM.replace("search(", "write(") + "    open('x')\n    github_find()\n"
    lines = problem_of(plan_of, script, "look.py", OFF).splitlines()
    assert [line.split(": ", 1)[1][:38] for line in lines] == [
        "the tool `write` is off here: no folder"[:38],
        "there is no `open`: "[:38] + lines[1].split(": ", 1)[1][20:38],
        "the tool `github_find` is off here: the server"[:38],
    ]
