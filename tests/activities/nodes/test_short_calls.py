"""Short calls that a step makes itself, and those that it cuts off."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sennit.activities.nodes.short_calls import Bounds, ShortCalls
from sennit.activities.storage.run_context import StoredPlan
from sennit.activities.toolbox.batch import seat
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.node_calls import ProgramNodeCall
from sennit.workflows.plan.compile.execution_plan import NodeSpec


class Double:
    """A tool with a batch form."""

    name = "double"
    batch_size = 100

    async def call_batch(self, calls: list[Any]) -> list[Any]:
        return [2 * call for call in calls]


async def test_a_call_that_is_given_up_before_it_begins_leaves_nothing_for_which_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def make(_: StoredPlan, name: str) -> NodeReply:
        place = seat()
        assert place is not None
        value = await place.call(Double(), len(name))
        return NodeReply(ref=f"v:{value}", at=5)

    nodes = [SimpleNamespace(id="a"), SimpleNamespace(id="bb")]
    page = SimpleNamespace(plan=SimpleNamespace(nodes=nodes), spec=lambda name: NodeSpec(name, "tool", queue="tools"))
    calls = ShortCalls(make, "tools", Bounds(ProgramNodeCall(run="run", plan="", nodes=("main",))))
    monkeypatch.setattr(calls, "makes", lambda _: True)
    calls.begin(cast("StoredPlan", page))
    calls.give_up(["a"])
    assert await calls.next(["bb"]) == ["bb"]
    assert calls.ends["bb"].ref == "v:4"
    await calls.close()
