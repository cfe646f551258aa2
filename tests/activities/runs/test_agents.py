"""The answers of many sub-agents, stored by one activity: an odd one fails by itself."""

from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.runs.agents import AgentPreparer
from sennit.activities.runs.prepare import RunPreparer
from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.workflows.messages.contracts import GroupReply, NodeReply
from sennit.workflows.messages.node_calls import AnswersCall

CALL = AnswersCall(run="r", plan="a" * 64, nodes=("a", "b", "c"), reports=({"answer": 1},) * 3)


class Nodes:
    """A runner that cannot store the answer of `b`."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def run(self, _call: Any, path: str, _refs: Any, **_: Any) -> NodeReply:
        """Store the answer of a node."""
        if path == "b":
            raise self.error
        return NodeReply(ref=f"of {path}", size=1)


async def store(error: Exception, *, is_last: bool) -> GroupReply:
    preparer = AgentPreparer(cast("NodeRunner", Nodes(error)), cast("RunPreparer", None))
    work = preparer.store("n/r", CALL, lambda: Attempts(1, 0), is_last=is_last)

    async def run() -> GroupReply:
        return await work

    return cast("GroupReply", await ActivityEnvironment().run(run))


async def test_an_answer_that_cannot_be_stored_fails_alone_on_the_last_attempt() -> None:
    stored = await store(RecursionError("it is nested too deep"), is_last=True)
    assert [reply.ref for reply in stored.nodes] == ["of a", None, "of c"]
    error = stored.nodes[1].error
    assert error is not None
    assert error.type == "RecursionError"


async def test_it_is_tried_again_before() -> None:
    with pytest.raises(RecursionError):
        await store(RecursionError("it is nested too deep"), is_last=False)


async def test_a_store_that_is_away_is_no_fault_of_a_node() -> None:
    with pytest.raises(StoreUnavailable):
        await store(StoreUnavailable("away"), is_last=True)
