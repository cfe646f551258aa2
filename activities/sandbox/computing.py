"""Processes that compute: each reads the requests of one pipe, writes answers to another one, and can do nothing else.

They are copies of a parent that has loaded all of their code, so one starts in some milliseconds. The worker believes
nothing that a process writes: an answer is one line of bounded length that comes in time and when it was asked for.
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
from threading import Lock
from typing import Any, Final, Self

from sennit.activities.sandbox.computing_parent import COPY, DESCRIPTORS, READY
from sennit.activities.sandbox.confinement import Confinement, find_confinement
from sennit.activities.sandbox.reaper import ROOT

_MODULE: Final = "sennit.activities.sandbox.computing_parent"
_MAIN: Final = f"import sys; sys.path.insert(0, sys.argv.pop(1)); from {_MODULE} import main; main()"
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


class NoAnswer(Exception):
    """A process did not answer, or answered what it was not asked. It has been killed."""


class ProcessEnded(NoAnswer):
    """A process ended before it had answered. `status` is its exit code, the negative number of a signal, or None if
    its parent has ended, too.
    """

    def __init__(self, status: int | None) -> None:
        super().__init__(f"the process has ended with {status}" if status is not None else "its parent has ended")
        self.status = status


@dataclass(frozen=True, slots=True)
class Service:
    """What processes compute: `module` has `prepare()`, which loads all that it will need, and `answer(request)`, which
    returns one line of JSON. `memory` is address space in bytes, `seconds` is the processor time that each request has,
    `answer_bytes` is the longest answer.
    """

    module: str
    memory: int
    seconds: int
    answer_bytes: int


class ComputingParent:
    """The parent of the processes of one service. It is started by the first one, and again when it has ended.

    Nothing of it outlives this process, however that ends. Threads may share it.
    """

    def __init__(self, service: Service, confinement: Callable[[], Confinement] = find_confinement) -> None:
        self.service = service
        self.confinement = confinement
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def copy(self) -> "ComputingProcess":
        """Return a new process that waits for requests. Not to be called in an event loop. Raises NoAnswer."""
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
            raise NoAnswer(f"the parent of processes that compute does not start: {error}") from error

    def _start(self) -> None:
        found = self.confinement()
        policy = _parent_policy(found, self.service.memory) if found.holds else None
        service = {
            "module": self.service.module,
            "memory": self.service.memory,
            "seconds": self.service.seconds + _USED_SECONDS,
            "seccomp": found.seccomp,
        }
        try:
            process, ours = _started([ROOT, json.dumps(policy), json.dumps(service)])
        except OSError as error:
            raise NoAnswer(f"the parent of processes that compute does not start: {error}") from error
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
        self._answer_bytes = answer_bytes
        self._requests = requests
        self._answers = answers
        self._status = status
        os.set_blocking(requests, False)
        self._close = weakref.finalize(self, _close, requests, answers, status)

    def begun(self) -> Self:
        """Wait until the process has confined itself. Raises NoAnswer."""
        said = self._line(b"", _START_SECONDS, _MAX_WORDS_BYTES)
        if said != READY:
            self.end()
            raise NoAnswer(f"the process does not start: {said.decode(errors='replace')}")
        return self

    def ask(self, request: bytes, seconds: float) -> Any:
        """Return the answer to a request, which is one line of JSON without the break. Raises NoAnswer if there is none
        in `seconds`, and ProcessEnded. Then the process has been killed.
        """
        line = self._line(request + b"\n", seconds, self._answer_bytes)
        answer = None
        with suppress(ValueError, RecursionError):
            answer = json.loads(line)
        match answer:
            case {"seconds": int() | float() as used, "is_last": bool() as is_last, "value": value}:
                self.is_spent = is_last or used > _USED_SECONDS
                return value
        self.end()
        raise NoAnswer("the process has answered what is no answer")

    @property
    def lives(self) -> bool:
        """Whether the process has not ended, as far as its parent has told by now, and neither has its parent."""
        if not self._close.alive:
            return False
        waiting = select.poll()
        waiting.register(self._status, select.POLLIN)
        # Its parent writes to this pipe when the process has ended. The pipe is closed when the parent has.
        return not waiting.poll(0)

    def end(self) -> None:
        """Kill the process."""
        self._close()

    def _line(self, request: bytes, seconds: float, most: int) -> bytes:
        """Send a request and return the line that follows, without the break. Raises NoAnswer."""
        if not self._close.alive:
            raise NoAnswer("the process has been killed")
        try:
            return self._exchange(memoryview(request), time.monotonic() + seconds, most)
        except BaseException:
            self.end()
            raise

    def _exchange(self, unsent: memoryview, deadline: float, most: int) -> bytes:
        received = bytearray()
        waiting = select.poll()
        waiting.register(self._answers, select.POLLIN)
        # A short request fits into the pipe at once; a long one goes as the process reads it.
        unsent = self._send(unsent)
        if unsent:
            waiting.register(self._requests, select.POLLOUT)
        while True:
            ready = {descriptor for descriptor, _ in waiting.poll(_milliseconds_until(deadline))}
            if not ready:
                raise NoAnswer("the process has not answered in time")
            if self._requests in ready:
                unsent = self._send(unsent)
                if not unsent:
                    waiting.unregister(self._requests)
            if self._answers in ready:
                chunk = os.read(self._answers, _CHUNK)
                if not chunk:
                    raise ProcessEnded(self._exit_status(deadline))
                received += chunk
                # A line that comes before the request was read is no answer to it.
                line, separator, rest = received.partition(b"\n")
                if len(line) > most or rest or (separator and unsent):
                    raise NoAnswer("the process has written more than one answer, or too long a one")
                if separator:
                    return bytes(line)

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._requests, unsent) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:  # the process has ended; its pipe of answers says so, too
            return unsent[len(unsent) :]

    def _exit_status(self, deadline: float) -> int | None:
        """Return how the process ended, None if its parent has ended, too. One that lives on and has closed its pipe of
        answers is waited for until the deadline. Raises NoAnswer.
        """
        waiting = select.poll()
        waiting.register(self._status, select.POLLIN)
        if not waiting.poll(_milliseconds_until(deadline)):
            raise NoAnswer("the process has not answered in time")
        said = os.read(self._status, _MAX_WORDS_BYTES)
        return int(said) if said else None


def _pipes() -> tuple[int, ...]:
    """Return three pipes, of each the end to read and then the end to write. Raises NoAnswer, and leaves none open, if
    this process may not have so many descriptors.
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
    """Start a parent; return it with this end of its socket. Raises OSError, and leaves no socket open."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - this interpreter, with code of this package
                [sys.executable, "-I", "-B", "-c", _MAIN, *arguments],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"LANG": "C.UTF-8"},
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
    return process, ours


def _parent_policy(found: Confinement, memory: int) -> dict[str, Any]:
    """Return what holds a parent, which makes processes and keeps one descriptor of each. They confine themselves
    further: a copy can make no process and open no file.
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


def _milliseconds_until(deadline: float) -> float:
    return 1_000 * max(0.0, deadline - time.monotonic())


def _close(*descriptors: int) -> None:
    """Close this side of the pipes: the parent kills the process as soon as nobody waits for its status."""
    for descriptor in descriptors:
        os.close(descriptor)


def _end(process: subprocess.Popen[bytes], channel: socket.socket) -> None:
    """Close the socket: the parent then kills its processes and ends. It is killed if it does not."""
    channel.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
