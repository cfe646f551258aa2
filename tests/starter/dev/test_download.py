"""The download is tried only where its host answers."""

import socket

import pytest

from sennit.starter.dev.download import probe


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return int(unused.getsockname()[1])


def test_a_refused_connection_is_named(closed_port: int) -> None:
    with pytest.raises(RuntimeError, match=r"is not reachable: .*refused"):
        probe(f"https://127.0.0.1:{closed_port}")


def test_a_host_that_accepts_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(RuntimeError, match="timed out"):
        probe(f"https://127.0.0.1:{silent.getsockname()[1]}", limit=0.5)


def test_a_proxy_is_asked_in_place_of_the_host(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(RuntimeError, match="refused"):
        probe("https://sennit.invalid")
