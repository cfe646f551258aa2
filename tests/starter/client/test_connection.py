"""Which server a command talks to."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sennit.starter.client.connection import TemporalServer, configured_server, connect_client, local_server
from sennit.starter.client.errors import Refused, ServerUnreachable


def server(*named: str) -> TemporalServer:
    found = configured_server(*named)
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No settings but those of the test."""
    for name in list(os.environ):
        if name.startswith("TEMPORAL_") or name == "SENNIT_UI":
            monkeypatch.delenv(name)
    file = tmp_path / "temporal.toml"
    file.touch()
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(file))
    return file


def test_without_any_setting_there_is_no_place() -> None:
    assert configured_server() is None
    assert configured_server(namespace="agents") is None


def test_a_flag_beats_the_environment_which_beats_the_profile(monkeypatch: pytest.MonkeyPatch, settings: Path) -> None:
    settings.write_text('[profile.default]\naddress = "file:1"\nnamespace = "of-file"\n')
    assert (server().address, server().namespace) == ("file:1", "of-file")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "env:2")
    assert (server().address, server().namespace) == ("env:2", "of-file")
    flagged = server("flag:3", "of-flag")
    assert (flagged.address, flagged.namespace) == ("flag:3", "of-flag")


@pytest.mark.parametrize(
    ("address", "is_local", "ui"),
    [
        ("localhost:7233", True, "http://localhost:8233"),
        ("127.0.0.1:7233", True, "http://127.0.0.1:8233"),
        ("[::1]:7233", True, "http://[::1]:8233"),
        ("localhost:7234", True, None),
        ("temporal.example.com:7233", False, None),
        ("agents.a1b2c.tmprl.cloud:7233", False, "https://cloud.temporal.io"),
        ("eu-central-1.aws.api.temporal.io:7233", False, "https://cloud.temporal.io"),
        ("tmprl.cloud.example.com:7233", False, None),
    ],
)
def test_only_a_server_here_shares_our_files_and_only_its_usual_port_has_a_known_ui(
    address: str, is_local: bool, ui: str | None
) -> None:
    found = server(address)
    assert (found.is_local, found.ui) == (is_local, ui)


def test_a_named_ui_wins_and_links_are_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENNIT_UI", "off")
    assert local_server("127.0.0.1:7233", "http://127.0.0.1:8233").link("a", "b") is None
    monkeypatch.setenv("SENNIT_UI", "https://ui.example.com/")
    link = server("temporal.example.com:7233", "a b").link("team/run 1", "r")
    assert link == "https://ui.example.com/namespaces/a%20b/workflows/team%2Frun%201/r"
    monkeypatch.delenv("SENNIT_UI")
    assert local_server("127.0.0.1:1", None).link("a", "b") is None


@pytest.mark.parametrize("address", ["localhost", ":7233", "host:", "host:port"])
def test_an_address_without_host_or_port_is_refused(address: str) -> None:
    with pytest.raises(Refused, match="HOST:PORT"):
        configured_server(address)


@pytest.mark.parametrize(
    ("name", "value"), [("TEMPORAL_PROFILE", "nope"), ("TEMPORAL_TLS_CLIENT_CERT_PATH", "/nope/me.crt")]
)
def test_wrong_settings_are_reported_in_a_line(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(Refused, match=r"the settings of the Temporal connection are wrong: .*nope"):
        configured_server()


async def test_a_server_that_is_not_there_is_unreachable_with_address_and_cause() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ServerUnreachable, match=f"no Temporal server at {address}: Connection refused"):
            await connect_client(local_server(address, None))


async def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sennit.workflows.messages.converter.CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:  # accepted by the system, answered by nobody
        port = listening.getsockname()[1]
        with pytest.raises(ServerUnreachable, match="no answer within"):
            await connect_client(local_server(f"127.0.0.1:{port}", None))


SCRIPTS = """
import asyncio, os, sys, threading, time
from temporalio.client import Client
from sennit import Sennit
for _ in range(8):
    if os.fork() == 0:
        break
else:
    print(*(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(8)))
    sys.exit()
main, hand_over = threading.get_ident(), asyncio.BaseEventLoop.call_soon_threadsafe

def hand_over_slowly(self, *args, **named):
    handle = hand_over(self, *args, **named)
    if threading.get_ident() != main:
        time.sleep(0.2)
    return handle

asyncio.BaseEventLoop.call_soon_threadsafe = hand_over_slowly

async def script():
    await Sennit(await Client.connect(sys.argv[1])).runs()

asyncio.run(script())
"""


def test_no_script_is_aborted_at_its_end_by_a_thread_of_the_sdk(server_address: str) -> None:
    """The end of a script overtakes a thread that hands over a result: seldom, so this one is made slow."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPTS, server_address], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["0"] * 8, done.stderr
