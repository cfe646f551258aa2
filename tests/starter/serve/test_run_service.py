"""What callers of one server owe each other: no plan of one holds up the requests of the others."""

import asyncio
from threading import Event
from typing import cast

import pytest

from sennit.starter.client.errors import NotAllowed
from sennit.starter.limits import MAX_ANSWER_CHARACTERS, MAX_CHECKS_AT_ONCE, MAX_SERVE_YAML_BYTES
from sennit.starter.plans.plan_file import PlanFile, plan_of
from sennit.starter.serve import run_service
from sennit.starter.serve.run_service import Caller, Connect, RunService, Terms

PLAN = "nodes:\n- {id: n, kind: tool, tool: search, args: {query: x}}\nanswer: $n\n"


@pytest.fixture
def service() -> RunService:
    return RunService(cast("Connect", None), Terms(options={}, has_tools=False))


async def test_a_plan_is_read_while_the_requests_of_others_go_on(
    service: RunService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each plan is read until another request has been served; the third one waits until a place is free."""
    served = Event()
    begun: list[str] = []
    in_time: list[bool] = []

    def read(text: str) -> PlanFile:
        begun.append(text)
        in_time.append(served.wait(20))
        return plan_of(text)

    monkeypatch.setattr(run_service, "plan_of", read)
    checks = [asyncio.create_task(service.check(plan=PLAN)) for _ in range(MAX_CHECKS_AT_ONCE + 1)]
    while len(begun) < MAX_CHECKS_AT_ONCE:
        await asyncio.sleep(0.01)
    assert len(begun) == MAX_CHECKS_AT_ONCE
    served.set()
    found = await asyncio.gather(*checks)
    assert in_time == [True] * len(checks)
    assert [check.problems for check in found] == [[]] * len(checks)


async def test_a_plan_of_too_much_text_is_refused_before_it_is_read(service: RunService) -> None:
    found = await service.check(plan=PLAN + "#" * MAX_SERVE_YAML_BYTES)
    assert found.problems == ["plan: over 512 KiB of text; give it as an object, or use `map` for many alike nodes"]


class OneRun:
    """A client whose only run has an answer of so many characters; it counts how often that is read."""

    id = "r"

    def __init__(self, characters: int) -> None:
        self.characters = characters
        self.reads = 0

    async def look_up(self, _name: str, *, caller: str | None) -> tuple["OneRun", bool]:
        """Return the run."""
        assert caller == "ann"
        return self, False

    async def output(self) -> str:
        """Return its answer."""
        self.reads += 1
        return "x" * self.characters


def serving(run: OneRun) -> RunService:
    async def connect(_: str) -> OneRun:
        return run

    return RunService(cast("Connect", connect), Terms(options={}))


async def test_a_long_answer_is_read_once() -> None:
    run = OneRun(MAX_ANSWER_CHARACTERS)
    assert len(await serving(run).answer(Caller("ann"), "r")) == MAX_ANSWER_CHARACTERS
    assert run.reads == 1


async def test_an_answer_that_is_too_long_for_one_reply_is_left_to_output() -> None:
    run = OneRun(MAX_ANSWER_CHARACTERS + 1)
    with pytest.raises(NotAllowed, match=r"1,000,001 characters.*in parts with `output`"):
        await serving(run).answer(Caller("ann"), "r")
