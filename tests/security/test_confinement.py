"""What reads scripts has no more rights than code in the sandbox, where the kernel can hold it."""

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from sennit.activities.limits import MAX_READER_BYTES
from sennit.activities.programs.calculate import evaluate
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.progress import Advance
from sennit.activities.programs.reader import ScriptReader
from sennit.activities.programs.values import Ended
from sennit.activities.sandbox import confinement, landlock, seccomp
from sennit.activities.sandbox.computing import ComputingParent, Service
from sennit.activities.sandbox.confinement import Confinement, find_confinement

KINDS = ["copy", "copy", "parent", "parent"]
"""Of what reads scripts, and of what runs them."""
MOST_MEMORY = 1 << 30
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
    """Return whether a process is what computes, or the parent that it is a copy of."""
    return "parent" if process.ppid() == os.getpid() else "copy"


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
        processes = await started(interpreter)
        assert sorted(map(kind, processes)) == KINDS
        for process in processes:
            has = rights(process)
            assert has["NoNewPrivs"] == "1"
            assert (int(has["CapEff"], 16), int(has["CapPrm"], 16)) == (0, 0)
            assert "0" not in has["Uid"].split()
            assert 0 < most("Max address space", process) <= MOST_MEMORY
            # A parent runs no text from outside, and must fork.
            assert (has["Seccomp"] == FILTERED) == (kind(process) != "parent")
    reader.close()


async def test_a_process_that_computes_has_two_pipes_and_starts_nothing() -> None:
    reader = ScriptReader()
    before = psutil.Process().children(recursive=True)
    assert reader("loop", "while True: pass") == ["", 1]
    [process] = [
        each for each in psutil.Process().children(recursive=True) if each not in before and kind(each) == "copy"
    ]
    assert sorted(each.name for each in Path(f"/proc/{process.pid}/fd").iterdir()) == ["0", "1"]
    assert most("Max address space", process) == MAX_READER_BYTES
    for bound in ("Max processes", "Max open files", "Max file size", "Max core file size"):
        assert most(bound, process) == 0
    reader.close()


@pytest.mark.parametrize("landlock_too", [True, False])
def test_what_a_process_that_computes_is_a_copy_of_has_left_the_machine(landlock_too: bool) -> None:
    """With or without Landlock."""
    options = "-n" if os.getuid() == 0 else "-rn"
    if shutil.which("unshare") is None or subprocess.run(["unshare", options, "true"], check=False).returncode != 0:
        pytest.skip("this user may not make namespaces")
    found = find_confinement()
    here = found if landlock_too else replace(found, landlock=0)
    parent = ComputingParent(
        Service("sennit.activities.programs.arithmetic_service", memory=64 << 20, seconds=1, answer_bytes=1_000),
        lambda: here,
    )
    request = json.dumps({"steps": [["number", [7]]], "sides": [0], "signs": []}).encode()
    process = parent.copy()
    assert process.ask(request, 60) == {"value": 7}
    assert parent._process is not None
    at = parent._process.pid
    assert str(Path(f"/proc/{at}/root").readlink()).endswith(" (deleted)")
    for namespace in ("net", "ipc", "uts"):
        assert Path(f"/proc/{at}/ns/{namespace}").readlink() != Path(f"/proc/self/ns/{namespace}").readlink()
    process.end()
    parent.close()


def test_a_confined_process_reaches_no_file_and_no_network() -> None:
    found = find_confinement()
    assert confinement._problem(found) == ""
    if found.landlock:
        assert confinement._problem(Confinement(0, seccomp=False)) == ""  # it is asked for nothing, so nothing leaks
        assert not found.missing


@pytest.mark.parametrize(
    ("lacks", "sentence"),
    [
        ({"landlock"}, "calculations and checks of programs run without Landlock: this kernel has none"),
        ({"seccomp"}, "calculations and checks of programs run without seccomp: no seccomp; programs are refused here"),
        (
            {"landlock", "seccomp"},
            (
                "calculations and checks of programs run without Landlock and seccomp: no seccomp; "
                "programs are refused here"
            ),
        ),
    ],
)
async def test_where_the_kernel_lacks_them_it_is_said_and_no_program_runs_without_seccomp(
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
    async with Interpreter() as interpreter:
        if "seccomp" in lacks:
            refused = await interpreter.start(SCRIPT, "main", {}, lambda call: None)
            assert refused.error is not None
            assert refused.error.message.startswith("programs run only where the kernel has seccomp")
            assert "`--trust-program`" in refused.error.message
            assert await interpreter.type_problems("x = 1 / 0", "") == []
            # A person may trust one script, and no other one.
            trusted = await interpreter.start(SCRIPT, "main", {}, lambda call: None, is_trusted=True)
            assert trusted.snapshot is not None
            lost = replace(trusted.snapshot, run=None)
            with pytest.raises(InterpreterCrashed, match="programs run only where the kernel has seccomp"):
                await interpreter.resume(lost, {0: Ended(7)}, lambda call: None)
            ended = await interpreter.resume(lost, {0: Ended(7)}, lambda call: None, is_trusted=True)
            assert ended == Advance(value=7)
    async with Interpreter(trusts_scripts=True) as interpreter:
        before = psutil.Process().children(recursive=True)
        came = await interpreter.start(SCRIPT, "main", {}, lambda call: None)
        assert await interpreter.resume(came.snapshot, {0: Ended(7)}, lambda call: None) == Advance(value=7)
        again = await interpreter.start(SCRIPT, "main", {}, lambda call: None)
        assert again.waits == (0,)
        children = [each for each in psutil.Process().children(recursive=True) if each not in before]
        [process] = [each for each in children if kind(each) == "copy"]
        assert rights(process)["Seccomp"] == ("0" if "seccomp" in lacks else FILTERED)
        assert rights(process)["NoNewPrivs"] == "1"


async def test_where_nothing_holds_only_trusted_programs_run_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "_problem", lambda tried: "no rights to give up")
    alone = "programs are refused here, and calculations and checks of programs run guarded by bounds alone: "
    alone += "no rights to give up"
    assert find_confinement().missing == alone
    assert evaluate("6650 - 6400") == 250
    reader = ScriptReader()
    async with Interpreter(reader, trusts_scripts=True) as interpreter:
        assert sorted(map(kind, await started(interpreter))) == KINDS
    reader.close()


@pytest.mark.parametrize("machine", ["riscv64", "ppc64le", "i686"])
def test_another_architecture_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    named = f"^there is a seccomp program for x86_64 and aarch64, and none for {machine}$"
    with pytest.raises(OSError, match=named):
        seccomp.computing_program(1)
    with pytest.raises(OSError, match=named):
        seccomp.command_program(allow_signals=True, allow_metadata=True)


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize(("column", "machine"), [*enumerate(HEADERS)])
def test_the_numbers_of_system_calls_are_those_of_the_kernel(column: int, machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("the kernel's headers are not installed")
    defined = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text())
    numbers = {name: int(number) for name, number in defined}
    assert numbers["exit_group"] in (231, 94)
    single = {
        "read": seccomp._READ, "write": seccomp._WRITE, "mmap": seccomp._MMAP, "mprotect": seccomp._MPROTECT,
        "clock_gettime": seccomp._CLOCK_GETTIME, "tgkill": seccomp._TGKILL, "clone": seccomp._CLONE,
        "prlimit64": seccomp._PRLIMIT, "fcntl": seccomp._FCNTL,
    }  # fmt: skip
    tables = (single, seccomp._COMPUTING, seccomp.DENIED, seccomp._SIGNALS, seccomp._METADATA, seccomp._UNAVAILABLE)
    wrong = []
    for table in tables:
        for name, columns in table.items():
            if columns[column] is not None and numbers.get(name, columns[column]) != columns[column]:
                wrong.append(name)
    assert not wrong
    assert {name for name in {**single, **seccomp._COMPUTING} if name not in numbers} == set()


def test_a_program_of_the_other_architecture_can_be_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has as many steps, and other numbers."""
    programs = []
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        programs.append(seccomp.computing_program(7))
    x86_64, aarch64 = programs
    of_x32 = 2 * 8  # steps that refuse the calls of a third way of calling
    assert (len(x86_64) - of_x32, x86_64[8:12]) == (len(aarch64), aarch64[8:12])
    assert x86_64 != aarch64
