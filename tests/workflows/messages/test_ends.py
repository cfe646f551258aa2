"""How calls have ended that a step has made itself: what is packed is read again, and nothing else."""

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
    NodeSpec("main_4", "join"),
    NodeSpec("main_s2", "program"),
]
PAGE = ExecutionPlan(SPECS, [])
TASK = [
    NodeSpec("main_1", "program"),
    NodeSpec("main_1_1", "tool", maker=0),
    NodeSpec("main_1_s2", "program", inputs=[1], maker=0),
    NodeSpec("main_s2", "program"),
]
REPLY = {"ref": "a" * 40}
GOES_ON = {"more": "program"}


def test_ends_are_read_as_they_were_packed_but_for_values_of_joins() -> None:
    failed = NodeReply(error=NodeError(type="ToolError", message="no", again=True))
    ends = {"main_s2": NodeReply(ref="b" * 40), "main_1": failed, "main_4": NodeReply(ref='["x"]')}
    ends = {name: ends[name] for name in ("main_4", "main_1", "main_s2")}
    assert unpack_ends(PAGE, pack_ends(SPECS, ends), 0) == [(name, ends[name]) for name in ("main_1", "main_s2")]
    assert pack_ends(SPECS, {}) == ""
    assert unpack_ends(PAGE, "", 0) == []


@pytest.mark.parametrize(
    "rows",
    [
        [[0, {}]],
        [[1, REPLY]],
        [[2, REPLY]],
        [[4, REPLY], [0, REPLY]],
        [[0, REPLY], [0, REPLY]],
        [[9, REPLY]],
        [[0, {"ref": 7}]],
        [0],
        7,
    ],
)
def test_what_a_step_cannot_say_is_refused(rows: Any) -> None:
    text = base64.b85encode(zlib.compress(json.dumps(rows).encode())).decode()
    with pytest.raises(ValueError, match="end"):
        unpack_ends(PAGE, text, 0)


@pytest.mark.parametrize(
    ("rows", "is_right"),
    [
        ([[0, GOES_ON], [1, REPLY], [2, REPLY], [3, REPLY]], True),
        ([[0, GOES_ON], [1, REPLY]], True),
        ([[1, REPLY], [2, REPLY]], False),
        ([[0, REPLY]], False),
        ([[0, GOES_ON], [2, GOES_ON]], False),
        ([[0, GOES_ON], [3, GOES_ON]], False),
    ],
)
def test_tasks_that_have_others_behind_them_and_no_others_have_gone_on(rows: Any, *, is_right: bool) -> None:
    text = base64.b85encode(zlib.compress(json.dumps(rows).encode())).decode()
    if is_right:
        assert [name for name, _ in unpack_ends(ExecutionPlan(TASK, []), text, 0)] == [TASK[at].id for at, _ in rows]
        return
    with pytest.raises(ValueError, match="fit the tasks"):
        unpack_ends(ExecutionPlan(TASK, []), text, 0)
