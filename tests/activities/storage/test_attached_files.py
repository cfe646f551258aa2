"""Which attached files a worker reads: the same ones as documents, and those that its user has named."""

import json
from pathlib import Path

import pytest

from sennit.activities.storage.documents import DocumentRule
from sennit.activities.storage.grants import Grants
from sennit.activities.toolbox.errors import DocsNotFound


def test_files_below_allowed_folders(tmp_path: Path) -> None:
    file = tmp_path / "docs" / "a.png"
    file.parent.mkdir()
    file.write_bytes(b"a")
    by_default = DocumentRule(file.parent, (), Grants(None), "w")
    assert by_default.attached(str(file)) == file
    assert DocumentRule(None, (tmp_path,), Grants(None), "w").attached(str(file)) == file
    with pytest.raises(DocsNotFound, match="outside SENNIT_DOCS_ROOTS"):
        DocumentRule(None, (), Grants(None), "w").attached(str(file))
    with pytest.raises(DocsNotFound, match="not an absolute path"):
        by_default.attached("a.png")
    with pytest.raises(DocsNotFound, match="is not there"):
        by_default.attached(str(file.parent / "b.png"))
    with pytest.raises(DocsNotFound, match="outside"):  # a folder inside the default one was never allowed
        by_default.folder(str(file.parent / "inner"))


def test_a_file_that_its_user_has_named_opens_no_other(tmp_path: Path) -> None:
    file, other = tmp_path / "a.png", tmp_path / "b.png"
    file.write_bytes(b"a")
    other.write_bytes(b"b")
    grants = tmp_path / "grants.json"
    grants.write_text(json.dumps({"docs": [str(file)], "writes": []}))
    rule = DocumentRule(None, (), Grants(grants), "w")
    assert rule.attached(str(file)) == file
    with pytest.raises(DocsNotFound, match="its user opens it with `--attach`"):
        rule.attached(str(other))
    with pytest.raises(DocsNotFound):
        rule.folder(str(tmp_path))
    with pytest.raises(DocsNotFound):
        rule.attached(str(file), scheduled=True)
