"""Workers of several versions of Python go on with each other's programs, step by step.

They leave programs that they cannot go on with to a worker of the right version.
"""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from doubles.other_pythons import VERSIONS, python_of
from doubles.small_world import FAILURES, World
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.error_mapping import OtherPython
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.progress import Advance
from sennit.activities.programs.script_run import OtherCalls
from sennit.activities.programs.values import Call, Ended, Sleep
from sennit.workflows.messages.activity_options import OTHER_PYTHONS, node_options
from sennit.workflows.plan.compile.execution_plan import NodeSpec

PROGRAMS = Path(__file__).parent / "conformance" / "programs"
NAMES = (
    "as_completed_order", "async_context_managers", "async_generators", "breadth_first_crawl", "callbacks_and_vars",
    "cancel_cleanup", "circuit_breaker", "gather_errors", "priority_scheduler", "queue_workers", "react_loop",
    "retry_decorator", "semaphore_events", "strategies", "task_group", "wait_for_timeouts", "worker_pool",
)  # fmt: skip
"""Programs with several steps."""


class AtOnce(World):
    """A world whose calls take no time."""

    async def _call(self, tool: str, **arguments: Any) -> None:
        self.effects.append([tool, arguments])


@dataclass
class Fleet:
    """Plays a program step by step, each step on the next worker. What ends next is chosen by the seed."""

    workers: list[Interpreter]
    steps: int = 0
    made: list[tuple[Any, ...]] = field(default_factory=list)

    async def play(self, script: str, inputs: dict[str, Any], world: World) -> Advance:
        calls, chance = dict[int, Call](), random.Random(3)

        def answer(call: Call) -> Ended | Sleep | None:
            calls[call.number] = call
            self.made.append((call.number, call.function, str(call.args), str(call.kwargs), call.coroutine, call.line))
            if call.function == "sleep":
                due = call.clock + round(call.args[0] * 1000)
                return Sleep(due, due)
            return None

        advance = await self.workers[0].start(script, "main", inputs, answer, "seed")
        clock = 0
        while advance.snapshot is not None:
            self.steps += 1
            known = [number for number in advance.waits if number >= 0]
            number = chance.choice(known or [max(advance.waits)])
            clock = max(clock + 7, -number)
            ended = Ended(at=clock) if number < 0 else await self.end_of(calls[number], world, clock)
            snapshot = replace(advance.snapshot, run=None)
            worker = self.workers[self.steps % len(self.workers)]
            advance = await worker.resume(snapshot, {number: ended}, answer)
        return replace(advance, clock=0)

    async def end_of(self, call: Call, world: World, clock: int) -> Ended:
        try:
            kwargs = {name: value for name, value in call.kwargs.items() if name != "schema"}
            return Ended(await world.tools()[call.function](*call.args, **kwargs), at=clock)
        except FAILURES as error:
            return Ended(error=(type(error).__name__, str(error)), at=clock)


@pytest.fixture(scope="module")
def workers() -> Iterator[list[Interpreter]]:
    """A worker of each version that is here: their scripts' processes are of that version."""
    found = list[Interpreter]()
    own = sys.executable
    for version in VERSIONS:
        python = python_of(version, needs="ctypes, zlib")
        if python is not None:
            sys.executable = python
            found.append(Interpreter())
            found[-1].warm_up()
            sys.executable = own
    yield found
    for each in found:
        asyncio.run(each.close())


@pytest.mark.parametrize("name", NAMES)
async def test_steps_in_turn_do_what_one_version_does(workers: list[Interpreter], name: str) -> None:
    if len(workers) < 2:
        pytest.skip("there is one version of Python here")
    path = PROGRAMS / f"{name}.py"
    about = path.with_suffix(".json")
    given = json.loads(about.read_text()) if about.exists() else {"inputs": {}, "answers": []}
    ends = list[tuple[Advance, list[Any]]]()
    for fleet in (Fleet(workers), *(Fleet([worker]) for worker in workers)):
        ends.append((await fleet.play(path.read_text(), given["inputs"], AtOnce(given["answers"])), fleet.made))
        assert fleet.steps >= 2
    assert all(end == ends[0] for end in ends)


async def test_a_worker_leaves_a_program_that_it_cannot_go_on_with(workers: list[Interpreter]) -> None:
    """`(3).is_integer()` came with Python 3.12: a script may do other things there."""
    if len(workers) < 2:
        pytest.skip("there is one version of Python here")
    script = "async def main():\n    await search(query=str(hasattr(3, 'is_integer')))\n    return 1\n"
    first = await workers[0].start(script, "main", {}, lambda _: None)
    assert first.snapshot is not None
    elsewhere = replace(first.snapshot, run=None)
    with pytest.raises(OtherCalls):
        await workers[-1].resume(elsewhere, {0: Ended(1)}, lambda _: None)
    assert (await workers[0].resume(elsewhere, {0: Ended(1)}, lambda _: None)).value == 1


def failed(attempt: int, refused: int) -> ApplicationError:
    """Return how an attempt at a step fails that meets another Python, after so many that have."""
    environment = ActivityEnvironment()
    environment.info = replace(
        environment.info, attempt=attempt, heartbeat_details=["failed", refused, [0] * 5, [0] * 5]
    )

    def work() -> ApplicationError:
        attempts = Attempts.of_this_activity()
        attempts.allow(4)
        return attempts.failed(OtherPython("3.12", "3.11"))

    return environment.run(work)


def test_it_is_left_to_another_worker_for_minutes_and_then_a_person_reads_what_to_do() -> None:
    spec = NodeSpec("main", "program", attempts=4)
    policy = node_options([spec], item=False, is_call=True)["retry_policy"]
    assert policy.maximum_attempts == 4 + OTHER_PYTHONS
    first, later, last = failed(1, 0), failed(12, 11), failed(20, 19)
    assert [each.non_retryable for each in (first, later, last)] == [False, False, True]
    assert first.next_retry_delay is not None
    assert later.next_retry_delay is not None
    assert first.next_retry_delay < later.next_retry_delay
    assert last.type == "OtherPython"
    assert last.message.startswith("the program began in Python 3.12, and makes other calls in Python 3.11, which this")
    assert "start one and retry, or edit the run" in last.message


def test_the_process_of_a_script_loads_python_and_sennit_alone() -> None:
    """Packages of one version of Python cannot be loaded by another one."""
    code = """
import sys
before = set(sys.modules)
import sennit.activities.programs.cpython.service
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded - sys.stdlib_module_names - {"sennit"}))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
