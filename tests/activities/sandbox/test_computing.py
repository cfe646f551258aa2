"""Processes that compute fail one by one: what one copy lacks ends neither its parent nor the other copies."""

import errno
import gc
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.sandbox.computing import MAX_PARENT_FILES, ComputingParent, ComputingProcess, NoAnswer, Service
from sennit.activities.sandbox.computing_parent import COPY
from sennit.activities.sandbox.confinement import find_confinement

SEVEN = json.dumps({"steps": [["number", [7]]], "sides": [0], "signs": []}).encode()


@pytest.fixture
def parent() -> Iterator[ComputingParent]:
    made = ComputingParent(Service("sennit.activities.programs.arithmetic_service", 64 << 20, 1, 1_000))
    yield made
    made.close()


def answers(process: ComputingProcess) -> bool:
    return bool(process.ask(SEVEN, 60) == {"value": 7})


def test_a_hundred_copies_live_at_once(parent: ComputingParent) -> None:
    copies = [parent.copy() for _ in range(100)]
    assert all(answers(copy) for copy in copies)
    for copy in copies:
        copy.end()


def test_nobody_knows_the_root_of_a_parent_before_it_is_there() -> None:
    """The root is an empty folder in /tmp that is gone. Who could make it first would take the root away."""
    roots = []
    for _ in range(2):
        module = "sennit.activities.programs.cpython.service"
        parent = ComputingParent(Service(module, 256 << 20, 1, 1_000, is_beside_code=True, has_fixed_addresses=True))
        copy = parent.copy()
        assert parent._process is not None
        roots.append(str(Path(f"/proc/{parent._process.pid}/root").readlink()))
        copy.end()
        parent.close()
    if roots == ["/", "/"]:
        pytest.skip("this machine gives no process a root of its own")
    assert roots[0] != roots[1]


def test_a_request_for_a_copy_without_its_descriptors_is_passed_over(parent: ComputingParent) -> None:
    before = parent.copy()
    assert parent._channel is not None
    to_read, to_write = os.pipe()
    # More of them than the parent may have descriptors: it keeps none.
    for _ in range(MAX_PARENT_FILES):
        socket.send_fds(parent._channel, [COPY], [to_read, to_write])
    os.close(to_write)
    os.close(to_read)
    after = parent.copy()
    assert answers(before)
    assert answers(after)


def test_a_copy_that_the_system_refuses_fails_alone() -> None:
    parent = ComputingParent(Service("tests.doubles.refused_fork", 64 << 20, 1, 1_000))
    first = parent.copy()
    process = parent._process
    with pytest.raises(NoAnswer):
        parent.copy()
    third = parent.copy()
    assert parent._process is process
    assert (first.ask(b"", 60), third.ask(b"", 60)) == (7, 7)
    parent.close()


@pytest.mark.parametrize("pipes", [0, 1, 2])
def test_a_lack_of_descriptors_passes(parent: ComputingParent, monkeypatch: pytest.MonkeyPatch, pipes: int) -> None:
    """As many pipes are made as there are descriptors for; none of them stays open."""
    parent.copy().end()
    held = open_files()
    with monkeypatch.context() as lack:
        lack.setattr(os, "pipe", failing_after(pipes, os.pipe))
        with pytest.raises(NoAnswer, match=r"no pipe to a process that computes: .*Too many open files"):
            parent.copy()
    assert set(open_files()) <= set(held), "what other tests have left may be closed meanwhile"
    assert answers(parent.copy())


@pytest.mark.parametrize("place", ["socket.socketpair", "subprocess.Popen"])
def test_a_parent_that_the_system_refuses_is_no_answer(
    parent: ComputingParent, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    find_confinement()  # which starts processes itself, once
    held = open_files()
    with monkeypatch.context() as lack:
        lack.setattr(place, failing_after(0, os.pipe))
        with pytest.raises(NoAnswer, match=r"the parent of processes that compute does not start: .*Too many open"):
            parent.copy()
    assert set(open_files()) <= set(held), "what other tests have left may be closed meanwhile"
    assert answers(parent.copy())


def open_files() -> list[str]:
    """Return the descriptors of this process but the one that lists them."""
    gc.collect()
    return sorted(path.name for path in Path("/proc/self/fd").iterdir() if path.exists())


def failing_after(calls: int, function: Callable[[], Any]) -> Callable[..., Any]:
    """Return a function that fails as for want of descriptors after so many calls."""
    left = [None] * calls

    def call(*_: Any, **__: Any) -> Any:
        if not left:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        left.pop()
        return function()

    return call
