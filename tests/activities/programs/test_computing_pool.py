"""What a pool of processes does with one that lies, is silent, or has ended."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from sennit.activities.programs import checkouts
from sennit.activities.programs.computing_pool import ComputingPool
from sennit.activities.sandbox.computing import NoAnswer, Service


@pytest.fixture
def pool() -> Iterator[ComputingPool]:
    """A pool whose processes run any code that they are asked to run."""
    made = ComputingPool("runs attacks", Service("tests.doubles.attack_service", 256 << 20, 60, 1_000))
    yield made
    made.close()


def run(code: str) -> bytes:
    return json.dumps({"code": code, "facts": {}}).encode()


def is_seven(answer: Any) -> int:
    if answer != "got 7":
        raise NoAnswer(f"the process has answered {answer}")
    return 7


def test_a_process_that_lies_serves_nobody_else(pool: ComputingPool) -> None:
    left_behind = "sys.left = getattr(sys, 'left', 6) + 1\nreturn sys.left"
    assert pool.ask(run(left_behind), is_seven) == 7
    with pytest.raises(NoAnswer, match="the process has answered got 8"):
        pool.ask(run(left_behind), is_seven)
    assert pool.ask(run(left_behind), is_seven) == 7, "another process"


def test_silent_processes_make_place_for_those_who_wait(pool: ComputingPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkouts, "CHECKOUT_SECONDS", 10.0)
    everyone_asks = threading.Barrier(pool.checkouts.processes + 1)
    refusals = list[str]()

    def ask_in_vain() -> None:
        everyone_asks.wait(10)
        try:
            pool.ask(run("while True: pass"), is_seven)
        except NoAnswer as error:
            refusals.append(str(error))

    threads = [threading.Thread(target=ask_in_vain) for _ in range(pool.checkouts.processes)]
    for thread in threads:
        thread.start()
    everyone_asks.wait(10)
    assert pool.ask(run("return 7"), is_seven) == 7
    for thread in threads:
        thread.join(20)
    assert refusals == ["the process has not answered in time"] * len(threads)


@pytest.mark.parametrize("is_parent", [False, True], ids=["a process", "the parent of all"])
def test_processes_that_have_ended_are_asked_nothing(pool: ComputingPool, is_parent: bool) -> None:
    everyone_holds_one = threading.Barrier(pool.checkouts.processes)

    def check(answer: Any) -> int:
        everyone_holds_one.wait(60)
        return is_seven(answer)

    threads = [
        threading.Thread(target=pool.ask, args=(run("return 7"), check)) for _ in range(pool.checkouts.processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    free = list(pool._free)
    assert len(free) == pool.checkouts.processes
    assert all(process.lives for process in free)
    parent = pool._parent._process
    assert parent is not None
    if is_parent:
        parent.kill()
        parent.wait(60)
    else:
        for copy in psutil.Process(parent.pid).children():
            copy.kill()
    wait_until(lambda: not any(process.lives for process in free))
    assert pool.ask(run("return 7"), is_seven) == 7
    assert len(pool._free) == 1, "only the new one is kept"


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(3_000):
        if holds():
            return
        time.sleep(0.01)
    pytest.fail("it has not come about in 30 s")
