"""The process that computing processes begin as copies of. Arguments: ROOT, then
POLICY_JSON and SERVICE_JSON.

It imports the service's module, gives up what the policy denies, and then runs no text from
outside. A byte on the socket that is its stdin asks for a copy, and brings three descriptors: the
pipe of requests, the pipe of answers, and one on which the exit status of the copy is written when
it has ended. When the other end of that one is closed, or this process ends, the copy is killed.

A copy answers one line with one line until there are no more requests, or `serve` of its module
reads and writes the lines itself. Before it reads the first one it may do nothing else: it has no
descriptor but the two pipes, its memory and processor time are bounded, and the kernel refuses
every system call that does not compute.
"""

import ctypes
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from sennit.activities.sandbox import seccomp
from sennit.activities.sandbox.launch import MAX_OPEN_FILES
from sennit.activities.sandbox.restrict import restrict

READY = b"ready"
COPY = b"+"
DESCRIPTORS = 3
REQUESTS, ANSWERS = 0, 1
_GRACE_SECONDS = 1
"""From the signal that a copy may take note of to the one that ends it."""
_DIE_WITH_PARENT, _NO_NEW_PRIVILEGES = 1, 38
_FIXED_ADDRESSES, _ASK_ONLY = 0x0040000, 0xFFFFFFFF
_CHUNK = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)


class Answer(NamedTuple):
    """One line of JSON, without the break. The process is not asked again after one that `is_last`:
    what it took for that answer may not be given back.
    """

    text: bytes
    is_last: bool = False


class Lines:
    """The two pipes of a copy, line by line, without the breaks."""

    def __init__(self) -> None:
        self._received = bytearray()

    def read(self) -> bytes | None:
        """Return the next line, None if there are no more."""
        while True:
            line, separator, rest = self._received.partition(b"\n")
            if separator:
                self._received = rest
                return bytes(line)
            chunk = os.read(REQUESTS, _CHUNK)
            if not chunk:
                return None
            self._received += chunk

    def write(self, line: bytes) -> None:
        _write(line + b"\n")


Serve = Callable[[Lines], None]
"""Reads lines and writes lines until there are no more."""


def main() -> None:
    """Prepare, confine this process, and make copies until the socket is closed."""
    policy, service = json.loads(sys.argv[1]), json.loads(sys.argv[2])
    if service["has_fixed_addresses"]:
        _fix_addresses()
    with socket.socket(fileno=os.dup(0)) as channel:
        try:
            module = import_module(service["module"])
            module.prepare()
            if service["is_beside_code"]:
                _count_from_here(service, policy)
            if policy is not None:
                restrict(policy)
            # Not earlier: a service may replace what `restrict` needs, such as random numbers.
            if hasattr(module, "settle"):
                module.settle()
            # A copy shares all pages that it does not write; the collector
            # would write to all of them.
            gc.collect()
            gc.freeze()
        except (OSError, ValueError) as error:
            channel.sendall(str(error).encode())
            return
        channel.sendall(READY)
        serve = module.serve if hasattr(module, "serve") else partial(_answer_all, module.answer)
        _Parent(channel, service, serve).run()


def _fix_addresses() -> None:
    """Begin again with all code where it is in every other process: hashes of `None` and
    of types are addresses.

    A kernel that refuses it leaves the addresses as they are.
    """
    if sys.platform != "linux":
        return
    before = _LIBC.personality(_ASK_ONLY)
    if before < 0 or before & _FIXED_ADDRESSES:
        return
    _LIBC.personality(before | _FIXED_ADDRESSES)
    if _LIBC.personality(_ASK_ONLY) & _FIXED_ADDRESSES:
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - this interpreter, with its own arguments


def _count_from_here(service: dict[str, Any], policy: dict[str, Any] | None) -> None:
    """Count the memory of a copy beside what this process has loaded: how much that is
    depends on the machine.
    """
    if sys.platform != "linux":
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    service["memory"] += pages * resource.getpagesize()
    if policy is not None:
        policy["limits"]["memory"] = service["memory"]


class _Parent:
    """Makes the copies and waits for them."""

    def __init__(self, channel: socket.socket, service: dict[str, Any], serve: Serve) -> None:
        self._channel = channel
        self._service = service
        self._serve = serve
        # Of each copy that has not been waited for, by its process id. None if it was
        # killed because nobody waits.
        self._status_pipes: dict[int, int | None] = {}
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        # A copy that ends wakes the poll by a byte in a pipe.
        self._wakeups, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        os.set_blocking(self._wakeups, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        self._poll.register(self._wakeups, select.POLLIN)

    def run(self) -> None:
        while True:
            ready = dict(self._poll.poll())
            if self._wakeups in ready:
                os.read(self._wakeups, _CHUNK)
                self._reap()
            # Nobody waits any more for a copy whose status pipe has no reader.
            for process, pipe in self._status_pipes.items():
                if pipe is not None and pipe in ready:
                    os.kill(process, signal.SIGKILL)
                    self._let_go(process, pipe)
            if self._channel.fileno() in ready and not self._make_copy():
                break
        for process in self._status_pipes:
            os.kill(process, signal.SIGKILL)

    def _make_copy(self) -> bool:
        """Make a copy, if one is asked for; False when the worker has closed the socket.

        A copy for which the system lacks descriptors, processes or memory is not made. The worker
        notices it by its pipes, which are closed, and no other copy does.
        """
        byte, descriptors, _, _ = socket.recv_fds(self._channel, 1, DESCRIPTORS)
        if not byte:
            return False
        # The kernel brings fewer descriptors than were sent when this process
        # may have no more of them.
        if len(descriptors) < DESCRIPTORS:
            _close_all(descriptors)
            return True
        requests, answers, status = descriptors
        parent = os.getpid()
        try:
            process = os.fork()
        except OSError:
            _close_all(descriptors)
            return True
        if not process:
            _become_copy(parent, requests, answers, self._service, self._serve)
        os.close(requests)
        os.close(answers)
        self._status_pipes[process] = status
        self._poll.register(status, 0)  # an error is always told
        return True

    def _reap(self) -> None:
        while self._status_pipes:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            pipe = self._status_pipes[process]
            if pipe is not None:
                with suppress(BrokenPipeError):
                    os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
                self._let_go(process, pipe)
            del self._status_pipes[process]

    def _let_go(self, process: int, pipe: int) -> None:
        self._poll.unregister(pipe)
        os.close(pipe)
        self._status_pipes[process] = None


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _become_copy(
    parent: int, requests: int, answers: int, service: dict[str, Any], serve: Serve
) -> NoReturn:
    """Confine this process and serve. Never returns."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # The pipes may have the numbers 0 and 1 themselves only if the parent had closed
        # its own: it never does.
        os.dup2(requests, REQUESTS)
        os.dup2(answers, ANSWERS)
        os.closerange(ANSWERS + 1, MAX_OPEN_FILES)
        try:
            _confine(parent, service)
        except (OSError, ValueError) as error:
            _write(str(error).encode() + b"\n")
        else:
            _write(b"%b %d\n" % (READY, os.getpid()))
            serve(Lines())
            status = 0
    finally:
        os._exit(status)


def _confine(parent: int, service: dict[str, Any]) -> None:
    """Leave this process what it computes with. Raises OSError, ValueError."""
    if sys.platform == "linux":
        _checked(_LIBC.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0), "prctl")
        if os.getppid() != parent:
            raise OSError("the process above has ended")
        _checked(_LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
        resource.setrlimit(resource.RLIMIT_AS, (service["memory"], service["memory"]))
    for limit in (
        resource.RLIMIT_CORE,
        resource.RLIMIT_FSIZE,
        resource.RLIMIT_NPROC,
        resource.RLIMIT_NOFILE,
    ):
        resource.setrlimit(limit, (0, 0))
    seconds = service["seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _GRACE_SECONDS))
    if service["seccomp"]:
        seccomp.install(seccomp.computing_program(os.getpid()))
        _require_refusal()


def _require_refusal() -> None:
    """Raise OSError if the kernel has taken the program and does not hold this process to it."""
    try:
        Path("/").stat()
    except PermissionError:
        return
    raise OSError("seccomp does not hold here")


def _answer_all(answer: Callable[[bytes], Answer], lines: Lines) -> None:
    """Answer each line with one line, which also tells how much processor time this
    process has taken so far.
    """
    while (request := lines.read()) is not None:
        text, is_last = answer(request)
        used = json.dumps({"seconds": time.process_time(), "is_last": is_last})
        lines.write(b'%b, "value": %b}' % (used.removesuffix("}").encode(), text))


def _write(text: bytes) -> None:
    while text:
        text = text[os.write(ANSWERS, text) :]


def _checked(result: int, call: str) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, f"{call}: {os.strerror(error)}")
