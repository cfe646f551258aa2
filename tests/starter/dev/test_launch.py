from pathlib import Path

import pytest

from starter.dev.launch import CORPUS, Launch, worker_environment


def launch(docs: Path | None = None) -> Launch:
    return Launch(token="t", state=Path("/s"), binary=Path("/b"), code="c", settings="s", docs=docs, port=1, ui_port=2)


def test_a_launch_survives_the_way_to_the_background() -> None:
    assert Launch.model_validate_json(launch().model_dump_json()) == launch()


def test_workers_are_led_to_this_server_only() -> None:
    client = {"TEMPORAL_API_KEY": "k", "TEMPORAL_PROFILE": "prod", "OPENAI_API_KEY": "o", "SENNIT_HEALTH_PORT": "1"}
    assert worker_environment(launch(), "127.0.0.1:7233", 9, client) == {
        "OPENAI_API_KEY": "o",
        "TEMPORAL_ADDRESS": "127.0.0.1:7233",
        "TEMPORAL_NAMESPACE": "default",
        "TEMPORAL_CONFIG_FILE": "/s/temporal.toml",
        "SENNIT_ARTIFACTS": "/s/artifacts",
        "SENNIT_INDEX": "/s/index",
        "SENNIT_DOCS": str(CORPUS),
        "SENNIT_DOCS_ANY": "1",
        "SENNIT_DRAIN": "10",
        "SENNIT_HEALTH_PORT": "9",
    }


def test_paths_relative_to_the_client_reach_the_workers_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = worker_environment(
        launch(), "a:1", 9, {"SENNIT_TOOLS_PATH": "mine:/theirs:~/ours", "SENNIT_MCP": "mcp.json"}
    )
    assert environ["SENNIT_TOOLS_PATH"] == f"{tmp_path}/mine:/theirs:~/ours"
    assert environ["SENNIT_MCP"] == f"{tmp_path}/mcp.json"


def test_named_documents_come_before_the_variable(tmp_path: Path) -> None:
    assert worker_environment(launch(tmp_path), "a:1", 9, {"SENNIT_DOCS": "/other"})["SENNIT_DOCS"] == str(tmp_path)
