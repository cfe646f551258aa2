"""The board: what a person must do comes first, hostile text stays text, and it is never too long to be shown."""

import html
import json
import random
import re
from typing import Any

import pytest
from doubles.plan.play import Play, each, gate, join, node
from doubles.plan.strategies import execution_plans
from doubles.svg import Drawing
from hypothesis import given, settings
from hypothesis import strategies as st

from sennit.workflows.drawing.text import plain
from sennit.workflows.limits import MAX_BOARD_BYTES, MAX_USUAL_BOARD_BYTES
from sennit.workflows.messages.result import BlockedOn
from sennit.workflows.messages.views import SubagentView
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.events import Question
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    CANCELLED,
    FAILED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
)
from sennit.workflows.views.board import _DETAILS, board, prose, sent_bytes
from sennit.workflows.views.shown_run import ShownRun

RUN = "agent-which-is-longer-1a2b3c4d"
HOSTILE = (
    "</title></svg></div><script>alert(1)</script> **b** `c` | [x](javascript:alert(1)) https://evil.example "
    "{runId} $x$ \u202eRTL שלום 漢字 👩\u200d👧 Z\u0338\u0322\u031b\u0358 \x00\ud800 1/2 -- "
)
USUAL_TEXT = 6 * 1024


def board_text(play: Play, **fields: Any) -> str:
    shown = ShownRun(play.state, fields.pop("run", RUN), fields.pop("children", {}))
    return board(shown, title=fields.pop("title", "running: a goal"), **fields)


def drawing(text: str) -> Drawing:
    [svg] = re.findall(r"^<div>(<svg.*</svg>)</div>$", text, re.MULTILINE)
    return Drawing(svg)


def outside(text: str) -> str:
    """Return a board without what is marked as code, as a page shows it that drops all HTML."""
    return re.sub(r"(`+).+?\1", "", without_html(text))


def without_html(text: str) -> str:
    """Return a board as a page shows it that drops all HTML."""
    return re.sub(r"<div>.*</div>|<summary>.*</summary>|</?details>|<wbr>", "", text)


def test_what_a_person_must_do_comes_first_and_can_be_pasted() -> None:
    play = Play(
        node("a"), gate("ok", question="May it *go*?", schema={"enum": ["yes", "no"]}), node("w", approval=True)
    )
    play.begin()
    text = board_text(play)
    assert text.index("ok asks:") < text.index("<svg") < text.index("| node")
    assert "**ok asks:** May it &#42;go&#42;?" in text
    assert '→ Send an Update: `answer` with `{"node": "ok", "value": "yes"}`' in text
    assert f"→ in a shell: `sennit answer {RUN} ok yes`" in text
    assert '→ or refuse: `reject` with `{"node": "w"}`' in text


def test_the_values_of_a_question_stand_below_it_as_they_are() -> None:
    play = Play(gate("ok", question="?", fills=True))
    play.begin()
    shown = "# *one* `two` {runId}\n```\n<script>"
    play.state.questions[0] = Question(f"Publish?\n\n{shown}")
    text = board_text(play)
    assert f"**ok asks:** Publish?\n````\n{shown.replace('{', '{' + chr(0x2060))}\n````\n→ Send an Update" in text
    play.state.questions[0] = Question("Publish?\n" + "a b\n" * 1_000)
    assert f"\n```\n… 2,999 more characters: `sennit status {RUN}`\n" in board_text(play)
    play.state.questions[0] = Question(f"Publish?\n{'a' * 70}\n{'漢' * 40}")
    assert f"```\n{'a' * 64}\n↳ {'a' * 6}\n{'漢' * 37}\n↳ 漢漢漢\n```\n" in board_text(play)
    play.state.questions[0] = Question("x" * 9_000)
    assert f"**ok asks:** {'x' * 20}" in board_text(play).replace("<wbr>", "")


def test_a_failed_node_is_asked_about_when_the_run_is_parked() -> None:
    play = Play(node("a"), node("b", "a"), answer="b")
    play.begin()
    play.fail("a")
    text = board_text(play)
    assert "**a failed:** Boom&#58; it broke" in text
    assert '`retry_node` with `{"node": "a"}`' in text
    assert '`skip_node` with `{"node": "a"}`' in text
    assert "1 blocked" in [area.text for area in drawing(text).texts]


def test_what_is_asked_can_be_pasted_whatever_it_is() -> None:
    value = 'a "quoted" `tick` ``two`` | pipe \\ {x}'
    play = Play(gate("ok", question="which?", schema={"enum": [value]}))
    play.begin()
    [pasted] = re.findall(r"`answer` with (`+) (.*?) \1", board_text(play))
    assert json.loads(pasted[1]) == {"node": "ok", "value": value}


def test_what_is_too_long_to_paste_is_named() -> None:
    play = Play(gate("ok", question="which?", schema={"enum": ["é" * 100_000]}))
    play.begin()
    text = board_text(play)
    assert "`answer` with the example in the query `plan`: it is too long to show here" in text
    assert sent_bytes(text) < MAX_USUAL_BOARD_BYTES


def test_rows_that_need_a_look_come_first() -> None:
    play = Play(node("a"), node("b"), node("c", "b"), join("j", "a", "c", policy="settled"), answer="j")
    play.begin()
    play.ok("a")
    play.fail("b")
    play.ok("j")
    rows = re.findall(r"^\| `(\w+)` \| \u2007(\w+)", board_text(play), re.MULTILINE)
    assert rows == [("b", "failed"), ("c", "skipped"), ("a", "succeeded"), ("j", "succeeded")]


def test_items_of_a_map_are_counted_and_only_the_failed_are_listed() -> None:
    play = Play(node("a"), each("m", "a"), answer="m")
    play.begin()
    play.ok("a", length=30)
    play.ok(*[f"m[{item}]" for item in range(7)])
    play.fail("m[7]")
    text = board_text(play)
    assert "9 of 32 nodes ended" in text
    assert "8/30" in [area.text for area in drawing(text).texts]
    assert re.findall(r"^\| `(m\[\d+\])`", text, re.MULTILINE) == ["m[7]"]
    assert "30 items&#58; 1 failed, 22 running, 7 succeeded" in text


def test_items_that_failed_for_the_same_reason_share_a_row() -> None:
    play = Play(node("a"), each("m", "a"), answer="m")
    play.begin()
    play.ok("a", length=30)
    for item in (3, 4, 9):
        play.fail(f"m[{item}]")
    play.fail("m[7]", "Other")
    rows = re.findall(r"^\| `(m\[\d+\])`( \+\d+)? \| \u2007failed", board_text(play), re.MULTILINE)
    assert rows == [("m[3]", " +2"), ("m[7]", "")]
    assert f"| … | \u2007{32 - 2 - 4}\u00a0more |" in board_text(play)


def test_links_lead_to_pages_of_this_run() -> None:
    play = Play(node("a"))
    play.begin()
    place = "namespaces/{namespace}/workflows/{workflowId}/{runId}"
    assert f"[pending activities]({place}/pending-activities) · [timeline]({place}/timeline)" in board_text(play)
    play.ok("a")
    assert "pending activities" not in board_text(play)
    assert "/workflows/a%20%22b%22%2Fc/{runId}/" in board_text(play, run='a "b"/c')
    assert "](" not in board_text(play, run="<" * 1000)


def below(*names: str, run: str = f"{RUN}.sub", question: str = "May this run?") -> dict[int, SubagentView]:
    command = f"sennit approve {run} {names[0]}"
    items = [
        BlockedOn(
            node=name,
            why="approval",
            question=question,
            update="approve",
            example={"node": name},
            command=command,
            also=("reject",),
            run=run,
        )
        for name in names
    ]
    return {0: SubagentView(name="sub", run="r", blocked=tuple(items))}


def test_what_a_sub_agent_waits_for_is_sent_to_its_run() -> None:
    play = Play(node("sub", kind="agent"), node("b"), answer=["sub", "b"])
    play.begin()
    text = board_text(play, children=below("n3"))
    assert text.index("**sub.n3 needs approval:**") < text.index("<svg")
    assert f"→ in the [run of its sub-agent](namespaces/{{namespace}}/workflows/{RUN}.sub):" in text
    assert '`approve` with `{"node": "n3"}`' in text
    assert '`reject` with `{"node": "n3"}`' in text
    assert f"`sennit approve {RUN}.sub n3`" in text
    assert re.search(r"^\| `sub` \| \u2007running .* its sub-agent waits \|$", text, re.MULTILINE)
    assert "sub-agent" not in board_text(play)


def test_what_sub_agents_wait_for_makes_no_board_too_long() -> None:
    play = fan(40)
    play.begin()
    names = [f"n{number}" for number in range(20)]
    for run in (RUN, HOSTILE.replace("\ud800", "") * 9):
        text = board_text(play, children=below(*names, run=run, question=HOSTILE * 900))
        assert sent_bytes(text) <= MAX_BOARD_BYTES
        assert not re.search(r"[<>{}]", re.sub(r"\]\(namespaces/\S+\)", "", outside(text)))


def test_a_page_that_drops_html_says_what_the_picture_shows() -> None:
    play = Play(*(node(f"page{number}") for number in range(5)), node("sum", *(f"page{number}" for number in range(5))))
    play.begin()
    play.ok("page0")
    play.fail("page1")
    text = without_html(board_text(play))
    first = "1: 1 succeeded, 3 running (page2, page3, …), 1 failed (page1)"
    assert f"\n\n```\n{first}\n2: 1 blocked (sum)\n```\n\n" in text
    assert "2 of 6 nodes ended" in text
    assert "| `page1` |" in text


def test_a_board_says_which_of_its_numbers_shared_activities_have_reported() -> None:
    play = Play(*(node(name) for name in "abc"), node("sum", "a", "b", "c"), fuse="on")
    play.begin()
    assert "0 of 4 nodes ended, as 1 shared activity last reported" in board_text(play)
    play.ok("a")
    assert "1 of 4 nodes ended, as 1 shared activity last reported" in board_text(play)
    for name in ("b", "c", "sum"):
        play.ok(name)
    assert "4 of 4 nodes ended · " in board_text(play)


def test_notes_come_last() -> None:
    assert (
        board_text(Play(node("a")), notes=["`SennitStatus` is missing: `sennit setup`"])
        .rstrip()
        .endswith("`sennit setup`")
    )


@given(st.one_of(st.text(), st.sampled_from([HOSTILE, "W" * 100_000, "1/2/3 ---- ::"])))
def test_text_from_anybody_is_shown_as_it_is_and_marks_nothing_up(text: str) -> None:
    parts = prose(text, 200).split("<wbr>")
    rendered = "".join(parts)
    assert not re.search(r"[<>|`*_\[\]\\~${}:(\n]|--|\d/\d", rendered)
    assert html.unescape(rendered).translate({0x2068: None, 0x2069: None}) == plain(text, 200)
    assert max(len(word) for part in parts for word in html.unescape(part).split(" ")) <= 30


@settings(max_examples=150)
@given(
    execution_plans(),
    st.randoms(use_true_random=False),
    st.lists(st.sampled_from([HOSTILE, "W" * 500, "é\n" * 99, "ok"]), min_size=1),
)
def test_whatever_a_run_holds_the_board_is_whole(execution_plan: Any, chance: random.Random, texts: list[str]) -> None:
    for spec in execution_plan.specs:
        spec.summary, spec.question = f"{spec.id} {chance.choice(texts)} <- n1", chance.choice(texts)
    state = RunState(Graph(execution_plan))
    fill(state, chance, texts)
    text = board(ShownRun(state, chance.choice([RUN, HOSTILE.replace("\ud800", "")])), title=chance.choice(texts))
    assert drawing(text).clashes() == []
    assert sent_bytes(text) <= MAX_BOARD_BYTES
    assert "\n\n" not in text[text.index("<div>") : text.index("</div>")]
    assert not re.search(r"[<>{}]", re.sub(r"\]\(namespaces/\S+\)", "", outside(text)))


def fill(state: RunState, chance: random.Random, texts: list[str]) -> None:
    """Give every node some status, and those that did not succeed a reason."""
    statuses = (PENDING, RUNNING, WAITING, SUCCEEDED, FAILED, SKIPPED, CANCELLED, BLOCKED)
    for unit in state.numbers():
        state.set_status(unit, chance.choice(statuses))
        state.units[unit].attempts, state.units[unit].millis = chance.randrange(12), chance.randrange(10_000_000)
        state.notes[unit] = ("Boom", chance.choice(texts))
    state.parked = chance.random() < 0.7


def fan(count: int) -> Play:
    middle = [
        node(f"fetch_{n}", "plan", summary=f'fetch_{n} http_get "https://example.org/{n}"') for n in range(count - 2)
    ]
    return Play(node("plan"), *middle, join("all", *(each["id"] for each in middle)), answer="all")


def layers(count: int, width: int) -> Play:
    chance = random.Random(5)
    nodes = []
    for index in range(count):
        above = range((index // width - 1) * width, index // width * width) if index >= width else ()
        needs = (
            [f"n{other}" for other in chance.sample(above, min(2, len(above)))]
            if index % 2
            else [f"n{o}" for o in above[:1]]
        )
        nodes.append(node(f"n{index}", *needs, summary=f'n{index} search "topic number {index}"'))
    return Play(*nodes, answer=f"n{count - 1}")


@pytest.mark.parametrize("reach", [1, 2, 3, 6])
def test_no_board_is_too_long_to_be_sent_bytes(reach: int) -> None:
    chance = random.Random(reach)
    names = [f"{'n' * 36}_{index}" for index in range(60)]
    nodes = [
        gate(name, *chance.sample(names[max(0, index - reach) : index], min(index, reach, 2)), question=HOSTILE * 900)
        for index, name in enumerate(names)
    ]
    play = Play(*nodes)
    fill(play.state, chance, ["漢" * 100_000])
    play.state.parked = True
    text = board_text(play, title="漢" * 100_000)
    assert sent_bytes(text) <= MAX_BOARD_BYTES
    assert drawing(text).clashes() == []


def test_layers_stand_for_nodes_when_a_board_would_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    play = layers(40, 5)
    play.begin()
    assert len(drawing(board_text(play)).boxes) == 40
    monkeypatch.setattr("sennit.workflows.views.board._DETAILS", _DETAILS[-1:])
    assert drawing(board_text(play)).texts[-2].text == "layer 8: n36…n39"


def test_calls_of_a_program_are_named_by_task_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, calls = [], []
    for n in range(3):
        task, call = f"look#{n}:9", f"look#{n}/search:4"
        tasks.append(node(f"m_{n}", kind="task", page="p", summary=f"m_{n} {task} {n}", call_site=task))
        calls.append(node(f"m_{n}_1", f"m_{n}", page="p", summary=f"m_{n}_1 {call} {n}", call_site=call))
    play = Play(node("m", kind="program"), *tasks, *calls, answer="m")
    play.begin()
    for name in ("m", "m_0", "m_1"):
        play.ok(name)
    play.fail("m_0_1", "ToolError")
    assert "look#0/search&#58;4 ToolError" in board_text(play)
    monkeypatch.setattr("sennit.workflows.views.board._DETAILS", _DETAILS[-1:])
    named = [text.text for text in drawing(board_text(play)).texts]
    assert {"look \N{MULTIPLICATION SIGN}3", "search:4 \N{MULTIPLICATION SIGN}3"} <= set(named)


@pytest.mark.parametrize("play", [fan(5), fan(16), fan(40), layers(20, 5), layers(40, 5), layers(500, 25)])
def test_usual_boards_take_at_most_six_kilobytes(play: Play) -> None:
    play.begin()
    for unit in range(len(play.graph.specs) // 2):
        if play.state.units[unit].status == RUNNING:
            play.ok(play.state.path(unit))
    text = board_text(play)
    assert len(text.encode()) <= USUAL_TEXT
    assert drawing(text).clashes() == []


def test_the_board_follows_a_graph_that_grows() -> None:
    play = Play(node("a"), answer="a")
    assert len(drawing(board_text(play)).boxes) == 1
    grown = Play(node("a"), node("b", "a"), answer="b")
    assert len(drawing(board_text(grown)).boxes) == 2
    grown.graph.sketch = play.graph.sketch
    assert len(drawing(board_text(grown)).boxes) == 2


def test_the_board_says_the_same_each_time() -> None:
    play, again = fan(12), fan(12)
    assert board_text(play) == board_text(play) == board_text(again)
