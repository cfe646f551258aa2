"""Which figure a document gives for a thing, and which it only mentions."""

from typing import Any

import pytest

from activities.providers.offline.facts import Passage, find, nearest, sentences
from activities.providers.offline.words import read_phrase


def found_in(phrase: str, title: str, *texts: str, unit: str = "") -> dict[str, Any]:
    read = read_phrase(phrase)
    assert read
    return find(*read, unit, [Passage(f"notes/{place}.md", title, text) for place, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("phrase", "title", "text", "value", "unit"),
    [
        ("length of the Oder", "Oder", "The Oder is about 854 km long.", 854, "km"),
        ("length of the river Oder", "Rivers", "The Oder is 854,000 metres long.", 854, "km"),
        ("length of the Oder", "Oder", "The length of the Warta is 808 km. The Oder's length is 854 km.", 854, "km"),
        ("length of the Oder", "Oder", "The Oder is calm. It is 854 km long.", 854, "km"),
        ("length of the Oder", "Oder", "**Length:** 854 km\n**Basin:** 119,074 km2", 854, "km"),
        ("length of the Oder", "Oder", "- Length: about 854 km\n- Mouth: 12 m", 854, "km"),
        ("length of the Oder", "Oder", "The Oder was 900 km long in 1800. The Oder is 854 km long now.\n", None, ""),
        (
            "height of Mount Rysy",
            "Rysy",
            "Rysy is 2,501 metres high; its north summit is 2,499 metres high.",
            2501,
            "m",
        ),
        ("height of the Palace", "Palace", "The Palace, completed in 1990, is 180 metres tall.", 180, "m"),
        ("area of Lake Blue", "Lake Blue", "Lake Blue covers 5,000 acres.", 20.2343, "km²"),
        ("population of Hel", "Hel", "Hel is home to 1.5 million people (2020 census).", None, ""),
        ("population of Hel", "Hel", "Hel has about 3,200 inhabitants.", 3200, ""),
        (
            "mass of the wisent",
            "Wisent",
            "A wisent calf weighs 24 kg. The wisent can weigh up to 0.9 tonnes.",
            900,
            "kg",
        ),
        ("melting point of tin", "Tin", "Tin melts at 231.9 degrees Celsius and boils soon.", 231.9, "°C"),
        ("year in which the Palace was opened", "Palace", "The Palace was inaugurated on 27 May 1937.", 1937, ""),
        ("year in which Hel was founded", "Hel", "Hel was founded in AD 47, give or take a few years.", 47, ""),
    ],
)
def test_a_figure_counts_only_if_the_sentence_plainly_gives_it(
    phrase: str, title: str, text: str, value: float | None, unit: str
) -> None:
    found = found_in(phrase, title, text)
    if value is None:  # too hard for the rules, but quoted
        assert not found["found"]
        assert found["near"]
    else:
        assert (found["value"], found["unit"]) == (pytest.approx(value), unit)
        assert found["quote"] in text.replace("*", "")


@pytest.mark.parametrize(
    ("phrase", "title", "text"),
    [
        ("length of the Oder", "Oder", "The Oder is joined by the Warta, which is 808 km long."),
        ("length of the Oder", "Oder", "The Oder is joined by the Warta. It is 808 km long."),
        (
            "length of the Oder",
            "Oder",
            "# Oder\n\nThe Oder is calm.\n\n## Warta\n\nIt is 808 km long.\n\nLength: 808 km",
        ),
        ("length of the Oder", "Oder", "The Oder is 250 km longer than the Warta."),
        ("length of the Oder", "Warta", "It is second to the Oder, at 854 km, and reaches 808 km in length."),
        ("length of the Oder", "Oder", "The Oder is 850\u2013858 km long."),
        ("length of the Oder", "Oder", "The Oder is 854 km long only if its delta is counted."),
        ("length of the Oder", "Oder", "The Oder and the Warta are 1,662 km long together."),
        ("length of the Oder", "Oder", "| River | Length (km) |\n|---|---|\n| Oder | 854 |"),
        ("length of the Oder", "Oder", "The Oder is 5½ km long."),
        ("height of the Ariel", "Rockets", "The Ariel rocket is 46 metres tall."),
        ("population of York", "New York City", "New York City had a population of 8,804,000 in 2020."),
        ("year in which the Palace was completed", "Palace", "The Palace was not completed in 1955."),
        ("year in which the Palace was built", "Palace", "The Palace was built between 1870 and 1883."),
        ("number of moons of Mars", "Mars", "Mars has fewer than 3 moons."),
        ("person who designed the Palace", "Palace", "It is not known who designed the Palace."),
        ("person who designed the Palace", "Palace", "Ann Lee designed the Palace Hotel."),
    ],
)
def test_a_figure_of_something_else_is_never_taken(phrase: str, title: str, text: str) -> None:
    assert found_in(phrase, title, text)["found"] is False


@pytest.mark.parametrize(
    "text", ["Ann Lee designed the Palace.", "The Palace was designed in 1950 by the architect Ann Lee."]
)
def test_a_person_is_found_with_the_sentence_that_names_them(text: str) -> None:
    assert found_in("person who designed the Palace", "Palace", text)["quote"] == text


def test_a_finding_carries_all_that_an_answer_needs() -> None:
    text = "The Oder is about 854 kilometres long, as of 2020.\n\nSome older books give 912 kilometres."
    assert found_in("length of the oder", "Oder", text, unit="mi") == {
        "found": True,
        "subject": "the oder",
        "name": "the oder",
        "value": 530.651,
        "unit": "mi",
        "year": 2020,
        "quote": "The Oder is about 854 kilometres long, as of 2020.",
        "source": "notes/0.md",
    }


def test_of_several_years_the_latest_counts_and_of_several_figures_none() -> None:
    old, new = "Hel had a population of 3,900 in 2010.", "Hel had a population of 3,200 in 2021."
    assert found_in("population of Hel", "Hel", old, new)["value"] == 3200
    assert found_in("population of Hel", "Hel", old, "Hel has a population of 3,000.")["near"] == [
        {"source": "notes/0.md", "quote": old},
        {"source": "notes/1.md", "quote": "Hel has a population of 3,000."},
    ]


def test_sentences_are_split_at_ends_and_not_at_abbreviations() -> None:
    text = "# Title\n\nSt. Ann met Dr. J. Lee. He said: “Go!” She went.\n- One\n- Two\nwrapped\n\n| a | b |\n"
    expected = ["St. Ann met Dr. J. Lee.", "He said: “Go!”", "She went.", "One", "Two wrapped"]
    assert sentences(Passage("a.md", "A", text)) == expected


def test_the_nearest_sentences_share_most_words_with_the_question() -> None:
    passage = Passage("a.md", "Palace", "Lev designed it. It has floors. Trees grow near. It is old.")
    assert [text for _, text in nearest("Who designed the floors?", [passage], 2)] == [
        "Lev designed it.",
        "It has floors.",
    ]
    assert [text for _, text in nearest("Anything else", [passage])] == ["Lev designed it."]
    assert nearest("Anything", []) == []
