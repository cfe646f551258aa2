"""What keeps a local stack from being stopped or replaced."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sennit.starter.dev.stack import NOT_BLOCKED
from sennit.starter.dev.supervisor import anything_runs


@pytest.mark.parametrize("which", ["", NOT_BLOCKED])
async def test_a_stream_of_texts_is_no_run(which: str) -> None:
    asked: list[str] = []

    async def count_workflows(query: str) -> Any:
        asked.append(query)
        return SimpleNamespace(count=0)

    client = SimpleNamespace(count_workflows=count_workflows)
    assert await anything_runs(cast("Any", client), which) is False
    assert asked[0].startswith("ExecutionStatus='Running' AND WorkflowType NOT IN ('RunStream', 'RunQuota')")
    assert which in asked[0]
