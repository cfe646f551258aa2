"""What a run is told of the calls that a model asks for while its reply still comes."""

import asyncio

import pytest

from sennit.activities.llm import asked_calls
from sennit.activities.llm.asked_calls import AskedCalls
from sennit.activities.providers.model import ToolRequest
from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.workflows.plan.speculation.limits import MAX_ASKED


class Told:
    """What the run was told."""

    def __init__(self, *, fails: bool = False) -> None:
        self.texts: list[str] = []
        self.fails = fails

    async def __call__(self, request: ToolRequest) -> None:
        self.texts.append(str(request.arguments))
        if self.fails:
            raise StoreUnavailable("the store is away")


def request(text: str, name: str = "fetch") -> ToolRequest:
    return ToolRequest(text, name, {"text": text})


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_calls, "WAIT_SECONDS", 0.0)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_only_calls_are_told_of_which_the_run_wants_to_know() -> None:
    told = Told()
    calls = AskedCalls(["fetch"], told)
    calls.add(request("a"))
    calls.add(request("b", "write"))
    calls.add(ToolRequest("c", "fetch", "no object"))
    await settle()
    assert told.texts == ["{'text': 'a'}"]


async def test_at_most_so_many_calls_are_told() -> None:
    told = Told()
    calls = AskedCalls(["fetch"], told)
    for number in range(MAX_ASKED + 5):
        calls.add(request(str(number)))
    await settle()
    assert len(told.texts) == MAX_ASKED


async def test_nothing_is_told_of_a_reply_that_has_ended_or_was_discarded() -> None:
    told = Told()
    calls = AskedCalls(["fetch"], told)
    calls.add(request("discarded"))
    calls.discard()
    calls.add(request("asked again"))
    await settle()
    calls.add(request("too late"))
    await calls.close()
    await settle()
    assert told.texts == ["{'text': 'asked again'}"]


async def test_a_message_that_cannot_be_sent_is_no_failure_of_the_call() -> None:
    told = Told(fails=True)
    calls = AskedCalls(["fetch"], told)
    calls.add(request("a"))
    await settle()
    await calls.close()
    assert told.texts == ["{'text': 'a'}"]
