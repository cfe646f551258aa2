"""Which runs may speculate, and what they are told of earlier ones."""

from pathlib import Path
from typing import Any

import pytest
from doubles.stores import new_store

from sennit.activities.runs.speculation import SpeculateChoice, SpeculationRule, followers_of
from sennit.activities.storage.learned import LearnedStore
from sennit.activities.storage.run_context import ArtifactReader, RunContext
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.plan.learning.patterns import PatternTable
from sennit.workflows.plan.learning.trajectory import NotedCall, Source, Trajectory, keys_of
from sennit.workflows.plan.speculation.limits import MAX_CHAIN

PREFIX = "space/run"


def entry(name: str, **more: Any) -> dict[str, Any]:
    known = {"name": name, "version": "1", "effect": "read", "queue": "tools", "timeout": 30.0, "schema": {}}
    return {**known, "resource": None, "output_schema": None, **more}


CATALOGUE = [entry("look"), entry("fetch", resource="file:{path}"), entry("save", effect="write")]


def run(number: int, second: str = "fetch", *, sources: tuple[Source, ...] | None = None) -> Trajectory:
    """Return a run in which a call is given a part of what `look` has returned."""
    keys = keys_of(CATALOGUE)
    if sources is None:
        sources = (Source(argument="path", origin="output", call=0, path="items[0].path"),)
    versions = {name: keys[name].partition("@")[2] for name in ("look", second)}
    look = NotedCall(name="look", kind="tool", version=versions["look"], began=0, millis=900)
    follows = NotedCall(
        name=second, kind="tool", version=versions[second], began=1_000, millis=2_000, sources=sources, uses=(0,)
    )
    calls = (look, follows)
    return Trajectory(run=f"run-{number}", status="done", ended=number, calls=calls)


def table_of(*runs: Trajectory) -> PatternTable:
    table = PatternTable()
    for each in runs:
        table.fold(each)
    return table


def test_a_pair_of_reads_is_told_with_its_mapping_apart() -> None:
    followers, mappings = followers_of(table_of(*map(run, range(20))), CATALOGUE, 20)
    [follower] = followers
    assert (follower.first, follower.second, follower.probability) == ("look", "fetch", 1.0)
    assert (follower.millis, follower.kind, follower.timeout, follower.fresh_for) == (2_000, "file", 30_000, 60_000)
    assert mappings[follower.place] == "path <- output items[0].path"


def test_no_write_is_told() -> None:
    assert followers_of(table_of(*(run(number, "save") for number in range(20))), CATALOGUE, 20) == ([], [])


def test_what_is_seldom_is_not_told() -> None:
    other = (Source(argument="path", origin="output", call=0, path="items[1].path"),)
    runs = [run(number) if number % 5 < 2 else run(number, sources=other) for number in range(20)]
    followers, mappings = followers_of(table_of(*runs), CATALOGUE, 20)
    assert [(each.probability, mappings[each.place]) for each in followers] == [(0.6, "path <- output items[1].path")]


def test_too_few_calls_tell_nothing() -> None:
    assert followers_of(table_of(*map(run, range(19))), CATALOGUE, 20)[0] == []


def test_a_tool_with_another_schema_now_is_another_tool() -> None:
    changed = [entry("look"), entry("fetch", schema={"type": "object"})]
    assert followers_of(table_of(*map(run, range(20))), changed, 20)[0] == []


@pytest.mark.parametrize(
    "sources",
    [
        (Source(argument="path", origin="output", call=0, path="items[*].path"),),
        (
            Source(argument="path", origin="output", call=0, path="a"),
            Source(argument="text", origin="text", call=0, path="b"),
        ),
    ],
)
def test_a_mapping_that_cannot_be_bound_again_is_left_out(sources: tuple[Source, ...]) -> None:
    runs = [run(number, sources=sources) for number in range(20)]
    assert followers_of(table_of(*runs), CATALOGUE, 20)[0] == []


def test_a_tool_that_takes_folders_is_left_out() -> None:
    folder = entry("fetch", schema={"properties": {"workspace": {"$ref": "#/$defs/Workspace"}}, "$defs": {}})
    assert followers_of(table_of(*map(run, range(20))), [entry("look"), folder], 20)[0] == []


def test_a_poisoned_table_gives_nothing_that_breaks_a_run() -> None:
    table = table_of(*map(run, range(20)))
    [pair] = table.pairs.values()
    pair.mappings = {"$(rm -rf /) <- output": 10**9, "path <- output items[0].path; x": 10**9, "a <- other": 50}
    assert followers_of(table, CATALOGUE, 20) == ([], [])


async def known(tmp_path: Path, choice: SpeculateChoice, runs: int, **request: Any) -> Any:
    store = new_store(tmp_path)
    library, learned = ArtifactReader(store), LearnedStore(store)
    for number in range(runs):
        await learned.note("space", "", run(number))
    context = RunContext(goal="g", inputs={}, docs=None, approval="never", catalogue=CATALOGUE)
    digest = await library.keep(PREFIX, context)
    return await SpeculationRule(learned, library, choice).of(PREFIX, RunRequest(goal="g", **request), digest)


@pytest.mark.parametrize(
    ("choice", "runs", "request_fields", "followers"),
    [
        ("asked", 20, {}, None),
        ("asked", 20, {"speculate": "on"}, 1),
        ("asked", 1, {"speculate": "on"}, 1),
        ("asked", 0, {"speculate": "on"}, 0),
        ("on", 20, {}, 1),
        ("on", 19, {}, None),
        ("on", 20, {"speculate": "off"}, None),
        ("off", 20, {"speculate": "on"}, None),
        ("on", 20, {"depth": 1}, None),
        ("on", 20, {"origins": ("run-1",)}, None),
    ],
)
async def test_the_operator_the_run_and_what_is_known_decide(
    tmp_path: Path, choice: SpeculateChoice, runs: int, request_fields: dict[str, Any], followers: int | None
) -> None:
    found = await known(tmp_path, choice, runs, **request_fields)
    if followers is None:
        assert found is None
    else:
        assert len(found.followers) == followers
        assert found.chain == MAX_CHAIN
        assert bool(found.patterns) == bool(followers)
