"""What the user of a local stack allows runs."""

from pathlib import Path

import pytest

from activities.storage.grants import Grants
from starter.dev import state
from starter.dev.state import StateDir


def test_what_a_client_writes_is_what_a_worker_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MOST_GRANTS", 2)
    directory = StateDir(tmp_path)
    grants = Grants(directory.grants)
    assert (grants.docs, grants.may_write("r1")) == ((), False)
    for folder in ("/a", "/b", "/a", "/c"):
        directory.grant(docs=folder)
    directory.grant(run="r1")
    assert (grants.docs, grants.may_write("r1"), grants.may_write("r2")) == ((Path("/a"), Path("/c")), True, False)


@pytest.mark.parametrize(("text", "mode"), [("{", 0o600), ('{"runs": 7}', 0o600), ('{"runs": ["r1"]}', 0o622)])
def test_a_file_that_is_damaged_or_open_to_others_grants_nothing(tmp_path: Path, text: str, mode: int) -> None:
    path = tmp_path / "grants.json"
    path.write_text(text)
    path.chmod(mode)
    assert not Grants(path).may_write("r1")
    assert not Grants(None).may_write("r1")
