import socket
import time
from pathlib import Path

import pytest

from starter.dev import download
from starter.dev.download import CannotDownload, download_server, reach
from starter.dev.watched import Interrupted, Progress


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_a_refused_connection_costs_no_time() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        started = time.monotonic()
        problem = reach("127.0.0.1", Progress(), unused.getsockname()[1])
    assert problem is not None
    assert "refused" in problem
    assert time.monotonic() - started < 1


def test_a_host_that_accepts_and_says_nothing_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert reach("127.0.0.1", Progress(), silent.getsockname()[1], limit=0.5) is not None


def test_a_person_can_give_up_during_the_probe() -> None:
    progress = Progress()
    progress.cancel()
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(Interrupted):
        reach("127.0.0.1", progress, silent.getsockname()[1], limit=5)


def test_a_proxy_is_asked_in_place_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{unused.getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "")
        assert "refused" in (reach("sennit.invalid", Progress()) or "")


def test_an_unreachable_host_is_named_and_nothing_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "HOST", "sennit.invalid")
    with pytest.raises(CannotDownload, match=r"sennit\.invalid is not reachable: "):
        download_server("v1.8.2", tmp_path / "temporal", Progress())
    assert not list(tmp_path.iterdir())


def test_what_the_sdk_says_of_a_failed_download_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "reach", lambda *_: None)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # whatever network there is, this download fails
    lines: list[str] = []
    with pytest.raises(CannotDownload, match="Failed starting Temporal dev server"):
        download_server("v1.8.2", tmp_path / "temporal", Progress(lines.append))
    assert lines[0] == "downloading the Temporal dev server v1.8.2 ..."
    assert not list(tmp_path.iterdir())
