"""How a reader of events finds its way in a chain of runs."""

from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.errors import Refused
from sennit.starter.client.events import EventReader

EACH, PAGE = 6, 2
"""How many events each run of the chain has, and how many make a page."""


class Chain:
    """A server with runs `r0`, `r1` and so on, each continued as the next."""

    namespace = "default"

    def __init__(self, runs: int) -> None:
        self.runs, self.forgotten = runs, 0
        self.asked: list[str] = []
        self.workflow_service = self

    async def last(self) -> Any:
        return SimpleNamespace(status=WorkflowExecutionStatus.COMPLETED, run_id=f"r{self.runs - 1}", close_time=None)

    async def get_workflow_execution_history_reverse(self, request: Any) -> Any:
        self._find(request.execution.run_id)
        event = SimpleNamespace(event_type=EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, event_id=10)
        return SimpleNamespace(history=SimpleNamespace(events=[event]), next_page_token=b"")

    def get_workflow_handle(self, name: str, run_id: str) -> Any:
        assert name == "run"

        async def query(kind: str, request: dict[str, int], rpc_timeout: Any) -> dict[str, Any]:
            assert kind == "events"
            assert rpc_timeout
            self.asked.append(run_id)
            return self._page(self._find(run_id), request["after"])

        return SimpleNamespace(query=query)

    def _find(self, run_id: str) -> int:
        run = int(run_id[1:])
        if run < self.forgotten:
            raise RPCError("no such run", RPCStatusCode.NOT_FOUND, b"")
        return run

    def _page(self, run: int, after: int) -> dict[str, Any]:
        first, following = run * EACH + 1, run * EACH + EACH + 1
        numbers = [number for number in range(first, following) if number > after][:PAGE]
        events = [{"number": number, "at": 1.0, "kind": "answered"} for number in numbers]
        previous = f"r{run - 1}" if run else ""
        return {"first": first, "following": following, "previous": previous, "events": events}


def reader_of(chain: Chain) -> EventReader:
    return EventReader(chain, "run", chain.last)  # type: ignore[arg-type]


async def all_of(reader: EventReader, after: int = 0) -> list[int]:
    found: list[int] = []
    while events := await reader.read(after):
        found += [event.number for event in events]
        after = found[-1]
    return found


async def test_a_reader_walks_back_through_a_chain_only_once() -> None:
    chain = Chain(20)
    assert await all_of(reader_of(chain)) == list(range(1, 20 * EACH + 1))
    walk, pages, ends = 20, 20 * EACH // PAGE, 20
    assert len(chain.asked) <= walk + pages + ends


async def test_a_reader_goes_on_in_runs_that_follow_and_from_any_number() -> None:
    chain = Chain(2)
    reader = reader_of(chain)
    assert await all_of(reader, after=3) == list(range(4, 2 * EACH + 1))
    chain.runs = 5
    assert await all_of(reader, after=2 * EACH) == list(range(2 * EACH + 1, 5 * EACH + 1))


async def test_a_run_that_the_server_forgets_while_it_is_read_is_said_to_be_forgotten() -> None:
    chain = Chain(3)
    reader = reader_of(chain)
    assert [event.number for event in await reader.read(0)] == [1, 2]
    chain.forgotten = 1
    with pytest.raises(Refused, match=f"go on with after={EACH}$"):
        await reader.read(2)
    assert await all_of(reader, after=EACH) == list(range(EACH + 1, 3 * EACH + 1))
