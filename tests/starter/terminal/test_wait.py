"""What a command leaves on its streams, and its exit code, for every way a run can go."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from doubles.followed import NEVER_ENDING, make_gate, make_report, make_run, make_view

from sennit.starter.client.errors import Exit, NoAnswer, ServerUnreachable
from sennit.starter.client.outcome import RunOutcome
from sennit.starter.terminal.wait import detach, screen_for, wait_for_run
from sennit.workflows.messages.result import RunReport
from sennit.workflows.messages.views import RunEvent

Make = Callable[..., Any]


@pytest.mark.parametrize(("status", "code"), [("done", 0), ("partial", 3), ("failed", 1), ("cancelled", 1)])
async def test_the_answer_is_on_stdout_and_the_rest_on_stderr(make_terminal: Make, status: Any, code: int) -> None:
    terminal = make_terminal()
    run = make_run(make_view(), end=RunOutcome(make_report(status)))
    assert await wait_for_run(run, terminal) == code
    assert terminal.out.getvalue() == "42\n"
    assert terminal.err.getvalue().splitlines()[:2] == ["run run-1", "ui  http://localhost:8233/r"]


async def test_a_refused_run_exits_2_with_its_problems(make_terminal: Make) -> None:
    terminal = make_terminal()
    end = RunOutcome(make_report("failed", answer=None, problem="nodes[0]: no"), "InvalidPlan")
    assert await wait_for_run(make_run(make_view(), end=end), terminal) == Exit.USAGE
    assert "  nodes[0]: no" in terminal.err.getvalue().splitlines()
    assert terminal.out.getvalue() == ""


@pytest.mark.parametrize(("output", "written"), [("none", ""), ("text", "42\n")])
async def test_output_none_leaves_stdout_empty(make_terminal: Make, output: str, written: str) -> None:
    terminal = make_terminal(output)
    await wait_for_run(make_run(make_view()), terminal)
    assert terminal.out.getvalue() == written


async def test_json_is_the_report(make_terminal: Make) -> None:
    terminal = make_terminal("json")
    report = make_report(ui_url="http://ui", answer={"a": [1]})
    await wait_for_run(make_run(make_view(), end=RunOutcome(report)), terminal)
    assert json.loads(terminal.out.getvalue()) == report.model_dump(mode="json")
    assert terminal.out.getvalue().count("\n") == 1


HAPPENED = [
    RunEvent(number=1, at=1.5, kind="planned", nodes=1),
    RunEvent(number=2, at=2.0, kind="started", node="a", text="search"),
    RunEvent(number=3, at=2.5, kind="ended", status="done"),
]


async def test_jsonl_is_the_events_of_the_client_between_the_report_as_it_begins_and_as_it_ends(
    make_terminal: Make,
) -> None:
    terminal = make_terminal("jsonl")
    assert await wait_for_run(make_run(make_view(), happened=HAPPENED), terminal) == Exit.ANSWER
    first, *lines, last = terminal.out.getvalue().splitlines()
    assert RunReport.model_validate_json(first).status == "running"
    assert [RunEvent.model_validate_json(line) for line in lines] == HAPPENED
    assert RunReport.model_validate_json(last) == make_report()


async def test_jsonl_of_a_run_that_is_left_has_all_that_has_happened(make_terminal: Make) -> None:
    terminal = make_terminal("jsonl")
    run = make_run(make_view(status="blocked", blocked=[make_gate("a")]), takes=["answer"], happened=HAPPENED[:2])
    assert await wait_for_run(run, terminal) == Exit.OPEN
    *_, event, last = terminal.out.getvalue().splitlines()
    assert RunEvent.model_validate_json(event) == HAPPENED[1]
    assert RunReport.model_validate_json(last).status == "blocked"


async def test_jsonl_whose_reader_has_left_waits_for_nothing(make_terminal: Make) -> None:
    terminal = make_terminal("jsonl")
    run = make_run(make_view(), end=NEVER_ENDING, happened=HAPPENED[:1])
    write, written = terminal.out.write, []

    def until_it_closes(text: str) -> int:
        written.append(text)
        if len(written) > 1:
            raise BrokenPipeError
        return int(write(text))

    terminal.out.write = until_it_closes
    with pytest.raises(BrokenPipeError):
        await wait_for_run(run, terminal)


async def test_jsonl_without_a_worker_still_has_the_report(make_terminal: Make) -> None:
    terminal = make_terminal("jsonl")
    run = make_run(make_view(), happened=HAPPENED[:1], silent=NoAnswer("no worker answers"))
    assert await wait_for_run(run, terminal) == Exit.ANSWER
    assert RunReport.model_validate_json(terminal.out.getvalue().splitlines()[-1]) == make_report()
    assert "no worker answers" in terminal.err.getvalue()


async def test_a_blocked_run_on_a_pipe_shows_question_and_commands_and_exits_4(make_terminal: Make) -> None:
    terminal = make_terminal("json", flags=" --address h:1")
    run = make_run(make_view(status="blocked", blocked=[make_gate("a")]), takes=["answer"])
    assert await wait_for_run(run, terminal) == Exit.OPEN
    text = terminal.err.getvalue()
    for line in ("a: a?", "    sennit answer run-1 a --address h:1", "  watch it:  sennit watch run-1 --address h:1"):
        assert line in text.splitlines()
    assert json.loads(terminal.out.getvalue())["status"] == "blocked"


@pytest.mark.parametrize("output", ["text", "json"])
async def test_a_run_that_sleeps_beside_a_question_is_waited_for_and_exits_0(make_terminal: Make, output: str) -> None:
    terminal = make_terminal(output)
    sleeping = make_view(status="running", blocked=[make_gate("a")])
    assert await wait_for_run(make_run(sleeping, sleeping), terminal, wait=True) == Exit.ANSWER
    text = terminal.err.getvalue()
    assert "a: a?" in text.splitlines(), "the question is shown"
    assert "waits for you" not in text


async def test_the_end_of_patience_exits_4_also_before_anything_was_seen(make_terminal: Make) -> None:
    for views in ((), (make_view(),)):
        terminal = make_terminal("json")
        assert await wait_for_run(make_run(*views, end=NEVER_ENDING), terminal, limit=0.05) == Exit.OPEN
        assert json.loads(terminal.out.getvalue())["status"] == "running"
        assert "cancel it: sennit cancel run-1" in terminal.err.getvalue()


async def test_an_interrupt_says_how_to_come_back(make_terminal: Make) -> None:
    terminal = make_terminal()
    run = make_run(make_view(), end=NEVER_ENDING)
    watching = asyncio.create_task(wait_for_run(run, terminal))
    while "run-1" not in terminal.err.getvalue():
        await asyncio.sleep(0)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert (
        "the run goes on\n  watch it:  sennit watch run-1\n  cancel it: sennit cancel run-1" in terminal.err.getvalue()
    )


async def test_a_lost_server_says_how_to_come_back(make_terminal: Make) -> None:
    terminal = make_terminal()
    with pytest.raises(ServerUnreachable):
        await wait_for_run(make_run(make_view(), gone=ServerUnreachable("gone")), terminal)
    assert "the run goes on" in terminal.err.getvalue()


@pytest.mark.parametrize(
    ("output", "check"),
    [
        ("text", lambda out: out == "run-1\n"),
        ("json", lambda out: json.loads(out)["status"] == "running"),
        ("jsonl", lambda out: json.loads(out)["status"] == "running"),
        ("none", lambda out: out == ""),
    ],
)
def test_a_detached_start_gives_the_id(make_terminal: Make, output: str, check: Any) -> None:
    terminal = make_terminal(output)
    assert detach(make_run(), terminal) == Exit.ANSWER
    assert check(terminal.out.getvalue())


@pytest.mark.parametrize(
    ("output", "tty", "name"),
    [("text", True, "LiveTable"), ("text", False, "Lines"), ("json", True, "LiveTable"), ("jsonl", True, "Notices")],
)
def test_progress_is_shown_as_the_terminal_allows(make_terminal: Make, output: str, tty: bool, name: str) -> None:
    assert type(screen_for(make_terminal(output, tty=tty))).__name__ == name
