"""The sandboxes of this machine, each with a folder of its own in which nothing may stay."""

import os
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doubles.attacks import SECRET
from doubles.sandboxes import found, marked_processes

from sennit.activities.sandbox.runner import Sandbox


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the confined user can get to, as a worker's is."""
    with tempfile.TemporaryDirectory(prefix="escapes-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def facts(folder: Path) -> Iterator[dict[str, Any]]:
    """What attacks are told. Everybody may reach and change the files."""
    folder.chmod(0o777)
    (folder / "secret").write_text(SECRET)
    (folder / "secret").chmod(0o644)
    (folder / "spare").touch()
    (folder / "planted.py").touch()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        yield {"worker": os.getpid(), "secret": str(folder / "secret"), "folder": str(folder), "port": port}


@pytest.fixture(params=["bwrap", "landlock", "pod"])
def sandbox(request: pytest.FixtureRequest, folder: Path) -> Iterator[Sandbox]:
    """Each sandbox; `pod` is Landlock as in a restricted pod: no namespaces, no cgroup. No process and no private
    folder of a test may outlive its call."""
    sandbox = found("bwrap" if request.param == "bwrap" else "landlock")
    if request.param == "pod":
        without = replace(sandbox, namespaces=False, groups=None)
        if without == sandbox:
            pytest.skip("the same as landlock here")
        sandbox = without
    yield replace(sandbox, folder=folder)
    assert [path.name for path in folder.glob("sennit-sandbox-*")] == []
    assert marked_processes(folder) == []
