"""How calls have ended that an advance has made itself: what is packed is read again, and nothing else."""

import base64
import json
import zlib
from typing import Any

import pytest

from sennit.workflows.messages.contracts import NodeError, NodeReply
from sennit.workflows.messages.ends import pack_ends, unpack_ends
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec

SPECS = [
    NodeSpec("main_1", "tool"),
    NodeSpec("main_2", "tool", effect="write"),
    NodeSpec("main_3", "llm"),
    NodeSpec("main_4", "task"),
]
PAGE = ExecutionPlan(SPECS, [])
REPLY = {"ref": "a" * 40}


def test_ends_are_read_as_they_were_packed() -> None:
    failed = NodeReply(error=NodeError(type="ToolError", message="no", again=True))
    ends = {"main_3": NodeReply(ref="b" * 40, taken_over=True), "main_1": failed}
    assert unpack_ends(PAGE, pack_ends(SPECS, ends)) == list(ends.items())
    assert pack_ends(SPECS, {}) == ""
    assert unpack_ends(PAGE, "") == []


@pytest.mark.parametrize(
    "rows",
    [
        [[0, {}]],
        [[1, REPLY]],
        [[2, REPLY]],
        [[3, REPLY]],
        [[0, REPLY], [0, REPLY]],
        [[9, REPLY]],
        [[0, {"ref": 7}]],
        [0],
        7,
    ],
)
def test_what_an_advance_cannot_say_is_refused(rows: Any) -> None:
    text = base64.b85encode(zlib.compress(json.dumps(rows).encode())).decode()
    with pytest.raises(ValueError, match="end"):
        unpack_ends(PAGE, text)
