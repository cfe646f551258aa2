import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sennit.activities.limits import MAX_PASSAGE_CHARACTERS
from sennit.activities.toolbox.files.documents import ReadableDocument, passages, readable_text


@pytest.mark.parametrize(
    ("path", "content", "title"),
    [
        ("nile.md", "# The Nile\n\ntext", "The Nile"),
        ("nile.md", "intro\n\n## Course ##\n", "Course"),
        ("blue-nile_river.md", "no heading", "blue nile river"),
        ("n.md", '---\ntitle: "Nile"\ntags: x\n---\n# Other\n', "Nile"),
        ("n.md", "---\ntags: x\n---\n# Other\n", "Other"),
        ("n.md", "---\n", "n"),
        ("n.txt", "The Nile\n\nIt is long.", "The Nile"),
        ("n.txt", "The Nile\n========\nIt is long.", "The Nile"),
        ("n.txt", "It is long.\n\nVery.", "n"),
        ("n.txt", "First line\nsecond line", "n"),
        ("n.html", "<html><head><title> The\nNile </title></head></html>", "The Nile"),
        ("n.htm", "<h2>Nile</h2><p>x", "Nile"),
        ("n.md", "\ufeff# Nile\r\n\r\ntext", "Nile"),
        ("n.csv", "# a,b", "n"),
        ("n.md", "", "n"),
    ],
)
def test_a_title_comes_from_the_document_or_else_from_its_name(path: str, content: str, title: str) -> None:
    assert readable_text(path, content.encode()).title == title


def divided(text: str, title: str = "T") -> list[tuple[str, str]]:
    return [(each.heading, each.text) for each in passages("a.md", ReadableDocument(title, text))]


def test_paragraphs_are_passages_under_their_headings() -> None:
    long = "word " * 45 + "end."
    text = f"# T\n\n{long}\n\n## Course\n\n{long}\n{long}\n\n### Delta\n{long}\n\n## Use\n\n{long}"
    assert divided(text) == [
        ("", long),
        ("Course", f"{long}\n{long}"),
        ("Course > Delta", long),
        ("Use", long),
    ]


def test_short_paragraphs_of_one_section_are_joined() -> None:
    assert divided("a\n\nb\n\n## S\n\nc") == [("", "a\n\nb"), ("S", "c")]


def test_a_heading_inside_a_fence_is_text() -> None:
    assert divided("```\n# comment\n```") == [("", "```\n# comment\n```")]


def test_a_long_paragraph_is_divided_at_sentence_ends() -> None:
    sentence = "x" * 300 + "."
    assert divided(f"{sentence} {sentence} {sentence}") == [("", f"{sentence} {sentence}"), ("", sentence)]


def test_an_empty_document_is_found_by_its_title() -> None:
    assert divided("# T\n", "T") == [("", "T")]


@settings(deadline=None)
@given(st.text(alphabet="ab.# \n`é", max_size=3000))
def test_no_text_is_lost_and_no_passage_is_too_long(text: str) -> None:
    found = passages("a.md", ReadableDocument("T", text))
    assert all(len(each.text) <= MAX_PASSAGE_CHARACTERS for each in found)
    body = "".join(line for line in text.split("\n") if not line.startswith("#"))
    kept = "".join("".join(each.text.split()) for each in found)
    for letter in "abé.":
        assert kept.count(letter) >= body.count(letter)
