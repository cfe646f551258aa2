"""The planner's lines: the same nodes however the text is cut, no node lost silently, no text that fails."""

import copy
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.checking.validation import problems_of
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.planner_format.lines import LineReader

TOOLS = {entry["name"]: entry["schema"] for entry in CATALOGUE}
WRITES = [entry["name"] for entry in CATALOGUE if entry["effect"] == "write"]


def read(text: str, known: tuple[str, ...] = ()) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return (plan, errors, warnings)."""
    reader = LineReader(TOOLS, (*known, "spare"), known, writes=WRITES)
    reader.feed(text)
    reader.close()
    return reader.plan, reader.errors, reader.warnings


def nodes(text: str) -> dict[str, Any]:
    """Return the nodes of a text without errors, by id."""
    plan, errors, _ = read(text)
    assert errors == []
    return {node["id"]: node for node in plan["nodes"]}


def only(call: str) -> Any:
    """Return the arguments of one tool call, or the node itself where it is no tool."""
    node = nodes(f'1. search("x")\n2. {call}\n3. answer($1, $2)')["n2"]
    return node.get("args", node)


WHOLE = '''Thought: two searches, then a comparison (see below).
```
1. search("length of the Nile", k=3)
2. search(query='what is the "length" of the Amazon', k=3)
4. calculate("${1.items[0].score} - $2.items[0].score")

5. map($1.items, read(path=$item.path), max_items=5)
7. llm("""Which of these is right?
3. search("text, not a line")
Give a reason for "each". $5""", role="critic", output_schema={"type": "object", "properties": {"ok": true}})
8. answer("Which is longer, $4 or $7?")<END_OF_PLAN>
```
I hope that this plan helps.
'''
PLAN = {
    "nodes": [
        {"id": "n1", "kind": "tool", "tool": "search", "args": {"query": "length of the Nile", "k": 3}},
        {
            "id": "n2",
            "kind": "tool",
            "tool": "search",
            "args": {"query": 'what is the "length" of the Amazon', "k": 3},
        },
        {
            "id": "n4",
            "kind": "tool",
            "tool": "calculate",
            "args": {"expression": "${n1.items[0].score} - $n2.items[0].score"},
        },
        {
            "id": "n5",
            "kind": "map",
            "over": "$n1.items",
            "max_items": 5,
            "do": {"kind": "tool", "tool": "read", "args": {"path": "$item.path"}},
        },
        {
            "id": "n7",
            "kind": "llm",
            "role": "critic",
            "prompt": 'Which of these is right?\n3. search("text, not a line")\nGive a reason for "each". $n5',
            "output_schema": {"type": "object", "properties": {"ok": True}},
        },
        {
            "id": "n8",
            "kind": "llm",
            "role": "joiner",
            "prompt": "Which is longer, n4 or n7?",
            "inputs": ["n4", "n7"],
        },
    ],
    "answer": "$n8",
}


def test_a_map_may_start_a_sub_agent_for_each_item() -> None:
    reply = '1. search("x")\n2. map($1.items, agent("Check $item.title", tools=["read"]), max_items=9)\n3. answer($2)'
    plan, errors, _ = read(reply)
    assert errors == []
    do = {"kind": "agent", "goal": "Check $item.title", "tools": ["read"]}
    assert plan["nodes"][1] == {"id": "n2", "kind": "map", "over": "$n1.items", "max_items": 9, "do": do}
    assert problems_of(parse_plan(plan), CATALOGUE) == []


def test_a_whole_reply_becomes_a_plan_that_holds() -> None:
    plan, errors, warnings = read(WHOLE)
    assert (plan, errors, warnings) == (PLAN, [], [])
    found = copy.deepcopy(plan)
    found["nodes"][4]["output_schema"]["properties"] = {}
    assert problems_of(parse_plan(found), CATALOGUE) == []


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ('search("a, (b) [c] {d}", 2)', {"query": "a, (b) [c] {d}", "k": 2}),
        (r'search("say \"yes\", \u00e9\n\t\\ \d \$5")', {"query": 'say "yes", é\n\t\\ \\d $$5'}),
        (r'search(r"\d+\n")', {"query": r"\d+\n"}),
        (r'search("\ud83d\ude00 \ud83d")', {"query": "\U0001f600 \ufffd"}),
        ('search("two\nrows")', {"query": "two\nrows"}),
        ('search("part one "\n  "part two")', {"query": "part one part two"}),
        ('search({"query": "x", "k": 2})', {"query": "x", "k": 2}),
        ('search("query": "x", k: 2)', {"query": "x", "k": 2}),
        ('search("x",)', {"query": "x"}),
        ("calculate(max($1, 2) * (3 - 1))", {"expression": "max($n1, 2) * (3 - 1)"}),
        ("calculate(${1.count} + 1)", {"expression": "${n1.count} + 1"}),
        ('search("what is " + ${1.items[0].name} + "?")', {"query": "what is ${n1.items[0].name}?"}),
        ("calculate($1.value == 3)", {"expression": "$n1.value == 3"}),
        (
            "anything(a=[1, -2.5, 1e3, true, None, 'x', $1, {b: (1, 2), 'c': {}}], c=word)",
            {"a": [1, -2.5, 1000.0, True, None, "x", "$n1", {"b": [1, 2], "c": {}}], "c": "word"},
        ),
        ('anything({"x": 1})', {"x": 1}),
    ],
)
def test_arguments_are_json_python_or_single_words(call: str, args: dict[str, Any]) -> None:
    assert only(call) == args


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("$1", "$n1"),
        ("${1}", "${n1}"),
        ("${ 1.a }", "${n1.a}"),
        ("${1.items[0].name}", "${n1.items[0].name}"),
        ("a $1.items[0], b", "a $n1.items[0], b"),
        ("${1}st and ${1}[0], ${1}.name", "${n1}st and ${n1[0]}, ${n1.name}"),
        ("${1['a']} ${1.0.b} $1.items.0", "${n1.a} ${n1[0].b} ${n1.items[0]}"),
        ("a $$1 fee, $1. Then $1, and ($1)", "a $$1 fee, $n1. Then $n1, and ($n1)"),
        ("$01", "$n1"),
        ("$$1 and $$", "$$1 and $$"),
        ("$goal $item.path $other", "$goal $item.path $other"),
        ("costs $7, or $7 per day", "costs $7, or $7 per day"),
        ("$1,000 $1.50 $1 million $1k US$1 $500", "$1,000 $1.50 $1 million $1k US$1 $500"),
        ("$12345678901", "$12345678901"),
    ],
)
def test_a_number_refers_to_its_line_if_there_is_one(written: str, meant: str) -> None:
    assert nodes(f'1. search("x")\n2. llm("{written}")')["n2"]["prompt"] == meant


@pytest.mark.parametrize(
    ("written", "error"),
    [
        (
            "$1 fee",
            "line 2: $1 may be the result of line 1 or an amount; write ${1} for the result, $$1 for the amount",
        ),
        ("$1 each", "write ${1} for the result"),
        ("it costs $1 now", "write ${1} for the result"),
        ("$1st", "write ${1} for the result"),
        ("$2", "line 2: it refers to $2, and no line 2 stands above it"),
        ("about $7", "line 2: it refers to $7, and no line 7 stands above it"),
        ("$3 + $1", "line 2: it refers to $3, and no line 3 stands above it"),
        ("Sum up $3", "line 2: it refers to $3, and no line 3 stands above it"),
        ("see $7.name", "line 2: it refers to $7.name, and no line 7 stands above it"),
        ("${7.a}", "line 2: it refers to ${7.a}, and no line 7 stands above it"),
        ("$n7", "line 2: it refers to $n7, and no line 7 stands above it"),
        ("${1 + 2}", "line 2: `${1 + 2}` is no reference; write ${1} or ${1.items[0].name}"),
        ("$1[*].name", "line 2: `$1[*]` is no path; write one index, such as $1[0], or a map"),
    ],
)
def test_what_may_be_no_reference_is_asked_for_again(written: str, error: str) -> None:
    errors = read(f'1. search("x")\n2. llm("{written}")\n3. llm("c")\n4. answer()')[1]
    assert len(errors) == 1
    assert error in errors[0]


def test_nodes_come_when_their_row_has_ended() -> None:
    reader = LineReader(TOOLS)
    assert reader.feed('1. search("a")') == []
    assert [node["id"] for node in reader.feed("\n2. sea")] == ["n1"]
    assert [node["id"] for node in reader.feed('rch("b")\n3. search(\n')] == ["n2"]
    assert reader.feed('$9)\n4. search("c")\n') == [], "none after an error"


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ('llm("a", role="judge", model="x:y")', {"kind": "llm", "prompt": "a", "role": "judge", "model": "x:y"}),
        ('llm("a", $1, context=[$1.b])', {"kind": "llm", "prompt": "a\n\n$n1\n\n$n1.b"}),
        ('llm("a", schema={"type": "string"})', {"kind": "llm", "prompt": "a", "output_schema": {"type": "string"}}),
        (
            'llm("a", tools=["search"], max_turns=3)',
            {"kind": "llm", "prompt": "a", "tools": ["search"], "max_turns": 3},
        ),
        ('agent("find $1", tools=["search"])', {"kind": "agent", "goal": "find $n1", "tools": ["search"]}),
        ('gate("May I?", timeout="5m")', {"kind": "gate", "question": "May I?", "timeout": "5m"}),
        ('join($1, policy="first")', {"kind": "join", "inputs": ["n1"], "policy": "first"}),
        ("join([$1], policy={quorum: 1})", {"kind": "join", "inputs": ["n1"], "policy": {"quorum": 1}}),
        (
            'map($1.items, llm("Sum up $item"))',
            {"kind": "map", "over": "$n1.items", "do": {"kind": "llm", "prompt": "Sum up $item"}},
        ),
        (
            'search("x", needs=[$1], on_error="skip", when={ref: "$1.count", op: gt, value: 0})',
            {
                "kind": "tool",
                "tool": "search",
                "args": {"query": "x"},
                "needs": ["n1"],
                "on_error": "skip",
                "when": {"ref": "$n1.count", "op": "gt", "value": 0},
            },
        ),
    ],
)
def test_forms(line: str, fields: dict[str, Any]) -> None:
    assert nodes(f'1. search("x")\n2. {line}')["n2"] == {"id": "n2", **fields}


@pytest.mark.parametrize(
    "end", ["3. join()", "3. answer()", "join()<END_OF_PLAN>", "3. answer($1, $2)", "3. join([$1, $2])", "", "\n\n"]
)
def test_an_answer_reads_how_the_calls_ended(end: str) -> None:
    plan, errors, _ = read(f'1. search("x")\n2. search("y")\n{end}')
    assert errors == []
    assert plan["nodes"][2:] == [
        {"id": "n3", "kind": "llm", "role": "joiner", "prompt": "$goal", "inputs": ["n1", "n2"]},
    ]
    assert plan["answer"] == "$n3"


def test_an_answer_takes_what_no_line_has_used_and_the_last_one_is_the_plans() -> None:
    plan, _, _ = read('1. search("x")\n2. llm("$1")\n3. answer()\n4. search("$3")\n5. answer()')
    inputs = [node["inputs"] for node in plan["nodes"] if "inputs" in node]
    assert (inputs, plan["answer"]) == ([["n2"], ["n4"]], "$n5")


def test_one_last_model_call_is_the_answer_by_itself() -> None:
    assert read('1. search("x")\n2. llm("Sum up $1")')[0]["answer"] == "$n2"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('1. search("a"\n2. search("b")', "line 1: `)` is missing at its end"),
        ('1. search("a)\n2. search("b")', 'line 1: `"` is missing at its end'),
        ('5. search("a\n3. search("b")', 'line 5: `"` is missing at its end'),
        ('2. search("a\n2. search("b")', 'line 2: `"` is missing at its end'),
        ('1. search("a"]\n2. search("b")', "line 1: `]` stands where `)` is missing"),
        ('1. search("a', 'line 1: `"` is missing at its end'),
        ('1. search("""a\n2. search("b")', 'line 1: `"""` is missing at its end'),
        (f"1. anything(a={'[' * 70}", "line 1: brackets nest more than 60 levels deep"),
        ('1. search("a")\n1. search("b")', "line 1 is there twice"),
        ('1. serch("a")', "line 1: there is no tool `serch`; did you mean `search`?"),
        ('1. search("a", 2, 3)', "line 1: search takes 2 arguments (query, k), not 3"),
        ('1. search("a", query="b")', "line 1: `query` is given twice"),
        ('1. search(query="a", query="b")', "line 1: `query` is given twice"),
        ("1. llm()", "line 1: llm needs a prompt"),
        ('1. llm("x", context="reference")', "only a plan in JSON says"),
        ('1. llm("a", temprature=1)', "line 1: `temprature` is no argument here"),
        ('1. join(policy="all")', "line 1: join needs the results to join"),
        ('1. search("a", on_error="skip", needs=[true])', "true is no line; write $ and the number of one, such as $1"),
        ("1. answer(5)", "5 is neither a text nor a line; write $ and the number of a line"),
        ('1. search(query="a", b)', "positional argument follows keyword argument"),
        ("1. search([x for x in y])", "is no value; write a text in double quotes"),
        ('1. llm("search("a") is next")', "line 1:"),
        ("1. anything(" + "1+" * 50000 + "1)", "line 1: its arguments are too long or too deep"),
        ("1. anything(" + "1+" * 600 + "1)", "line 1: its arguments are too long or too deep"),
        ("1. anything(" + "-" * 400 + "x)", "line 1: its arguments are too long or too deep"),
        ("1. anything(a" + ".b" * 700 + ")", "line 1: its arguments are too long or too deep"),
        ("1. anything(a=1e999)", "is no value"),
        ("1. gate()", "line 1: gate takes one question"),
        ("1. agent()", "line 1: agent takes one goal"),
        ("1. answer()", "line 1: there is no result to answer from"),
        ("1. map($goal)", "line 1: map takes a list and a call for each item"),
        ("1. map($goal, [1])", "line 1: map takes a list and a call for each item"),
        ("1. map($goal, read)", "line 1: map takes a list and a call for each item"),
        ("1. map($goal, gate(x))", "line 1: map can do a tool call, an llm call or an agent for each item, not `gate`"),
        ("I would look it up.", "the reply holds no plan; write numbered calls"),
        ("", "the reply holds no plan"),
        ('{"nodes": [}', "the reply is no plan: the JSON breaks at line 1, column 12"),
        ('{"nodes": [1' + "0" * 5000 + "]}", "the reply is no plan: the JSON holds a number"),
        ('{"nodes": [NaN]}', "the reply is no plan: nodes[0] NaN is no number"),
        ('{"node": []}', "the JSON holds no plan; it needs `calls`"),
        ("[\n]", "the JSON holds no plan; it needs `calls`"),
    ],
)
def test_a_line_that_can_be_no_node_is_an_error_that_names_it(text: str, error: str) -> None:
    errors = read(text)[1]
    assert any(error in found for found in errors), errors


def test_only_the_broken_line_is_lost() -> None:
    plan, errors, _ = read('1. search("a"\n2. search("b]\n3. search(]\nmore) text\n4. search("d")')
    assert [node["id"] for node in plan["nodes"]] == ["n4"]
    assert [error[:6] for error in errors] == ["line 1", "line 2", "line 3"]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ('Here it is:\n1. search("a")', '"Here it is:" is no call and was left out'),
        ('{"nodes": [{"id": "a"}]}\nDone', '"Done" behind the JSON was left out'),
    ],
)
def test_what_is_left_out_is_reported(text: str, warning: str) -> None:
    assert warning in read(text)[2]


@pytest.mark.parametrize(
    "wrap", ["{}", "```json\n{}\n```", "The plan:\n\n{}\nThat is it.", "<think>\n1. x\n</think>{}"]
)
@pytest.mark.parametrize("form", ['{{"plan": {}}}', "{}"])
def test_a_plan_in_json_is_taken_as_it_is(wrap: str, form: str) -> None:
    text = '{"goal": "g", "nodes": [{"id": "a", "kind": "gate",\n "question": "q $1"}], "on_failure": "fail"}'
    plan, errors, _ = read(wrap.format(form.format(text)))
    assert errors == []
    assert plan == {"goal": "g", "nodes": [{"id": "a", "kind": "gate", "question": "q $1"}], "on_failure": "fail"}


def test_lines_may_add_to_an_earlier_plan() -> None:
    plan, errors, _ = read('3. search("$1 $nile $spare")\n4. answer()', ("n1", "n2", "nile"))
    assert errors == []
    assert plan["nodes"][0]["args"] == {"query": "$n1 $nile $spare"}
    assert plan["nodes"][1]["inputs"] == ["n1", "n2", "nile", "n3"]


def events_of(text: str, cuts: list[int]) -> tuple[Any, ...]:
    """Return what was read of a text that came in pieces: the nodes as they came, the plan, errors and warnings."""
    reader = LineReader(TOOLS)
    found: list[Any] = []
    for start, end in pairwise((0, *cuts, len(text))):
        found += reader.feed(text[start:end])
    found += reader.close()
    return found, reader.plan, reader.errors, reader.warnings


CALLS = ["1. search(", "2. llm(", "3. answer(", "4) read(", "2. search($3)", "3. search($2)", "$1", "${2.a}", "$9"]
MARKS = [")", '"', "'", '"""', "\\", "\n", "\r\n", "k=3", ", ", "[", "]", "{", "}", " x ", "é", ": ", "7."]
ROWS = ["Thought: so\n", "```\n", "<END>", "<think>", "</think>"]
PIECES = st.sampled_from([*CALLS, *MARKS, *ROWS])
TEXTS = st.lists(PIECES, max_size=30).map("".join) | st.sampled_from([WHOLE, '```json\n{"nodes": [{"id": "a"}]}\n```'])


@given(TEXTS, st.data())
def test_the_result_does_not_depend_on_how_the_text_is_cut(text: str, data: st.DataObject) -> None:
    whole = events_of(text, [])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    assert events_of(text, cuts) == whole
    assert events_of(text, list(range(len(text)))) == whole


@given(st.text())
def test_any_text_gives_a_plan_or_an_error(text: str) -> None:
    plan, errors, _ = read(text)
    assert errors or plan["nodes"]


@pytest.mark.parametrize("name", ["from", "as", "in", "class", "is"])
def test_an_argument_may_have_the_name_of_a_keyword(name: str) -> None:
    plan, errors, _ = read(f'1. search(query="x", {name}=3)')
    assert errors == []
    assert plan["nodes"][0]["args"] == {"query": "x", name: 3}


@pytest.mark.parametrize("name", ["None", "True", "False"])
def test_an_argument_with_the_name_of_a_constant_is_asked_about_again(name: str) -> None:
    """Python 3.14 cannot hold such a name."""
    _, errors, _ = read(f'1. search(query="x", {name}=3)')
    assert "cannot be read" in "".join(errors)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), VALUES, max_size=4))
def test_json_values_come_back_as_they_were(args: dict[str, Any]) -> None:
    import json

    args = {name: value for name, value in args.items() if name not in ("needs", "when", "retry", "timeout")}
    written = ", ".join(f"{name}={json.dumps(value)}" for name, value in args.items())
    found = only(f"anything({written})".replace("$", "S"))
    assert found == json.loads(json.dumps(args).replace("$", "S"))


LINES = [row for row in WHOLE.split("\n") if row[:1].isdigit() and '"""' not in row and not row.startswith("3.")]


@given(st.integers(0, len(LINES) - 1), st.data())
def test_damage_to_one_line_loses_no_other(index: int, data: st.DataObject) -> None:
    row = LINES[index]
    start = data.draw(st.integers(0, len(row)))
    end = data.draw(st.integers(start, min(len(row), start + 3)))
    rows = [*LINES[:index], row[:start] + data.draw(st.text("\"'()[]{}\\x, ", max_size=2)) + row[end:]]
    rows += LINES[index + 1 :]
    if "'''" in rows[index] or '"""' in rows[index]:
        return
    plan, errors, warnings = read("\n".join(rows))
    found = {node["id"] for node in plan["nodes"]}
    lost = [f"n{line[0]}" for line in LINES if f"n{line[0]}" not in found]
    assert set(lost) <= {f"n{row[0]}"} or errors
    assert not lost or errors or warnings


HOSTILE: dict[str, Callable[[int], str]] = {
    "calls": lambda size: "".join(f'{line}. search("a")\n' for line in range(size)),
    "unknown": lambda size: "".join(f"{line}. foo(x)\n" for line in range(size)),
    "answers": lambda size: "".join(f"{line}. answer()\n" for line in range(size)),
    "ahead": lambda size: "".join(f'{line}. search("${line + 1}")\n' for line in range(size)),
    "unclosed": lambda size: "".join(f"{line}. search('\n" for line in range(size)),
    "one row": lambda size: " ".join(f'{line}. search("a")' for line in range(size)),
    "quotes": lambda size: "1. search(" + '"' * 10 * size,
    "apostrophes": lambda size: "1. search(" + "it's " * 3 * size,
    "spaces": lambda size: "1. search(" + '"'.join([" " * 1000] * (size // 100)),
    "references": lambda size: '1. search("' + "$1 " * 3 * size + '")',
    "deep": lambda size: "1. search(" + ("[" * 58 + "a" + "] x" * 58 + ",") * (size // 40) + ")",
    "mentions": lambda size: 'as search("a") says ' * size,
    "headings": lambda size: "1. First\n" * size,
    "sums": lambda size: '1. search("a"' + ' + "a"' * size + ")",
    "json": lambda size: "{" + '"a": [' * size,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_linear_work(name: str) -> None:
    """Counts lines run, not seconds: four times the text may take at most five times the work."""
    small, large = (work_of(HOSTILE[name](size)) for size in (400, 1600))
    assert large < 5 * small + 500


def work_of(text: str) -> int:
    count = 0

    def on_line(*_: Any) -> Any:
        nonlocal count
        count += 1
        return on_line

    reader = LineReader(TOOLS)
    before = sys.gettrace()
    sys.settrace(on_line)
    try:
        reader.feed(text)
        reader.close()
    finally:
        sys.settrace(before)
    return count


def test_the_example_in_the_docs_is_read_as_it_says() -> None:
    text = (Path(__file__).parents[4] / "docs" / "plans.md").read_text()
    block = next(part for part in text.split("```") if part.lstrip().startswith("1. search"))
    plan, errors, warnings = read(block)
    assert (errors, warnings) == ([], [])
    assert [node["id"] for node in plan["nodes"]] == ["n1", "n2", "n3", "n4", "n5"]
    assert problems_of(parse_plan(plan), CATALOGUE) == []
