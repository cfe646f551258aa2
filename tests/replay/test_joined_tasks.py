"""What a run writes does not depend on how its workflow tasks were joined, on resets, or on who looks at it."""

from pathlib import Path

import pytest
from doubles.activations import CANCEL, check_reset, check_update_again, kinds_in, played, recorded_from
from replay.test_replay import HISTORIES, as_recorded, saved


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_queries_between_every_two_tasks_change_nothing(path: Path) -> None:
    with as_recorded(path):
        run = await recorded_from(saved(path))
        assert await played(run, run.tasks, is_looked_at=True) == run.commands[: len(run.tasks)]


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_task_without_commands_decides_nothing_for_the_next_one_after_a_reset(path: Path) -> None:
    """To each task in turn the run is reset: a worker that did not know the run joins it with the one before. A reset
    does not bring back that somebody has cancelled the run.
    """
    with as_recorded(path):
        run = await recorded_from(saved(path))
        for place in range(1, len(run.tasks)):
            if CANCEL not in kinds_in(run.tasks[place]):
                await check_reset(run, place)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_signals_that_come_again_with_an_update_wait_for_what_had_ended_before_it(path: Path) -> None:
    """The SDK has signals heard first. After a reset to the task of an update, the server gives both again."""
    with as_recorded(path):
        run = await recorded_from(saved(path))
        for place in range(1, len(run.tasks)):
            if not run.commands[place - 1] and CANCEL not in kinds_in(run.tasks[place]):
                await check_update_again(run, place)
