"""A read and a write of one thing never overlap, whatever else the plan has by then."""

from typing import Any

import pytest

from sennit.workflows.plan.compile.execution_plan import APART, EXCLUSIVE, SHARED, ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.compile.resource_locks import locks_of
from sennit.workflows.plan.language.nodes import ToolCall
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, RunStarted
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import RUNNING

TOOLS: dict[str, dict[str, Any]] = {
    "read": {"effect": "read", "resource": "file:{docs}/{path}"},
    "search": {"effect": "read", "resource": "file"},
    "write": {"effect": "write", "resource": "file:/docs/{path}"},
    "see": {"effect": "read", "resource": "ticket:{id}"},
    "close": {"effect": "write", "resource": "ticket:{id}"},
    "think": {"effect": "pure", "resource": None},
}
DO = {"s": SHARED, "x": EXCLUSIVE, "a": APART}


def use(what: str, **args: Any) -> ToolCall:
    return ToolCall(kind="tool", tool=what, args=args)


def key(what: str, *, docs: str = "/docs", **args: Any) -> str:
    """Return the lock of the key of a call."""
    return next(name for name, _ in locks_of(use(what, **args), TOOLS, docs) if ":" in name)


def held(*calls: ToolCall) -> int:
    """Return how many of these calls, each a node of its own, start at once."""
    specs = [NodeSpec(f"n{place}", "tool", locks=locks_of(call, TOOLS, "/docs")) for place, call in enumerate(calls)]
    state = RunState(Graph(ExecutionPlan(specs, [0])))
    return len(step(state, RunStarted()))


READ, WRITE = use("read", path="a.md"), use("write", path="a.md")
WRITE_B, SEARCH, WHEREVER = use("write", path="b.md"), use("search", query="x"), use("write", path="$n.path")
LATER = use("read", path="$n.path")


@pytest.mark.parametrize(
    ("calls", "count"),
    [
        ((READ, READ, SEARCH, LATER, use("think"), use("see", id=1)), 6),
        ((READ, WRITE), 1),
        ((WRITE, READ), 1),
        ((WRITE, WRITE), 1),
        ((WRITE, WRITE_B, use("close", id=1)), 3),
        ((WRITE_B, READ, WRITE_B), 2),
        ((SEARCH, LATER, READ, WRITE), 3),
        ((WRITE, SEARCH, LATER, WRITE_B), 2),
        ((READ, SEARCH, WHEREVER), 2),
        ((WHEREVER, READ, SEARCH, WRITE, use("see", id=1)), 2),
        ((use("see", id=1), use("close", id=1), use("close", id=2)), 2),
    ],
)
def test_a_read_and_a_write_of_one_thing_never_run_together(calls: tuple[ToolCall, ...], count: int) -> None:
    assert held(*calls) == count


def test_a_lock_that_several_hold_apart_comes_back() -> None:
    specs = [NodeSpec(name, "tool", locks=[("file*", DO[name[0]])]) for name in ("a1", "a2", "s1", "s2", "x1", "a3")]
    state = RunState(Graph(ExecutionPlan(specs, [0])))
    step(state, RunStarted())
    started = []
    while running := state.units_in(RUNNING):
        started.append([specs[unit].id for unit in running])
        for unit in running:
            step(state, NodeEnded(unit, 1, Outcome("d")))
    assert started == [["a1", "a2", "a3"], ["s1", "s2"], ["x1"]]
    assert state.locks == {}


@pytest.mark.parametrize("path", ["a.md", "./a.md", "x/../a.md", "/a.md", ".//a.md"])
def test_all_spellings_of_a_path_are_one_lock(path: str) -> None:
    assert key("read", path=path) == key("write", path="a.md") == "file:/docs/a.md"


def test_two_ways_to_write_a_letter_are_one() -> None:
    assert key("write", path="caf\u00e9") == key("read", path="cafe\u0301")


def test_the_folder_of_documents_counts() -> None:
    assert key("write", path="notes/a.md", docs="/docs/notes") == key("read", path="a.md", docs="/docs/notes")


@pytest.mark.parametrize("path", ["$w.path", "${input.folder}/a.md", "$item", None])
def test_a_key_that_is_not_known_yet_locks_the_whole_kind(path: str | None) -> None:
    args = {} if path is None else {"path": path}
    assert locks_of(use("write", **args), TOOLS, "/docs") == [("file", EXCLUSIVE)]
    assert locks_of(use("read", **args), TOOLS, "/docs") == [("file", SHARED), ("file*", SHARED)]


def test_what_no_tool_of_the_run_writes_needs_no_lock() -> None:
    """So an advance of a program may make short reads of it itself."""
    only_read = {name: tool for name, tool in TOOLS.items() if name != "write"}
    assert locks_of(READ, only_read, "/docs") == locks_of(SEARCH, only_read, "/docs") == []
    assert locks_of(use("see", id=1), only_read, "/docs") == locks_of(use("see", id=1), TOOLS, "/docs") != []
