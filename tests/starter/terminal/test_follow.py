"""Following a run: to its end, to a block, to the end of patience."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from doubles.followed import make_gate, make_node, make_run, make_view

from sennit.starter.client.outcome import RunOutcome
from sennit.starter.terminal.follow import Follower, OpenRun
from sennit.workflows.messages.result import BlockedOn, RunReport
from sennit.workflows.messages.views import RunView

Make = Callable[..., Any]


class Seen:
    """A screen that remembers."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def started(self, run: Any) -> None:
        self.log.append("started")

    def show(self, view: RunView) -> None:
        self.log.append(f"show {view.status}")

    def blocked(self, item: BlockedOn) -> None:
        self.log.append(f"blocked {item.node}")

    def note(self, text: str) -> None:
        self.log.append(f"note {text}")

    def notice(self, text: str) -> None:
        self.log.append(f"notice {text}")

    @contextmanager
    def paused(self, item: BlockedOn) -> Iterator[None]:
        self.log.append("paused")
        try:
            yield
        finally:
            self.log.append("back")

    def finished(self, report: RunReport) -> None:
        self.log.append(f"finished {report.status}")

    def close(self) -> None:
        self.log.append("close")


class Scripted:
    """A person who types these lines, then nothing (None), or never (no more lines and `silent`)."""

    def __init__(self, *lines: str | None, silent: bool = False) -> None:
        self.lines = list(lines)
        self.silent = silent
        self.asked: list[str] = []

    async def ask(self, prompt: str) -> str | None:
        self.asked.append(prompt)
        if not self.lines and self.silent:
            await asyncio.Event().wait()
        return self.lines.pop(0) if self.lines else None


async def test_a_run_is_shown_until_it_is_over() -> None:
    screen = Seen()
    ending = await Follower(make_run(make_view(make_node("a"))), screen).follow()
    assert isinstance(ending, RunOutcome)
    assert screen.log == ["show running", "finished done"]


async def test_on_a_pipe_a_gate_beside_running_nodes_is_only_reported() -> None:
    screen = Seen()
    run = make_run(make_view(blocked=[make_gate("a")]), make_view())
    assert isinstance(await Follower(run, screen).follow(), RunOutcome)
    assert screen.log.count("blocked a") == 1


async def test_with_wait_a_blocked_run_is_waited_for() -> None:
    screen = Seen()
    run = make_run(*[make_view(status="blocked", blocked=[make_gate("a")])] * 3)
    assert isinstance(await Follower(run, screen, wait=True).follow(), RunOutcome)
    assert screen.log.count("blocked a") == 1


async def test_a_person_is_asked_and_what_they_type_is_sent() -> None:
    screen, person = Seen(), Scripted("yes")
    run = make_run(make_view(status="blocked", blocked=[make_gate("a")]), takes=["answer"])
    assert isinstance(await Follower(run, screen, person.ask).follow(), RunOutcome)
    assert run.updates == [("answer", {"node": "a", "value": "yes"})]
    assert "notice answer was applied" in screen.log
    assert screen.log.index("paused") < screen.log.index("notice answer was applied") < screen.log.index("back")


async def test_a_refused_answer_is_reported_and_asked_for_again() -> None:
    screen, person = Seen(), Scripted("x", "y", "n no")
    run = make_run(make_view(status="blocked", blocked=[make_gate("a", "approve")]), takes=["reject"])
    assert isinstance(await Follower(run, screen, person.ask).follow(), RunOutcome)
    assert [name for name, _ in run.updates] == ["approve", "reject"]
    assert "notice approve does not fit" in screen.log
    assert len(person.asked) == 3


FORM = {"title": "yes", "count": 1, "who": {"name": "yes", "notify": True}, "tags": []}


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (
            ["7", "3", " ", "Ann", "false", '["a"]'],
            {"title": "7", "count": 3, "who": {"name": "Ann", "notify": False}, "tags": ["a"]},
        ),
        (['{"title": "x", "count": 2, "who": {}, "tags": []}'], {"title": "x", "count": 2, "who": {}, "tags": []}),
        (
            ['{"title": "x"}', "many", "Ann", "no", "[]"],
            {"title": '{"title": "x"}', "count": "many", "who": {"name": "Ann", "notify": "no"}, "tags": []},
        ),
    ],
)
async def test_an_object_is_answered_field_by_field_or_whole(typed: list[str], value: dict[str, Any]) -> None:
    """What does not fit its field goes on as it was typed: the run knows the schema and says what is wrong."""
    screen, person = Seen(), Scripted(*typed)
    run = make_run(make_view(status="blocked", blocked=[make_gate("a", value=FORM)]), takes=["answer"])
    assert isinstance(await Follower(run, screen, person.ask).follow(), RunOutcome)
    assert run.updates == [("answer", {"node": "a", "value": value})]
    assert person.asked[0] == 'title (such as "yes"): '
    assert ("who.notify (such as true): " in person.asked) == (len(typed) > 1)
    assert "notice a takes an object: answer field by field, or type it whole as JSON" in screen.log
    assert ("notice a value is needed; Ctrl-D leaves the run waiting" in screen.log) == (" " in typed)


async def test_who_leaves_in_the_middle_of_an_object_has_answered_nothing() -> None:
    blocked = make_view(status="blocked", blocked=[make_gate("a", value=FORM)])
    run = make_run(blocked, takes=["answer"])
    assert await Follower(run, Seen(), Scripted("x", "1").ask).follow() == OpenRun(blocked, blocked=True)
    assert run.updates == []


async def test_writes_of_a_map_are_decided_one_by_one_on_request() -> None:
    screen, person = Seen(), Scripted("o", "y")
    together = make_gate("m", "approve", digest="d").model_copy(update={"parts": 2})
    blocked = make_view(
        status="blocked", blocked=[together, make_gate("m[0]", "approve"), make_gate("m[1]", "approve")]
    )
    run = make_run(blocked, takes=["approve"])
    assert isinstance(await Follower(run, screen, person.ask).follow(), RunOutcome)
    assert person.asked[0] == "approve all 2 of m? [y]es, [n]o and why, [o]ne by one: "
    assert run.updates == [("approve", {"node": "m[0]"})]


async def test_who_types_nothing_leaves_the_run_blocked() -> None:
    blocked = make_view(status="blocked", blocked=[make_gate("a")])
    left = await Follower(make_run(blocked, takes=["answer"]), Seen(), Scripted().ask).follow()
    assert left == OpenRun(blocked, blocked=True)


async def test_who_leaves_a_question_open_is_not_told_that_a_run_waits_which_goes_on() -> None:
    sleeping = make_view(status="running", blocked=[make_gate("a")])
    left = await Follower(make_run(sleeping, takes=["answer"]), Seen(), Scripted().ask).follow()
    assert left == OpenRun(sleeping, blocked=False)


async def test_a_question_somebody_else_settled_is_withdrawn() -> None:
    screen, person = Seen(), Scripted(silent=True)
    blocked = make_view(status="blocked", blocked=[make_gate("a")])
    ending = await Follower(make_run(*[blocked] * 3, make_view()), screen, person.ask).follow()
    assert isinstance(ending, RunOutcome)
    assert len(person.asked) == 1
    assert screen.log.index("back") < screen.log.index("show running")


async def test_a_run_that_blocks_again_asks_again() -> None:
    blocked = make_view(status="blocked", blocked=[make_gate("a", "retry_node")])
    run = make_run(blocked, takes=["retry_node"], updates=3)
    assert isinstance(await Follower(run, Seen(), Scripted("r", "r", "r").ask).follow(), RunOutcome)
    assert len(run.updates) == 3


async def test_patience_also_ends_a_question() -> None:
    run = make_run(make_view(status="blocked", blocked=[make_gate("a")]), takes=["answer"])
    assert isinstance(await Follower(run, Seen(), Scripted(silent=True).ask).follow(0.05), OpenRun)


async def test_a_run_too_quick_to_be_seen_is_looked_at_once_more() -> None:
    screen = Seen()
    run = make_run(last=make_view(make_node("a", "succeeded"), status="cancelled"))
    ending = await Follower(run, screen).follow()
    assert isinstance(ending, RunOutcome)
    assert [node.id for node in ending.report.nodes] == ["a"]
    assert screen.log == ["show cancelled", "finished done"]
