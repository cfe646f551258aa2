"""What the input of a run becomes."""

from types import SimpleNamespace
from typing import Any

import pytest
from temporalio import workflow

from sennit.workflows.run.setup import parse_input

GOAL = {"goal": "Count"}
STATE = {"run_prefix": "r", "run_context": "c", "plan": "p", "snapshot": "s", "usage": [0, 0, 0, 0]}


def within(monkeypatch: pytest.MonkeyPatch, *, continued: str | None) -> None:
    info = SimpleNamespace(continued_run_id=continued, parent=None, first_execution_run_id="r")
    monkeypatch.setattr(workflow, "info", lambda: info)


@pytest.mark.parametrize("request_", [{**GOAL, "carry": {**STATE, "newer": 1}}, {**GOAL, "newer": 1}])
def test_a_run_that_is_handed_what_it_cannot_read_stands_still_until_a_version_can(
    monkeypatch: pytest.MonkeyPatch, request_: dict[str, Any]
) -> None:
    """Its first run would have failed, for nobody else can have written that input."""
    within(monkeypatch, continued="before")
    with pytest.raises(
        RuntimeError, match="another version of the workers has written what this one cannot read: unknown field"
    ):
        parse_input(request_)
    within(monkeypatch, continued=None)
    assert parse_input(request_)[0] is None
