"""The peers: locked whole, and asked for their times a line each."""

import math
import re
import sys
from pathlib import Path

import pytest

from benchmarks.performance.peers import FOLDER, LOCK, PEERS, Peer, versions
from benchmarks.shapes import chain, diamond

SCRIPT = """
import asyncio, os, time
from wire import answer, complete

async def timed(graph):
    print("a library says something")
    os.system("echo so does a program")
    complete({done}, graph)
    return 10.0 * len(graph["latency"]) + len(graph["needs"][-1])

asyncio.run(answer(timed))
"""


def peer(place: Path, done: str, longest: float = 60.0) -> Peer:
    return Peer([sys.executable, "-c", SCRIPT.format(done=done)], place, longest)


async def test_a_peer_answers_every_graph_with_its_seconds_and_ends_when_there_are_no_more(tmp_path: Path) -> None:
    asked = peer(tmp_path, 'len(graph["latency"])')
    assert await asked.timed(chain(3, 0.1)) == 31.0
    assert await asked.timed(diamond(1002, 0.1)) == 10_020.0 + 1000, "a long line"
    assert await asked.stop() == 0
    assert "a library says something" in asked.log.read_text()
    assert "so does a program" in asked.log.read_text()


async def test_a_peer_that_did_not_do_its_work_has_no_time(tmp_path: Path) -> None:
    asked = peer(tmp_path, "2")
    with pytest.raises(RuntimeError, match="2 of 3 nodes have run"):
        await asked.timed(chain(3, 0.1))
    assert await asked.stop() != 0


async def test_a_peer_that_takes_too_long_is_started_again_for_the_next_graph(tmp_path: Path) -> None:
    asked = peer(tmp_path, 'len(graph["latency"]) if len(graph["latency"]) > 1 else time.sleep(60)', longest=2.0)
    assert await asked.timed(chain(1, 0.1)) == math.inf
    asked.longest = 60.0
    assert await asked.timed(chain(3, 0.1)) == 31.0
    assert await asked.stop() == 0


def test_what_is_compared_is_locked_with_hashes() -> None:
    pinned = dict(re.findall(r"^([\w-]+)==((?:.*\\\n)*.*)", LOCK.read_text(), re.MULTILINE))
    wanted = [line for line in (FOLDER / "requirements.in").read_text().split() if re.fullmatch(r"[a-z-]+", line)]
    assert {"dbos", "langgraph", "temporalio-langgraph"} <= pinned.keys() & set(wanted)
    assert all("--hash=sha256:" in block for block in pinned.values())
    assert all(re.search(rf"\b{name} \d", versions()) for name in ("dbos", "langgraph", "temporalio-langgraph"))


def test_every_peer_has_a_script() -> None:
    assert all((FOLDER / script).is_file() for script in PEERS.values())
