"""Files that are attached to a run, as a client sends them: by their paths, never with their bytes."""

from pathlib import Path

import pytest

from sennit.starter.client.errors import InvalidRequest
from sennit.starter.client.request import attached_files, build_request
from sennit.workflows.plan.limits import MAX_CALL_MEDIA


def test_paths_are_absolute_and_files_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.png").write_bytes(b"a")
    assert attached_files({"photo": "a.png"}, must_exist=True) == {"photo": str(tmp_path / "a.png")}
    assert attached_files({"photo": Path("/far/b.png")}, must_exist=False) == {"photo": "/far/b.png"}
    with pytest.raises(InvalidRequest, match=r"--attach b\.png: there is no such file"):
        attached_files({"photo": "b.png"}, must_exist=True)
    assert attached_files({"repo": "."}, must_exist=True) == {"repo": str(tmp_path)}
    with pytest.raises(InvalidRequest, match="is neither a file nor a folder"):
        attached_files({"photo": "/dev/null"}, must_exist=True)


def test_a_request_has_so_many() -> None:
    files = {f"file_{number}": f"/far/{number}.png" for number in range(MAX_CALL_MEDIA)}
    assert build_request(goal="What?", attachments=files)["attachments"] == files
    with pytest.raises(InvalidRequest, match="attachments"):
        build_request(goal="What?", attachments={**files, "more": "/far/more.png"})
    with pytest.raises(InvalidRequest, match="attachments"):
        build_request(goal="What?", attachments={"photo": 1})
