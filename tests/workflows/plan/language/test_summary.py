"""One line a node: the id first, at most 120 characters, whatever the texts hold."""

from typing import Any

import pytest
from doubles.plan.samples import PLANS, each, free, gate, join, llm, plan, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.summary import for_bar, summary_of
from sennit.workflows.plan.limits import MAX_BAR_CHARACTERS, MAX_SUMMARY_CHARACTERS

SEVEN = [f"node{number}" for number in range(7)]


def line_of(data: dict[str, Any]) -> str:
    return summary_of(parse_plan(plan(data)).nodes[0])


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (
            tool("n7", args={"query": "length of the Nile"}, needs=["n2", "n3"]),
            'n7 search "length of the Nile" <- n2,n3',
        ),
        (tool(args={"query": "x", "k": 3, "path": "a b"}), 'a search "x" k=3 path=a b'),
        (tool(args={}), "a search"),
        (tool(args={"k": None, "on": True, "list": [1, "ü"]}), 'a search null on=true list=[1, "ü"]'),
        (llm("b", "Which is longer? $both $d", role="joiner"), "b joiner Which is longer? $both $d <- both,d"),
        (llm("b", "two\n\n lines\tand   more"), "b worker two lines and more"),
        (each(), 'm map read "$item.path" over $a.items <- a'),
        (each(do={"kind": "llm", "prompt": "Sum $item"}), "m map worker Sum $item over $a.items <- a"),
        (join("j", ["a", "b"]), "j join all of 2 <- a,b"),
        (join("j", ["a"], policy={"quorum": "60%"}, needs=["c"]), "j join quorum 60% of 1 <- a,c"),
        (join("j", SEVEN), "j join all of 7 <- 7 nodes"),
        (gate("g", needs=["a"]), "g gate Go on? <- a"),
        (llm("b", "يمين \u202eevil\u202c \u200b😀\x1b[31m"), "b worker يمين evil 😀"),
        (llm("b", "\n\x00"), "b worker"),
    ],
)
def test_a_summary_reads_as_one_line(data: dict[str, Any], line: str) -> None:
    assert line_of(data) == line


@pytest.mark.parametrize("name", PLANS)
def test_every_sample_has_one(name: str) -> None:
    for node in parse_plan(PLANS[name]).nodes:
        check(summary_of(node), node.id)


def check(line: str, name: str) -> None:
    assert line.split(" ")[0] == name
    assert len(line) <= MAX_SUMMARY_CHARACTERS
    assert line.isprintable()
    line.encode()


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300) | st.sampled_from(
    ["😀" * 200, "x" * 2_000, "\u202e" * 300]
)


@settings(max_examples=200, deadline=None)
@given(_TEXT, st.lists(st.sampled_from(SEVEN), max_size=7), st.sampled_from(["a", "n" * 40]))
def test_weird_texts_leave_it_short_printable_and_led_by_the_id(text: str, needs: list[str], name: str) -> None:
    for data in (
        tool(name, args={"query": text, text: text, "more": [text]}, needs=needs),
        llm(name, text, needs=needs),
        gate(name, question=text, needs=needs),
        each(name, "$a.b", do={"kind": "tool", "tool": text[:80], "args": {"x": {"y": text}}}, needs=needs),
    ):
        check(line_of(data), name)


def test_a_cut_line_keeps_what_it_waits_for() -> None:
    line = line_of(llm("b", "x" * 500, needs=["a"]))
    assert line.endswith("x… <- a")
    assert len(line) == MAX_SUMMARY_CHARACTERS
    assert line_of(free("a", needs=["n" * 40])).endswith(f"<- {'n' * 40}")
    assert line_of(free("a", needs=["n" * 40, "b"])).endswith("<- 2 nodes")


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("a search <- b", "a search <- b"),
        (f"a worker {'x' * 100} <- b,c", f"a worker {'x' * 47}… <- b,c"),
        (f"a worker {'x' * 100}", f"a worker {'x' * 54}…"),
        (f"a worker x <- {'y' * 100}", f"a worker x <- {'y' * 49}…"),
        ("a sum $b.n + $c.n <- b,c", "a sum b.n + c.n <- b,c"),
        ("a f **x** `y` <b>z [t](u) m[2] 1 < 2", "a f \u2217\u2217x\u2217\u2217 'y' \u2039b>z [t] (u) m[2] 1 < 2"),
    ],
)
def test_a_bar_of_the_timeline_has_id_and_sources(summary: str, expected: str) -> None:
    assert for_bar(summary) == expected
    assert len(expected) <= MAX_BAR_CHARACTERS
