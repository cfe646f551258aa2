"""What Sennit uses of other packages although it is not public: here alone, each with its reason.

`tests/package/test_private_interfaces.py` fails as soon as one of them changes. The requirements of
`pyproject.toml` bound the versions: `temporalio` below 2, Python as far as it is tested.
"""

import argparse
import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from temporalio.worker import Worker


def eviction_of(worker: "Worker") -> Callable[[str], None]:
    """Return what makes a worker forget the state of a run, by the run's id.

    Temporalio evicts runs by itself and has no public call for it. `GuardedRunner`
    needs one: it says why.
    """
    return worker._bridge_worker.request_workflow_eviction


def is_foreign(thread: threading.Thread) -> bool:
    """Return whether a thread was not started by Python, but by a library in C or Rust that
    runs Python code in it.

    Python lists such a thread once it has asked for its own name, and has no public mark for it.
    """
    return isinstance(thread, threading._DummyThread)


def commands_of(action: argparse.Action) -> Collection[str]:
    """Return the commands of which an argument of a command line chooses one; none
    for any other argument.

    Argparse has no public name for the class of `add_subparsers`, and a wrong command is a
    value of this argument.
    """
    if isinstance(action, argparse._SubParsersAction):
        return action.choices
    return ()


def flags_of(parser: argparse.ArgumentParser) -> Collection[str]:
    """Return all flags of a command, such as `--output`: argparse lists them in texts only."""
    return parser._option_string_actions
