"""How a run ended, as its board and its report tell it: the answer first, or why there is none."""

from typing import Any

from doubles.local_workers import Start
from doubles.plan.play import Play, each, node, when
from doubles.runs import insist, until

from sennit.workflows.messages.contracts import Conclusion
from sennit.workflows.views.board import RunEnd, board
from sennit.workflows.views.report import report_of
from sennit.workflows.views.shown_run import ShownRun


def ended(*nodes: dict[str, Any], answer: str | list[str]) -> Play:
    play = Play(*nodes, answer=answer)
    play.begin()
    return play


def shown(play: Play, answer: Any, problem: str = "") -> str:
    return board(ShownRun(play.state, "nightly-1"), title="done: a goal", end=RunEnd(answer, problem))


def test_the_answer_of_a_finished_run_stands_first_and_says_where_it_is_cut() -> None:
    play = ended(node("a"), answer="a")
    play.ok("a")
    text = shown(play, "It is **6,650** km.\n\n" + "word " * 1_000)
    assert text.index("It is &#42;&#42;6,650") < text.index("<svg") < text.index("| node")
    assert "… the whole: `sennit output nightly-1`" in text
    assert shown(play, {"a": 1}).index('{\n "a": 1\n}') < shown(play, {"a": 1}).index("<svg")
    long = shown(play, list(range(1_000)))
    assert "[0, 1, 2," in long
    assert "more characters: `sennit output nightly-1`" in long


def test_without_an_answer_the_board_and_the_report_say_why() -> None:
    play = ended(node("a"), node("b", "a", **when("a.count", "eq", 1)), node("c", "b"), answer="c")
    play.ok("a", count=2)
    report = report_of(ShownRun(play.state), "partial", Conclusion(), "")
    assert report.problem == "`c` was skipped: `b` was skipped: its condition was false"
    assert "**why:** &#96;c&#96; was skipped" in shown(play, None, report.problem)
    parts = ended(
        node("a"), node("b", "a", skip_on_error=True), node("c", "a", **when("a.count", "eq", 1)), answer=["b", "c"]
    )
    parts.ok("a", count=2)
    parts.fail("b", "BadOutput")
    assert report_of(ShownRun(parts.state), "partial", Conclusion(answer=[None, None]), "").problem == (
        "`b` was skipped: it broke; `c` was skipped: its condition was false"
    )
    answered = report_of(ShownRun(play.state), "done", Conclusion(answer=1), "")
    assert answered.problem is None


def test_a_finished_map_shows_the_time_of_its_work() -> None:
    play = ended(node("list"), each("m", "list"), answer="m")
    play.ok("list", length=2)
    play.state.now += 5_000
    play.ok("m[0]", "m[1]")
    assert play.state.units[play.unit("m")].millis == 5_000


EDITED = """async def main():
    await nap(value=1)
    await fail(message="the first script is wrong")
    return "never"
"""


async def test_what_a_replaced_script_has_called_has_not_failed(start: Start) -> None:
    handle = await start(plan={"nodes": [{"id": "main", "kind": "program", "script": EDITED}]})
    await until(handle, lambda view: bool(view["status"] == "blocked"))
    mended = EDITED.replace('fail(message="the first script is wrong")', "nap(value=2)").replace("never", "mended")
    await insist(handle, "edit_program", {"node": "main", "script": mended})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "mended")
    assert "failed" not in report["counts"]
    [left] = [line for line in report["nodes"] if line["status"] == "skipped"]
    assert left["error"].endswith("; its script was replaced")
