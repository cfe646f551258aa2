"""Resets: what was written is not written again, and what is still being written is waited for."""

from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start
from doubles.resets import EVERYTHING, reset
from doubles.runs import call, insist, until
from doubles.tools import calls
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowUpdateFailedError

pytestmark = pytest.mark.server


def answered(event: HistoryEvent) -> bool:
    return event.HasField("workflow_execution_update_accepted_event_attributes")


def called(cache: Path, handle: Handle) -> list[str]:
    return calls(cache, handle.first_execution_run_id or "")


def transfer(tool: str, field: str) -> dict[str, Any]:
    nodes = [
        {"id": "g", "kind": "gate", "question": "How much?"},
        call("w", tool, args={field: "$g"}),
        {"id": "end", "kind": "gate", "question": "End?", "needs": ["w"]},
    ]
    return {"nodes": nodes, "answer": ["$w", "$end"]}


@pytest.mark.parametrize(
    ("tool", "field", "first", "second"), [("pay", "amount", 100, 999), ("post", "text", "a", "b")], ids=["pay", "post"]
)
async def test_a_write_after_a_reset_is_the_recorded_one_or_is_refused(
    client: Client, start: Start, cache: Path, tool: str, field: str, first: Any, second: Any
) -> None:
    """The same arguments return what was written; others need a person's word, also if the tool is idempotent."""
    handle = await start(plan=transfer(tool, field), approval="never")
    result = {"paid": 100} if tool == "pay" else {"posted": "a"}
    await insist(handle, "answer", {"node": "g", "value": first})
    await until(handle, lambda view: [item["node"] for item in view["blocked"]] == ["end"])
    again = await reset(client, handle, answered, without=EVERYTHING)
    await insist(again, "answer", {"node": "g", "value": first})
    view = await until(again, lambda view: [item["node"] for item in view["blocked"]] == ["end"])
    assert str(next(iter(result.values()))) in view["nodes"][1]["preview"]
    again = await reset(client, again, answered, without=EVERYTHING)
    await insist(again, "answer", {"node": "g", "value": second})
    view = await until(again, lambda view: view["nodes"][1]["status"] == "failed")
    error = view["nodes"][1]["error"]
    assert error.startswith(f"AlreadyWritten: {tool} has written")
    assert str(first) in error
    assert str(second) in error
    assert called(cache, handle) == ["w~1"]
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await again.execute_update("retry_node", {"node": "w"})
    assert "this may repeat what w wrote" in str(refused.value.cause)
    await insist(again, "retry_node", {"node": "w", "repeat_effect": True})
    await until(again, lambda view: [item["node"] for item in view["blocked"]] == ["end"])
    await insist(again, "answer", {"node": "end", "value": "yes"})
    assert (await again.result())["answer"] == [{next(iter(result)): second}, "yes"]
    assert called(cache, handle) == ["w~1", "w~2"]
