"""A run as text, on narrow and wide terminals."""

from typing import Any

import pytest
from doubles.followed import make_gate, make_node, make_report, make_view
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sennit.starter.terminal.render import (
    answer_text,
    blocked_lines,
    closing_lines,
    counts_text,
    fit_label,
    node_line,
    node_sentence,
    report_of,
    report_text,
    usage_text,
    view_text,
)
from sennit.workflows.messages.contracts import Evidence
from sennit.workflows.messages.result import BlockedOn, NodeLine, RunReport, UsageReport
from sennit.workflows.messages.views import NodeView

LONG = 'n2 search "' + "length of the Nile " * 12 + '" <- n1,n3'


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({}, "no plan yet"),
        ({"succeeded": 1}, "1 of 1 node"),
        ({"succeeded": 2, "running": 1, "pending": 3, "failed": 1}, "3 of 7 nodes, 1 running, 1 failed"),
        ({"waiting": 1, "skipped": 2}, "2 of 3 nodes, 1 waiting, 2 skipped"),
    ],
)
def test_counts_read_well(counts: dict[str, int], text: str) -> None:
    assert counts_text(counts) == text


@pytest.mark.parametrize("width", [80, 200])
def test_every_line_of_a_view_fits_the_terminal(width: int) -> None:
    nodes = [make_node(f"n{n}", "succeeded", summary=LONG.replace("n2", f"n{n}"), duration_ms=230) for n in range(12)]
    nodes.append(make_node("m", "failed", attempts=4, duration_ms=1, error="長さ" * 200))
    text = view_text(make_view(*nodes).model_copy(update={"goal": "g" * 300}), width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "… <- n1,n3" in text or width == 200


@pytest.mark.parametrize(
    ("node", "line"),
    [
        (
            make_node("n2", "succeeded", summary="n2 search x <- n1", attempts=3, duration_ms=1500),
            "n2        succeeded     1.5 s x3  search x <- n1",
        ),
        (
            make_node("m[3].page", "succeeded", summary="m.page map read x over $a", duration_ms=7),
            "m[3].page succeeded      7 ms     map read x over $a",
        ),
        (make_node("n2", "failed", error="ToolFailed: gone"), "n2        failed                  ToolFailed: gone"),
    ],
)
def test_a_node_is_a_line_with_its_state_time_tries_and_what_it_does_or_why_it_failed(
    node: NodeView, line: str
) -> None:
    assert node_line(node, 80, 9) == line


@pytest.mark.parametrize(
    ("node", "sentence"),
    [
        (make_node("n2", "running", attempts=1), 'n2 started: search "n2"'),
        (make_node("n2", "running", attempts=3), 'n2 started again, attempt 3: search "n2"'),
        (
            make_node("n2", "running", attempts=3, preview="attempt 3 of 4 after KeyError"),
            'n2 started again: attempt 3 of 4 after KeyError · search "n2"',
        ),
        (make_node("n2", "succeeded", duration_ms=243), 'n2 succeeded in 243 ms: search "n2"'),
        (make_node("n2", "failed", attempts=3, duration_ms=1200, error="gone"), "n2 failed in 1.2 s, attempt 3: gone"),
        (
            make_node("n2", "handled", duration_ms=1200, error="gone"),
            "n2 failed in 1.2 s, and its script has caught that: gone",
        ),
        (make_node("n2", "waiting"), "n2 waits for a person"),
        (make_node("n2[1]", "succeeded", duration_ms=20, summary=""), "n2[1] succeeded in 20 ms"),
        (make_node("n2", "skipped"), 'n2 was skipped: search "n2"'),
        (
            make_node("n2", "skipped", error="Skipped: its condition was false"),
            "n2 was skipped: its condition was false",
        ),
        (make_node("n2", "cancelled", duration_ms=1200), 'n2 was cancelled after 1.2 s: search "n2"'),
    ],
)
def test_a_change_of_a_node_is_a_sentence(node: NodeView, sentence: str) -> None:
    assert node_sentence(node, 160) == sentence
    assert cell_len(node_sentence(node.model_copy(update={"error": LONG, "summary": LONG}), 60)) <= 60


@given(st.text(st.characters(), max_size=120), st.integers(1, 100))
def test_a_label_fits_whatever_it_says(text: str, width: int) -> None:
    assert cell_len(fit_label(text, width)) <= width


def test_the_arrow_to_what_a_node_needs_outlasts_what_it_does() -> None:
    assert fit_label(LONG, 40).endswith("… <- n1,n3")


def test_an_answer_keeps_its_marks_and_lists_their_sources() -> None:
    evidence = (
        Evidence(n=2, source="rivers/amazon.txt", quote="The Amazon is 6,400 km long."),
        Evidence(n=1, source="rivers/nile.txt", quote="The Nile is\n6,650 km long.\x1b[2J"),
        Evidence(n=3, source="notes.txt", claim="by hand"),
    )
    report = RunReport(id="a", run_id="b", status="done", answer="The Nile [1], by 250 km [2].\n", evidence=evidence)
    assert answer_text(report).splitlines() == [
        "The Nile [1], by 250 km [2].",
        "",
        "Sources",
        '[1] rivers/nile.txt: "The Nile is 6,650 km long."',
        '[2] rivers/amazon.txt: "The Amazon is 6,400 km long."',
        "[3] notes.txt: by hand",
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_long_sources_are_wrapped_under_their_mark(width: int) -> None:
    evidence = (Evidence(n=1, source="a.txt", quote="so long " * 60),)
    lines = answer_text(RunReport(id="a", run_id="b", status="done", answer="x", evidence=evidence), width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith("    ") for line in lines[4:])


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, ""),
        (42, "42"),
        (["a", {"b": "\x1b[1m"}], '[\n  "a",\n  {\n    "b": "\\u001b[1m"\n  }\n]'),
        ("a\x1b[31mb", "ab"),
    ],
)
def test_an_answer_may_be_any_json_and_is_harmless(answer: Any, text: str) -> None:
    assert answer_text(RunReport(id="a", run_id="b", status="done", answer=answer)) == text


def test_the_end_tells_the_problem_the_failed_nodes_and_what_was_used() -> None:
    nodes = tuple(NodeLine(id=f"n{n}", kind="tool", status="failed", error=f"e{n}") for n in range(12))
    usage = UsageReport(input_tokens=1200, output_tokens=34, calls=2, cost_usd=0.0012)
    counts = {"failed": 12}
    report = RunReport(
        id="a", run_id="b", status="partial", nodes=nodes, counts=counts, usage=usage, problem="two\nlines",
        warnings=("w",),
    )  # fmt: skip
    lines = closing_lines(report)
    assert lines[:3] == [
        "partial · 12 of 12 nodes, 12 failed · 2 model calls, 1,234 tokens, $0.0012",
        "  two",
        "  lines",
    ]
    assert lines[3] == "  n0 failed: e0"
    assert lines[-2:] == ["  and 2 more failed", "  warning: w"]


def test_an_item_is_shown_with_the_summary_of_its_map() -> None:
    nodes = (
        NodeLine(id="m", kind="map", status="succeeded", summary="m map read over $a"),
        NodeLine(id="m[0]", kind="tool", status="succeeded"),
    )
    text = report_text(RunReport(id="a", run_id="b", status="done", nodes=nodes), 100)
    assert text.count("map read over $a") == 2


def test_the_counts_are_those_of_all_nodes() -> None:
    nodes = (NodeLine(id="n1", kind="tool", status="succeeded"),)
    report = make_report(nodes=nodes, counts={"succeeded": 4801, "failed": 20}, nodes_left_out=4820)
    assert closing_lines(report) == [
        "done · 4821 of 4821 nodes, 20 failed",
        "  4,820 nodes are not in the report because it would be too long",
    ]


def test_a_run_without_model_calls_says_nothing_of_tokens() -> None:
    assert usage_text(UsageReport()) == ""
    assert usage_text(UsageReport(calls=1)) == "1 model call, 0 tokens"
    cached = UsageReport(calls=2, input_tokens=3000, output_tokens=120, cached_tokens=1900, cost_usd=0.0041)
    assert usage_text(cached) == "2 model calls, 3,120 tokens (1,900 from a cache), $0.0041"


def test_a_budget_is_shown_by_its_limits() -> None:
    ledger = {
        "tokens": {"limit": 1000, "spent": 900, "reserved": 200},
        "cost": {"limit": 0.5, "spent": 0.0125, "reserved": 0.0},
        "calls": {"limit": None, "spent": 9, "reserved": 2},
    }
    text = view_text(make_view().model_copy(update={"budget": ledger}), 80)
    assert text.splitlines()[1] == "budget  tokens 900 of 1,000 (200 reserved), cost 0.0125 of 0.5"


def test_a_block_shows_question_and_command_with_the_flags_to_reach_the_server() -> None:
    item = BlockedOn(
        node="n7", why="approval", question="Delete\nit?", update="approve", example={}, command="sennit approve r n7"
    )
    assert blocked_lines(item, " --address h:1") == [
        "n7: approval: Delete it?",
        "    sennit approve r n7 --address h:1",
    ]


def test_the_values_of_a_question_stand_below_it_and_cannot_pass_for_our_words() -> None:
    item = make_gate("g").model_copy(update={"shown": "one\n    sennit approve r\x1b[2J x\n\nend"})
    assert blocked_lines(item)[1:-1] == ["  | one", "  |     sennit approve r x", "  |", "  | end"]


def test_a_report_is_shown_with_nodes_and_answer() -> None:
    nodes = (NodeLine(id="n1", kind="tool", status="succeeded", attempts=1, duration_ms=20),)
    text = report_text(make_report(nodes=nodes, nodes_left_out=1200), 80)
    assert text.splitlines() == [
        "run-1  done",
        "  ✓ n1 succeeded     20 ms     tool",
        "  1,200 nodes are not in the report because it would be too long",
        "",
        "42",
    ]


def test_an_open_run_has_the_form_of_a_report() -> None:
    report = report_of(make_view(make_node("n1", "running"), status="blocked"), "http://ui")
    assert (report.status, report.ui_url, [node.id for node in report.nodes]) == ("blocked", "http://ui", ["n1"])


def calls_of_a_program(count: int) -> list[NodeView]:
    calls = [
        make_node(
            f"main_{n}",
            "failed" if n == 7 else "succeeded",
            summary=f"{n}",
            call_site=f"look#{n}/search:4",
            error="",
        )
        for n in range(count)
    ]
    return [make_node("main", "running", kind="program", summary="main program"), *calls]


def test_many_calls_of_a_program_are_grouped_and_what_failed_is_listed() -> None:
    text = view_text(make_view(*calls_of_a_program(200)), 100)
    assert len(text.splitlines()) < 20
    assert "search:4" in text
    assert "200 of 200 nodes, 1 failed" in text
    assert "✗ main_7" in text
    assert "✓ main_8" in view_text(make_view(*calls_of_a_program(20)), 100)


def test_only_what_has_failed_is_listed_if_that_is_asked_for() -> None:
    text = view_text(make_view(*calls_of_a_program(200)), 100, failed=True)
    assert [line.split()[1] for line in text.splitlines() if line.startswith("  ✗")] == ["main_7"]
    assert "main_8" not in text
