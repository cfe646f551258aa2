"""Processes that compute: each reads the requests of one pipe, writes answers to another one,
and can do nothing else.

They are copies of a parent that has loaded all of their code, so one starts in some milliseconds.
The worker believes nothing that a process writes: an answer is one line of bounded length that
comes in time and when it was asked for.
"""

import json
import os
import resource
import select
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final, Self

from sennit.activities.sandbox.computing_parent import COPY, DESCRIPTORS, READY
from sennit.activities.sandbox.confinement import Confinement, find_confinement
from sennit.activities.sandbox.reaper import ROOT

_MODULE: Final = "sennit.activities.sandbox.computing_parent"
_MAIN: Final = (
    f"import sys; sys.path.insert(0, sys.argv.pop(1)); from {_MODULE} import main; main()"
)
_CHUNK: Final = 1 << 20
_MAX_WORDS_BYTES: Final = 1_000
"""Of what a process says when it cannot start, and of an exit status."""
_START_SECONDS: Final = 120.0
"""In which a parent or a process has started: a machine that is busy may take long."""

MAX_PARENT_FILES: Final = 4_096
"""Which a parent may have open: one for each copy that lives, and some more while it makes one."""
_END_SECONDS: Final = 10.0
_USED_SECONDS: Final = 1
"""Of processor time after which a process makes place for a new one."""


TimeLeft = Callable[[], float]
"""Says for how many seconds to wait."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_USER_TIME, _SYSTEM_TIME = 11, 12
"""The fields of /proc/PID/stat, behind the name of the process."""
_LEAST_WAIT: Final = 0.05


class NoAnswer(Exception):
    """A process did not answer, or answered what it was not asked. It has been killed."""


class ProcessEnded(NoAnswer):
    """A process ended before it had answered. `status` is its exit code, the negative number of a
    signal, or None if its parent has ended, too.
    """

    def __init__(self, status: int | None) -> None:
        super().__init__(
            f"the process has ended with {status}" if status is not None else "its parent has ended"
        )
        self.status = status


class OutOfTime(NoAnswer):
    """A process has computed for longer than it may. It has been killed."""

    def __init__(self) -> None:
        super().__init__("the process has computed for longer than it may")


@dataclass(frozen=True, slots=True)
class Service:
    """What processes compute: `module` has `prepare()`, which loads all that it will need, and
    `answer(request)`, which returns one line of JSON; or `serve(lines)`, which reads and writes
    lines itself, for `exchange`. If it has `settle()`, the parent calls that once it is confined.

    `memory` is address space in bytes, and `is_beside_code` says that what the parent has loaded
    comes on top. `seconds` is the processor time that each request has, or with `serve` a process.
    `answer_bytes` is the longest line of an answer. `has_fixed_addresses` says that code lies at
    the same addresses in all processes, where the kernel allows it.
    """

    module: str
    memory: int
    seconds: int
    answer_bytes: int
    is_beside_code: bool = False
    has_fixed_addresses: bool = False


class ComputingParent:
    """The parent of the processes of one service. It is started by the first one, and
    again when it has ended.

    Nothing of it outlives this process, however that ends. Threads may share it.
    """

    def __init__(
        self, service: Service, confinement: Callable[[], Confinement] = find_confinement
    ) -> None:
        self.service = service
        self.confinement = confinement
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def copy(self) -> "ComputingProcess":
        """Return a new process that waits for requests. Not to be called in an event
        loop. Raises NoAnswer.
        """
        requests, to_send, to_receive, answers, to_wait, status = _pipes()
        copy = ComputingProcess(self.service.answer_bytes, to_send, to_receive, to_wait)
        try:
            with self._lock:
                self._ask_for_copy([requests, answers, status])
        except BaseException:
            copy.end()
            raise
        finally:
            for descriptor in (requests, answers, status):
                os.close(descriptor)
        return copy.begun()

    def close(self) -> None:
        """End the parent, and with it all of its processes. The next copy starts a new parent."""
        with self._lock:
            self._end()

    def _ask_for_copy(self, descriptors: list[int]) -> None:
        # A parent that was killed is noticed by its socket; then one new parent is tried.
        if self._channel is not None:
            try:
                socket.send_fds(self._channel, [COPY], descriptors)
            except OSError:
                self._end()
            else:
                return
        self._start()
        assert self._channel is not None
        try:
            socket.send_fds(self._channel, [COPY], descriptors)
        except OSError as error:
            raise NoAnswer(
                f"the parent of processes that compute does not start: {error}"
            ) from error

    def _start(self) -> None:
        found = self.confinement()
        policy = _parent_policy(found, self.service.memory) if found.holds else None
        service = {
            "module": self.service.module,
            "memory": self.service.memory,
            "seconds": self.service.seconds + _USED_SECONDS,
            "seccomp": found.seccomp,
            "is_beside_code": self.service.is_beside_code,
            "has_fixed_addresses": self.service.has_fixed_addresses,
        }
        try:
            process, ours = _started([ROOT, json.dumps(policy), json.dumps(service)])
        except OSError as error:
            raise NoAnswer(
                f"the parent of processes that compute does not start: {error}"
            ) from error
        self._process, self._channel = process, ours
        weakref.finalize(self, _end, process, ours)
        ours.settimeout(_START_SECONDS)
        said = b""
        with suppress(OSError):
            said = ours.recv(_MAX_WORDS_BYTES)
        if said != READY:
            self._end()
            reason = said.decode(errors="replace") or "no answer"
            raise NoAnswer(f"the parent of processes that compute does not start: {reason}")

    def _end(self) -> None:
        if self._process is not None and self._channel is not None:
            _end(self._process, self._channel)
        self._process = self._channel = None


class ComputingProcess:
    """A process that answers requests, one after the other. One thread at a time may ask it."""

    def __init__(self, answer_bytes: int, requests: int, answers: int, status: int) -> None:
        self.is_spent = False
        """Whether it has taken much of its time or memory, as it says: then it is let go."""
        self.number: int | None = None
        """Its process id, as this machine's /proc has it: to look at what it
        takes, and for nothing else.
        """
        self.written = 0
        """The bytes of all lines that it has written."""
        self._answer_bytes = answer_bytes
        self._requests = requests
        self._answers = answers
        self._status = status
        os.set_blocking(requests, False)
        self._close = weakref.finalize(self, _close, requests, answers, status)

    def begun(self) -> Self:
        """Wait until the process has confined itself. Raises NoAnswer."""
        said = self._line(b"", _until(_START_SECONDS), _MAX_WORDS_BYTES)
        # It has run no text from outside yet, so it says the truth.
        word, _, number = said.partition(b" ")
        if word != READY:
            self.end()
            raise NoAnswer(f"the process does not start: {said.decode(errors='replace')}")
        self.number = int(number)
        return self

    def ask(self, request: bytes, seconds: float) -> Any:
        """Return the answer to a request, which is one line of JSON without the break. Raises
        NoAnswer if there is none in `seconds`, and ProcessEnded. Then the process has been killed.
        """
        line = self._line(request + b"\n", _until(seconds), self._answer_bytes)
        answer = None
        with suppress(ValueError, RecursionError):
            answer = json.loads(line)
        match answer:
            case {"seconds": int() | float() as used, "is_last": bool() as is_last, "value": value}:
                self.is_spent = is_last or used > _USED_SECONDS
                return value
        self.end()
        raise NoAnswer("the process has answered what is no answer")

    def exchange(self, message: bytes, seconds: float, patience: float) -> Any:
        """Send a line of JSON, without the break, and return the JSON of the line that follows.

        Raises OutOfTime if the process computes for `seconds` without an answer, NoAnswer if there
        is none for other reasons, also in `patience` seconds of a machine that is busy, and
        ProcessEnded. Then the process has been killed.
        """
        time_left = _ProcessorTime(self.number, seconds, patience).left
        line = self._line(message + b"\n", time_left, self._answer_bytes)
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            self.end()
            raise NoAnswer("the process has written what is no message") from None

    @property
    def lives(self) -> bool:
        """Whether the process has not ended, as far as its parent has told by now, and
        neither has its parent.
        """
        if not self._close.alive:
            return False
        waiting = select.poll()
        waiting.register(self._status, select.POLLIN)
        # Its parent writes to this pipe when the process has ended. The pipe is
        # closed when the parent has.
        return not waiting.poll(0)

    def end(self) -> None:
        """Kill the process."""
        self._close()

    def _line(self, request: bytes, time_left: TimeLeft, most: int) -> bytes:
        """Send a request and return the line that follows, without the break. Raises NoAnswer."""
        if not self._close.alive:
            raise NoAnswer("the process has been killed")
        try:
            return self._exchange(memoryview(request), time_left, most)
        except BaseException:
            self.end()
            raise

    def _exchange(self, unsent: memoryview, time_left: TimeLeft, most: int) -> bytes:
        received = bytearray()
        waiting = select.poll()
        waiting.register(self._answers, select.POLLIN)
        # A short request fits into the pipe at once; a long one goes as the process reads it.
        unsent = self._send(unsent)
        if unsent:
            waiting.register(self._requests, select.POLLOUT)
        while True:
            ready = _ready(waiting, time_left)
            if self._requests in ready:
                unsent = self._send(unsent)
                if not unsent:
                    waiting.unregister(self._requests)
            if self._answers in ready:
                chunk = os.read(self._answers, _CHUNK)
                if not chunk:
                    raise ProcessEnded(self._exit_status(time_left))
                received += chunk
                # A line that comes before the request was read is no answer to it.
                line, separator, rest = received.partition(b"\n")
                if len(line) > most or rest or (separator and unsent):
                    raise NoAnswer(
                        "the process has written more than one answer, or too long a one"
                    )
                if separator:
                    self.written += len(line)
                    return bytes(line)

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._requests, unsent) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:  # the process has ended; its pipe of answers says so, too
            return unsent[len(unsent) :]

    def _exit_status(self, time_left: TimeLeft) -> int | None:
        """Return how the process ended, None if its parent has ended, too. One that lives on and
        has closed its pipe of answers is waited for as long as there is time. Raises NoAnswer.
        """
        waiting = select.poll()
        waiting.register(self._status, select.POLLIN)
        _ready(waiting, time_left)
        said = os.read(self._status, _MAX_WORDS_BYTES)
        return int(said) if said else None


def _pipes() -> tuple[int, ...]:
    """Return three pipes, of each the end to read and then the end to write. Raises NoAnswer, and
    leaves none open, if this process may not have so many descriptors.
    """
    made = list[int]()
    try:
        for _ in range(DESCRIPTORS):
            made += os.pipe()
    except OSError as error:
        _close(*made)
        raise NoAnswer(f"there is no pipe to a process that computes: {error}") from error
    return tuple(made)


def _started(arguments: list[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a parent; return it with this end of its socket. Raises OSError, and
    leaves no socket open.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - this interpreter, with code of this package
                [sys.executable, "-s", "-P", "-B", "-c", _MAIN, *arguments],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # With one seed for hashes, sets of texts have one order in all
                # copies, on all workers.
                env={"LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC"},
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
    return process, ours


def _parent_policy(found: Confinement, memory: int) -> dict[str, Any]:
    """Return what holds a parent, which makes processes and keeps one descriptor of each. They
    confine themselves further: a copy can make no process and open no file.
    """
    policy = found.policy(memory)
    limits = dict(policy["limits"])
    limits.pop("processes", None)
    limits["open_files"] = MAX_PARENT_FILES
    # Only root may raise what this process itself is held to, and not everywhere.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        limits["open_files"] = min(MAX_PARENT_FILES, hard)
    return {**policy, "limits": limits, "seccomp": False, "namespaces": True}


def _until(seconds: float) -> TimeLeft:
    """Return how much time is left of so many seconds from now on."""
    deadline = time.monotonic() + seconds
    return lambda: deadline - time.monotonic()


class _ProcessorTime:
    """How much time a process has left that may compute for `seconds`, and keep others
    waiting for `patience`.

    A machine that is busy gives a process little time: then the clock says nothing
    about what it computes.
    """

    def __init__(self, process: int | None, seconds: float, patience: float) -> None:
        self._process = process
        self._seconds = seconds
        self._deadline = time.monotonic() + patience
        self._before = self._used()
        # Without /proc there is only the clock.
        if self._before is None:
            self._deadline = time.monotonic() + seconds
        self._looked = False

    def left(self) -> float:
        """Return for how long to wait until it is known more. Raises OutOfTime."""
        by_clock = self._deadline - time.monotonic()
        if self._before is None:
            if by_clock <= 0:
                raise OutOfTime
            return by_clock
        # The first time nothing can have been used.
        used = 0.0
        if self._looked:
            used = (self._used() or 0.0) - self._before
        self._looked = True
        if used >= self._seconds:
            raise OutOfTime
        return min(by_clock, max(self._seconds - used, _LEAST_WAIT))

    def _used(self) -> float | None:
        """Return the processor time that the process has used, None if that
        is not to be seen here.
        """
        try:
            fields = Path(f"/proc/{self._process}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        return (int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])) / _TICKS


def _ready(waiting: select.poll, time_left: TimeLeft) -> set[int]:
    """Return the descriptors that are ready. Raises NoAnswer if none is in time."""
    while True:
        seconds = time_left()
        if seconds <= 0:
            raise NoAnswer("the process has not answered in time")
        ready = {descriptor for descriptor, _ in waiting.poll(1_000 * seconds)}
        if ready:
            return ready


def _close(*descriptors: int) -> None:
    """Close this side of the pipes: the parent kills the process as soon as
    nobody waits for its status.
    """
    for descriptor in descriptors:
        os.close(descriptor)


def _end(process: subprocess.Popen[bytes], channel: socket.socket) -> None:
    """Close the socket: the parent then kills its processes and ends. It is
    killed if it does not.
    """
    channel.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
