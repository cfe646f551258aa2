"""Reads scripts in processes of their own, which the kernel confines and which end if a script takes too much."""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
import weakref
from hashlib import sha256
from threading import Lock
from typing import Any, Final

from sennit.activities.limits import MAX_KEPT_READINGS_BYTES, MAX_READER_BYTES
from sennit.activities.programs.checkouts import Checkouts, InterpreterCrashed
from sennit.activities.programs.reader_process import READY
from sennit.activities.programs.reading import Unreadable
from sennit.activities.sandbox.confinement import find_confinement
from sennit.folders import PACKAGE
from sennit.workflows.plan.bounded_cache import BoundedCache

SECONDS: Final = 10
"""Of processor time that a reading may take."""
_PATIENCE: Final = 120.0
"""In seconds. A machine that has not given a reading its processor time by then is asked again later."""
_CHUNK: Final = 1 << 20
_SHORT_BYTES: Final = 64 << 10
"""Of an answer that is given again: longer ones would drive all others out."""
_MODULE: Final = "sennit.activities.programs.reader_process"
_MAIN: Final = f"import sys; sys.path.insert(0, sys.argv.pop(1)); from {_MODULE} import main; main()"
_ROOT: Final = str(PACKAGE.parent)
_OWN_END: Final = {
    signal.SIGXCPU: f"it takes more than {SECONDS} s to read",
    signal.SIGSEGV: "it is nested too deep",
    signal.SIGABRT: f"it takes more than {MAX_READER_BYTES >> 20} MB to read",
}


class ScriptReader:
    """Does readings: as many at once as the machine has cores, each in a process that stays for the next ones.

    The latest short answers are given again: a program that runs again is not read again. It is called like
    `reading.read`, in a thread.
    """

    def __init__(self) -> None:
        self._checkouts = Checkouts("reads scripts")
        self._free: list[_Process] = []
        self._answers = BoundedCache[bytes, bytes](MAX_KEPT_READINGS_BYTES)
        self._lock = Lock()

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Do a reading. Raises Unreadable, and InterpreterCrashed if a process was ended from outside or none becomes
        free.
        """
        request = json.dumps([name, arguments]).encode() + b"\n"
        digest = sha256(request).digest()
        known = self._answers.get(digest)
        if known is not None:
            return json.loads(known)["value"]
        with self._checkouts.one():
            with self._lock:
                process = self._free.pop() if self._free else None
            process = process or _Process()
            try:
                text = process.answer(request, _PATIENCE)
                answer = json.loads(text)
            except BaseException:
                process.end()
                raise
            if "unreadable" in answer:  # what it took may not be given back
                process.end()
                raise Unreadable(answer["unreadable"])
            with self._lock:
                self._free.append(process)
            if len(text) <= _SHORT_BYTES:
                self._answers.put(digest, text)
        return answer["value"]

    def warm_up(self) -> None:
        """Have a process ready, so that the first script does not wait for one to start. Raises InterpreterCrashed."""
        with self._checkouts.one():
            process = _Process()
            with self._lock:
                self._free.append(process)

    def close(self) -> None:
        """End the processes that do nothing."""
        with self._lock:
            free, self._free = self._free, []
        for process in free:
            process.end()


class _Process:
    """A process that reads."""

    def __init__(self) -> None:
        """Start it. Raises InterpreterCrashed."""
        found = find_confinement()
        policy = json.dumps(found.policy(MAX_READER_BYTES) if found.holds else None)
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, with code of this package
            [sys.executable, "-I", "-B", "-c", _MAIN, _ROOT, policy, str(SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LANG": "C.UTF-8"},
            start_new_session=True,
        )
        weakref.finalize(self, _end, self._process)
        try:
            began = self.answer(b"", _PATIENCE)
        except Unreadable as error:
            raise InterpreterCrashed(str(error)) from error
        if began != READY:
            self.end()
            raise InterpreterCrashed(f"the process that reads scripts does not start: {began.decode(errors='replace')}")

    def answer(self, request: bytes, seconds: float) -> bytes:
        """Return the line that answers a request. Raises Unreadable, InterpreterCrashed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        parts = list[bytes]()
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            while not parts or not parts[-1].endswith(b"\n"):
                if not waiting.select(deadline - time.monotonic()):
                    raise InterpreterCrashed(f"the process that reads scripts has not answered in {seconds:.0f} s")
                parts.append(os.read(self._process.stdout.fileno(), _CHUNK))
                if not parts[-1]:
                    raise self._ended()
        return b"".join(parts)

    def _ended(self) -> Exception:
        """Return why the process has ended: because of what it has read, or of something else."""
        code = self._process.wait()
        reason = _OWN_END.get(signal.Signals(-code)) if code < 0 else None
        if reason:
            return Unreadable(reason)
        return InterpreterCrashed(f"the process that reads scripts has ended with {code}")

    def end(self) -> None:
        """Kill the process and wait until it has ended."""
        _end(self._process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
