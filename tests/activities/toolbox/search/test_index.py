import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.errors import IndexUnusable, TooManyFiles
from sennit.activities.toolbox.paths import scan
from sennit.activities.toolbox.search import index
from sennit.activities.toolbox.search.tool import SearchArguments, search

BUILDER = """
import sys
from pathlib import Path
from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.search.tool import SearchArguments, search
docs, cache = map(Path, sys.argv[1:3])
context = ToolContext(docs, cache, "run", "n1", 1, 1, "key", lambda line: None)
print(search(SearchArguments(query="nile"), context).items[0].path, flush=True)
"""


def titles(context: ToolContext, query: str) -> list[str]:
    return [item.title for item in search(SearchArguments(query=query, k=20), context).items]


def indexes(context: ToolContext) -> list[Path]:
    return sorted((context.cache / "search").glob("*.db"))


def fill(docs: Path, count: int) -> None:
    (docs / "nile.md").write_text("# Nile\n\nThe Nile is long.\n")
    for number in range(count):
        (docs / f"{number}.md").write_text(f"# Place {number}\n\n" + f"Words about {number} and more. " * 20)


@pytest.fixture
def builder(docs: Path, context: ToolContext) -> list[str]:
    return [sys.executable, "-c", BUILDER, str(docs), str(context.cache)]


def test_the_index_is_built_once_and_that_is_logged(docs: Path, context: ToolContext, reports: list[str]) -> None:
    fill(docs, 3)
    titles(context, "nile")
    titles(context, "place")
    assert reports == ["indexed 4 documents"]


def test_every_change_of_the_documents_is_seen_at_once(docs: Path, context: ToolContext) -> None:
    note = docs / "a.md"
    note.write_text("# A\n\nred")
    assert titles(context, "red") == ["A"]
    note.write_text("# A\n\ntan")
    assert titles(context, "red") == []
    assert titles(context, "tan") == ["A"]
    note.rename(docs / "b.md")
    assert [item.path for item in search(SearchArguments(query="tan"), context).items] == ["b.md"]
    (docs / "b.md").unlink()
    assert titles(context, "tan") == []


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which every file is old."""
    later = time.time_ns() + 10**10
    monkeypatch.setattr("sennit.activities.toolbox.search.index.time.time_ns", lambda: later)


@pytest.mark.usefixtures("settled")
def test_a_change_of_equal_size_with_its_time_set_back_is_seen(docs: Path, context: ToolContext) -> None:
    note = docs / "a.md"
    note.write_text("# A\n\nred")
    before = note.stat()
    assert titles(context, "red") == ["A"]
    note.write_text("# A\n\ntan")
    os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert titles(context, "tan") == ["A"]


def test_a_change_within_the_grain_of_the_clock_is_seen(
    docs: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docs / "a.md").write_text("# A\n\nred")
    same = scan(docs)
    monkeypatch.setattr("sennit.activities.toolbox.search.index.scan_with_gaps", lambda _root: (same, []))
    assert titles(context, "red") == ["A"]
    (docs / "a.md").write_text("# A\n\ntan")
    assert titles(context, "tan") == ["A"]


@pytest.mark.usefixtures("settled")
def test_content_is_not_read_again_once_its_times_have_settled(
    docs: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(docs, 2)
    assert titles(context, "nile") == ["Nile"]
    monkeypatch.setattr("sennit.activities.toolbox.search.index.open_inside", None)
    assert titles(context, "nile") == ["Nile"]


def test_the_same_content_uses_the_same_index_in_another_process(
    docs: Path, context: ToolContext, builder: list[str]
) -> None:
    fill(docs, 2)
    titles(context, "nile")
    (built,) = indexes(context)
    written = built.stat().st_mtime_ns
    assert subprocess.check_output(builder, text=True) == "nile.md\n"
    assert [(each, each.stat().st_mtime_ns) for each in indexes(context)] == [(built, written)]


@pytest.mark.parametrize("damage", ["empty", "garbage", "cut", "holes", "gone", "folder"])
def test_a_damaged_index_is_built_again(docs: Path, context: ToolContext, damage: str) -> None:
    fill(docs, 40)
    titles(context, "nile")
    (built,) = indexes(context)
    content = built.read_bytes()
    if damage == "gone":
        built.unlink()
    elif damage == "holes":
        built.write_bytes(content[:4096] + b"\0" * (len(content) - 4096))
    elif damage == "folder":
        built.unlink()
        built.mkdir()
    else:
        built.write_bytes({"empty": b"", "garbage": b"not a database" * 999, "cut": content[:8192]}[damage])
    if damage == "folder":
        with pytest.raises(IndexUnusable) as caught:
            titles(context, "nile")
        assert caught.value.retryable
    else:
        assert titles(context, "nile") == ["Nile"]


def test_threads_that_build_at_once_all_get_the_answer(docs: Path, context: ToolContext, reports: list[str]) -> None:
    fill(docs, 100)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: titles(context, "nile"), range(16)))
    assert answers == [["Nile"]] * 16
    assert reports == ["indexed 101 documents"]


def test_processes_that_build_at_once_all_get_the_answer(docs: Path, context: ToolContext, builder: list[str]) -> None:
    fill(docs, 150)
    running = [subprocess.Popen(builder, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=60)[0] for process in running] == ["nile.md\n"] * 3
    assert len(indexes(context)) == 1
    assert not list((context.cache / "search").glob("building-*"))


def test_a_builder_killed_half_way_leaves_no_index(docs: Path, context: ToolContext, builder: list[str]) -> None:
    fill(docs, 800)
    process = subprocess.Popen(builder, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not list((context.cache / "search").glob("building-*")):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert indexes(context) == []
    assert list((context.cache / "search").glob("building-*"))
    assert titles(context, "nile") == ["Nile"]


def test_old_indexes_and_what_killed_builders_left_are_removed(docs: Path, context: ToolContext) -> None:
    folder = context.cache / "search"
    folder.mkdir(parents=True)
    for age, name in ((7200, "building-1-old"), (0, "building-2-new")):
        (folder / name).write_text("")
        os.utime(folder / name, (time.time() - age,) * 2)
    for number in range(8):
        (docs / "a.md").write_text(f"# A\n\nnumber {number}")
        assert titles(context, str(number)) == ["A"]
    assert len(indexes(context)) == 4
    assert [path.name for path in folder.glob("building-*")] == ["building-2-new"]


def test_indexes_of_all_folders_together_have_a_bound(
    docs: Path, context: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MAX_KEPT_INDEX_FILES_BYTES", 100_000)
    folder = context.cache / "search"
    for number in range(6):
        other = tmp_path / f"docs{number}"
        other.mkdir()
        (other / "a.md").write_text(f"# {number}\n" + "word " * 5_000)
        newest = index.current_index(other, context.cache, context.progress)
        assert sum(path.stat().st_size for path in folder.glob("*.db")) <= 100_000
        assert newest.exists()


def test_a_cache_that_cannot_be_written_is_a_retryable_error(docs: Path, context: ToolContext) -> None:
    context.cache.write_text("a file where the folder should be")
    with pytest.raises(IndexUnusable, match="the search index cannot be written") as caught:
        titles(context, "nile")
    assert caught.value.retryable


def test_only_readable_text_documents_are_searched(docs: Path, context: ToolContext) -> None:
    (docs / "a.MD").write_text("needle")
    (docs / "b.json").write_text("needle")
    (docs / ".c.md").write_text("needle")
    (docs / "d.txt").write_bytes(b"needle\0\0")
    (docs / "e.html").write_text("<p>needle<script>nothing</script>")
    (docs / "link.md").symlink_to("/etc/hostname")
    assert sorted(titles(context, "needle")) == ["a", "e"]
    assert titles(context, "nothing") == []


def test_two_folders_share_a_cache(docs: Path, context: ToolContext, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (docs / "a.md").write_text("# A\n\nneedle")
    (other / "b.md").write_text("# B\n\nneedle")
    assert titles(context, "needle") == ["A"]
    assert titles(replace(context, docs=other), "needle") == ["B"]


def test_a_folder_with_too_many_files_is_refused(
    docs: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(docs, 20)
    monkeypatch.setattr("sennit.activities.toolbox.paths.MAX_DOCUMENTS", 10)
    with pytest.raises(TooManyFiles, match="more than 10 files below 'docs'"):
        titles(context, "nile")


def test_an_index_is_opened_for_reading_only(docs: Path, context: ToolContext) -> None:
    fill(docs, 1)
    titles(context, "nile")
    connection = index.open_index(indexes(context)[0])
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM passages")
    connection.close()
