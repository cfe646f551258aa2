import statistics
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from activities.toolbox.context import ToolContext
from activities.toolbox.errors import DocsNotFound, ToolArgumentError
from activities.toolbox.search import SearchArguments, SearchResult, search

NILE = """# Nile

The Nile carries water from the highlands through one of the driest deserts on Earth.
The Nile is about 6,650 kilometres long, and 11 countries share its basin.

Two branches meet at Khartoum. The Blue Nile brings most of the water in late summer, and a flood once a year.
The people of the valley have measured its height on stone scales since antiquity, year after year.

Its delta spreads north of Cairo, where half of the country's people live on a small part of its land.
"""
NOTES = {
    "rivers/nile.md": NILE,
    "rivers/amazon.md": "# Amazon\n\nThe Amazon is about 6,400 kilometres long. By length it is second to the Nile.\n",
    "rivers/blue-nile.md": "# Blue Nile\n\nThe Blue Nile has a length of 1,450 kilometres, more than most rivers.\n",
    "animals/nile-crocodile.md": "# Nile crocodile\n\nThe Nile crocodile reaches a length of 5 metres. Nile, Nile.\n",
    "animals/nile-perch.txt": "Nile perch\n\nThe Nile perch has a length of up to 2 metres.\n",
    "war/battle.md": "# Battle of the Nile\n\nThe length of the battle was a night. Nile and Nile and length.\n",
    "lists/length.md": "# Length\n\nThe length of a river, such as the Nile, is hard to measure.\n",
    "mountains/everest.md": "# Mount Everest\n\nMount Everest is the highest point.\n\nIt is 8,849 metres high.\n",
    "cities/sao-paulo.html": "<title>São Paulo</title><h1>São Paulo</h1><p>It has 11,451,000 inhabitants.</p>",
    "cities/cairo.md": "# Cairo\n\nCairo lies on the Nile. Its population is 10,203,000.\n",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ToolContext:
    """The notes above among 490 others that name rivers, lengths and the Nile in passing."""
    docs = tmp_path_factory.mktemp("library")
    filler = {
        f"more/place-{number}.md": f"# Place {number}\n\nPlace {number} lies on a river of some length, far from the "
        f"Nile.\n\nIts population is {number * 1000} people, and a tower of {number} metres height stands there.\n"
        for number in range(490)
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
        ("length of the Nile", "rivers/nile.md", "6,650 kilometres long"),
        ("How long is the Nile?", "rivers/nile.md", "6,650 kilometres long"),
        ("Nile length", "rivers/nile.md", "6,650 kilometres long"),
        ("longest: NILE", "rivers/nile.md", "6,650 kilometres long"),
        ("length of the Amazon", "rivers/amazon.md", "6,400 kilometres long"),
        ("length of the Blue Nile", "rivers/blue-nile.md", "1,450 kilometres"),
        ("length of a nile perch", "animals/nile-perch.txt", "2 metres"),
        ("Nile crocodiles", "animals/nile-crocodile.md", "crocodile"),
        ("flood of the Nile", "rivers/nile.md", "a flood once a year"),
        ("delta of the Nile", "rivers/nile.md", "delta spreads"),
        ("how tall is mount everest", "mountains/everest.md", "8,849 metres high"),
        ("elevation of Mount Everest", "mountains/everest.md", "8,849 metres high"),
        ("population of sao paulo", "cities/sao-paulo.html", "11,451,000 inhabitants"),
        ("population of Cairo", "cities/cairo.md", "10,203,000"),
        ("population of Place 77", "more/place-77.md", "77000 people"),
    ],
)
def test_the_subjects_document_comes_first_with_the_passage_that_has_the_quantity(
    library: ToolContext, query: str, path: str, words: str
) -> None:
    first = found(library, query).items[0]
    assert (first.path, words in first.passage) == (path, True)


def test_a_result_names_title_passage_and_falling_scores(library: ToolContext) -> None:
    result = found(library, "length of the Nile", 5)
    assert result.query == "length of the Nile"
    assert result.count == len(result.items) == 5
    assert result.items[0].title == "Nile"
    assert result.items[0].passage in NILE
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
    assert found(library, query).items[0].title == "Nile"


@pytest.mark.parametrize("query", ["?", "🎉", "()", '"', " ", "-_-", "\N{COMBINING ACUTE ACCENT}"])
def test_a_query_without_words_is_refused_by_name(library: ToolContext, query: str) -> None:
    with pytest.raises(ToolArgumentError, match="has no word to search for") as caught:
        found(library, query)
    assert caught.value.field == "query"


def test_words_that_occur_nowhere_find_nothing(library: ToolContext) -> None:
    assert found(library, "xylophone quokka").model_dump() == {"query": "xylophone quokka", "count": 0, "items": []}


def test_a_query_of_common_words_only_is_searched_as_it_is(library: ToolContext) -> None:
    assert found(library, "what is it").count == 3


def test_a_related_word_alone_is_enough(docs: Path, context: ToolContext) -> None:
    (docs / "a.md").write_text("# A\n\nIt is very tall.")
    assert found(context, "height").count == 1


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


def test_a_warm_search_is_quick(library: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """About 6 ms on an idle machine; the bound leaves room for a busy one."""
    later = time.time_ns() + 10**10
    monkeypatch.setattr("activities.toolbox.index.time.time_ns", lambda: later)
    found(library, "length of the Nile")
    taken = []
    for _ in range(15):
        started = time.perf_counter()
        found(library, "length of the Nile")
        taken.append(time.perf_counter() - started)
    assert statistics.median(taken) < 0.06
