"""`make bench ARGS=page`: measures everything and writes tables, chart and machine into
`docs/performance.md`.

The page has a pair of comments around what is written: `<!-- measured: NAME -->` and
`<!-- end of NAME -->`.
"""

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks.performance.peers import versions
from benchmarks.performance.table import Part
from sennit.starter.dev.binary import MODULES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "performance.md"
CHART = ROOT / "docs" / "pictures" / "performance.svg"


def written(text: str, name: str, body: str) -> str:
    """Return the page with `body` between the comments of that name. Raises ValueError
    unless each is there once.
    """
    begin, end = f"<!-- measured: {name} -->", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the page lacks {begin} and {end}, each once")
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{end} stands before {begin}")
    return f"{before}{begin}\n\n{body}\n\n{end}{after}"


def write(name: str, part: Part, machine: str, *, page: Path = PAGE, chart: Path = CHART) -> None:
    """Write one part, and on which machine it was measured."""
    text = written(page.read_text(), name, f"{part.markdown()}\n\n{machine}")
    for block, body in part.more.items():
        text = written(text, block, body)
    page.write_text(text)
    if part.chart:
        chart.write_text(part.chart)


def machine(*, with_peers: bool = False) -> str:
    """Return a line about where and when it was measured."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    server = re.search(r"go\.temporal\.io/server v(\S+)", (MODULES / "go.mod").read_text())
    facts = [
        f"Measured on {datetime.now(UTC):%Y-%m-%d} at commit {commit.stdout.strip() or 'unknown'}",
        f"{os.cpu_count()} cores ({processor()}), {psutil.virtual_memory().total / 2**30:.0f} GB",
        f"load average {os.getloadavg()[0]:.1f} at the end",
        f"Python {platform.python_version()}, temporalio {version('temporalio')}",
        *([f"Temporal server {server[1]}, database on disk"] if server else []),
        *([f"peers: {versions()}"] if with_peers else []),
    ]
    return "; ".join(facts) + "."


def processor() -> str:
    """Return the name of the processor, or its architecture where the system does not say."""
    cpus = Path("/proc/cpuinfo")
    found = (
        re.search(r"^model name\s*: (.+)$", cpus.read_text(), re.MULTILINE)
        if cpus.exists()
        else None
    )
    return found[1] if found else platform.machine()
