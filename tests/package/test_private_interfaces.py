"""Interfaces of other packages that are not public: each is what Sennit takes it for."""

import argparse
import inspect
import threading
from _thread import start_new_thread

from temporalio.bridge.worker import Worker as BridgeWorker
from temporalio.worker import Worker

from sennit.private_interfaces import commands_of, eviction_of, flags_of, is_foreign


def test_a_worker_can_forget_a_run() -> None:
    assert list(inspect.signature(BridgeWorker.request_workflow_eviction).parameters) == ["self", "run_id"]
    assert "_bridge_worker" in inspect.getsource(Worker), "what `eviction_of` asks for it"
    assert eviction_of.__annotations__["worker"] == "Worker"


def test_a_thread_that_python_has_not_started_is_foreign() -> None:
    found: list[threading.Thread] = []
    known = threading.Event()

    def register() -> None:
        found.append(threading.current_thread())
        known.set()

    start_new_thread(register, ())
    assert known.wait(5)
    assert is_foreign(found[0])
    assert not is_foreign(threading.current_thread())


def test_the_commands_and_flags_of_a_parser_are_known() -> None:
    parser = argparse.ArgumentParser()
    flag = parser.add_argument("--output", "-o")
    commands = parser.add_subparsers()
    commands.add_parser("ask")
    assert list(commands_of(commands)) == ["ask"]
    assert list(commands_of(flag)) == []
    assert {"--output", "-o", "--help"} <= set(flags_of(parser))
