import codecs
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.pdf import pdf_of

from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.errors import DocumentNotFound, DocumentUnreadable, PathRefused
from sennit.activities.toolbox.files.read import DocumentText, ReadArguments, read


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
        "encoding": "utf-8",
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
    ],
)
def test_html_is_read_as_text(
    docs: Path, context: ToolContext, name: str, content: bytes, title: str, text: str
) -> None:
    (docs / name).write_bytes(content)
    found = text_of(context, name)
    assert (found.title, found.text) == (title, text)


@pytest.mark.parametrize(
    ("name", "content", "encoding"),
    [
        ("a.txt", "café €".encode(), "utf-8"),
        ("a.txt", "café €".encode("utf-8-sig"), "utf-8"),
        ("a.txt", codecs.BOM_UTF16_LE + "café €".encode("utf-16-le"), "utf-16"),
        ("a.txt", codecs.BOM_UTF16_BE + "café €".encode("utf-16-be"), "utf-16"),
        ("a.txt", codecs.BOM_UTF32_LE + "café €".encode("utf-32-le"), "utf-32"),
        ("a.txt", "café €".encode("cp1252"), "windows-1252"),
        ("a.html", b'<meta charset="iso-8859-15">' + "café €".encode("iso-8859-15"), "iso8859-15"),
        ("a.html", b'<meta charset="rot13">' + "café €".encode("cp1252"), "windows-1252"),
    ],
)
def test_a_text_is_read_as_what_it_is(
    docs: Path, context: ToolContext, name: str, content: bytes, encoding: str
) -> None:
    warnings: list[str] = []
    (docs / name).write_bytes(content)
    found = text_of(replace(context, warn=warnings.append), name)
    assert (found.text, found.encoding) == ("café €", encoding)
    told = [f"{name} is not UTF-8 and does not say what it is: it was read as windows-1252"]
    assert warnings == (told if encoding == "windows-1252" else [])


def test_bytes_that_windows_does_not_know_are_read_as_latin_1(docs: Path, context: ToolContext) -> None:
    (docs / "a.txt").write_bytes(b"caf\xe9\x81")
    assert text_of(context, "a.txt").encoding == "latin-1"


def test_a_character_that_is_cut_is_no_reason_for_another_encoding(
    docs: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.activities.toolbox.files.read.MAX_FILE_BYTES", 5)
    (docs / "a.txt").write_text("abc€def")
    found = text_of(context, "a.txt")
    assert (found.text, found.truncated, found.encoding) == ("abc", True, "utf-8")


@pytest.mark.parametrize("content", [codecs.BOM_UTF16_LE + b"\x00\xd8", "no mark".encode("utf-16-le")])
def test_what_only_looks_like_utf_16_is_not_read(docs: Path, context: ToolContext, content: bytes) -> None:
    (docs / "a.txt").write_bytes(content)
    with pytest.raises(DocumentUnreadable, match=r"'a.txt' (begins as utf-16 and is not|is not text)"):
        text_of(context, "a.txt")


def test_a_pdf_is_read(docs: Path, context: ToolContext) -> None:
    pytest.importorskip("pypdf", reason="needs the extra pdf")
    (docs / "nile.pdf").write_bytes(pdf_of("The Nile", "It is long."))
    found = text_of(context, "nile.pdf")
    assert (found.text, found.encoding, found.truncated) == ("The Nile\n\nIt is long.", "pdf", False)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"%PDF-1.4\nrubbish", "is a PDF that cannot be read"),
        (pdf_of(""), "is a PDF without text, perhaps of scanned pages"),
    ],
)
def test_a_pdf_without_text_is_named(docs: Path, context: ToolContext, content: bytes, why: str) -> None:
    pytest.importorskip("pypdf", reason="needs the extra pdf")
    (docs / "a.pdf").write_bytes(content)
    with pytest.raises(DocumentUnreadable, match=f"'a.pdf' {why}"):
        text_of(context, "a.pdf")


def test_without_the_package_a_pdf_is_named_as_unread(
    docs: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.activities.toolbox.files.pdf.find_spec", lambda _: None)
    (docs / "a.pdf").write_bytes(pdf_of("text"))
    with pytest.raises(DocumentUnreadable, match=r"'a.pdf' is a PDF; to read it, install sennit\[pdf\]"):
        text_of(context, "a.pdf")


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
