"""A node's arguments from stored outputs, and the key under which its outcome is found again."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from doubles.plan.samples import each, stored, tool
from doubles.stores import made

from sennit.activities.nodes.binding import Binder, parse_unit, written_at
from sennit.activities.storage import run_context
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.run_context import ArtifactReader, StoredPlan
from sennit.workflows.messages.node_calls import NodeCall
from sennit.workflows.plan.language.nodes import ToolCall

HOME = "space/run"


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


def items(**args: Any) -> StoredPlan:
    work = tool(tool="anything", args=args or {"value": "$item"})
    del work["id"]
    return stored(tool("a", "anything"), each(do=work))


async def bound(library: ArtifactReader, checked: StoredPlan, digest: str, index: int) -> Any:
    call = NodeCall(run="run", plan="plan", nodes=(f"m[{index}]",))
    binder = Binder(library, HOME, checked, call, {"a": digest})
    unit = parse_unit(f"m[{index}]")
    await binder.load(unit)
    work = written_at(checked, unit).work
    assert isinstance(work, ToolCall)
    return binder.bound(work.args)


async def test_the_items_of_a_map_read_their_list_once(store: Reads) -> None:
    library = ArtifactReader(store)
    digest = await library.put(HOME, {"items": [{"n": index} for index in range(50)]})
    found = await asyncio.gather(*(bound(library, items(), digest, index) for index in range(50)))
    assert found == [{"value": {"n": index}} for index in range(50)]
    assert store.count[digest] == 1


async def test_who_changes_an_item_changes_it_for_nobody_else(store: Reads) -> None:
    library = ArtifactReader(store)
    digest = await library.put(HOME, {"items": [{"n": 1}], "of": {"n": 2}})
    both = items(value="$item", whole="$a.of")
    for checked in (items(), both, items()):
        found = await bound(library, checked, digest, 0)
        assert found["value"] == {"n": 1}
        assert found.get("whole", {"n": 2}) == {"n": 2}
        for value in found.values():
            value.clear()


async def test_only_so_much_is_kept(store: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_context, "MAX_KEPT_VALUES_BYTES", 4_000)
    library = ArtifactReader(store)
    one, two, three, long = [await library.put(HOME, [text * 300]) for text in ("1", "2", "3", "4" * 20)]
    for digest in (one, two, one, two):
        await library.shared(HOME, digest)
    assert (store.count[one], store.count[two]) == (1, 1)
    for digest in (long, long, two):
        await library.shared(HOME, digest)
    assert (store.count[long], store.count[two]) == (2, 1), (
        "a value over the bound is read each time, and drives none out"
    )
    for digest in (three, one):
        await library.shared(HOME, digest)
    assert (store.count[three], store.count[one]) == (1, 2), "the one that was used longest ago has gone"
