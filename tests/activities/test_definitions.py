"""What activities leave out without failing stands in the log."""

from pathlib import Path
from typing import Any

import pytest
from doubles.stores import store_in

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.nodes.short_calls import AdvanceAlone
from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.activities.toolbox.loader import load_tools
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.node_calls import ProgramNodeCall, ToolNodeCall


class Nodes:
    """Runs nodes, each of which fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def run(self, *_: Any, **__: Any) -> NodeReply:
        raise self._error


async def advance_after(tmp_path: Path, error: Exception) -> tuple[NodeReply, ...]:
    paths = WorkerPaths(store_in(tmp_path / "a"), tmp_path / "i", None, ())
    host: Any = Activities(paths, load_tools([]), identity="test")
    host._nodes = Nodes(error)
    call = ToolNodeCall(run="run", plan="a" * 40, nodes=("main_1",))
    then = ProgramNodeCall(run="run", plan="a" * 40, nodes=("main_s2",))
    found: tuple[NodeReply, ...] = await host._advance_after(call, then, NodeReply(ref="a" * 40, at=1), "ns/run")
    return found


async def test_an_advance_that_is_made_again_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert await advance_after(tmp_path, StoreUnavailable("the disk is full")) == ()
    assert "the advance of a program behind `main_1` has failed, and is made again alone" in caplog.text
    assert "StoreUnavailable: the disk is full" in caplog.text


async def test_a_step_that_makes_its_calls_alone_is_nothing_to_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert await advance_after(tmp_path, AdvanceAlone()) == ()
    assert caplog.text == ""
