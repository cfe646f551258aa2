"""The peers: installed once from a lock file of their own, each in a process that
answers with its times.
"""

import asyncio
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

from benchmarks.shapes import Shape
from benchmarks.stage import Stage
from sennit.starter.dev.binary import cache_dir

FOLDER = Path(__file__).parents[1] / "peers"
LOCK = FOLDER / "requirements.lock"
PEERS = {
    "LangGraph, SQLite": "langgraph_send.py",
    "DBOS, SQLite": "dbos_steps.py",
    "LangGraph on Temporal": "temporal_plugin.py",
}
"""The script of each, by the name that stands above its column."""
LONGEST = 120.0
"""Seconds after which a peer is taken to have no result."""
SHOWN = ("langgraph", "langgraph-checkpoint-sqlite", "dbos", "temporalio-langgraph", "temporalio")


def versions() -> str:
    """Return what the lock file pins of the libraries that are compared."""
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", LOCK.read_text(), re.MULTILINE))
    return ", ".join(f"{name} {pinned[name]}" for name in SHOWN)


def interpreter() -> Path:
    """Return the Python that has the locked packages; its environment is made in the
    cache folder on first use.

    Raises RuntimeError with what pip said if that does not work.
    """
    place = cache_dir() / f"peers-{sha256(LOCK.read_bytes()).hexdigest()[:16]}"
    if not place.is_dir():
        print(f"installing the peers in {place} ...", file=sys.stderr)
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=place.parent, prefix="peers-"))
        try:
            _install(partial)
            with suppress(OSError):  # somebody else was faster
                partial.rename(place)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return place / "bin" / "python"


def _install(place: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(place / "bin" / "python"),
        "install",
        "--quiet",
    ]
    # Which has all of them.
    pip += ["--disable-pip-version-check", "--require-hashes", "--no-deps", "-r", str(LOCK)]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the peers were not installed: {done.stderr.strip()}")


class Peer:
    """A process that runs a peer in a folder of its own; its log lies there."""

    def __init__(
        self, command: Sequence[str | Path], place: Path, longest: float = LONGEST
    ) -> None:
        self._command = command
        self.longest = longest
        self._process: Process | None = None
        self.log = place / "log"

    async def timed(self, shape: Shape) -> float:
        """Return the seconds that the peer takes for the graph, or infinity if it has none after
        `longest` seconds. Raises RuntimeError if it ended instead.
        """
        process = self._process = self._process or await self._start()
        assert process.stdin
        assert process.stdout
        graph = {"latency": shape.latency, "needs": shape.needs}
        process.stdin.write(json.dumps(graph).encode() + b"\n")
        try:
            line = await asyncio.wait_for(process.stdout.readline(), self.longest)
        except TimeoutError:
            process.kill()  # what it still does would cost the others time
            await process.wait()
            self._process = None
            return math.inf
        if not line:
            raise RuntimeError(f"a peer ended: {self.log.read_text(errors='replace')[-2000:]}")
        return float(line)

    async def _start(self) -> Process:
        with self.log.open("ab") as output:
            return await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, stderr=output, cwd=FOLDER
            )

    async def stop(self) -> int:
        """Let it end by itself, for it has nothing to read any more; return its exit code."""
        if not self._process:
            return 0
        assert self._process.stdin
        self._process.stdin.close()
        try:
            return await asyncio.wait_for(self._process.wait(), 30)
        except TimeoutError:
            self._process.kill()
            return await self._process.wait()


@asynccontextmanager
async def peers(built: Stage) -> AsyncIterator[dict[str, Peer]]:
    """Offer every peer, and stop all of them whatever happens."""
    python = await asyncio.to_thread(interpreter)
    async with AsyncExitStack() as stack:
        offered = {}
        for name, script in PEERS.items():
            place = built.place / Path(script).stem
            place.mkdir()
            offered[name] = Peer([python, FOLDER / script, place, built.address], place)
            stack.push_async_callback(offered[name].stop)
        yield offered
