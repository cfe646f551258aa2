import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.pdf import pdf_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.errors import DocsNotFound, ToolArgumentError
from sennit.activities.toolbox.files.encodings import NotText
from sennit.activities.toolbox.search import index
from sennit.activities.toolbox.search.tool import SearchArguments, SearchResult, search

NILE = """# Nile

The Nile is about 6,650 kilometres long, and 11 countries share its basin.
The Blue Nile brings most of the water in late summer, and a flood once a year.

Its delta spreads north of Cairo, where half of the country's people live on a small part of its land.
"""
NOTES = {
    "rivers/nile.md": NILE,
    "rivers/amazon.md": "# Amazon\n\nThe Amazon is about 6,400 kilometres long. By length it is second to the Nile.\n",
    "rivers/blue-nile.md": "# Blue Nile\n\nThe Blue Nile has a length of 1,450 kilometres, more than most rivers.\n",
    "animals/nile-perch.txt": "Nile perch\n\nThe Nile perch has a length of up to 2 metres.\n",
    "mountains/everest.md": "# Mount Everest\n\nIt is 8,849 metres high.\n",
    "cities/sao-paulo.html": "<title>São Paulo</title><h1>São Paulo</h1><p>It has a population of 11,451,000.</p>",
    "cities/cairo.md": "# Cairo\n\nCairo lies on the Nile. Its population is 10,203,000.\n",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ToolContext:
    """The notes above among 90 others that name rivers and lengths in passing."""
    docs = tmp_path_factory.mktemp("library")
    filler = {
        f"more/place-{number}.md": f"# Place {number}\n\nPlace {number} lies on a river of some length.\n\n"
        f"Its population is {number * 1000} people, and a tower of {number} metres height stands there.\n"
        for number in range(90)
    }
    for path, text in (NOTES | filler).items():
        (docs / path).parent.mkdir(exist_ok=True)
        (docs / path).write_text(text)
    cache = tmp_path_factory.mktemp("cache")
    return ToolContext(docs, cache, "run", "n1", 1, 1, "key", lambda _line: None)


def found(context: ToolContext, query: str, k: int = 3) -> SearchResult:
    return search(SearchArguments(query=query, k=k), context)


@pytest.mark.parametrize(
    ("query", "path", "words"),
    [
        ("How long is the Nile?", "rivers/nile.md", "6,650 kilometres long"),
        ("longest: NILE", "rivers/nile.md", "6,650 kilometres long"),
        ("length of the Amazon", "rivers/amazon.md", "6,400 kilometres long"),
        ("length of the Blue Nile", "rivers/blue-nile.md", "1,450 kilometres"),
        ("length of a nile perch", "animals/nile-perch.txt", "2 metres"),
        ("delta of the Nile", "rivers/nile.md", "delta spreads"),
        ("how high is mount everest", "mountains/everest.md", "8,849 metres high"),
        ("population of sao paulo", "cities/sao-paulo.html", "11,451,000"),
        ("population of Cairo", "cities/cairo.md", "10,203,000"),
        ("population of Place 77", "more/place-77.md", "77000 people"),
    ],
)
def test_the_passage_that_answers_is_among_the_first_three(
    library: ToolContext, query: str, path: str, words: str
) -> None:
    assert any(item.path == path and words in item.passage for item in found(library, query).items)


def test_a_word_in_the_title_counts_most(library: ToolContext) -> None:
    assert found(library, "cairo").items[0].path == "cities/cairo.md"


def test_a_result_names_title_passage_and_falling_scores(library: ToolContext) -> None:
    result = found(library, "length of the Nile", 5)
    assert result.query == "length of the Nile"
    assert result.count == len(result.items) == 5
    assert {"Nile", "Blue Nile"} <= {item.title for item in result.items}
    assert all(item.passage in NILE for item in result.items if item.title == "Nile")
    scores = [item.score for item in result.items]
    assert scores == sorted(scores, reverse=True)


def test_equal_questions_get_equal_answers(library: ToolContext, tmp_path: Path) -> None:
    elsewhere = replace(library, cache=tmp_path / "other")
    assert found(library, "river length", 20) == found(elsewhere, "river length", 20)


@pytest.mark.parametrize(
    "query",
    [
        'nile"', "'nile", "nile*", "^nile", "nile OR", "AND nile", "NEAR(nile", "nile NOT nile", "title:nile", "-nile",
        "{nile}", "(nile", "nile) OR (nile", "nile; DROP TABLE passages", "🎉 nile 🎉", "nile\N{NO-BREAK SPACE}",
        "nile\x00", "NİLE nile", "nile_", "nile's", "+nile", "nile AND",
    ],
)  # fmt: skip
def test_operators_and_punctuation_mean_nothing(library: ToolContext, query: str) -> None:
    assert "nile" in found(library, query).items[0].title.lower()


@pytest.mark.parametrize("query", ["?", "🎉", "()", '"', " ", "-_-", "\N{COMBINING ACUTE ACCENT}"])
def test_a_query_without_words_is_refused_by_name(library: ToolContext, query: str) -> None:
    with pytest.raises(ToolArgumentError, match="has no word to search for") as caught:
        found(library, query)
    assert caught.value.field == "query"


def test_words_that_occur_nowhere_find_nothing(library: ToolContext) -> None:
    assert found(library, "xylophone quokka").model_dump() == {
        "query": "xylophone quokka",
        "count": 0,
        "not_read": [],
        "items": [],
    }


def test_a_query_of_common_words_only_is_searched_as_it_is(library: ToolContext) -> None:
    assert found(library, "what is it").count == 3


def test_the_number_of_passages_is_bounded(library: ToolContext) -> None:
    assert found(library, "river", 20).count == 20
    for wrong in (0, 21):
        with pytest.raises(ValidationError):
            SearchArguments(query="x", k=wrong)
    with pytest.raises(ValidationError):
        SearchArguments(query="x" * 401)


def test_an_empty_folder_finds_nothing(docs: Path, context: ToolContext) -> None:
    assert found(context, "nile").count == 0


def test_missing_documents_are_an_error(context: ToolContext) -> None:
    with pytest.raises(DocsNotFound):
        found(replace(context, docs=None), "nile")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.text(min_size=1, max_size=400))
def test_any_text_is_a_query(context: ToolContext, query: str) -> None:
    assert context.docs is not None
    (context.docs / "a.md").write_text("# A\n\nSome text.")
    count = 0
    with suppress(ToolArgumentError):
        count = found(context, query, 1).count
    assert count in (0, 1)


def test_documents_that_cannot_be_read_are_named_and_others_are_found(tmp_path: Path) -> None:
    warnings: list[str] = []
    docs = tmp_path / "docs"
    docs.mkdir()
    context = ToolContext(docs, tmp_path, "run", "n1", 1, 1, "key", lambda _line: None, warnings.append)
    (docs / "nile.txt").write_bytes("The Nile: café".encode("utf-16"))
    (docs / "rhine.txt").write_bytes("The Rhine: café".encode("cp1252"))
    (docs / "broken.txt").write_bytes(b"\0\1\2")
    (docs / "broken.pdf").write_bytes(b"%PDF-1.4 rubbish")
    (docs / "data.bin").write_bytes(b"\0")
    assert {item.path: item.passage for item in found(context, "café").items} == {
        "nile.txt": "The Nile: café",
        "rhine.txt": "The Rhine: café",
    }
    unread, others, taken = warnings
    assert others.endswith("because search reads .html .htm .md .markdown .txt .pdf .csv .tsv: data.bin")
    assert unread.startswith("2 of the documents could not be read and were not searched: 'broken.pdf' is a PDF")
    assert unread.endswith("'broken.txt' is not text")
    assert taken == "1 of the documents are not UTF-8 and do not say what they are; read: rhine.txt as windows-1252"
    found(context, "nile")
    assert warnings[3:] == warnings[:3]


def test_a_long_file_is_searched_to_its_end(docs: Path, context: ToolContext) -> None:
    (docs / "long.txt").write_text("Some words.\n\n" * 250_000 + "The platypus lays eggs.\n")
    (item,) = found(context, "platypus", 1).items
    assert item.passage.endswith("The platypus lays eggs.")


def test_what_of_a_folder_is_not_searched_is_named_in_the_result_and_in_warnings(
    docs: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(index, "MAX_INDEXED_BYTES", 1 << 20)
    monkeypatch.setattr(index, "MAX_INDEXED_FOLDER_BYTES", 3 << 20)
    (docs / "a-long.txt").write_text("Some words.\n\n" * 200_000 + "The platypus lays eggs.\n")
    (docs / "b-full.txt").write_text("Other words.\n" * 90_000)
    (docs / "c-full.txt").write_text("Other words.\n" * 90_000)
    (docs / "d-late.txt").write_text("The echidna lays eggs.")
    (docs / "figures.xlsx").write_bytes(b"PK")
    result = found(replace(context, warn=warnings.append), "platypus echidna")
    assert result.items == []
    assert result.not_read == warnings
    late, cut, other = warnings
    assert "'d-late.txt': the documents before it have 3 MiB, as many as are searched" in late
    assert cut.startswith("of 3 of the documents only the first 1 MiB were searched: a-long.txt (2,600,024 bytes)")
    assert other.startswith("1 files were not searched")
    assert other.endswith("figures.xlsx")


def test_a_folder_that_may_not_be_read_is_named(
    docs: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docs / "private").mkdir()
    (docs / "nile.md").write_text("# Nile\n\nThe Nile is long.\n")
    scandir = os.scandir

    def refuse(folder: Path) -> object:
        if folder.name == "private":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    result = found(context, "nile")
    assert result.count == 1
    assert "the folder 'private/': this worker may not read it" in result.not_read[0]


@pytest.mark.parametrize(
    ("name", "text", "query", "passage"),
    [
        ("rivers.csv", "Name,Length km\nNile,6650\nRhine,1230\n", "rhine", "Name: Rhine; Length km: 1230"),
        ("rivers.csv", "Name;Länge\nRhein;1.230,5\n", "rhein", "Name: Rhein; Länge: 1.230,5"),
        ("rivers.tsv", "Name\tNote\nRhine\tlong, and wide\n", "rhine", "Name: Rhine; Note: long, and wide"),
        ("rivers.csv", 'Name,Note\nRhine,"wide,\nand long"\n', "rhine", "Name: Rhine; Note: wide, and long"),
        ("rivers.csv", "Name,Note\nRhine,,left over\n", "rhine", "Name: Rhine; column 3: left over"),
        ("rivers.csv", "Name,Note\n", "note", "columns: Name; Note"),
    ],
)
def test_a_table_is_searched_row_by_row_with_its_header(
    docs: Path, context: ToolContext, name: str, text: str, query: str, passage: str
) -> None:
    (docs / name).write_text(text)
    result = found(context, query)
    assert result.items[0].passage == passage
    assert result.not_read == []


def test_a_table_with_a_quotation_mark_that_does_not_end_is_named(docs: Path, context: ToolContext) -> None:
    (docs / "broken.csv").write_text('Name,Note\nRhine,"wide\n' + "Nile,long\n" * 20_000)
    assert "'broken.csv' is no table: line" in found(context, "nile").not_read[0]


def test_a_pdf_is_searched(tmp_path: Path) -> None:
    pytest.importorskip("pypdf", reason="needs the extra pdf")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "nile.pdf").write_bytes(pdf_of("The Nile is 6,650 kilometres long."))
    context = ToolContext(docs, tmp_path, "run", "n1", 1, 1, "key", lambda _line: None)
    assert [item.path for item in found(context, "How long is the Nile?").items] == ["nile.pdf"]


def test_a_pdf_is_read_once_however_often_other_documents_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    def reads(content: bytes) -> str:
        read.append(content)
        if content.endswith(b"broken"):
            raise NotText("is a PDF that cannot be read")
        return "The Nile is long."

    monkeypatch.setattr("sennit.activities.toolbox.files.pdf.find_spec", lambda _: "there")
    monkeypatch.setattr("sennit.activities.toolbox.files.pdf.pdf_text", reads)
    docs, warnings = tmp_path / "docs", list[str]()
    docs.mkdir()
    context = ToolContext(docs, tmp_path / "cache", "run", "n1", 1, 1, "key", lambda _line: None, warnings.append)
    (tmp_path / "cache").mkdir()
    (docs / "nile.pdf").write_bytes(b"%PDF-")
    (docs / "other.pdf").write_bytes(b"%PDF-broken")
    for number in range(3):
        (docs / "other.md").write_text(f"Number {number}")
        assert [item.path for item in found(context, "Nile").items] == ["nile.pdf"]
    assert len(read) == 2
    assert len(warnings) == 3
    (docs / "nile.pdf").write_bytes(b"%PDF-1.4")
    found(context, "Nile")
    assert len(read) == 3
