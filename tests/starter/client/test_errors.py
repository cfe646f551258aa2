"""Exit codes."""

from typing import get_args

from sennit.starter.client.errors import exit_of
from sennit.workflows.messages.result import RunStatus


def test_every_status_of_a_run_has_its_exit_code() -> None:
    codes = {status: int(exit_of(status)) for status in get_args(RunStatus)}
    assert codes == {"done": 0, "partial": 3, "failed": 1, "cancelled": 1, "running": 4, "blocked": 4}
