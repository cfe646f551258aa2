"""How far a step tells a program that knows from before how its calls ended, until it knows of the new calls too."""

from sennit.activities.programs.cpython.names import TOLD
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.values import Call, Ended

SINCE = 1_000
TASKS = """
async def look(number: int):
    await search(number=number)
    MORE
    return str(now())[-6:]

async def main():
    return await parallel([task(look, number=number) for number in range(3)])
"""


def answer(call: Call) -> Ended | None:
    """Answer what is told of tasks, and leave every other call open."""
    return Ended() if call.function in TOLD else None


async def test_the_end_of_a_task_holds_back_no_end(interpreter: Interpreter) -> None:
    """A task that tells of its end calls nothing that could end earlier: ends of one time have one time in a fork."""
    first = await interpreter.start(TASKS.replace("MORE", "pass"), "main", {}, answer)
    ended = {number: Ended(at=at) for number, at in zip(first.waits, (5, 9, 9), strict=True)}
    advance = await interpreter.resume(first.snapshot, ended, answer, since=SINCE)
    assert advance.value == ["005000", "009000", "009000"], advance


async def test_a_new_call_holds_back_later_ends_and_none_of_the_same_time(interpreter: Interpreter) -> None:
    first = await interpreter.start(TASKS.replace("MORE", "await search(number=9)"), "main", {}, answer)
    ended = {number: Ended(at=at) for number, at in zip(first.waits, (5, 5, 9), strict=True)}
    advance = await interpreter.resume(first.snapshot, ended, answer, since=SINCE)
    assert advance.left == (first.waits[2],), "the call behind the first two may have ended before it"
