import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from sennit.folders import PACKAGE
from sennit.starter.dev.state import StateDir
from sennit.starter.dev.workers import changed_modules, settings_digest, with_absolute_paths, worker_environment


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
        ("tools/mine.py", False),  # the workers say what they have imported
        ("tools/helper.py", False),
        ("sennit/workers/deep/role.py", True),
        ("sennit/activities/prices.toml", True),
        ("sennit/workers/notes.txt", False),
        ("sennit/tests/test_x.py", False),
    ],
)
def test_the_digest_follows_the_content_of_files(tmp_path: Path, file: str, follows: bool) -> None:
    environ = {
        "SENNIT_MCP": str(tmp_path / "mcp.json"),
        "SENNIT_HTTP_TOOLS": str(tmp_path / "http.json"),
        "SENNIT_TOOLS": "mine",
        "SENNIT_TOOLS_PATH": f"{tmp_path / 'none'}:{tmp_path / 'tools'}",
    }
    for name in ("tools/mine.py", file):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a = 1")
    first = settings_digest(environ, tmp_path / "sennit")
    (tmp_path / file).touch()
    assert settings_digest(environ, tmp_path / "sennit") == first
    (tmp_path / file).write_text("a = 2")
    assert (settings_digest(environ, tmp_path / "sennit") == first) is not follows


def test_the_digest_follows_the_source_behind_the_links_of_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "workers" / "deep").mkdir(parents=True)
    (tmp_path / "sennit").mkdir()
    (tmp_path / "sennit" / "workers").symlink_to("../workers")
    first = settings_digest({}, tmp_path / "sennit")
    (tmp_path / "workers" / "deep" / "role.py").write_text("a = 1")
    assert settings_digest({}, tmp_path / "sennit") != first


def test_the_digest_of_this_checkout_has_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    read = set()

    def content(path: Path) -> bytes:
        read.add(str(path))
        return b""

    monkeypatch.setattr("sennit.starter.dev.workers._content", content)
    settings_digest({})
    assert {f"{PACKAGE}/{name}" for name in ("__main__.py", "workers/__main__.py", "workflows/agent_run.py")} <= read


def test_modules_have_changed_when_one_differs_from_what_the_workers_have_noted(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    assert changed_modules(state) == []
    file = tmp_path / "mine.py"
    file.write_text("a = 1")
    state.modules.write_text(json.dumps({str(file): sha256(b"a = 1").hexdigest()}))
    (tmp_path / "beside.py").touch()
    assert changed_modules(state) == []
    file.write_text("a = 2")
    assert changed_modules(state) == [str(file)]
    file.unlink()
    assert changed_modules(state) == [str(file)]


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


def test_a_file_of_model_settings_becomes_absolute_and_settings_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = with_absolute_paths({"SENNIT_MODEL_SETTINGS": "models.toml"})
    assert named == {"SENNIT_MODEL_SETTINGS": f"{tmp_path}/models.toml"}
    written = {"SENNIT_MODEL_SETTINGS": "temperature = 0.2\nstop = 'a:b'"}
    assert with_absolute_paths(written) == written


def test_workers_are_led_to_this_server_only() -> None:
    client = {"TEMPORAL_API_KEY": "k", "TEMPORAL_PROFILE": "prod", "OPENAI_API_KEY": "o", "SENNIT_HEALTH_PORT": "1"}
    assert worker_environment(StateDir(Path("/s")), "127.0.0.1:7233", 9, client) == {
        "OPENAI_API_KEY": "o",
        "TEMPORAL_ADDRESS": "127.0.0.1:7233",
        "TEMPORAL_NAMESPACE": "default",
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "SENNIT_ARTIFACTS": "/s/artifacts",
        "SENNIT_INDEX": "/s/index",
        "SENNIT_GRANTS": "/s/grants.json",
        "SENNIT_IMPORTED": "/s/modules.json",
        "SENNIT_LOGINS": "/s/logins",
        "SENNIT_DRAIN": "10",
        "SENNIT_HEALTH_PORT": "127.0.0.1:9",
    }


def test_a_run_reads_the_documents_that_are_named_and_no_others() -> None:
    assert "SENNIT_DOCS" not in worker_environment(StateDir(Path("/s")), "a:1", 9, {})
    assert worker_environment(StateDir(Path("/s")), "a:1", 9, {"SENNIT_DOCS": "/mine"})["SENNIT_DOCS"] == "/mine"
