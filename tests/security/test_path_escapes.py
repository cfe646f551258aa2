import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.errors import DocumentNotFound, PathRefused, ToolError
from sennit.activities.toolbox.files.read import ReadArguments, read
from sennit.activities.toolbox.paths import open_inside
from sennit.activities.toolbox.search.tool import SearchArguments, search

SECRET = "canaryword"

ATTACKS = [
    "../secret.txt", "../../secret.txt", "sub/../../secret.txt", "./../secret.txt", "..", ".", "./", "/", "//",
    "/etc/passwd", "//etc/passwd", "/proc/self/environ", "sub/../../docs/../secret.txt", "..\\secret.txt",
    "sub\\..\\..\\secret.txt", "C:\\secret.txt", "note.md\0.txt", "../secret.txt\0.md", "\0", "link.txt",
    "sub/link.txt", "linked/secret.txt", "chain.txt", "loop.txt", "up/secret.txt", "rooted/etc/passwd", ".env",
    ".git/config", "sub/.hidden", "pipe.md", "sub", "sub/", "a" * 300, "/".join(["a"] * 400),
    "note.md/../../secret.txt", "note.md/x", "self/self/note.md/../../../secret.txt", "~/secret.txt",
    "$HOME/secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "..;/secret.txt", "....//secret.txt",
    "\N{FULLWIDTH FULL STOP}\N{FULLWIDTH FULL STOP}/secret.txt", "file:///etc/passwd", "\ud800", "secret.txt",
    "SECRET.TXT", "note.md\n../secret.txt",
]  # fmt: skip


@pytest.fixture
def trapped(tmp_path: Path) -> ToolContext:
    docs = tmp_path / "docs"
    (docs / "sub").mkdir(parents=True)
    (docs / ".git").mkdir()
    outside = tmp_path / "secret.txt"
    outside.write_text(SECRET)
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "secret.txt").write_text(SECRET)
    (docs / "note.md").write_text("# Note\n\nharmless")
    for name in (".env", ".git/config", "sub/.hidden"):
        (docs / name).write_text(SECRET)
    (docs / "link.txt").symlink_to(outside)
    (docs / "sub" / "link.txt").symlink_to("../../secret.txt")
    (docs / "linked").symlink_to(tmp_path / "away")
    (docs / "chain.txt").symlink_to("link.txt")
    (docs / "loop.txt").symlink_to("loop.txt")
    (docs / "up").symlink_to("..")
    (docs / "rooted").symlink_to("/")
    (docs / "self").symlink_to(".")
    os.mkfifo(docs / "pipe.md")
    return ToolContext(docs, tmp_path / "cache", "run", "n1", 1, 1, "key", lambda _line: None)


def test_no_path_reads_what_is_outside_hidden_or_no_file(trapped: ToolContext) -> None:
    for path in ATTACKS:
        with pytest.raises((PathRefused, DocumentNotFound)) as caught:
            pytest.fail(f"{path[:60]!r} gives {read(ReadArguments.model_construct(path=path, max_chars=100), trapped)}")
        assert SECRET not in str(caught.value), path


def test_search_indexes_nothing_from_outside_or_hidden(trapped: ToolContext) -> None:
    assert search(SearchArguments(query=SECRET), trapped).count == 0
    assert search(SearchArguments(query="harmless"), trapped).count == 1


def test_a_hard_link_is_a_file_like_any_other(trapped: ToolContext) -> None:
    assert trapped.docs is not None
    (trapped.docs / "hard.md").hardlink_to(trapped.docs / "note.md")
    assert read(ReadArguments(path="hard.md"), trapped).title == "Note"


@pytest.fixture
def swapping(tmp_path: Path) -> Iterator[Path]:
    """A folder in which `place` turns from a folder into a link that leads out, over and over."""
    root = tmp_path / "docs"
    (root / "real").mkdir(parents=True)
    (root / "real" / "secret.txt").write_text("harmless")
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "secret.txt").write_text(SECRET)
    (root / "trap").symlink_to(tmp_path / "away")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "real").rename(root / "place")
            (root / "place").rename(root / "real")
            (root / "trap").rename(root / "place")
            (root / "place").rename(root / "trap")

    thread = threading.Thread(target=swap)
    thread.start()
    yield root
    stop.set()
    thread.join()


def test_a_link_put_in_place_between_check_and_use_leads_nowhere(swapping: Path) -> None:
    outcomes = set()
    for _ in range(1000):
        try:
            with open_inside(swapping, "place/secret.txt") as file:
                outcomes.add(file.read())
        except ToolError as error:
            outcomes.add(type(error).__name__.encode())
    assert SECRET.encode() not in outcomes
    assert b"harmless" in outcomes
