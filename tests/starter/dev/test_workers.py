from pathlib import Path

from starter.dev.state import StateDir
from starter.dev.workers import CORPUS, worker_environment


def test_workers_are_led_to_this_server_only() -> None:
    client = {"TEMPORAL_API_KEY": "k", "TEMPORAL_PROFILE": "prod", "OPENAI_API_KEY": "o", "SENNIT_HEALTH_PORT": "1"}
    assert worker_environment(StateDir(Path("/s")), "127.0.0.1:7233", 9, client) == {
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


def test_named_documents_come_before_the_corpus() -> None:
    assert worker_environment(StateDir(Path("/s")), "a:1", 9, {"SENNIT_DOCS": "/mine"})["SENNIT_DOCS"] == "/mine"
