import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from activities.toolbox.context import ToolContext
from activities.toolbox.registry import default_registry

Contexts = Callable[..., ToolContext]


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


@pytest.fixture
def modules(tmp_path: Path) -> Iterator[Path]:
    """A folder for modules of tools; what they change in this process is undone."""
    folder = tmp_path / "modules"
    folder.mkdir()
    path, loaded, known = list(sys.path), set(sys.modules), {each.name for each in default_registry}
    yield folder
    sys.path[:] = path
    for name in set(sys.modules) - loaded:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]
    for each in default_registry:
        if each.name not in known and str(tmp_path) in each.function.__code__.co_filename:
            default_registry.discard(each.name)
