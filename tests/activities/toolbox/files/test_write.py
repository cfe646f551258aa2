"""`write`: whole files below one folder, and nothing beside it."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.toolbox import Preview, Tool, ToolContext, ToolError, ToolSetupError
from sennit.activities.toolbox.errors import PathRefused
from sennit.activities.toolbox.files.write import write_tools


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def write(root: Path) -> Tool:
    (tool,) = write_tools(root)
    return tool


async def put(write: Tool, context: ToolContext, path: str, text: str = "new", **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = await write.call({"path": path, "text": text, **more}, context)
    return result


async def test_a_file_is_made_with_its_folders_and_replaced_whole(
    write: Tool, root: Path, context: ToolContext
) -> None:
    first = await put(write, context, "notes//./a.md", "h\u00e9")
    digest = hashlib.sha256("h\u00e9".encode()).hexdigest()
    assert first == {"path": "notes/a.md", "bytes": 3, "sha256": digest, "changed": True}
    before = (root / "notes/a.md").stat().st_ino
    await put(write, context, "notes/a.md", "longer than before")
    assert (root / "notes/a.md").read_text() == "longer than before"
    assert (root / "notes/a.md").stat().st_ino != before
    assert [path.name for path in (root / "notes").iterdir()] == ["a.md"]


async def test_a_second_attempt_changes_nothing(write: Tool, root: Path, context: ToolContext) -> None:
    for mode in ("create", "replace"):
        assert (await put(write, context, f"{mode}.md", mode=mode))["changed"]
        assert not (await put(write, context, f"{mode}.md", mode=mode))["changed"]
    assert write.idempotent
    with pytest.raises(PathRefused, match="exists and holds something else"):
        await put(write, context, "create.md", "other", mode="create")
    assert (root / "create.md").read_text() == "new"


@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "a/../../x", ".hidden", "a/.git/x", "a\\b", "x\0y", ".", "x\ny", "x\u202ey"]
)
async def test_a_path_that_leads_out_is_refused(write: Tool, root: Path, context: ToolContext, path: str) -> None:
    with pytest.raises(PathRefused):
        await put(write, context, path)
    assert list(root.iterdir()) == []


async def test_no_link_is_followed(write: Tool, root: Path, tmp_path: Path, context: ToolContext) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "file")
    (root / "gone").symlink_to(outside / "gone")
    with pytest.raises(ToolError, match="cannot be written"):
        await put(write, context, "folder/file")
    for name in ("file", "gone"):
        await put(write, context, name)
        assert not (root / name).is_symlink()
    assert (outside / "file").read_text() == "mine"
    assert sorted(path.name for path in outside.iterdir()) == ["file"]


async def test_what_is_no_file_cannot_be_replaced(write: Tool, root: Path, context: ToolContext) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "file").write_text("x")
    for path in ("folder", "file/below"):
        with pytest.raises(ToolError) as failed:
            await put(write, context, path)
        assert not failed.value.retryable
    assert (await put(write, context, "pipe"))["changed"]


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ToolSetupError, match="is not a folder that this worker may write to"):
        write_tools(tmp_path / "none")


def test_the_lock_of_a_file_is_its_real_path(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    (tool,) = write_tools(tmp_path / "link")
    assert tool.describe()["resource"] == f"file:{root}/{{path}}"


def test_a_preview_compares_with_the_file_and_follows_no_link(write: Tool, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "a.md").write_text("old\n")

    def shown(path: str) -> Preview:
        assert write.preview is not None
        return write.preview(write.check({"path": path, "text": "new\n"}))

    assert shown("./a.md").text == "--- a.md (now)\n+++ a.md (then)\n@@ -1 +1 @@\n-old\n+new\n"
    assert shown("a.md").target == hashlib.sha256(b"old\n").hexdigest()[:40]
    assert shown("no/b.md") == ("new file no/b.md, 4 bytes\nnew\n", "")
    assert "secret" not in shown("link").text
    for path in ("a.md/b", "../x"):
        with pytest.raises(ToolError):
            shown(path)
    assert sorted(path.name for path in root.iterdir()) == ["a.md", "link"]
