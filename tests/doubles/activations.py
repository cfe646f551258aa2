"""What the SDK gives a run of workflow code, recorded from a history and given to it again: in the same workflow tasks,
in tasks that were joined, with resets, and with somebody who looks at the run between every two tasks.

A worker that keeps a run in memory takes each workflow task by itself. One that does not know the run yet may take a
task without commands together with the next one, and a replay later may not: the code must write the same commands.
"""

import asyncio
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, WorkflowInstance, WorkflowInstanceDetails

from sennit.workflows.agent_run import AgentRun
from sennit.workflows.messages.converter import DATA_CONVERTER
from sennit.workflows.run.queries import HELP

Commands = tuple[str, ...]
"""What a workflow task writes, as a replay compares it with the history: kinds and names, and no arguments."""
UPDATE, SIGNAL, SEED, CANCEL = "do_update", "signal_workflow", "update_random_seed", "cancel_workflow"


@dataclass
class Recorded:
    """One run as the SDK gave it to its code: the details of the instance, and each activation in turn."""

    details: WorkflowInstanceDetails
    activations: list[WorkflowActivation] = field(default_factory=list)
    commands: list[Commands] = field(default_factory=list)

    @property
    def tasks(self) -> list[WorkflowActivation]:
        """The activations that stand for workflow tasks, without the one that ends a replay."""
        return [each for each in self.activations if "remove_from_cache" not in kinds_in(each)]

    def new_instance(self) -> WorkflowInstance:
        """Return the run at its beginning."""
        return UnsandboxedWorkflowRunner().create_instance(_own(self.details))


def _own(details: WorkflowInstanceDetails) -> WorkflowInstanceDetails:
    """Return details for one instance: it changes what it is told of its memo and its search attributes."""
    info = replace(
        details.info,
        raw_memo=dict(details.info.raw_memo),
        search_attributes=dict(details.info.search_attributes),
        typed_search_attributes=copy.deepcopy(details.info.typed_search_attributes),
    )
    return replace(details, info=info)


class Recorder(UnsandboxedWorkflowRunner):
    """Runs workflow code outside of the sandbox, and keeps what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Recorded] = []

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return an instance whose activations are kept."""
        recorded = Recorded(_own(det))
        self.runs.append(recorded)
        instance = super().create_instance(det)
        activate = instance.activate

        def kept(activation: WorkflowActivation) -> WorkflowActivationCompletion:
            given = WorkflowActivation()
            given.CopyFrom(activation)
            recorded.activations.append(given)
            completion = activate(activation)
            if completion.HasField("successful"):  # else the replay fails
                recorded.commands.append(commands_of(completion))
            return completion

        setattr(instance, "activate", kept)  # noqa: B010  the SDK calls it by this name
        return instance


async def recorded_from(history: WorkflowHistory) -> Recorded:
    """Replay a history and return what its run was given. Raises NondeterminismError if it does not replay."""
    recorder = Recorder()
    replayer = Replayer(workflows=[AgentRun], workflow_runner=recorder, data_converter=DATA_CONVERTER, debug_mode=True)
    await replayer.replay_workflow(history)
    [run] = recorder.runs
    return run


def kinds_in(activation: WorkflowActivation) -> list[str]:
    """Return the kinds of the jobs of an activation."""
    return [str(job.WhichOneof("variant")) for job in activation.jobs]


def commands_of(completion: WorkflowActivationCompletion) -> Commands:
    """Return what a workflow task writes. Raises AssertionError if it fails."""
    assert completion.HasField("successful"), completion.failed.failure.message
    return tuple(_compared(command) for command in completion.successful.commands)


def _compared(command: WorkflowCommand) -> str:
    kind = str(command.WhichOneof("variant"))
    body = getattr(command, kind)
    names = [body.activity_id, body.activity_type] if kind == "schedule_activity" else []
    if kind == "upsert_workflow_search_attributes":
        names = sorted(body.search_attributes.indexed_fields)
    elif kind == "modify_workflow_properties":
        names = sorted(body.upserted_memo.fields)
    elif kind in ("update_response", "signal_external_workflow_execution", "start_child_workflow_execution"):
        named = ("protocol_instance_id", "signal_name", "workflow_id")
        names = [getattr(body, name) for name in named if hasattr(body, name)]
    number = getattr(body, "seq", "")
    return " ".join([kind, str(number), *names]).rstrip()


async def played(run: Recorded, tasks: Sequence[WorkflowActivation], *, is_looked_at: bool = False) -> list[Commands]:
    """Return the commands that the run writes in these tasks. With `is_looked_at` it answers every query after each."""
    instance = run.new_instance()

    def play() -> list[Commands]:
        found = list[Commands]()
        for task in tasks:
            given = WorkflowActivation()
            given.CopyFrom(task)
            found.append(commands_of(instance.activate(given)))
            for query in HELP["queries"] if is_looked_at else ():
                _look(instance, task, query)
        _forget(instance, run)
        return found

    return await asyncio.to_thread(play)  # an instance is the event loop of its thread


def _look(instance: WorkflowInstance, task: WorkflowActivation, query: str) -> None:
    asked = WorkflowActivation(
        run_id=task.run_id, is_replaying=False, history_length=task.history_length, timestamp=task.timestamp
    )
    job = asked.jobs.add()
    job.query_workflow.query_id = job.query_workflow.query_type = query
    completion = instance.activate(asked)
    [answer] = completion.successful.commands
    assert answer.respond_to_query.HasField("succeeded"), answer.respond_to_query.failed.message


def _forget(instance: WorkflowInstance, run: Recorded) -> None:
    """Have the instance end its coroutines, as a worker does that forgets a run."""
    last = WorkflowActivation(run_id=run.tasks[-1].run_id)
    last.jobs.add().remove_from_cache.SetInParent()
    instance.activate(last)


LOOKS = 40
"""After so many tasks nobody looks at a long run any more: each look costs as much as a task."""


async def check_joins(run: Recorded, chance: Random) -> None:
    """Check that a run writes the same commands when somebody looks at it between its tasks, when tasks without
    commands are joined with those that a person's update has begun, and after a reset to any one task.
    """
    tasks, whole = run.tasks, run.commands[: len(run.tasks)]
    looked_at = tasks[:LOOKS]
    assert await played(run, looked_at, is_looked_at=True) == whole[: len(looked_at)], "a look has changed the run"
    if any(joins_with_next(whole, tasks, place) for place in range(len(tasks))):
        together, places = joined(tasks, lambda place: joins_with_next(whole, tasks, place))
        assert await played(run, together) == [whole[place] for place in places], "joined with an update"
    for place in range(len(tasks)):
        if joins_with_next(whole, tasks, place):
            await _check_late_join(run, place)
    places = [place for place in range(1, len(tasks)) if not whole[place - 1] and CANCEL not in kinds_in(tasks[place])]
    if places:
        await check_reset(run, chance.choice(places))


async def _check_late_join(run: Recorded, place: int) -> None:
    """Check that a task that is joined with the next one writes the same where deadlines have passed in between, and
    the server has not said yet that their timer has ended.
    """
    late = WorkflowActivation()
    late.CopyFrom(run.tasks[place + 1])
    late.timestamp.seconds += 3_600
    tasks = [*run.tasks[: place + 1], late]
    apart = await played(run, tasks)
    together, places = joined(tasks, lambda each: each == place)
    assert await played(run, together) == [apart[each] for each in places], f"task {place} joined with a late update"


async def check_reset(run: Recorded, place: int) -> None:
    """Check a reset to a task: the worker that goes on, which does not know the run, may have joined it with the one
    before, and a replay may not. What signals the run has got later, the server may give it again.
    """
    later = signals_from(run, place + 1)
    await _check_reset(run, place, run.tasks[place])
    if later:
        await _check_reset(run, place, with_jobs(run.tasks[place], *later))


async def check_update_again(run: Recorded, place: int) -> None:
    """Check a reset to a task that an update has begun in place of this one, with the signals from here on."""
    task = WorkflowActivation(run_id=run.tasks[place].run_id, history_length=run.tasks[place].history_length)
    task.timestamp.CopyFrom(run.tasks[place].timestamp)
    update = WorkflowActivationJob()
    update.do_update.name = update.do_update.id = update.do_update.protocol_instance_id = "finish"
    await _check_reset(run, place, with_jobs(task, update, *signals_from(run, place)))


async def _check_reset(run: Recorded, place: int, task: WorkflowActivation) -> None:
    reset = WorkflowActivationJob()
    reset.update_random_seed.randomness_seed = place
    tasks = [*run.tasks[:place], with_jobs(task, reset)]
    apart = await played(run, tasks)
    assert apart[-1], "the task of a reset writes a command, so that its time is its own"
    if joins_with_next(apart, tasks, place - 1):
        together, places = joined(tasks, lambda each: each == place - 1)
        assert await played(run, together) == [apart[each] for each in places], f"reset to task {place}"


def signals_from(run: Recorded, place: int) -> list[WorkflowActivationJob]:
    """Return the signals that a run has got in this task and later."""
    return [job for task in run.tasks[place:] for job in task.jobs if job.WhichOneof("variant") == SIGNAL]


def joins_with_next(before: Sequence[Commands], tasks: Sequence[WorkflowActivation], place: int) -> bool:
    """Whether a replay may take this task together with the next one, or a worker after a reset may: it writes no
    command, and an update has begun the next one. The server writes anything else between the two, which keeps them
    apart; a signal comes with the update only when the server gives it again after a reset.
    """
    if place + 1 >= len(tasks) or before[place]:
        return False
    following = kinds_in(tasks[place + 1])
    return UPDATE in following and (SEED in following or set(following) == {UPDATE})


def joined(
    tasks: Sequence[WorkflowActivation], joins: Callable[[int], bool]
) -> tuple[list[WorkflowActivation], list[int]]:
    """Return the tasks, those that a test `joins` with the next one made into one with it, and the place of each task
    that was taken by itself, or last.
    """
    found, places, waiting = list[WorkflowActivation](), list[int](), list[WorkflowActivationJob]()
    for place, task in enumerate(tasks):
        if joins(place):
            waiting += task.jobs
            continue
        whole = WorkflowActivation()
        whole.CopyFrom(task)
        del whole.jobs[:]
        whole.jobs.extend([*waiting, *task.jobs])
        waiting = []
        found.append(whole)
        places.append(place)
    return found, places


def with_jobs(task: WorkflowActivation, *more: WorkflowActivationJob) -> WorkflowActivation:
    """Return a task that brings the run more."""
    found = WorkflowActivation()
    found.CopyFrom(task)
    found.jobs.extend(more)
    return found
