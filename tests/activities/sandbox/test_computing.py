"""Processes that compute fail one by one: what one copy lacks ends neither its parent nor the other copies."""

import json
import os
import socket
from collections.abc import Iterator

import pytest

from sennit.activities.sandbox.computing import MAX_PARENT_FILES, ComputingParent, ComputingProcess, NoAnswer, Service
from sennit.activities.sandbox.computing_parent import COPY

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
