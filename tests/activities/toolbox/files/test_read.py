from pathlib import Path

import pytest

from activities.toolbox.definition import ToolContext
from activities.toolbox.errors import DocumentNotFound, DocumentUnreadable, PathRefused
from activities.toolbox.files.read import DocumentText, ReadArguments, read


def text_of(context: ToolContext, path: str, most: int = 20_000) -> DocumentText:
    return read(ReadArguments(path=path, max_chars=most), context)


def test_a_document_is_read_with_its_title(docs: Path, context: ToolContext) -> None:
    (docs / "rivers").mkdir()
    (docs / "rivers" / "nile.md").write_text("# The Nile\n\nLong.\n")
    assert text_of(context, "rivers/nile.md").model_dump() == {
        "path": "rivers/nile.md",
        "title": "The Nile",
        "text": "# The Nile\n\nLong.\n",
        "truncated": False,
    }


def test_a_long_document_is_cut_and_says_so(docs: Path, context: ToolContext) -> None:
    (docs / "long.txt").write_text("é" * 100)
    assert text_of(context, "long.txt", 99).text == "é" * 99
    assert text_of(context, "long.txt", 99).truncated
    assert not text_of(context, "long.txt", 100).truncated


@pytest.mark.parametrize(
    ("name", "content", "title", "text"),
    [
        ("p.html", b"<title>T</title><script>x()</script><p>One &amp; two", "T", "One & two"),
        ("latin.txt", b"one\ncaf\xe9", "latin", "one\ncaf\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_html_is_read_as_text_and_undecodable_bytes_are_replaced(
    docs: Path, context: ToolContext, name: str, content: bytes, title: str, text: str
) -> None:
    (docs / name).write_bytes(content)
    found = text_of(context, name)
    assert (found.title, found.text) == (title, text)


def test_what_is_no_text_file_is_refused(docs: Path, context: ToolContext) -> None:
    (docs / "x.bin").write_bytes(b"\x7fELF\0\0")
    (docs / "rivers").mkdir()
    with pytest.raises(DocumentUnreadable, match="is not text"):
        text_of(context, "x.bin")
    with pytest.raises(PathRefused, match="is a folder or a device"):
        text_of(context, "rivers")


@pytest.mark.parametrize(("path", "nearest"), [("nile.md", "rivers/nile.md"), ("rivers/nille.md", "rivers/nile.md")])
def test_a_missing_document_names_the_nearest(docs: Path, context: ToolContext, path: str, nearest: str) -> None:
    (docs / "rivers").mkdir()
    (docs / "rivers" / "nile.md").write_text("x")
    with pytest.raises(DocumentNotFound, match=f"no document '{path}'; did you mean `{nearest}`"):
        text_of(context, path)


def test_a_mounted_config_map_is_read_through_its_inner_links(docs: Path, context: ToolContext) -> None:
    (docs / "..2024").mkdir()
    (docs / "..2024" / "a.md").write_text("# A")
    (docs / "..data").symlink_to("..2024")
    (docs / "a.md").symlink_to("..data/a.md")
    assert text_of(context, "a.md").title == "A"
