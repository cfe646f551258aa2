"""A joiner's reply in all its forms: an answer with evidence that stands, or nodes to add, or a fault that says why."""

import json
import random
import re
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from doubles.denied_calls import ROWS as DENIED_ROWS
from doubles.denied_calls import THOUGHTS, UNOPENED, WORDS, denied
from doubles.reply_forms import DAMAGED, damaged, rows
from hypothesis import given
from hypothesis import strategies as st

from sennit.activities.llm.reply import JoinerFormat, JoinerReply, PromptFormat, read_reply
from sennit.activities.prompts.joiner import Replanning
from sennit.activities.prompts.outputs import Result
from sennit.activities.providers.errors import SchemaMismatch
from sennit.activities.providers.model import ModelReply, ModelRequest, ProviderError
from sennit.activities.providers.reply_builder import ReplyBuilder
from sennit.activities.providers.structured import parse_json
from sennit.workflows.messages.contracts import conclusion_of
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.language.text import without_frame, without_thoughts
from sennit.workflows.plan.planner_format.json_text import Unreadable
from sennit.workflows.plan.planner_format.lines import LineReader
from sennit.workflows.plan.planner_format.written_calls import asked_in, calls_of

PASSAGES = {
    "items": [
        {"path": "rivers/nile.md", "passage": "The Nile is about 6,650\u00a0kilometres long."},
        {"path": "rivers/amazon.md", "passage": "Some say \u201c6,400 kilometres\u201d."},
    ]
}
RESULTS = {
    "n1": Result("n1", value=PASSAGES),
    "n2": Result("n2", value=250),
    "n3": Result("n3", status="failed", error="NotFound"),
}
TOOLS: dict[str, Any] = {"search": {"properties": {"query": {"type": "string"}, "k": {"type": "integer"}}}}


def read(reply: Any) -> JoinerReply:
    return read_reply(reply if isinstance(reply, str) else json.dumps(reply), RESULTS, TOOLS, ["n1", "n2", "n3", "n0"])


def piece(n: int, node: str, claim: str = "", source: str = "", quote: str = "") -> dict[str, Any]:
    return {"n": n, "node": node, "claim": claim, "source": source, "quote": quote}


def test_an_answer_comes_with_evidence_and_its_documents() -> None:
    evidence = [
        {"node": "n1", "claim": "the Nile is 6,650 km", "quote": "about 6,650 kilometres long"},
        {"node": "$1", "claim": "the Amazon", "quote": '"6,400 Kilometres"'},
        {"node": "n2", "claim": "the difference", "quote": "250"},
    ]
    joined = read({"answer": "The Nile [1], not the Amazon [2], by 250 km [3].", "evidence": evidence})
    assert joined.warnings == ()
    assert joined.output == {
        "answer": "The Nile [1], not the Amazon [2], by 250 km [3].",
        "evidence": [
            piece(1, "n1", "the Nile is 6,650 km", "rivers/nile.md", "about 6,650 kilometres long"),
            piece(2, "n1", "the Amazon", "rivers/amazon.md", '"6,400 Kilometres"'),
            piece(3, "n2", "the difference", "", "250"),
        ],
    }
    assert len(conclusion_of(joined.output).evidence) == 3


def test_evidence_that_does_not_stand_loses_its_mark_and_the_text_says_so() -> None:
    evidence = [{"node": "n9", "claim": "a"}, "n1", {"node": "n1", "claim": "it is made", "quote": "made up by nobody"},
                {"node": 2, "claim": "d"}, {"node": "n1", "quote": "6,400 kilometres"}]  # fmt: skip
    joined = read({"answer": "A [1] b [2], c [3]; d [4][9], e [5].", "evidence": evidence})
    told = "A [unproven] b [unproven], c [unproven]; d [1], e [unproven]."
    warnings = (
        'evidence of "n9" was left out: there is no such result',
        'evidence "n1" is no object and was left out',
        '"it is made" is unproven: the quote "made up by nobody" does not stand in n1 as a passage or a whole value',
        "evidence of n1 was left out: it has no claim",
        "the mark [9] was left out: there is no evidence with that number",
    )
    assert joined.output == {"answer": told, "evidence": [piece(1, "n2", "d")]}
    assert joined.warnings == warnings
    reply = json.dumps({"answer": "A [1].", "evidence": evidence[:1]})
    output = JoinerFormat(results=RESULTS).read(ModelReply(reply, Usage(), text=reply), lambda _: None).output
    assert conclusion_of(output).warnings == warnings[:1]


FACTS = {"n1": Result("n1", value={"text": "The Nile is 6,650 km long, at 27 °C. It costs -5 € in 1,889 of 18 cases. "
                           "The Amazon has 6 400 km."}),
         "n2": Result("n2", value=[{"name": "Nile", "km": 6650, "rate": 0.5}])}  # fmt: skip


@pytest.mark.parametrize(
    ("node", "quote", "held"),
    [
        ("n1", "the nile is 6,650 km long", True),
        ("n1", "6,650 km", True),
        ("n1", "6,650 km long", True),
        ("n1", "27 °C", True),
        ("n1", "18 cases", True),
        ("n1", "650 km", False),
        ("n1", "400 km", False),
        ("n1", "The Amazon has 6", False),
        ("n1", "6 400 km", True),
        ("n1", "650 km long, at 27", False),
        ("n1", "6,650", False),
        ("n1", "5 €", False),
        ("n1", "Nile", False),
        ("n1", "le is 6,650 km long", False),
        ("n1", "The Nile is 6,650 k", False),
        ("n1", "at 27 °C. It costs", True),
        ("n1", "889 of 18 cases", False),
        ("n2", "Nile", True),
        ("n2", "6650", True),
        ("n2", "0.5", True),
        ("n2", "665", False),
        ("n2", "Nil", False),
        ("n2", "Amazon", False),
    ],
)
def test_a_quote_is_a_passage_of_whole_words_or_a_whole_value(node: str, quote: str, held: bool) -> None:
    evidence = [{"node": node, "claim": "c", "quote": quote}]
    told = read_reply(json.dumps({"answer": "A [1].", "evidence": evidence}), FACTS).output
    assert told is not None
    assert told["answer"] == ("A [1]." if held else "A [unproven].")


@pytest.mark.parametrize(
    ("answer", "entries", "expected"),
    [
        ("Use `items[0]`, then `m[12]` [1].", [1], "Use `items[0]`, then `m[12]` [1]."),
        ("`m[1]` [1], then [2].", [0, 1], "`m[1]` [unproven], then [1]."),
        ("```py\nx[1] = x[2]\n``` [2]", [0, 1], "```py\nx[1] = x[2]\n``` [1]"),
        ("x[0] is 5 [1].", [1], "x[0] is 5 [1]."),
        ("[1](https://x.org) and the vector [7, 8] [1].", [1], "[1](https://x.org) and the vector [7, 8] [1]."),
        ("``a `m[1]` b``, a tick ` and [2].", [0, 1], "``a `m[1]` b``, a tick ` and [1]."),
    ],
)
def test_brackets_that_are_no_marks_are_left(answer: str, entries: list[int], expected: str) -> None:
    evidence = [{"node": "n1" if stands else "n9", "claim": "c"} for stands in entries]
    output = read({"answer": answer, "evidence": evidence}).output
    assert output == {"answer": expected, "evidence": [piece(1, "n1", "c")]}


@pytest.mark.parametrize(
    "answer", ["42", "6,650.5", "-7 %", "$ 1,200", "true", '{"km": [2]}', "[ [1] ]", "```\nx\n```"]
)
def test_no_marks_are_put_into_numbers_json_and_code(answer: str) -> None:
    evidence = [{"node": "n1", "claim": "c"}, {"node": "n9", "claim": "c"}]
    assert (read({"answer": answer, "evidence": evidence}).output or {})["answer"] == answer


C = {"node": "n1", "claim": "c"}
LOST = {"node": "n9", "claim": "c"}


@pytest.mark.parametrize(
    ("entries", "answer", "expected"),
    [
        ([{"n": 7, **C}], "A [7], b [1].", "A [1], b."),
        ([{"n": 0, **LOST}, {"n": 1, **C}], "A [0], b [1].", "A [unproven], b [1]."),
        ([LOST, C, C], "A [2, 3], b [1; 2].", "A [1][2], b [1][unproven]."),
        ([C], "A [1] [9].", "A [1]."),
        ([], "A [1].", "A."),
        ([C] * 51, "A [51].", f"A [unproven]. {''.join(f'[{n}]' for n in range(1, 51))}"),
    ],
)
def test_a_mark_never_names_what_it_did_not_mean(entries: list[Any], answer: str, expected: str) -> None:
    assert (read({"answer": answer, "evidence": entries}).output or {})["answer"] == expected


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The Nile.", "The Nile."),
        ("The [1] Nile.\n", "The [1] Nile."),
        ('Here:\n```json\n{"answer": "The Nile."}\n```\nbye', "The Nile."),
        ('{"answer": {"km": 3}, "evidence": null}', {"km": 3}),
        ('{"answer": 0}', 0),
        ("{not JSON}", "{not JSON}"),
        ('{"answer": "x", "replan": null}', "x"),
    ],
)
def test_an_answer_has_many_forms(reply: str, answer: Any) -> None:
    assert read(reply).output == {"answer": answer, "evidence": []}


@pytest.mark.parametrize(
    "replan",
    [
        {"why": "no  hits", "nodes": '4. search("$1 of $0", k=2)\n5. answer($1, $4)'},
        {
            "why": "no hits",
            "nodes": [
                {"id": "n4", "kind": "tool", "tool": "search", "args": {"query": "$n1 of $n0", "k": 2}},
                {"id": "n5", "kind": "llm", "role": "joiner", "prompt": "$goal", "inputs": ["n1", "n4"]},
            ],
            "answer": "$n5",
        },
    ],
)
def test_a_replan_is_a_delta(replan: dict[str, Any]) -> None:
    delta = read({"replan": replan}).delta
    assert delta is not None
    assert (delta.why, delta.answer) == ("no hits", "$n5")
    assert [node["id"] for node in delta.nodes] == ["n4", "n5"]
    assert delta.nodes[0]["args"] == {"query": "$n1 of $n0", "k": 2}
    assert delta.nodes[1]["inputs"] == ["n1", "n4"]


@pytest.mark.parametrize(
    "text", ["1. The Nile (6,650 km)\n2. The Amazon", "1. f(x) is 2x", "I would search (again).", "Search: nothing"]
)
def test_a_list_in_an_answer_is_no_plan(text: str) -> None:
    assert read(text).output == {"answer": text, "evidence": []}


@pytest.mark.parametrize(
    "text",
    [
        "Replan: none needed, the Nile is longer.",
        "replan: we had to replan the route twice.",
        "The minutes read:\n\nThought: budgets are tight.\n\nAction: Ann calls the bank by Friday.",
        "Thought: budgets are tight.\nAction: Ann calls the bank.",
        "Close the tag with </invoke>.",
        "The file of the server closes with </function> twice, which is wrong.",
        "See [/search] for more.",
    ],
)
def test_an_answer_that_tells_of_a_form_is_no_call(text: str) -> None:
    assert output_of("Joiners", text) == {"answer": text, "evidence": []}
    assert output_of("Workers with tools", text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Thought: I look it up.\nAction: search\nAction Input: rivers",
        "So far so good.\nThought: I look it up.\nAction: search",
        "The Nile\n</parameter>\n</function>",
        "[search] rivers [/search]",
    ],
)
def test_what_is_left_of_a_call_is_no_answer_of_a_model_with_tools(text: str) -> None:
    with pytest.raises(ProviderError):
        output_of("Workers with tools", text)


@pytest.mark.parametrize("text", ["replan:\n  why: more", "replan:\n- search(x)", "replan: |\n  4. search(x)"])
def test_a_request_for_more_in_yaml_is_asked_for_again(text: str) -> None:
    with pytest.raises(Unreadable, match="YAML"):
        read(text)


def test_a_joiner_without_tools_may_tell_of_a_tag_that_stands_alone() -> None:
    text = "Every function ends with\n</function>"
    assert read_reply(text, {}).output == {"answer": text, "evidence": []}


def test_new_lines_without_an_answer_get_one_over_all_results() -> None:
    delta = read({"replan": '4. search("x")'}).delta
    assert delta is not None
    assert delta.nodes[1]["inputs"] == ["n1", "n2", "n3", "n4"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ('{"answer": "cut', "no whole answer: the JSON breaks at line 1"),
        ('```json\n{"replan": {"why": ', "the JSON breaks at line 2"),
        ({"replan": {"why": "more"}}, "asks for another plan and writes none"),
        ({"replan": True}, "asks for another plan and writes none"),
        ({"replan": ["x"]}, "cannot be read: the reply holds no plan"),
        ({"replan": [1]}, "asks for another plan and writes none"),
        ({"replan": "look again"}, "the joiner's new lines cannot be read: the reply holds no plan"),
        ({"replan": {"nodes": "4. rm(x)"}}, "cannot be read: line 4: there is no tool `rm`"),
        ({"replan": {"nodes": [{"id": "a"}] * 61}}, "adds 61 nodes; at most 60"),
    ],
)
def test_what_is_neither_is_a_fault(reply: Any, expected: str) -> None:
    with pytest.raises(Unreadable, match="joiner") as caught:
        read(reply)
    assert expected in str(caught.value)


FIELDS = ["answer", "evidence", "replan", "why", "nodes", "node", "claim", "quote", "n"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["n1", "$1", "4. search(x)"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


@given(st.text() | st.dictionaries(st.sampled_from(FIELDS[:3]), JSON).map(json.dumps))
def test_any_reply_is_an_answer_a_delta_or_a_fault(reply: str) -> None:
    try:
        joined = read(reply)
    except Unreadable:
        return
    assert (joined.output is None) != (joined.delta is None)
    if joined.output is not None:
        assert {each.node for each in conclusion_of(joined.output).evidence} <= set(RESULTS)


CATALOGUE = [{"name": "search", "schema": TOOLS["search"], "effect": "read"}]
TABLES = ("Joiners", "Workers", "Workers with an output schema", "Workers with tools")


def output_of(section: str, text: str) -> Any:
    """Return what a reply is to the node whose model wrote it. Raises ProviderError."""
    request = ModelRequest("joiner" if section == "Joiners" else "worker", "m", "g", "p", "p")
    if section.endswith("schema"):
        request = replace(request, output_schema={"type": "object"})
    elif section.endswith("tools"):
        request = replace(request, tools=tuple(CATALOGUE))
    builder = ReplyBuilder(request, 1, stop="end")
    builder.add_text(text)
    results = {name: Result(name, value="a") for name in ("n1", "n2")}
    joins = JoinerFormat(results=results, replanning=Replanning(CATALOGUE, list(results)))
    reply = builder.reply()
    if request.output_schema is not None and any(violations(reply.output, request.output_schema)):
        raise SchemaMismatch("it does not fit")
    if reply.calls:
        return [{call.name: call.arguments} for call in reply.calls]
    return (joins if section == "Joiners" else PromptFormat()).read(reply, lambda _: None).output


ROWS = [(section, *row) for section in TABLES for row in rows(section)]


@pytest.mark.parametrize(("section", "reply", "result", "expected"), ROWS)
def test_a_reply_is_read_as_the_page_says(section: str, reply: str, result: str, expected: str) -> None:
    if result == "refused":
        with pytest.raises(ProviderError) as caught:
            output_of(section, reply)
        assert expected in str(caught.value)
        assert caught.value.retryable
        return
    found = output_of(section, reply)
    if section == "Workers with tools":
        assert found == json.loads(expected)
    elif section == "Joiners" and "replan" in found:
        assert found["replan"]["nodes"] == output_of(section, expected)["replan"]["nodes"]
    else:
        assert found == output_of(section, expected)


def test_the_page_holds_all_forms() -> None:
    assert len(ROWS) > 60


GOOD = {section: [row[1] for row in ROWS if row[0] == section and row[2] != "refused"] for section in TABLES}
THOUGHT = re.compile(r"^\s*<(think|thinking)>.*?</\1>", re.DOTALL | re.MULTILINE)
HEADS = {
    "Joiners": r'"answer"\s*:\s*"(\w+)|\bsearch\(\\?"(\w+)',
    "Workers": r"^(\w+)\s*\Z",
    "Workers with an output schema": r'"(?:km|of)"\s*:\s*"?((?!None|null)\w+)"?(?=[,}])',
    "Workers with tools": r'"query"\s*:\s*"(\w+)"|<parameter=query>\s*(\w+)',
}
"""What stands in a reply so plainly that its reader must find it."""
RAW = {
    "Joiners": r'\{\s*"(answer|replan|evidence|thought)"\s*:|^\s*<tool_call>\s*\{',
    "Workers": r"(?<!`)<tool_call>\s*\{",
    "Workers with an output schema": r"<tool_call>",
    "Workers with tools": r'<tool_call>\s*\{|"name"\s*:\s*"search".*"(arguments|parameters)"\s*:',
}
"""What no text that is taken for an answer may hold: then it is no answer."""


@pytest.mark.parametrize("section", TABLES)
def test_nothing_of_a_damaged_reply_is_lost_or_told_as_the_answer(section: str) -> None:
    chance = random.Random(11)
    for _ in range(DAMAGED // len(TABLES)):
        text = damaged(chance, GOOD[section])
        try:
            found = output_of(section, text)
        except ProviderError:
            continue
        plain = THOUGHT.sub("", text)
        if "</t" in plain or "<th" in plain or "//" in plain:  # it may be a thought or a comment, or no longer be one
            continue
        told = json.dumps(found, ensure_ascii=False)
        words = {
            word
            for words in re.findall(HEADS[section], plain)
            for word in ([words] if isinstance(words, str) else words)
        }
        assert [word for word in words if word not in told] == [], text
        answer = found.get("answer") if section == "Joiners" else found
        if isinstance(answer, str):
            assert not re.search(RAW[section], answer, re.MULTILINE), text


def test_no_text_of_a_joiner_adds_to_the_plan() -> None:
    """Calls that are denied, told of or thought, and bare lines, are an answer or asked for again."""
    chance = random.Random(5)
    call, in_json = 'search("b")', '{"name": "search", "arguments": {"query": "b"}}'
    for _ in range(DAMAGED // 5):
        told = denied(chance, 3, call, in_json, [*WORDS, *DENIED_ROWS, *THOUGHTS, *UNOPENED, "{line}", "{json}"])
        text = chance.choice(["{}", "The Nile.\n{}", "{}\nThe Nile.", "Thought: so.\n{}\n4. answer($3)"]).format(told)
        try:
            found = output_of("Joiners", text)
        except ProviderError:
            continue
        assert "replan" not in found, text


def test_what_the_rules_answer_is_the_output() -> None:
    """They take over where no model is there, and write no text."""
    reply = ModelReply({"answer": "The Nile.", "evidence": []}, Usage(9, 1))
    assert JoinerFormat().read(reply, lambda _: None).output == reply.output


def test_a_joiner_is_asked_for_the_json_that_it_is_told_of() -> None:
    form = JoinerFormat("You put results together.", "Sum up.", replanning=Replanning(CATALOGUE, ["n1"])).form
    assert form is not None
    assert form.system == "You put results together."
    told = {"answer": "The Nile [1].", "evidence": [{"node": "n1", "claim": "it is longer", "quote": ""}]}
    more = {"replan": {"why": "no hits", "nodes": '3. search("b")'}}
    assert form.schema is not None
    assert [list(violations(reply, form.schema)) for reply in (told, more)] == [[], []]
    assert list(violations({"anwser": "The Nile."}, form.schema))


@pytest.mark.parametrize("filling", ["\n", " \n", "a\n", "> \n", "\n\n\t", "<a ", "[ ", "` "])
def test_a_long_reply_is_read_in_a_time_that_grows_with_its_length(filling: str) -> None:
    """A pattern that looks at each rest of a text would hold a worker's loop for minutes."""
    text = f"The Nile{filling * (60_000 // len(filling))}is long."
    began = time.process_time()
    with suppress(Unreadable):
        read_reply(text, {}, TOOLS)
    with suppress(Unreadable):
        calls_of(text, TOOLS)
    asked_in(text, TOOLS)
    without_thoughts(without_frame(text))
    assert time.process_time() - began < 2


FRAMES = {
    "bare": "{}",
    "behind a label": "Here it is: {}",
    "behind a bold label": "**JSON:** {}",
    "in a fence": "Here it is:\n```json\n{}\n```",
    "in a fence of tildes": "~~~\n{}\n~~~",
    "in a tag": "<answer>{}</answer>",
    "in a tag of its own rows": "<output>\n{}\n</output>",
    "in a fence in a tag": "<result>```json\n{}\n```</result>",
    "in ticks": "`{}`",
    "behind a byte order mark": "\ufeff{}",
    "before words": "{}\n\nI hope this helps.",
    "with a bracket too many": "{}}",
}


@pytest.mark.parametrize("frame", FRAMES)
def test_planner_joiner_and_worker_find_the_same_json(frame: str) -> None:
    def framed(value: Any) -> str:
        return FRAMES[frame].replace("{}", json.dumps(value), 1)

    answer = {"answer": "The Nile."}
    assert read_reply(framed(answer), RESULTS, TOOLS).output == {**answer, "evidence": []}
    assert parse_json(framed(answer), {"type": "object"}, in_wrap=False) == answer
    planner = LineReader(TOOLS)
    planner.feed(framed({"calls": [{"n": 1, "tool": "search", "arguments": {"query": "a"}}], "answer": "$1"}))
    planner.close()
    assert planner.errors == []
    assert (planner.plan["nodes"][0]["tool"], planner.plan["nodes"][0]["args"]) == ("search", {"query": "a"})


@pytest.mark.parametrize(
    "text",
    ['{"a": 1} {"a": 2}', "[1] and [2]", '[1] and {"a": 1}', 'For example {"a": 1}', "See {this}.", '{"a": 1', "42 km"],
)
def test_a_worker_says_one_value_or_is_asked_again(text: str) -> None:
    with pytest.raises(SchemaMismatch, match="is not JSON") as caught:
        parse_json(text, {}, in_wrap=False)
    assert caught.value.retryable
    assert parse_json('As [noted], {"a": 1}', {}, in_wrap=False) == {"a": 1}
