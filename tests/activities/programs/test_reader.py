"""Scripts are read in a process of their own, which a script can end and nothing else."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psutil
import pytest

from sennit.activities.programs import reader as module
from sennit.activities.programs import reading
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.programs.computing_pool import ComputingPool
from sennit.activities.programs.reader import ScriptReader
from sennit.activities.programs.reading import Unreadable, read

SCRIPT = """
class Point:
    x: int
    y: "list[str]" = None

async def main(goal: str):
    \"\"\"Titles.\"\"\"
    while True: pass
    if goal:
        raise KeyError(5)
    return await llm(goal, é, schema=Point)
"""
READINGS: list[tuple[Any, ...]] = [
    ("problems", SCRIPT, ["other"], ["search"]),
    ("quote", SCRIPT, {"search": "read"}, {"worker": [1, 2]}, {"goal": "x"}),
    ("stubs", [{"name": "search", "effect": "read", "schema": {"properties": {"query": {"type": "string"}}}}]),
    ("planned", f"```python\n{SCRIPT}```", "$goal", ["search"], ["offline"], "stop"),
    ("planned", "async def main(", "$goal", [], [], "length"),
    ("classes", SCRIPT),
    ("loop", SCRIPT),
]
Children = Callable[[], list[psutil.Process]]
HEAVY = "async def main():\n    return [" + "x, " * 45_000 + "]"


@pytest.fixture
def children() -> Children:
    """Tells the processes that read for readers of this test: other tests leave theirs to the garbage collector."""

    def found() -> list[psutil.Process]:
        living = list[psutil.Process]()
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it ends meanwhile
                if process.ppid() != os.getpid() and "computing_parent" in " ".join(process.cmdline()):
                    living.append(process)
        return living

    before = found()
    return lambda: [each for each in found() if each not in before]


def gone(children: Children) -> bool:
    """Whether all of them have ended, shortly after nobody waits for them."""
    for _ in range(500):
        if not children():
            return True
        time.sleep(0.01)
    return False


def test_a_reading_is_the_same_wherever_it_is_done(children: Children) -> None:
    reader = ScriptReader()
    for name, *given in READINGS:
        assert reader(name, *given) == as_json(read(name, *given)), name
    assert len(children()) == 1, "it stays for the next reading"
    reader.close()
    name, *given = READINGS[0]
    assert reader(name, *given) == as_json(read(name, *given)), "what was read before"
    assert gone(children), "no process was started for it"


def test_a_reading_ends_with_its_processor_time(monkeypatch: pytest.MonkeyPatch, children: Children) -> None:
    monkeypatch.setattr(module, "SECONDS", 0)
    reader = ScriptReader()
    with pytest.raises(Unreadable, match="to read"):
        [reader("problems", f"{HEAVY}  # {number}", [], []) for number in range(50)]
    assert gone(children)
    assert reader("loop", "while True: pass") == ["", 1]
    reader.close()


def test_a_reading_ends_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_READER_BYTES", 64 << 20)
    reader = ScriptReader()
    [[code, where, message]] = reader("problems", HEAVY, [], [])
    assert (code, where, "too large or nested too deep" in message) == ("size", ["script", "line", 1], True)
    assert reader("loop", "while True: pass") == ["", 1]
    reader.close()


@pytest.mark.parametrize("is_parent", [False, True])
def test_a_process_that_another_has_killed_is_a_reason_to_try_again(children: Children, is_parent: bool) -> None:
    reader = ScriptReader()
    assert reader("loop", "while True: pass") == ["", 1]
    [process] = children()
    killed = psutil.Process(process.ppid()) if is_parent else process
    process.suspend()  # so it has not answered when it is killed
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(reader, "loop", "while True: pass  # again")
        while free_processes(reader._pool):
            time.sleep(0.01)
        killed.kill()
        with pytest.raises(InterpreterCrashed, match="ended with None" if is_parent else "ended with -9"):
            reading.result(60)
    assert gone(children)
    assert reader("loop", "while True: pass  # again") == ["", 1]
    reader.close()


FORGED = [
    ("problems", "7"),
    ("problems", '{"reading": "none"}'),
    ("problems", '{"reading": [["name", ["line", 1], 5]]}'),
    ("problems", '{"reading": [["name", ["line", "1", null], "x"]]}'),
    ("problems", '{"reading": [["name", ["line", 2], "x"]]}'),
    ("doubts", '{"reading": [["name", ["line", -1], "x"]]}'),
    ("loop", '{"reading": ["", 2]}'),
    ("loop", '{"reading": ["", true]}'),
    ("quote", '{"reading": ["calls 0", 0, 0, -1]}'),
    ("quote", '{"reading": ["calls 0", 0, 0]}'),
    ("own_text", '{"reading": ["x"]}'),
    ("classes", '{"reading": {"A": [["x", "int", 1]]}}'),
    ("planned", '{"reading": [[], []]}'),
    ("planned", '{"unreadable": 5}'),
]


def test_a_reading_that_is_none_is_not_believed(monkeypatch: pytest.MonkeyPatch, children: Children) -> None:
    """It is no fault of the script, so it may be read again. A line that the script lacks is forged, too.

    The process that forged it reads no other script.
    """
    monkeypatch.setattr(module, "_MODULE", "tests.doubles.forging_reader")
    reader = ScriptReader()
    for name, script in FORGED:
        with pytest.raises(InterpreterCrashed, match=r"has (answered|named)"):
            pytest.fail(f"{name} is {reader(name, script)}")
        assert gone(children), name
    assert reader("loop", '{"reading": ["", 1]}') == ["", 1]
    reader.close()


def free_processes(pool: ComputingPool) -> int:
    """Count them at a moment when no thread is about to take one."""
    with pool._lock:
        return len(pool._free)


def as_json(value: object) -> object:
    if isinstance(value, dict):
        return {key: as_json(part) for key, part in value.items()}
    return [as_json(part) for part in value] if isinstance(value, list | tuple) else value


def test_every_reading_has_a_shape() -> None:
    assert set(module._SHAPES) == set(reading._READINGS)
