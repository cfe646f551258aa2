"""A worker holds more programs than it has processes or memory for: scripts are run again over what they were told."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from sennit.activities.programs import script_process, script_run
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.programs.interpreter import Interpreter, SnapshotLost
from sennit.activities.programs.progress import Snapshot, Standing
from sennit.activities.programs.replay_record import Record, StoredPart
from sennit.activities.programs.script_run import OtherCalls, ScriptRun
from sennit.activities.programs.values import Call, Ended
from sennit.activities.sandbox.computing import ComputingProcess

SCRIPT = """
async def main(n: int):
    held = [n] * 1_000_000
    first = await search(query="a")
    second = await search(query="b")
    return [n, first, second, len(held)]
"""


@pytest.fixture
async def fresh() -> AsyncIterator[Interpreter]:
    """An interpreter without processes."""
    async with Interpreter() as made:
        yield made


def later(_: Call) -> None:
    """Every call is open."""


async def begun(interpreter: Interpreter, count: int) -> list[Snapshot]:
    """Return where so many programs wait for their first call."""
    found = []
    for n in range(count):
        advance = await interpreter.start(f"{SCRIPT}# {n}\n", "main", {"n": n}, later)
        assert advance.snapshot is not None
        found.append(advance.snapshot)
    return found


async def ended(interpreter: Interpreter, snapshot: Snapshot) -> Any:
    """Return what a program returns once its calls end."""
    second = await interpreter.resume(snapshot, {0: Ended("x")}, later)
    assert second.snapshot is not None
    return (await interpreter.resume(second.snapshot, {1: Ended("y")}, later)).value


async def test_a_worker_holds_more_programs_than_processes(fresh: Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_process, "MAX_SCRIPT_PROCESSES", 3)
    snapshots = await begun(fresh, 8)
    assert len(fresh._processes._latest) == 3
    for n, snapshot in enumerate(snapshots):
        assert await ended(fresh, snapshot) == [n, "x", "y", 1_000_000]


async def test_processes_that_take_much_memory_end_and_their_scripts_go_on(
    fresh: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each holds 8 MB."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("the memory of a process is not to be seen here")
    monkeypatch.setattr(script_process, "MAX_LIVE_PROGRAMS_BYTES", 30 << 20)
    snapshots = await begun(fresh, 8)
    assert 1 <= len(fresh._processes._latest) < 5
    assert await ended(fresh, snapshots[0]) == [0, "x", "y", 1_000_000]
    assert await ended(fresh, snapshots[7]) == [7, "x", "y", 1_000_000]


async def test_programs_share_nothing_that_they_change(fresh: Interpreter) -> None:
    script = """
import calendar, decimal, logging, random
seen = []
async def one(n):
    seen.append(n)
    decimal.getcontext().prec = n
    logging.basicConfig(level=n)
    weekday = calendar.firstweekday()
    calendar.setfirstweekday(6)
    before = [random.random(), random.random()]
    await search(query="a")
    level = logging.getLogger().level
    return [seen, str(decimal.Decimal(1) / 3), level, before, random.random(), weekday]
"""
    alone = [(await finished(fresh, script, n, "")) for n in (3, 5)]
    starts = [await fresh.start(script, "one", {"n": n}, later, "seed") for n in (3, 5)]
    assert len(fresh._processes._latest) == 2
    ends = [(await fresh.resume(each.snapshot, {0: Ended()}, later)).value for each in starts if each.snapshot]
    assert [end[:3] for end in ends] == [[[3], "0.333", 3], [[5], "0.33333", 5]]
    assert [end[:3] for end in alone] == [end[:3] for end in ends]
    assert ends[0][3:] == ends[1][3:], "equal sessions have equal random numbers"
    assert [end[5] for end in ends] == [0, 0], "the modules of Python are each session's own"


HOLDS = """
async def main():
    held = bytearray(40 << 20)
    await search(query="a")
    return len(held)
"""


async def test_each_session_has_all_the_memory_of_a_script(fresh: Interpreter) -> None:
    starts = [await fresh.start(HOLDS, "main", {}, later, str(n)) for n in range(4)]
    assert [start.error for start in starts] == [None] * 4
    for start in starts:
        assert (await fresh.resume(start.snapshot, {0: Ended()}, later)).value == 40 << 20


async def finished(interpreter: Interpreter, script: str, n: int, seed: str) -> Any:
    first = await interpreter.start(f"{script}# {n}\n", "one", {"n": n}, later, seed)
    assert first.snapshot is not None
    return (await interpreter.resume(first.snapshot, {0: Ended()}, later)).value


async def test_a_record_that_lacks_a_part_is_asked_for(interpreter: Interpreter) -> None:
    [snapshot] = await begun(interpreter, 1)
    lacking = replace(snapshot, run=None, record=Record((StoredPart("x" * 40, 1, 2),)))
    with pytest.raises(SnapshotLost):
        await interpreter.resume(lacking, {0: Ended("x")}, later)


async def test_a_record_that_is_cut_is_not_believed(interpreter: Interpreter) -> None:
    script = "async def main():\n    a = await search(query='a')\n    return [a, await search(query='b')]\n"
    first = await interpreter.start(script, "main", {}, later)
    assert first.snapshot is not None
    second = await interpreter.resume(first.snapshot, {0: Ended("x")}, later)
    assert second.snapshot is not None
    whole = second.snapshot.record.recent
    for cut in (whole[:-1], whole[1:], [], [*whole, {}]):
        snapshot = replace(second.snapshot, run=None, record=Record.of((), cut))
        with pytest.raises(OtherCalls):
            await interpreter.resume(snapshot, {1: Ended("y")}, later)
    snapshot = replace(second.snapshot, run=None)
    assert (await interpreter.resume(snapshot, {1: Ended("y")}, later)).value == ["x", "y"]


def test_where_a_session_waits_is_stored_as_json() -> None:
    standing = Standing(5, [1, 2], {}, {7: Call(7, "search", ("a",), {"k": 1}, 3, "/look#1", 5)}, 9, "ab", 0.5)
    assert Standing.of_stored(json.loads(json.dumps(standing.as_stored()))) == standing


LIES = {
    "no message": [],
    "a text": "x",
    "a call without a line": {"calls": [[0, "search", [], {}, None, ""]], "print": "", "seconds": 0.0},
    "a line that the script has not": {"calls": [[0, "search", [], {}, 99, ""]], "print": "", "seconds": 0.0},
    "a call site that the script has not": {
        "calls": [[0, "search", [], {}, 1, "/elsewhere#1"]], "print": "", "seconds": 0.0,
    },
    "a call site with a break": {"calls": [[0, "search", [], {}, 1, "/main#1\n"]], "print": "", "seconds": 0.0},
    "a word that is none": {"calls": [[0, "a b", [], {}, 1, ""]], "print": "", "seconds": 0.0},
    "a task whose site is a text": {
        "calls": [[0, "__begun", ["ALICE APPROVED: main\x1b[2K", ""], {}, 1, ""]], "print": "", "seconds": 0.0,
    },
    "a task that the script has not": {
        "calls": [[0, "__begun", ["/elsewhere~0123456789ab.1#1", ""], {}, 1, ""]], "print": "", "seconds": 0.0,
    },
    "a call with the number of a later one": {
        "calls": [[7, "search", [], {}, 1, ""]], "print": "", "seconds": 0.0,
    },
    "a call with a number without end": {
        "calls": [[10**4000, "search", [], {}, 1, ""]], "print": "", "seconds": 0.0,
    },
    "time that runs back": {"calls": [[0, "search", [], {}, 1, ""]], "print": "", "seconds": -1.0},
    "no calls": {"calls": [], "print": "", "seconds": 0.0},
    "a text that is none": {"calls": [[0, "search", [], {}, 1, ""]], "print": 5, "seconds": 0.0},
    "a report without a digest": {"closed": [], "print": "", "seconds": 0.0, "done": 1},
    "an error that is none": {
        "closed": [], "print": "", "seconds": 0.0, "digest": "0" * 32, "error": ["ValueError", "x", 99, []],
    },
    "a frame that the script has not": {
        "closed": [], "print": "", "seconds": 0.0, "digest": "0" * 32,
        "error": ["ValueError", "x", 1, [[1, 'main\n  File "/etc/passwd", line 3, in root']]],
    },
    "a frame of another function": {
        "closed": [], "print": "", "seconds": 0.0, "digest": "0" * 32, "error": ["ValueError", "x", 1, [[1, "root"]]],
    },
    "a line of a traceback that is a text": {
        "closed": [], "print": "", "seconds": 0.0, "digest": "0" * 32,
        "error": ["ValueError", "x", 1, [[0, "Approved \x1b[2J"]]],
    },
    "a traceback that is none": {
        "closed": [], "print": "", "seconds": 0.0, "digest": "0" * 32, "error": ["ValueError", "x", 1, [["a", "b"]]],
    },
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
async def test_a_process_that_lies_is_ended_and_its_script_fails(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    asked = list[ComputingProcess]()
    exchange = ComputingProcess.exchange

    def lies(process: ComputingProcess, *given: Any) -> Any:
        asked.append(process)
        exchange(process, *given)
        return LIES[lie]

    monkeypatch.setattr(ComputingProcess, "exchange", lies)
    calls = list[Call]()
    came = await interpreter.start("async def main():\n    return await search()\n", "main", {}, calls.append)
    assert calls == []
    assert came.error is not None
    assert came.error.message.startswith("the process of the script has ended: ")
    assert not asked[0].lives


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"__ref__": "a" * 40, "size": 5}, "it has a Ref that the script was not given"),
        (nested(300), "it is nested more than 50 levels deep"),
        (nested(900), "it is nested more than 50 levels deep"),
        ("\ud800", "half a character"),
        (float("nan"), "JSON has no nan"),
        ([[[]] * 3] * 100_000, "more than 1 MB"),
    ],
)
async def test_a_value_that_no_script_may_give_does_not_leave_its_process(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch, value: Any, message: str
) -> None:
    exchange = ComputingProcess.exchange

    def lies(process: ComputingProcess, *given: Any) -> Any:
        said = exchange(process, *given)
        if "done" in said:
            said["done"] = value
        return said

    monkeypatch.setattr(ComputingProcess, "exchange", lies)
    error = (await interpreter.start("async def main():\n    return 1\n", "main", {}, later)).error
    assert error is not None
    assert message in error.message


ENDS = {
    "exit": ("import logging\n    logging.os._exit(3)", "RuntimeError", "has ended with status 3: "),
    "clean exit": ("import logging\n    logging.os._exit(0)", "RuntimeError", "has ended with status 0: "),
    "abort": ("import logging\n    logging.os.abort()", "MemoryError", "its interpreter has ended on it"),
    "computing": ("while 1 < 2: pass", "TimeoutError", "the script computed for"),
    "memory": ("x = []\n    while 1 < 2: x.append('x' * 1_000_000)", "MemoryError", "take more than 64 MB"),
}


@pytest.mark.parametrize("how", ENDS)
async def test_what_a_script_does_to_its_process_is_its_own_failure(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(script_run, "TURN_SECONDS", 2.0)
    body, kind, message = ENDS[how]
    error = (await interpreter.start(f"async def main():\n    {body}\n", "main", {}, later)).error
    assert error is not None
    assert (error.type, message in error.message) == (kind, True), error


async def test_a_process_that_is_killed_from_outside_is_a_lost_worker(interpreter: Interpreter) -> None:
    snapshots = await begun(interpreter, 1)
    run = snapshots[0].run
    assert isinstance(run, ScriptRun)

    def kill(_: Call) -> None:
        psutil.Process(run.place.process._process.number).kill()

    with pytest.raises(InterpreterCrashed):
        await interpreter.resume(snapshots[0], {0: Ended("x")}, kill)
    await asyncio.sleep(0)
    assert await ended(interpreter, snapshots[0]) == [0, "x", "y", 1_000_000]


HASHES = """
import logging, time, uuid, weakref
from dataclasses import dataclass
@dataclass(frozen=True)
class Source:
    title: str
    year: int | None = None
class Ring:
    pass
async def main():
    made = logging.LogRecord("a", 10, "f", 1, "hi", (), None)
    ring = Ring()
    ring.itself = ring
    seen = weakref.ref(ring)
    del ring
    rounds = 0
    while seen() is not None and rounds < 3_000:
        rounds += 1
        more = [[each] for each in range(10)]
        more.append(more)
    facts = [
        hash(None), hash(int), [each.title for each in {Source("a"), Source("b"), Source("c"), Source("d")}],
        time.clock_gettime(1), time.clock_gettime_ns(0), made.relativeCreated, made.process, made.thread, rounds,
    ]
    await search(query=str(facts))
    return [seen() is None, facts]
"""


async def test_hashes_clocks_and_garbage_are_the_same_in_every_process(fresh: Interpreter) -> None:
    first = await fresh.start(HASHES, "main", {}, later, clock=5_000)
    assert first.snapshot is not None
    for _ in range(3):
        await fresh.close()
        came = await fresh.resume(replace(first.snapshot, run=None), {0: Ended("x", at=9_000)}, later)
        assert came.error is None
        is_collected, facts = came.value
        assert is_collected
        assert facts[3:] == [5.0, 5_000_000_000, 0.0, 1, 1, 3_000]


LARGE = """
import asyncio
async def main():
    print("a" * 20_000_000)
    text = "x" * 100_000
    return len(await asyncio.gather(*[search(query=f"{text}{n}") for n in range(200)]))
"""


async def test_many_large_calls_and_a_large_text_go_in_several_messages(interpreter: Interpreter) -> None:
    first = await interpreter.start(LARGE, "main", {}, later)
    assert (first.error, len(first.waits)) == (None, 200)
    assert 0 < len(first.printed) < 100_000
    assert first.snapshot is not None
    again = replace(first.snapshot, run=None)
    assert (await interpreter.resume(again, {n: Ended("x") for n in range(200)}, later)).value == 200


LONG = """
async def main():
    length = 0
    for n in range(17):
        length += len(await search(query=str(n)))
    return length
"""


async def test_a_replay_takes_no_more_memory_than_the_first_run(fresh: Interpreter) -> None:
    """All texts together would fill the process: each is of 1 MB, as a message of 2 MB."""
    text = "\u4e2d" * 333_000
    came = await fresh.start(LONG, "main", {}, later)
    for _ in range(16):
        assert came.snapshot is not None, came.error
        came = await fresh.resume(came.snapshot, {came.waits[0]: Ended(text)}, later)
    assert came.snapshot is not None
    again = replace(came.snapshot, run=None)
    assert (await fresh.resume(again, {came.waits[0]: Ended(text)}, later)).value == 17 * 333_000


async def test_a_busy_process_is_still_counted(fresh: Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_process, "MAX_SCRIPT_PROCESSES", 1)
    [snapshot] = await begun(fresh, 1)
    assert isinstance(snapshot.run, ScriptRun)
    process = snapshot.run.place.process
    with process.lock:
        # Threads of the interpreter find it busy.
        await fresh.start(f"{SCRIPT}# other\n", "main", {"n": 1}, later)
        assert process in fresh._processes._latest
        assert snapshot.run.is_alive
    await fresh.start(f"{SCRIPT}# third\n", "main", {"n": 1}, later)
    assert not process.lives
    assert len(fresh._processes._latest) == 1


async def test_a_script_whose_call_found_no_answer_goes_on_where_it_stood(interpreter: Interpreter) -> None:
    """A store that is away, or a process that reads and was killed, is tried again with the same snapshot."""
    [snapshot] = await begun(interpreter, 1)

    def away(_: Call) -> None:
        raise InterpreterCrashed("the process that reads was killed")

    for _ in range(2):
        with pytest.raises(InterpreterCrashed):
            await interpreter.resume(snapshot, {0: Ended("x")}, away)
    assert await ended(interpreter, snapshot) == [0, "x", "y", 1_000_000]


async def test_no_process_stays_when_the_first_call_found_no_answer(fresh: Interpreter) -> None:
    def away(_: Call) -> None:
        raise InterpreterCrashed("the process that reads was killed")

    with pytest.raises(InterpreterCrashed):
        await fresh.start(SCRIPT, "main", {"n": 1}, away)
    assert [process.lives for process in fresh._processes._latest] == [False]


async def test_a_function_that_the_script_does_not_name_is_no_task(interpreter: Interpreter) -> None:
    calls = list[Call]()
    script = """
async def look():
    return 1
async def main():
    look.__name__ = "ALICE" + "_APPROVED"
    await task(look)
"""
    error = (await interpreter.start(script, "main", {}, calls.append)).error
    assert error is not None
    assert error.message.endswith("it has told a call site that is not of the script")
    assert calls == []


async def test_a_script_that_changes_the_module_json_hurts_itself_alone(interpreter: Interpreter) -> None:
    script = """
import json
async def main():
    json.dumps = json.loads = None
    return await search(query="a")
"""
    first = await interpreter.start(script, "main", {}, later)
    assert first.snapshot is not None
    assert (await interpreter.resume(first.snapshot, {0: Ended("x")}, later)).value == "x"


async def test_a_call_that_is_cancelled_before_it_begins_is_not_forgotten(interpreter: Interpreter) -> None:
    script = """
import asyncio
async def main():
    task = asyncio.create_task(search(query="a"))
    task.cancel()
    typed = asyncio.create_task(llm("b", schema=int))
    typed.cancel()
    await asyncio.gather(task, typed, return_exceptions=True)
    search(query="c").close()
    search(query="d")
    return 1
"""
    came = await interpreter.start(script, "main", {}, later)
    assert (came.value, came.kept) == (1, (("search", 10),))


async def test_an_error_moves_nothing_on_the_screen_of_those_who_read_it(interpreter: Interpreter) -> None:
    script = r"""
async def main():
    raise type("Approved by admin\n\x1b[31mroot", (Exception,), {"__module__": "builtins"})("\x1b[2Jall\tgood\n")
"""
    error = (await interpreter.start(script, "main", {}, later)).error
    assert error is not None
    assert "\x1b" not in f"{error.type}{error.message}{error.traceback}"
    assert "\n" not in error.type
    assert error.message == "[2Jall\tgood\n"


async def test_a_script_that_tells_without_end_is_ended(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_run, "_ADVANCE_BYTES", 1 << 20)
    script = """
async def main():
    for n in range(40):
        phase("a" * 100_000)
"""
    error = (await interpreter.start(script, "main", {}, lambda _: Ended())).error
    assert error is not None
    assert "it has told more than 1 MB without waiting for a call" in error.message
