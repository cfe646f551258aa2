"""Plans as a worker keeps them: parsed once, or not at all where they were just checked."""

from pathlib import Path

from doubles.stores import made, new_store

from sennit.activities.storage.artifacts import BodyMissing
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.run_context import ArtifactReader, StoredPlan
from sennit.workflows.plan.checking.validation import parse_plan

NODES = [
    {"id": "a", "kind": "tool", "tool": "search", "args": {"z": 1, "query": ["x", {"y": "$input.q"}]}},
    {"id": "b", "kind": "map", "over": "$a.items", "as": "it", "do": {"kind": "llm", "prompt": "$it", "tools": ["x"]}},
    {"id": "c", "kind": "join", "inputs": ["a", "b"], "policy": {"quorum": "60%"}, "needs": ["a"], "deadline": "5m"},
]


class Closed(DirectoryStore):
    """A store that nothing is read from."""

    async def get(self, home: str, digest: str) -> bytes:
        raise BodyMissing(f"{digest} was read under {home}")


async def test_a_plan_just_kept_is_not_parsed_again_and_the_same_as_if_it_were(tmp_path: Path) -> None:
    plan = parse_plan({"nodes": NODES, "inputs": {"q": {"type": "string", "default": "Q"}}, "answer": {"all": ["$c"]}})
    checked = StoredPlan(
        run_context="",
        goal="G",
        docs=None,
        inputs={"q": "Q"},
        plan=plan,
        execution_plan="",
        wanted={"a": ["items.length"]},
    )
    library = ArtifactReader(made(Closed(tmp_path)))
    digest = await library.keep("ns/run", checked)
    kept = await library.plan("ns/run", digest)
    assert repr(kept) == repr(await ArtifactReader(new_store(tmp_path)).plan("ns/run", digest))
    assert kept.node("a").id == "a"
