"""Every saved history replays with today's code, and the check itself can fail."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, WorkflowRunner

from sennit.workers.workflow_sandbox import workflow_runner
from sennit.workflows.agent_run import AgentRun
from sennit.workflows.messages.converter import DATA_CONVERTER
from sennit.workflows.plan.compile import graph
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan
from sennit.workflows.plan.speculation.speculator import EarlyCall, Speculator
from sennit.workflows.run import drain
from sennit.workflows.run_quota import RunQuota

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))
OF_QUOTA = sorted((Path(__file__).parent / "histories" / "quota").glob("*.json"))
ONCE = ("continued-as-new",)
"""Recorded with a low threshold for continuing as new, because a real one takes thousands of events."""


@contextmanager
def as_recorded(path: Path) -> Iterator[None]:
    before = drain.SOFT_BOUNDS
    drain.SOFT_BOUNDS = (60, *before[1:]) if path.name.startswith(ONCE) else before
    try:
        yield
    finally:
        drain.SOFT_BOUNDS = before


def saved(path: Path) -> WorkflowHistory:
    """Return a history under the id that its run had: those of its sub-agents are made of it."""
    text = path.read_text()
    began = json.loads(text)["events"][0]["workflowExecutionStartedEventAttributes"]
    return WorkflowHistory.from_json(began["workflowId"], text)


def replayer(runner: WorkflowRunner | None = None) -> Replayer:
    return Replayer(workflows=[AgentRun], workflow_runner=runner or workflow_runner(), data_converter=DATA_CONVERTER)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_saved_history_replays(path: Path) -> None:
    with as_recorded(path):
        await replayer().replay_workflow(saved(path))


async def test_a_run_that_was_prepared_before_there_were_chains_of_early_calls_makes_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It knows what follows its early calls, and only lacks the word that something may be called behind these."""
    [path] = [path for path in HISTORIES if path.stem == "early-before-chains"]
    history = saved(path)
    await replayer(UnsandboxedWorkflowRunner()).replay_workflow(history)

    def leads_on(speculator: Speculator, state: object, call: EarlyCall) -> bool:
        return call.status == "ready"

    monkeypatch.setattr(Speculator, "_leads_on", leads_on)
    with pytest.raises(workflow.NondeterminismError):
        await replayer(UnsandboxedWorkflowRunner()).replay_workflow(history)


@pytest.mark.parametrize("path", OF_QUOTA, ids=lambda path: path.stem)
async def test_a_saved_history_of_a_quota_replays(path: Path) -> None:
    runner = workflow_runner()
    replays = Replayer(workflows=[RunQuota], workflow_runner=runner, data_converter=DATA_CONVERTER)
    await replays.replay_workflow(saved(path))


def test_there_are_histories_of_many_shapes() -> None:
    assert len(HISTORIES) >= 8
    assert OF_QUOTA


async def test_a_scheduler_with_another_order_does_not_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: ready nodes start in the opposite order. If this passed, the test above would prove nothing."""
    built = graph.Graph.__init__

    def reversed_keys(self: graph.Graph, execution_plan: ExecutionPlan) -> None:
        built(self, execution_plan)
        self.keys = [(priority, -index, index) for priority, _, index in self.keys]

    monkeypatch.setattr(graph.Graph, "__init__", reversed_keys)
    wide = next(path for path in HISTORIES if path.stem == "wide")
    with pytest.raises(workflow.NondeterminismError):
        await replayer().replay_workflow(saved(wide))
