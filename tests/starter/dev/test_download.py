import socket
import subprocess
import sys
from pathlib import Path

import pytest

from starter.dev import download
from starter.dev.download import main, reach


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return int(unused.getsockname()[1])


def test_a_refused_connection_costs_no_time(closed_port: int) -> None:
    assert "refused" in reach(f"https://127.0.0.1:{closed_port}")


def test_a_host_that_accepts_and_says_nothing_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert reach(f"https://127.0.0.1:{silent.getsockname()[1]}", limit=0.5)


def test_a_proxy_is_asked_in_place_of_the_host(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("no_proxy", "")
    assert "refused" in reach("https://sennit.invalid")


def test_an_unreachable_host_is_named_and_nothing_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(download, "HOST", "sennit.invalid")
    assert main("v1.8.2", str(tmp_path / "temporal")) == 1
    assert capsys.readouterr().err.startswith("sennit.invalid is not reachable: ")
    assert not list(tmp_path.iterdir())


def test_what_the_sdk_says_of_a_failed_download_is_kept(tmp_path: Path) -> None:
    """Whatever network there is, this download fails."""
    script = f"""
import os
from starter.dev import download
download.reach = lambda url: ""
os.environ["https_proxy"] = "http://127.0.0.1:9"
os._exit(download.main("v1.8.2", {str(tmp_path / "temporal")!r}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Failed starting Temporal dev server" in done.stderr
    assert not list(tmp_path.iterdir())
