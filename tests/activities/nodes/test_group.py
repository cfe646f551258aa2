"""What a group replies for a member that took its worker with it, and what it tells while others go on."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from doubles.plan.samples import stored, tool
from temporalio.service import RPCError, RPCStatusCode

from sennit.activities.limits import MAX_CUT_ERROR_CHARACTERS, MAX_PROGRESS_BYTES, MAX_REPLIES_BYTES
from sennit.activities.nodes import group as groups
from sennit.activities.nodes.group import GroupRun
from sennit.activities.nodes.pace import EACH, turn
from sennit.activities.toolbox.errors import WorkerLost
from sennit.workflows.messages.contracts import GroupProgress, GroupReply, NodeReply
from sennit.workflows.messages.node_calls import GroupCall
from sennit.workflows.plan.limits import MAX_MEMBERS, MAX_PAYLOAD_BYTES


async def load(_: str) -> None:
    """There is nothing to load."""


async def test_a_member_that_kills_its_process_fails_and_does_not_start_again() -> None:
    async def run_one(path: str, _: dict[str, str]) -> NodeReply:
        if path == "a":
            raise WorkerLost("it ended its process, with exit code 9")
        return NodeReply(ref="digest")

    group = GroupRun(stored(tool("a"), tool("b")), ("a", "b"), {}, run_one)
    await group.run(load, {})
    lost, fine = group.replies()
    assert lost.error is not None
    assert (lost.error.type, lost.error.again, fine.ref) == ("WorkerLost", False, "digest")


async def test_what_has_ended_is_told_once_and_a_failure_stands_in_a_heartbeat_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first signal is lost. A successor does not call again what failed, and runs nothing behind it."""
    monkeypatch.setattr(groups, "TELL_SECONDS", 0.01)
    late, sent, called = asyncio.Event(), list[Any](), list[str]()

    async def run_one(path: str, _: dict[str, str]) -> NodeReply:
        called.append(path)
        if path == "late":
            await late.wait()
        if path == "bad":
            raise ValueError("went wrong")
        large = path in ("x", "y")
        return NodeReply(ref=path * 40, preview="x" * (MAX_PROGRESS_BYTES * 2 // 3) if large else "")

    async def record(*details: Any) -> None:
        sent.append(details)

    async def signal(progress: GroupProgress) -> None:
        sent.append(progress.places)
        if len(sent) == 2:
            raise RPCError("lost", RPCStatusCode.UNAVAILABLE, b"")
        if len(sent) == 4:
            late.set()

    checked = stored(tool("a"), tool("bad"), tool("x"), tool("y"), tool("late"), tool("behind", needs=["bad"]))
    paths = ("a", "bad", "x", "y", "late", "behind")
    group = GroupRun(checked, paths, {}, run_one)
    teller = asyncio.create_task(group.tell(GroupCall(run="r", plan="p", nodes=paths), 1, record, signal))
    await group.run(load, {})
    teller.cancel()
    heartbeat, *signals = sent
    assert heartbeat == ("4 of 6 done", [0b001111], [0b000010])
    assert signals == [(0, 1, 2), (0, 1, 2), (3,)]
    called.clear()
    after = GroupRun(checked, paths, {}, run_one, heartbeat)
    await after.run(load, {})
    assert called == ["a", "x", "y", "late"]
    assert [reply.ref is not None for reply in after.replies()] == [True, False, True, True, True, False]
    assert {reply.error.type for reply in after.replies() if reply.error is not None} == {"NotRun"}


async def test_what_does_not_travel_with_the_other_replies_starts_again_and_a_failure_is_cut() -> None:
    most = MAX_REPLIES_BYTES // MAX_MEMBERS

    async def run_one(path: str, _: dict[str, str]) -> NodeReply:
        if path == f"n{MAX_MEMBERS - 1}":
            raise ValueError("x" * 400)
        return NodeReply(ref=path, preview="x" * most)

    paths = tuple(f"n{index}" for index in range(MAX_MEMBERS))
    group = GroupRun(stored(*(tool(path) for path in paths)), paths, {}, run_one)
    await group.run(load, {})
    *others, failed = group.replies()
    told = [reply.ref is not None for reply in others]
    assert told == sorted(told, reverse=True)
    assert 0 < told.count(False) < MAX_MEMBERS // 10
    assert failed.error is not None
    assert (failed.error.type, failed.error.message) == ("ValueError", f"{'x' * (MAX_CUT_ERROR_CHARACTERS - 1)}…")
    assert len(GroupReply(nodes=(*others, failed)).model_dump_json(exclude_unset=True)) < MAX_PAYLOAD_BYTES


async def test_however_many_calls_an_activity_has_others_on_the_worker_take_their_turns_between_them() -> None:
    count, late, began, kept, steps = 250, asyncio.Event(), list[str](), list[str](), list[tuple[int, int]]()

    async def run_one(path: str, _: dict[str, str]) -> NodeReply:
        began.append(path)
        await late.wait()
        await turn()
        kept.append(path)
        return NodeReply(ref=path)

    async def neighbour() -> None:
        while len(kept) < count:
            steps.append((len(began), len(kept)))
            await asyncio.sleep(0)
            if len(began) == count:
                late.set()

    paths = tuple(f"n{index}" for index in range(count))
    group = GroupRun(stored(*(tool(path) for path in paths)), paths, {}, run_one)
    await asyncio.gather(group.run(load, {}), neighbour())
    assert began == kept == list(paths)
    for column in zip(*steps, strict=True):
        assert max(after - before for before, after in pairwise(column)) <= EACH
