"""A test that takes too long fails, and holds up no other."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LATE = """
import pytest
from doubles.local_workers import serving
from doubles.runs import call
from sennit.workflows.messages import queues

@pytest.mark.timeout(4)
async def test_late(client, host):
    plan = {"nodes": [call(f"n{number}", args={"seconds": 60}) for number in range(6)], "answer": "$n0"}
    async with serving(client, host):
        await client.execute_workflow("AgentRun", {"plan": plan}, id="agent-late", task_queue=queues.WORKFLOW)

def test_next():
    pass
"""


@pytest.mark.timeout(300)
def test_a_test_that_takes_too_long_stops_its_workers_and_the_next_one_runs(tmp_path: Path) -> None:
    (tmp_path / "test_late.py").write_text(LATE)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-c", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        [*command, "--rootdir", str(ROOT), "-p", "conftest", "-p", "no:cacheprovider", str(tmp_path / "test_late.py")],
        cwd=ROOT, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED" in done.stdout
    assert "TimeoutError" in done.stdout
