import os
from dataclasses import replace
from pathlib import Path

import pytest

from sennit.activities.toolbox import ToolContext
from sennit.activities.toolbox.errors import DocsNotFound, PathRefused
from sennit.activities.toolbox.files.list_files import FileList, ListFilesArguments, list_files


@pytest.fixture
def tree(docs: Path) -> Path:
    for path in ("b.md", "a.txt", "sub/c.md", "sub/deep/d.md", ".git/config", "sub/.hidden.md", "x[1].md"):
        (docs / path).parent.mkdir(parents=True, exist_ok=True)
        (docs / path).write_text(path)
    return docs


def files(context: ToolContext, glob: str = "**/*", most: int = 200) -> FileList:
    return list_files(ListFilesArguments(glob=glob, max_items=most), context)


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("**/*", ["a.txt", "b.md", "sub/c.md", "sub/deep/d.md", "x[1].md"]),
        ("**", ["a.txt", "b.md", "sub/c.md", "sub/deep/d.md", "x[1].md"]),
        ("**/**", ["a.txt", "b.md", "sub/c.md", "sub/deep/d.md", "x[1].md"]),
        ("*", ["a.txt", "b.md", "x[1].md"]),
        ("./*.md", ["b.md", "x[1].md"]),
        ("**/*.md", ["b.md", "sub/c.md", "sub/deep/d.md", "x[1].md"]),
        ("sub/**", ["sub/c.md", "sub/deep/d.md"]),
        ("sub/**/d.md", ["sub/deep/d.md"]),
        ("**/**/c.md", ["sub/c.md"]),
        ("**/deep/*", ["sub/deep/d.md"]),
        ("[ab].*", ["a.txt", "b.md"]),
        ("?.md", ["b.md"]),
        ("B.MD", []),
        (".git/*", []),
        ("sub", []),
    ],
)
def test_a_pattern_lists_the_regular_files_it_matches_sorted(
    tree: Path, context: ToolContext, glob: str, paths: list[str]
) -> None:
    assert [item.path for item in files(context, glob).items] == paths


def test_sizes_are_bytes_and_a_long_list_is_cut_and_says_so(tree: Path, context: ToolContext) -> None:
    assert [item.bytes for item in files(context, "sub/c.md").items] == [8]
    cut = files(context, most=2)
    assert (cut.count, cut.truncated) == (2, True)
    assert not files(context, most=5).truncated


def test_links_that_leave_special_files_and_undecodable_names_are_left_out(tree: Path, context: ToolContext) -> None:
    (tree / "out.md").symlink_to("/etc/hostname")
    (tree / "loop.md").symlink_to("loop.md")
    (tree / "up").symlink_to(tree.parent)
    (tree / "again").symlink_to(tree / "sub")
    (tree / "inside.md").symlink_to("sub/c.md")
    os.mkfifo(tree / "pipe.md")
    Path(os.fsdecode(os.fsencode(tree) + b"/\xff.md")).write_text("x")
    assert [item.path for item in files(context, "**/*.md").items] == [
        "b.md", "inside.md", "sub/c.md", "sub/deep/d.md", "x[1].md"
    ]  # fmt: skip


@pytest.mark.parametrize("glob", ["/etc/*", "../*", "sub/../../*"])
def test_a_pattern_that_leads_out_is_refused(tree: Path, context: ToolContext, glob: str) -> None:
    with pytest.raises(PathRefused, match="leads out of the documents"):
        files(context, glob)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("glob", ["*a" * 99 + "b", "**/*/" * 39 + "b"])
def test_a_hostile_pattern_ends(docs: Path, context: ToolContext, glob: str) -> None:
    (docs / ("a" * 200)).write_text("")
    assert files(context, glob).count == 0


def test_missing_documents_are_named_with_the_worker_or_with_what_to_set(context: ToolContext, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(DocsNotFound, match=rf"'{nowhere}' does not exist on worker .+ \(pid {os.getpid()}\)"):
        files(replace(context, docs=nowhere))
    with pytest.raises(DocsNotFound, match="no documents: name a folder with --docs"):
        files(replace(context, docs=None))
