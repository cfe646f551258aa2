"""The workflow sandbox shares what must be one class on both sides of it."""

import importlib

import pytest

from workers.workflow_sandbox import PASSED_THROUGH, workflow_runner
from workflows.messages.contracts import CALLS
from workflows.messages.request import RunRequest
from workflows.messages.result import RunReport
from workflows.messages.updates import UPDATES
from workflows.messages.views import RunView


def test_every_class_that_travels_is_shared() -> None:
    travelling = [model for call in CALLS for model in (call.takes, call.gives)]
    shared = workflow_runner().restrictions.passthrough_modules
    assert {model.__module__ for model in (*travelling, *UPDATES, RunRequest, RunReport, RunView)} <= shared


def test_the_workflow_itself_is_not_shared() -> None:
    assert not {"workflows", "workflows.agent_run"} & workflow_runner().restrictions.passthrough_modules


@pytest.mark.parametrize("name", PASSED_THROUGH)
def test_every_shared_module_exists(name: str) -> None:
    assert importlib.import_module(name).__name__ == name
