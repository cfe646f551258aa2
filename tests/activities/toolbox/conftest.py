import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sennit.activities.toolbox.registry import default_registry


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
