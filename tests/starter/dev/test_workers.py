import os
import sys
from pathlib import Path

import pytest

from starter.dev.state import StateDir
from starter.dev.workers import CORPUS, settings_digest, with_absolute_paths, worker_environment


@pytest.mark.parametrize(
    ("more", "same"),
    [
        ({"PATH": "/usr/bin", "SENNIT_STATE": "/t", "SENNIT_IDLE_STOP": "1"}, True),
        ({"SENNIT_TOOLS": "b"}, False),
        ({"SENNIT_MODEL_JUDGE": "openai"}, False),
        ({"OPENAI_API_KEY": "k"}, False),
        ({"ANTHROPIC_BASE_URL": "http://h"}, False),
        ({"SSL_CERT_FILE": "/etc/own.pem"}, False),
    ],
)
def test_the_digest_follows_what_workers_inherit(tmp_path: Path, more: dict[str, str], same: bool) -> None:
    usual = {"SENNIT_TOOLS": "a", "PATH": "/bin", "SENNIT_STATE": "/s"}
    assert (settings_digest(usual | more, tmp_path) == settings_digest(usual, tmp_path)) is same


@pytest.mark.parametrize(
    ("file", "follows"),
    [
        ("mcp.json", True),  # SENNIT_MCP
        ("http.json", True),  # SENNIT_HTTP_TOOLS
        ("tools/mine.py", True),  # SENNIT_TOOLS on SENNIT_TOOLS_PATH
        ("tools/acme/search.py", True),
        ("tools/acme/deep/helper.py", True),
        ("tools/helper.py", True),  # which they may import
        ("tools/deep/other.py", False),
        ("lib/installed.py", True),  # found on the path of this Python, PYTHONPATH and editable packages included
        ("lib/other.py", False),
        ("sennit/workers/deep/role.py", True),
        ("sennit/activities/prices.toml", True),
        ("sennit/workers/notes.txt", False),
        ("sennit/tests/test_x.py", False),
    ],
)
def test_the_digest_follows_the_content_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, follows: bool
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "lib")])
    environ = {
        "SENNIT_MCP": str(tmp_path / "mcp.json"),
        "SENNIT_HTTP_TOOLS": str(tmp_path / "http.json"),
        "SENNIT_TOOLS": "mine, acme.search, installed, nowhere",
        "SENNIT_TOOLS_PATH": f"{tmp_path / 'none'}:{tmp_path / 'tools'}",
    }
    for name in ("tools/mine.py", "tools/acme/__init__.py", "lib/installed.py", file):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a = 1")
    first = settings_digest(environ, tmp_path / "sennit")
    (tmp_path / file).touch()
    assert settings_digest(environ, tmp_path / "sennit") == first
    (tmp_path / file).write_text("a = 2")
    assert (settings_digest(environ, tmp_path / "sennit") == first) is not follows


def test_the_digest_is_the_same_for_tools_that_are_on_the_path_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tools.py").touch()
    environ = {"SENNIT_TOOLS": "mine.tools", "SENNIT_TOOLS_PATH": str(tmp_path)}
    once = settings_digest(environ, tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path)])
    assert settings_digest(environ, tmp_path) == once


def test_the_digest_follows_the_variables_that_a_file_mentions(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"headers": {"Authorization": "$TOKEN"}, "again": "$SENNIT_MCP"}')
    environ = {"SENNIT_MCP": str(tmp_path / "mcp.json"), "TOKEN": "old", "OTHER": "x"}
    first = settings_digest(environ, tmp_path)
    assert settings_digest(environ | {"OTHER": "y"}, tmp_path) == first
    assert settings_digest(environ | {"TOKEN": "new"}, tmp_path) != first


def test_paths_relative_to_the_client_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    given = {"SENNIT_TOOLS_PATH": "mine:/theirs::~/ours", "SENNIT_MCP": "mcp.json", "SENNIT_DOCS": "", "PATH": "bin"}
    assert with_absolute_paths(given) == given | {
        "SENNIT_TOOLS_PATH": os.pathsep.join([f"{tmp_path}/mine", "/theirs", "/home/me/ours"]),
        "SENNIT_MCP": f"{tmp_path}/mcp.json",
    }


def test_workers_are_led_to_this_server_only() -> None:
    client = {"TEMPORAL_API_KEY": "k", "TEMPORAL_PROFILE": "prod", "OPENAI_API_KEY": "o", "SENNIT_HEALTH_PORT": "1"}
    assert worker_environment(StateDir(Path("/s")), "127.0.0.1:7233", 9, client) == {
        "OPENAI_API_KEY": "o",
        "TEMPORAL_ADDRESS": "127.0.0.1:7233",
        "TEMPORAL_NAMESPACE": "default",
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "SENNIT_ARTIFACTS": "/s/artifacts",
        "SENNIT_INDEX": "/s/index",
        "SENNIT_DOCS": str(CORPUS),
        "SENNIT_GRANTS": "/s/grants.json",
        "SENNIT_DRAIN": "10",
        "SENNIT_HEALTH_PORT": "127.0.0.1:9",
    }


def test_named_documents_come_before_the_corpus() -> None:
    assert worker_environment(StateDir(Path("/s")), "a:1", 9, {"SENNIT_DOCS": "/mine"})["SENNIT_DOCS"] == "/mine"
