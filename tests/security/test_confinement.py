"""What reads scripts has no more rights than code in the sandbox, where the kernel can hold it."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pydantic_monty._binary import find_monty_binary

from sennit.activities.limits import MAX_INTERPRETER_BYTES, MAX_READER_BYTES
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.reader import ScriptReader
from sennit.activities.programs.values import Advance, Ended
from sennit.activities.sandbox import confinement, landlock
from sennit.activities.sandbox.confinement import Confinement, find_confinement

KINDS = {"interpreter", "parent", "reader"}
FILTERED = "2"
SCRIPT = "async def main():\n    return await search()\n"


@pytest.fixture(autouse=True)
def is_forgotten() -> Iterator[None]:
    find_confinement.cache_clear()
    yield
    find_confinement.cache_clear()


async def started(interpreter: Interpreter) -> list[psutil.Process]:
    """Return the processes that a check and a step of a script have started."""
    before = psutil.Process().children(recursive=True)
    assert await interpreter.type_problems("x = 1\n", "") == []
    assert (await interpreter.start(SCRIPT, "main", {}, lambda call: None)).waits == (0,)
    return [each for each in psutil.Process().children(recursive=True) if each not in before]


def kind(process: psutil.Process) -> str:
    """Return what a process is: on a busy machine there may be more than one interpreter."""
    if "monty" in process.name():
        return "interpreter"
    return "parent" if process.ppid() == os.getpid() else "reader"


def rights(process: psutil.Process) -> dict[str, str]:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def most(bound: str, process: psutil.Process) -> int:
    [found] = re.findall(rf"{bound} +(\d+)", Path(f"/proc/{process.pid}/limits").read_text())
    return int(found)


async def test_every_process_has_given_up_what_it_can() -> None:
    found = find_confinement()
    assert (found.landlock > 0, found.seccomp, found.missing) == (landlock.version() > 0, True, found.missing)
    reader = ScriptReader()
    async with Interpreter(reader) as interpreter:
        processes = {kind(process): process for process in await started(interpreter)}
        assert processes.keys() == KINDS
        for name, process in processes.items():
            has = rights(process)
            assert has["NoNewPrivs"] == "1"
            assert (int(has["CapEff"], 16), int(has["CapPrm"], 16)) == (0, 0)
            assert "0" not in has["Uid"].split()
            assert 0 < most("Max address space", process) <= MAX_INTERPRETER_BYTES
            # The parent of readers runs no text from outside, and must fork.
            assert (has["Seccomp"] == FILTERED) == (name != "parent")
    reader.close()


async def test_a_process_that_computes_has_two_pipes_and_starts_nothing() -> None:
    reader = ScriptReader()
    before = psutil.Process().children(recursive=True)
    assert reader("loop", "while True: pass") == ["", 1]
    [process] = [
        each for each in psutil.Process().children(recursive=True) if each not in before and kind(each) == "reader"
    ]
    assert sorted(each.name for each in Path(f"/proc/{process.pid}/fd").iterdir()) == ["0", "1"]
    assert most("Max address space", process) == MAX_READER_BYTES
    for bound in ("Max processes", "Max open files", "Max file size", "Max core file size"):
        assert most(bound, process) == 0
    reader.close()


def test_a_confined_process_reaches_no_file_and_no_network() -> None:
    found = find_confinement()
    assert confinement._problem(found) == ""
    if found.landlock:
        assert confinement._problem(Confinement(0, seccomp=False)) == ""  # it is asked for nothing, so nothing leaks
        assert not found.missing


async def test_the_interpreter_may_lie_where_only_the_workers_user_may_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the home folder of root."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    tmp_path.chmod(0o755)
    program = shutil.copy(find_monty_binary(), home)
    monkeypatch.setattr("sennit.activities.programs.interpreter.find_monty_binary", lambda: program)
    async with Interpreter() as running:
        assert (await running.start(SCRIPT, "main", {}, lambda call: None)).waits == (0,)


@pytest.mark.parametrize(
    ("lacks", "sentence"),
    [
        ({"landlock"}, "programs run without Landlock: this kernel has none"),
        ({"seccomp"}, "programs run without seccomp: no seccomp"),
        (
            {"landlock", "seccomp"},
            "programs run without Landlock and seccomp: no seccomp",
        ),
    ],
)
async def test_where_the_kernel_lacks_them_programs_run_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, lacks: set[str], sentence: str
) -> None:
    real = confinement._problem

    def problem(tried: Confinement) -> str:
        return "no seccomp" if tried.seccomp and "seccomp" in lacks else real(tried)

    monkeypatch.setattr(confinement, "_problem", problem)
    if "landlock" in lacks:
        monkeypatch.setattr(landlock, "version", lambda: 0)
    elif not landlock.version():
        pytest.skip("this kernel has no Landlock")
    found = find_confinement()
    assert found.missing == sentence
    before = psutil.Process().children()
    async with Interpreter() as interpreter:
        came = await interpreter.start(SCRIPT, "main", {}, lambda call: None)
        assert await interpreter.resume(came.snapshot, {0: Ended(7)}, lambda call: None) == Advance(value=7)
        [process] = [each for each in psutil.Process().children() if each not in before and "monty" in each.name()]
        assert rights(process)["Seccomp"] == ("0" if "seccomp" in lacks else FILTERED)
        assert rights(process)["NoNewPrivs"] == "1"


async def test_where_nothing_holds_programs_run_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "_problem", lambda tried: "no rights to give up")
    assert find_confinement().missing == "programs run guarded by their interpreter alone: no rights to give up"
    reader = ScriptReader()
    async with Interpreter(reader) as interpreter:
        assert {kind(process) for process in await started(interpreter)} == KINDS
    reader.close()
