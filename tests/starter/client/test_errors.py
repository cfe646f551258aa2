"""Exit codes."""

from typing import get_args

import pytest

from starter.client.errors import CliError, Exit, NoAnswer, Refused, Unreachable, exit_of
from workflows.messages.result import RunStatus


def test_every_status_of_a_run_has_its_exit_code() -> None:
    codes = {status: int(exit_of(status)) for status in get_args(RunStatus)}
    assert codes == {"done": 0, "partial": 3, "failed": 1, "cancelled": 1, "running": 4, "blocked": 4}


@pytest.mark.parametrize(("kind", "code"), [(CliError, 1), (Refused, 2), (NoAnswer, 4), (Unreachable, 5)])
def test_every_way_to_stop_has_its_exit_code(kind: type[CliError], code: int) -> None:
    assert kind("why").code == code


def test_an_interrupt_is_130() -> None:
    assert int(Exit.INTERRUPTED) == 130
