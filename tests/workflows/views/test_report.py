"""What the report and the timeline say of a run, and what a report's size is kept to."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from doubles.plan.play import Play, node
from doubles.runs import call, until
from temporalio.client import WorkflowHandle
from temporalio.converter import default

from sennit.workflows.messages.contracts import Conclusion
from sennit.workflows.messages.result import BlockedOn
from sennit.workflows.run.subagent_status import for_parent
from sennit.workflows.views import report as reporting
from sennit.workflows.views.shown_run import ShownRun

Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]
NAP = {"kind": "tool", "tool": "nap", "args": {"value": "$item.n"}}
NODES = [call("a", "count", args={"count": 3}), {"id": "m", "kind": "map", "over": "$a.items", "do": NAP}]


async def summaries(start: Start) -> dict[str, str]:
    report = await (await start(plan={"nodes": NODES})).result()
    return {line["id"]: line.get("summary", "") for line in report["nodes"]}


async def test_a_report_says_what_its_nodes_did(start: Start) -> None:
    assert await summaries(start) == {
        "a": "a count 3",
        "m": 'm map nap "$item.n" over $a.items <- a',
        "m[0]": "",
        "m[1]": "",
        "m[2]": "",
    }


@pytest.mark.parametrize(("characters", "expected"), [(32, {"a count 3", 'm map nap "$ite…'}), (30, {""})])
async def test_many_nodes_share_the_room_for_it(
    start: Start, monkeypatch: pytest.MonkeyPatch, characters: int, expected: set[str]
) -> None:
    monkeypatch.setattr(reporting, "MAX_SUMMARIES_CHARACTERS", characters)
    assert set((await summaries(start)).values()) - {""} == expected - {""}


def test_a_report_that_is_too_long_counts_every_node_and_lists_the_failed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(*(node(f"n{index}") for index in range(9)))
    play.begin()
    for index in range(9):
        play.fail(f"n{index}") if index in (4, 8) else play.ok(f"n{index}")
    monkeypatch.setattr(reporting, "MAX_REPORT_BYTES", 900)
    report = reporting.report_of(ShownRun(play.state), "partial", Conclusion(), "")
    assert report.counts == {"succeeded": 7, "failed": 2}
    assert [line.id for line in report.nodes][:3] == ["n4", "n8", "n0"]
    assert report.nodes_left_out == 9 - len(report.nodes) > 0


def test_a_node_that_needed_its_fallback_says_so() -> None:
    play = Play(node("a", fallback=("none", 1, {})), node("b", successor="s"), node("s", is_successor=True))
    play.begin()
    for name in ("a", "b"):
        play.fail(name)
    play.ok("s")
    lines = {line.id: (line.status, line.error) for line in reporting.report_lines(ShownRun(play.state))[0]}
    assert lines == {
        "a": ("succeeded", "Boom: it broke; its fallback is used"),
        "b": ("succeeded", "Boom: it broke; its fallback is used"),
        "s": ("succeeded", None),
    }


async def test_a_timer_says_what_ends_with_it(start: Start) -> None:
    nodes = [call("a", "fail"), call("slow", args={"seconds": 20}),
             {"id": "j", "kind": "join", "inputs": ["slow"], "policy": "settled", "deadline": "300ms"}]  # fmt: skip
    handle = await start(plan={"nodes": nodes, "answer": {"a": "$a", "j": "$j"}})
    await until(handle, lambda view: view["status"] == "blocked")
    expected = [
        default().payload_converter.from_payload(event.user_metadata.summary)
        async for event in handle.fetch_history_events()
        if event.HasField("timer_started_event_attributes")
    ]
    of_lists = "telling lists how far the run is"
    assert list(dict.fromkeys(each for each in expected if each != of_lists)) == [
        "j ends waiting",
        "the parked run ends",
    ]


def test_of_long_values_a_parent_has_the_beginning_and_the_command_to_read_on() -> None:
    command = "sennit approve agent-x.sub w --digest 3f"
    example: dict[str, Any] = {"node": "w", "digest": "3f"}
    item = BlockedOn(node="w", why="approval", shown="x" * 4_000, update="approve", example=example, command=command)
    short = for_parent(item, "my run.sub")
    assert short.shown == f"{'x' * 500}\n… the whole: sennit status 'my run.sub'"
    assert (short.example, short.command) == (item.example, item.command)


def test_what_is_too_long_to_be_passed_on_is_only_named() -> None:
    item = BlockedOn(
        node="g", why="gate", question="?" * 9_000, update="answer", example={"node": "g"}, command="sennit"
    )
    short = for_parent(item, "my run.sub")
    assert (len(short.question), short.command, short.run) == (501, "sennit status 'my run.sub'", "my run.sub")
    assert for_parent(short, "my run") == short, "the run that asks stays the same on the way up"
