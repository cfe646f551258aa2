from pathlib import Path

from starter.dev.fingerprint import code_digest, settings_digest


def test_the_code_digest_follows_sources_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "workers" / "deep" / "role.py"
    source.parent.mkdir(parents=True)
    source.write_text("a = 1")
    first = code_digest(tmp_path)
    (tmp_path / "workers" / "notes.txt").write_text("x")
    source.touch()
    assert code_digest(tmp_path) == first
    source.write_text("a = 2")
    assert code_digest(tmp_path) != first


def test_the_settings_digest_follows_what_workers_inherit() -> None:
    first = settings_digest({"SENNIT_TOOLS": "a", "PATH": "/bin", "SENNIT_STATE": "/s"})
    assert settings_digest({"SENNIT_TOOLS": "a", "PATH": "/usr/bin", "SENNIT_STATE": "/t"}) == first
    assert settings_digest({"SENNIT_TOOLS": "b"}) != first
    assert settings_digest({"SENNIT_TOOLS": "a", "OPENAI_API_KEY": "k"}) != first
    assert settings_digest({"SENNIT_TOOLS": "a", "SENNIT_MODEL_JUDGE": "openai"}) != first
    assert settings_digest({"SENNIT_TOOLS": "a", "ANTHROPIC_BASE_URL": "http://h"}) != first


def test_the_settings_digest_does_not_tell_a_key() -> None:
    assert "sk-canary" not in settings_digest({"OPENAI_API_KEY": "sk-canary"})
