"""A node's arguments from stored outputs, and the key under which its outcome is found again."""

import asyncio
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.stores import made

from sennit.activities.nodes.binding import Binder, parse_unit
from sennit.activities.storage import run_context
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.run_context import ArtifactReader
from sennit.workflows.messages.node_calls import NodeCall
from sennit.workflows.plan.language.nodes import MapNode
from sennit.workflows.plan.language.parser import parse_plan

HOME = "space/run"
CHECKED: Any = SimpleNamespace(inputs={"x": [7]}, goal="Sum up")


class Reads(DirectoryStore):
    """Counts what is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.count: Counter[str] = Counter()

    async def get(self, home: str, digest: str) -> bytes:
        self.count[digest] += 1
        return await super().get(home, digest)


@pytest.fixture
def store(tmp_path: Path) -> Reads:
    return made(Reads(tmp_path))


def each(over: str = "$a.items", as_: str = "item", **args: Any) -> MapNode:
    work = {"kind": "tool", "tool": "echo", "args": args or {"value": "$item"}}
    nodes = [
        {"id": "a", "kind": "tool", "tool": "echo"},
        {"id": "m", "kind": "map", "over": over, "as": as_, "do": work},
    ]
    node = parse_plan({"nodes": nodes, "answer": "$m", "inputs": {"x": {"type": "array"}}}).nodes[1]
    assert isinstance(node, MapNode)
    return node


async def bound(library: ArtifactReader, node: MapNode, digest: str, index: int) -> Any:
    unit = parse_unit(f"m[{index}]")
    call = NodeCall(run="run", plan="plan", nodes=(f"m[{index}]",))
    binder = Binder(library, HOME, CHECKED, call, {"a": digest})
    await binder.load(node, unit)
    return binder.bound(node.do[0].args)  # type: ignore[union-attr]


async def test_the_items_of_a_map_read_their_list_once(store: Reads) -> None:
    library = ArtifactReader(store)
    digest = await library.put(HOME, {"items": [{"n": index} for index in range(50)]})
    found = await asyncio.gather(*(bound(library, each(), digest, index) for index in range(50)))
    assert found == [{"value": {"n": index}} for index in range(50)]
    assert store.count[digest] == 1


async def test_who_changes_an_item_changes_it_for_nobody_else(store: Reads) -> None:
    library = ArtifactReader(store)
    digest = await library.put(HOME, {"items": [{"n": 1}], "of": {"n": 2}})
    both = each(value="$item", whole="$a.of")
    for node in (each(), both, each()):
        found = await bound(library, node, digest, 0)
        assert found["value"] == {"n": 1}
        assert found.get("whole", {"n": 2}) == {"n": 2}
        for value in found.values():
            value.clear()


async def test_only_so_much_is_kept(store: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_context, "MAX_CACHED_BYTES", 100)
    library = ArtifactReader(store)
    one, two, long = [await library.put(HOME, [text]) for text in ("1" * 40, "2" * 40, "3" * 200)]
    for digest in (one, two, one, two):
        await library.shared(HOME, digest)
    assert (store.count[one], store.count[two]) == (1, 1)
    assert await library.shared(HOME, long) == ["3" * 200]
    for digest in (long, one, two):
        await library.shared(HOME, digest)
    assert (store.count[long], store.count[one], store.count[two]) == (2, 2, 2)
