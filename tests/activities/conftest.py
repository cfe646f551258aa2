from pathlib import Path

import pytest

from sennit.activities.toolbox import ToolContext


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """An empty folder of documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


@pytest.fixture
def reports() -> list[str]:
    """The lines of progress that tools reported."""
    return []


@pytest.fixture
def context(docs: Path, tmp_path: Path, reports: list[str]) -> ToolContext:
    """A call's surroundings over `docs`."""
    return ToolContext(
        docs=docs,
        cache=tmp_path / "cache",
        run_id="run",
        node="n1",
        generation=1,
        attempt=1,
        idempotency_key="run/n1/1",
        progress=reports.append,
    )
