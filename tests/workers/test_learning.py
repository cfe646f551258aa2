"""`sennit learn` and `python -m sennit.workers learn`: what earlier runs teach, with the store alone and no server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from doubles.stores import new_store

from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.learned import LearnedStore
from sennit.activities.toolbox import load_tools
from sennit.workflows.plan.learning.trajectory import NotedCall, Source, Trajectory, keys_of

pytestmark = pytest.mark.timeout(400)  # each test starts several commands


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return new_store(tmp_path / "artifacts")


def learn(store: DirectoryStore, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return sennit(store, "learn", *arguments, **env)


def sennit(store: DirectoryStore, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `sennit` with the environment of a worker that has this store."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SENNIT_", "TEMPORAL_"))}
    place = {"SENNIT_ARTIFACTS": store.place("", "").rstrip("/"), "SENNIT_STATE": "/nowhere"}
    command = [sys.executable, "-m", "sennit", *arguments]
    return subprocess.run(command, env=clean | place | env, capture_output=True, text=True, timeout=120, check=False)


async def noted(store: DirectoryStore, name: str, *, used: bool, values: bytes | None = None, tenant: str = "") -> None:
    path = Source(argument="path", origin="output", call=0, path="items[0].path")
    first = NotedCall(name="search", kind="tool", began=0, millis=5)
    second = NotedCall(
        name="read", kind="tool", began=5, millis=5, uses=(0,) if used else (), sources=(path,) if used else ()
    )
    run = Trajectory(run=name, status="done", ended=1, calls=(first, second))
    await LearnedStore(store).note("default", tenant, run, values)


async def test_it_shows_pairs_with_probability_mapping_and_times_seen(store: DirectoryStore) -> None:
    for number in range(4):
        await noted(store, f"r{number}", used=number > 0)
    done = learn(store)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [
        "search -> read  used in 3 of 4 runs, after 75% of the calls",
        "    3 x path <- output items[0].path",
    ]
    (pair,) = json.loads(learn(store, "--output", "json").stdout)["pairs"]
    assert (pair["probability"], pair["together"], pair["mappings"]) == (0.75, 4, {"path <- output items[0].path": 3})
    assert "nothing is known yet" in learn(store, "--tenant", "acme").stdout


async def test_what_is_forgotten_is_not_shown(store: DirectoryStore) -> None:
    await noted(store, "r1", used=True, tenant="acme")
    assert learn(store, "--forget", "--tenant", "acme").stdout == "forgotten: 1 object\n"
    assert "nothing is known yet" in learn(store, "--tenant", "acme").stdout


async def test_an_export_needs_values_and_has_no_secrets(store: DirectoryStore, tmp_path: Path) -> None:
    await noted(store, "r1", used=True)
    target = tmp_path / "runs.jsonl"
    done = learn(store, "--export", str(target))
    assert (done.returncode, target.exists()) == (1, False)
    assert "SENNIT_LEARN=full" in done.stderr
    said = {"messages": [{"role": "user", "content": "the key is swordfish-123"}]}
    await noted(store, "r2", used=True, values=json.dumps(said).encode())
    await noted(store, "r3", used=True, values=b'{"cut off')
    done = learn(store, "--export", str(target), MY_API_KEY="swordfish-123")
    assert (done.returncode, done.stdout) == (0, f"{target}: 1 conversation\n")
    (line,) = target.read_text().splitlines()
    assert json.loads(line) == {"messages": [{"role": "user", "content": "the key is [redacted]"}]}


async def test_an_export_writes_what_no_encoding_has(store: DirectoryStore, tmp_path: Path) -> None:
    said = {"messages": [{"role": "user", "content": "half of \ud83d, and Rüdesheim"}]}
    await noted(store, "r1", used=True, values=json.dumps(said).encode())
    target = tmp_path / "runs.jsonl"
    done = learn(store, "--export", str(target), PYTHONUTF8="0", LC_ALL="C", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr
    assert json.loads(target.read_text(encoding="utf-8")) == said


async def test_a_plan_is_warned_of_an_edge_that_was_of_no_use(store: DirectoryStore, tmp_path: Path) -> None:
    keys = keys_of(load_tools([]).catalogue())
    versions = {name: key.partition("@")[2] for name, key in keys.items()}
    for number in range(5):
        calls = tuple(
            NotedCall(name=name, kind="tool", version=versions[name], began=began, millis=5)
            for name, began in (("search", 0), ("calculate", 5))
        )
        run = Trajectory(run=f"r{number}", status="done", ended=1, calls=calls)
        await LearnedStore(store).note("default", "", run)
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "goal: add\n"
        "nodes:\n"
        "- {id: a, kind: tool, tool: search, args: {query: rivers}}\n"
        "- {id: b, kind: tool, tool: calculate, args: {expression: '1 + 1'}, needs: [a]}\n"
        "answer: [$a, $b]\n"
    )
    done = sennit(store, "plan", "check", str(plan))
    assert done.returncode == 0, done.stderr
    assert "plan.yaml:4" in done.stderr
    assert "in 5 of 5 runs `calculate` used nothing of what `search` had returned" in done.stderr


def test_without_a_store_it_says_so(tmp_path: Path) -> None:
    done = learn(DirectoryStore(tmp_path))
    assert done.returncode == 1
    assert "the store is not there" in done.stderr
