"""Scripts that want out, and that deceive the worker, in the processes that serve real programs.

A script reaches all of Python through the modules that it may import. What it writes into its pipe stands there in the
place of the true message.
"""

import asyncio
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from doubles.attacks import ATTACKS, SECRET, Held

from sennit.activities.limits import MAX_PROGRAM_MESSAGE_BYTES
from sennit.activities.programs import script_process, script_run
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.values import Call, Ended

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="seccomp is part of Linux")
MODULES = (
    "ctypes", "fcntl", "gc", "importlib", "mmap", "os", "pickle", "re", "resource", "signal", "socket", "subprocess",
    "sys", "threading", "time",
)  # fmt: skip
HEAD = f"""
import json, logging
for name in {MODULES!r}:
    globals()[name] = logging.sys.modules.get(name)
number = lambda x86_64, aarch64: x86_64 if os.uname().machine == "x86_64" else aarch64

def call(which, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    given = [ctypes.c_long(part) if isinstance(part, int) else part for part in arguments]
    result = libc.syscall(ctypes.c_long(which), *given)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result

def tell(message):
    os.write(1, json.dumps(message).encode() + b"\\n")
    return json.loads(os.read(0, 1_000_000))
"""
MAIN = "\n\nasync def main():\n    try:\n        return f'got {attack()}'\n    except Exception as error:\n"
MAIN += "        return f'denied {type(error).__name__}: {error}'[:200]\n"


@pytest.fixture(scope="module", name="interpreter")
def _interpreter() -> Iterator[Interpreter]:
    made = Interpreter()
    yield made
    asyncio.run(made.close())


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_run, "TURN_SECONDS", 1.0)
    monkeypatch.setattr(script_process, "_PATIENCE_SECONDS", 2.0)


async def came(interpreter: Interpreter, code: str, calls: list[Call], facts: dict[str, Any] | None = None) -> str:
    """Return what an attack says of itself, how the script failed, or that its process was killed."""
    known = "".join(f"{name} = {value!r}\n" for name, value in (facts or {}).items())
    script = f"{HEAD}{known}\ndef attack():\n{textwrap.indent(code, '    ')}\n{MAIN}"

    def answered(call: Call) -> Ended | None:
        calls.append(call)
        return Ended("found") if call.function == "phase" else None

    try:
        advance = await interpreter.start(script, "main", {}, answered)
    except InterpreterCrashed as error:
        return f"killed: {error}"
    if advance.error is not None:
        return f"fails: {advance.error.type}: {advance.error.message}"
    return "waits" if advance.snapshot is not None else str(advance.value)


ENDS = (
    "fails: RuntimeError: the process of the script has ended",
    "fails: MemoryError: ",
    "fails: TimeoutError: the script computed for 1 s without a call",
    "killed: the process of a script was killed",
)
"""How a script fails that harms its own process."""


FIXED = ("get random numbers", "time the worker's work")
"""Attacks on functions that scripts have of the run, and not of the kernel."""


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_script_gets_nothing(interpreter: Interpreter, facts: dict[str, Any], name: str) -> None:
    attack, calls = ATTACKS[name], list[Call]()
    said = await came(interpreter, attack.code, calls, facts)
    held = Held.OWN if name in FIXED else attack.held
    match held:
        case Held.REFUSED:
            assert said.startswith("denied ")
        case Held.MEMORY:
            assert said.startswith(("denied MemoryError", ENDS[1]))
        case Held.TIME:
            assert said.startswith(ENDS)
        case Held.CRASH:  # or an error before that, as later Pythons have it
            assert said.startswith((*ENDS, "denied "))
        case Held.DISBELIEVED:
            assert said.startswith(ENDS)
        case Held.OWN:
            assert said.startswith(("got ", "denied "))
    assert calls == []
    assert SECRET not in said
    assert sorted(each.name for each in Path(facts["folder"]).iterdir()) == ["planted.py", "secret", "spare"]
    assert await came(interpreter, "return 7", []) == "got 7", "the next script is harmed"


def tell(*calls: str, seconds: str = "0.0", printed: str = "''") -> str:
    """Return code that tells calls which the script has not made."""
    return f'tell({{"calls": [{", ".join(calls)}], "print": {printed}, "seconds": {seconds}}})'


def report(fields: str) -> str:
    """Return code that tells a report which is not true, and waits."""
    true = '"print": "", "digest": "0" * 32, "seconds": 0.0, "closed": []'
    return f"os.write(1, json.dumps({{{true}, {fields}}}).encode() + b'\\n')\nos.read(0, 1)"


SEARCH = '[0, "search", [], {"query": "x"}, 3, ""]'
LIES = {
    "a call site that the script has not": tell('[0, "search", [], {}, 1, "/hon" "est#1"]'),
    "a call site of a thousand names": tell('[0, "search", [], {}, 1, "/main#1" * 1000]'),
    "a line that the script has not": tell('[0, "search", [], {}, 10**6, ""]'),
    "a line below zero": tell('[0, "search", [], {}, -1, ""]'),
    "a line that is true": tell('[0, "search", [], {}, True, ""]'),
    "a call with the number of a later one": tell('[7, "search", [], {}, 1, ""]'),
    "one call twice": tell(SEARCH, SEARCH),
    "a word with a break": tell('[0, "search\\n", [], {}, 1, ""]'),
    "a word of a megabyte": tell('[0, "a" * 1_000_000, [], {}, 1, ""]'),
    "a call with a part too many": tell('[0, "search", [], {}, 1, "", 1]'),
    "arguments by name that are a list": tell('[0, "search", [], [], 1, ""]'),
    "time that runs back": tell(SEARCH, seconds="-1.0"),
    "time without end": tell(SEARCH, seconds="1e999"),
    "a text that is a number": tell(SEARCH, printed="5"),
    "no calls": tell(),
    "calls that are an object": 'tell({"calls": {}, "print": "", "seconds": 0.0})',
    "a report without the calls that it has given up": 'os.write(1, b\'{"print": ""}\\n\')\nos.read(0, 1)',
    "a call given up that is a text": report('"closed": ["0"]'),
    "an error with a line that is not there": report('"error": ["ValueError", "x", 10**6, []]'),
    "an error with a file in its frames": report('"error": ["ValueError", "x", 1, [[1, "main\\nroot"]]]'),
    "an error of wrong types": report('"error": [5, None, "x", 7]'),
    "a deadlock without lines": report('"deadlock": "everywhere"'),
    "calls never awaited that are none": report('"done": 1, "kept": [5]'),
    "ends that it was not told": report('"done": 1, "told": 3'),
    "fewer ends than none": tell(SEARCH)[:-2] + ', "told": -1})',
    "a digest that is none": report('"done": 1, "digest": "../../etc"'),
    "half a message": "os.write(1, b'{\"calls\": [')\nos.read(0, 1)",
    "half a message, and computing": "os.write(1, b'{\"calls\": [')\nwhile True: pass",
    "half a message, and an end": "os.write(1, b'{\"calls\": [')\nos._exit(0)",
    "a message byte by byte": "while True: os.write(1, b'x'); [None for _ in range(100_000)]",
    "a message that is too long": f"while True: os.write(1, b' ' * {MAX_PROGRAM_MESSAGE_BYTES // 10})",
    "a message behind a message": f"os.write(1, json.dumps({{'calls': [{SEARCH}], 'print': '', 'seconds': 0.0}})"
    ".encode() + b'\\n{}\\n')\nos.read(0, 1)\nos.read(0, 1)",
    "no text": "os.write(1, bytes(range(256)))\nos.write(1, b'\\n')\nos.read(0, 1)",
    "keys that come twice": 'os.write(1, b\'{"calls": [], "calls": []}\\n\')\nos.read(0, 1)',
}


@pytest.mark.parametrize("name", LIES)
async def test_a_script_that_lies_in_its_messages_is_ended(interpreter: Interpreter, name: str) -> None:
    calls = list[Call]()
    said = await came(interpreter, LIES[name], calls)
    assert said.startswith(ENDS), said
    assert len(calls) <= 1
    assert all(call.function == "search" and call.number == 0 for call in calls)
    assert await came(interpreter, "return 7", []) == "got 7", "the next script is harmed"


async def test_a_ref_that_the_script_was_not_given_does_not_leave_it(interpreter: Interpreter) -> None:
    calls = list[Call]()
    ref = '{"__ref__": "a" * 40, "size": 5}'
    said = await came(interpreter, f"""return {tell(f'[0, "part", [{ref}], {{}}, 3, ""]')}""", calls)
    assert "a Ref that the script was not given" in said
    assert calls == []


FLOODS = {
    "prints": "while True: print('x' * 10_000)",
    "prints in messages": "for n in range(10**6):\n    "
    + tell('[n, "phase", ["p"], {}, 3, ""]', printed="'x' * 100_000"),
    "calls in messages": "for n in range(10**6):\n    " + tell('[n, "phase", ["p"], {}, 3, ""]'),
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_ends_with_its_bound(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(script_run, "CALLS_IN_AN_ADVANCE", 2_000)
    worker = psutil.Process()
    before = worker.memory_info().rss
    said = await came(interpreter, FLOODS[name], [])
    assert said.startswith((*ENDS, "fails: RuntimeError: the script made more than 2,000 calls")), said
    assert worker.memory_info().rss - before < 200 << 20
    assert await came(interpreter, "return 7", []) == "got 7", "the next script is harmed"


async def test_a_forged_end_is_the_scripts_own(interpreter: Interpreter) -> None:
    """It may say that it has ended with any value: that is all that its own `return` can do."""
    said = await came(interpreter, report('"done": "forged"'), [])
    assert said == "forged"
