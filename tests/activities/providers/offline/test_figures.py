"""Which figure a document gives for a thing, and which it only mentions."""

from collections.abc import Sequence

import pytest

from sennit.activities.providers.offline.figures import Figure, find, symbol_of, written
from sennit.activities.providers.offline.sentences import Passage, stems


def found_in(phrase: str, *texts: str) -> Sequence[Figure]:
    return find(stems(phrase), [Passage(f"notes/{place}.md", "Notes", text, "n") for place, text in enumerate(texts)])


@pytest.mark.parametrize("name", ["km", "kilometers", "kilometre"])
def test_a_unit_is_known_by_its_names(name: str) -> None:
    assert symbol_of(name) == "km"


@pytest.mark.parametrize(
    ("value", "symbol", "text"),
    [(6650, "km", "6,650 km"), (0.5, "°C", "0.5 °C"), (14048000, "", "14,048,000")],
)
def test_values_are_written_as_people_write_them(value: float, symbol: str, text: str) -> None:
    assert written(value, symbol) == text


@pytest.mark.parametrize(
    ("phrase", "text", "value", "unit"),
    [
        ("length of the Oder", "The Oder is about 854 km long.", 854, "km"),
        ("length of the river Oder", "The Oder is 854,000 metres long.", 854_000, "m"),
        ("length of the Oder", "The length of the Warta is 808 km. The Oder's length is 854 km.", 854, "km"),
        ("length of the Oder", "The Oder was 900 km long in 1800. The Oder is 854 km long now.\n", 854, "km"),
        ("height of Mount Rysy", "Rysy is 2,501.5 metres high; its north summit is 2,499 metres high.", 2501.5, "m"),
        ("population of Hel", "Hel has about 3,200 people (2020 census).", 3200, ""),
        ("price of the Pro plan", "The Pro plan costs 29 euros.", 29, "€"),
        ("price of Pro", "Pro is expensive. The price of Pro is $1,200.", 1200, "$"),
        ("number of desks of the office", "The office has 22 desks.", 22, ""),
        ("number of floors of Taipei 101", "Taipei 101 has 99 floors.", 99, ""),
    ],
)
def test_a_figure_counts_only_if_the_sentence_plainly_gives_it(phrase: str, text: str, value: float, unit: str) -> None:
    (found,) = found_in(phrase, text)
    assert (found.value, found.unit) == (value, unit)
    assert found.sentence.text in text


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("length of the Oder", "The Oder is joined by the Warta, which is 808 km long."),
        ("length of the Oder", "The Oder is joined by the Warta. It is 808 km long."),
        ("length of the Oder", "# Oder\n\nThe Oder is calm.\n\n## Warta\n\nIt is 808 km long.\n\nLength: 808 km"),
        ("length of the Oder", "The Oder is 250 km longer than the Warta."),
        ("length of the Oder", "The Oder is 250 km longer."),
        ("length of the Oder", "It is second to the Oder, at 854 km, and reaches 808 km in length."),
        ("length of the Oder", "The Oder is 850\u2013858 km long."),
        ("length of the Oder", "The Oder is \u2212854 km long."),
        ("length of the Oder", "The Oder is 854 km long only if its delta is counted."),
        ("length of the Oder", "The Oder and the Warta are 1,662 km long together."),
        ("length of the Oder", "The Oder is 5½ km long."),
        ("height of the Ariel", "The Ariel rocket is 46 metres tall."),
        ("population of York", "New York City had a population of 8,804,000 in 2020."),
        ("population of Hel", "Hel has 1.5 million people."),
        ("number of moons of Mars", "Mars has fewer than 3 moons."),
        ("length of the Oder", "The Oder is not 854 km long."),
        ("depth of the Oder", "The Oder has an average depth of 3 m."),
        ("height of Rysy", "The hut on Rysy is 2,250 metres high."),
        ("price of Pro", "Pro users cost 29 euros."),
        ("price of Pro", "Does Pro cost 29 euros?"),
        ("price of Pro", "Pro costs 29 euros a month."),
        ("price of Pro", "| Pro | price 29 |"),
        ("length of the Oder", "The Oder is 5 km and 300 m long."),
        ("price of Pro", "Pro costs 29 euros less than Team."),
        ("length of the Oder", "The Oder is long [7]."),
        ("of the", "854 km."),
    ],
)
def test_a_figure_of_something_else_is_never_taken(phrase: str, text: str) -> None:
    assert found_in(phrase, text) == []


def test_documents_that_disagree_give_several_figures_and_those_that_agree_one() -> None:
    old, new, again = "Hel has a population of 3,900.", "Hel has a population of 3,200.", "Hel has 3,200 inhabitants."
    assert [(found.value, found.sentence.path) for found in found_in("population of Hel", old, new, again)] == [
        (3900, "notes/0.md"),
        (3200, "notes/1.md"),
    ]


def test_a_long_text_of_numbers_is_read_once() -> None:
    """Reading what stands before each number anew would take minutes."""
    text = " ".join(f"The Oder {number} km" for number in range(200_000))
    assert found_in("length of the Oder", text) == []
