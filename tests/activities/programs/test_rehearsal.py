"""What the parent of scripts rehearses saves memory, and no script can tell that it was rehearsed."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from doubles.small_world import World

from sennit.activities.programs import script_process
from sennit.activities.programs.cpython import rehearsal
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.script_process import ScriptProcess
from sennit.activities.programs.script_run import ScriptRun
from sennit.activities.programs.values import Call, Ended
from sennit.testing import program, run

TESTS = Path(__file__).parents[2]
PROGRAMS = sorted((Path(__file__).parent / "conformance" / "programs").glob("*.py"))
TRACES = (
    "import json; json.trace = 1",
    "sys.modules['trace'] = sys",
    "sys.meta_path.pop()",
    "sys.stdout = sys.stderr",
    "random.random()",
    "asyncio.tasks._task_name_counter()",
    "gc.set_threshold(1)",
    "decimal.getcontext().prec = 5",
    "fixed_world._state.instances += 1",
    "import re; re.sub('(a)', r'\\1', 'a')",
    "import typing; typing.Literal['trace']",
    "import json; json.__warningregistry__ = {}",
    "import linecache; linecache.cache['trace'] = 1",
    "sys.kept = type('Trace', (RuntimeError,), {})",
)
"""What a rehearsal might do to its process, one by one."""


def places_that_differ(behind: str) -> str:
    """Return where the parent differs after the rehearsal, and this statement, from before it."""
    command = [sys.executable, "-m", "doubles.rehearsed_process", behind]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_rehearsal_leaves_the_process_as_it_was() -> None:
    assert places_that_differ("") == ""


@pytest.mark.parametrize("trace", TRACES)
def test_a_trace_would_be_seen(trace: str) -> None:
    assert places_that_differ(trace) != ""


def test_what_is_rehearsed_runs_to_its_end() -> None:
    """A script that fails at once would save nothing, and nobody would notice."""
    code = """
import json
from sennit.activities.programs.cpython import fixed_world, rehearsal, service

def watched(lines):
    write = lines.write
    def write_and_print(line):
        write(line)
        said.append(json.loads(line))
    lines.write = write_and_print
    service.serve(lines)

said = []
service.prepare()
fixed_world.settle()
rehearsal.rehearse(watched)
ends = [message["done"] for message in said if message.get("done")]
errors = [message["error"] for message in said if "error" in message]
print(json.dumps([ends, errors]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ends, errors = json.loads(done.stdout)
    assert ends == [["passage"] * rehearsal._CALLS] * rehearsal._SESSIONS
    assert errors == []


@pytest.fixture(scope="module")
def interpreters() -> Iterator[list[Interpreter]]:
    """The processes of scripts with a rehearsal, and without one."""
    with pytest.MonkeyPatch.context() as patch:
        rehearsed = Interpreter()
        patch.setattr(script_process, "_MODULE", "tests.doubles.unrehearsed_service")
        found = [rehearsed, Interpreter()]
    yield found
    for each in found:
        asyncio.run(each.close())


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_says_the_same_bytes_with_a_rehearsal_and_without(
    path: Path, interpreters: list[Interpreter], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    tell = ScriptProcess.tell

    def noted(process: ScriptProcess, message: dict[str, Any], seconds: float) -> Any:
        answer = tell(process, message, seconds)
        # The processor time is another one each time.
        said.append(json.dumps([message, {**answer, "seconds": 0}]))
        return answer

    monkeypatch.setattr(ScriptProcess, "tell", noted)
    about = path.with_suffix(".json")
    given: dict[str, Any] = {"inputs": {}, "answers": []}
    if about.exists():
        given = json.loads(about.read_text())
    transcripts = []
    for interpreter in interpreters:
        said.clear()
        monkeypatch.setattr(program, "_interpreter", lambda it=interpreter: it)
        with contextlib.suppress(Exception):  # with which some of them end
            run(path.read_text(), World(given["answers"]).tools(), **given["inputs"])
        transcripts.append(list(said))
    with_rehearsal, without = transcripts
    assert with_rehearsal == without
    assert with_rehearsal


WAITS = """
import string
from decimal import getcontext
from random import random

async def main(mark: str):
    seen = [getattr(string, "mark", ""), getcontext().prec, random()]
    string.mark = mark
    getcontext().prec += 1
    await search(query=mark)
    return [*seen, string.mark, getcontext().prec]
"""


def leave_open(_: Call) -> None:
    """Answer no call at once."""


async def test_copies_of_a_parent_that_has_rehearsed_share_nothing_that_scripts_change() -> None:
    async with Interpreter() as interpreter:
        waiting = []
        for mark in ("a", "b"):
            waiting.append(await interpreter.start(WAITS, "main", {"mark": mark}, leave_open, "seed"))
        values = []
        for advance in waiting:
            values.append((await interpreter.resume(advance.snapshot, {0: Ended("")}, leave_open)).value)
    first, second = values
    assert first[:2] == ["", 28]
    assert first[3:] == ["a", 29]
    assert second == [*first[:3], "b", 29]


async def own_bytes(interpreter: Interpreter) -> int:
    """Return what a script that waits shares with no other process."""
    # The first copy also has what its parent changes when it makes one for the first time.
    advances = []
    for _ in range(3):
        advances.append(await interpreter.start(WAITS, "main", {"mark": ""}, leave_open))
    run = advances[1].snapshot and advances[1].snapshot.run
    assert isinstance(run, ScriptRun)
    own = psutil.Process(run.place.process._process.number).memory_full_info().uss
    await interpreter.close()
    return int(own)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process shares")
async def test_a_script_that_waits_takes_less_memory_after_a_rehearsal(interpreters: list[Interpreter]) -> None:
    rehearsed, without = interpreters
    assert await own_bytes(rehearsed) < await own_bytes(without) - 200_000
