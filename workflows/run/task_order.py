"""The order within one workflow task: the run first takes what has ended, and
only then do others go on.
"""

from temporalio import workflow

_ROUNDS = 3
"""So often may the run have work from what it has itself begun in this task: a report to
its parent, an addition.
"""


async def behind_the_run() -> None:
    """Return in this workflow task, as soon as the run has taken what has ended by now.

    Who goes on before that sees the run as it was, or not, depending on whether this task was
    joined with the one before. The SDK wakes those who wait for a condition in the order in which
    they began to, and the run always waits.
    """
    await workflow.wait_condition(lambda: True)


async def last_in_this_task() -> None:
    """Return in this workflow task, behind everything that the run does in it."""
    for _ in range(_ROUNDS):
        await behind_the_run()
