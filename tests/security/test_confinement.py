"""What reads scripts has no more rights than code in the sandbox, where the kernel can hold it."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pydantic_monty._binary import find_monty_binary

from sennit.activities.limits import MAX_INTERPRETER_BYTES
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.reader import ScriptReader
from sennit.activities.programs.values import Advance, Ended
from sennit.activities.sandbox import confinement, landlock
from sennit.activities.sandbox.confinement import Confinement, find_confinement

KINDS = {"interpreter", "reader"}
SCRIPT = "async def main():\n    return await search()\n"


@pytest.fixture(autouse=True)
def is_forgotten() -> Iterator[None]:
    find_confinement.cache_clear()
    yield
    find_confinement.cache_clear()


async def started(interpreter: Interpreter) -> list[psutil.Process]:
    """Return the processes that a check and a step of a script have started."""
    before = psutil.Process().children()
    assert await interpreter.type_problems("x = 1\n", "") == []
    assert (await interpreter.start(SCRIPT, "main", {}, lambda call: None)).waits == (0,)
    return [each for each in psutil.Process().children() if each not in before]


def kinds(processes: list[psutil.Process]) -> set[str]:
    """Return what runs: on a busy machine there may be more than one interpreter."""
    return {"interpreter" if "monty" in each.name() else "reader" for each in processes}


def rights(process: psutil.Process) -> dict[str, str]:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


async def test_both_processes_have_given_up_what_they_can() -> None:
    found = find_confinement()
    assert (found.landlock > 0, found.seccomp, found.missing) == (landlock.version() > 0, True, found.missing)
    reader = ScriptReader()
    async with Interpreter(reader) as interpreter:
        processes = await started(interpreter)
        assert kinds(processes) == KINDS
        for process in processes:
            has = rights(process)
            assert (has["NoNewPrivs"], has["Seccomp"]) == ("1", "2")
            assert (int(has["CapEff"], 16), int(has["CapPrm"], 16)) == (0, 0)
            assert "0" not in has["Uid"].split()
            [most] = re.findall(r"Max address space +\d+ +(\d+)", Path(f"/proc/{process.pid}/limits").read_text())
            assert 0 < int(most) <= MAX_INTERPRETER_BYTES
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
        assert rights(process)["Seccomp"] == ("0" if "seccomp" in lacks else "2")
        assert rights(process)["NoNewPrivs"] == "1"


async def test_where_nothing_holds_programs_run_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "_problem", lambda tried: "no rights to give up")
    assert find_confinement().missing == "programs run guarded by their interpreter alone: no rights to give up"
    reader = ScriptReader()
    async with Interpreter(reader) as interpreter:
        assert kinds(await started(interpreter)) == KINDS
    reader.close()
