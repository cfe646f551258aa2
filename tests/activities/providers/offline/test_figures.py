"""Which figure a document gives for a thing, and which it only mentions."""

from typing import Any

import pytest

from sennit.activities.providers.offline.figures import core, find, measure, unit_of, written
from sennit.activities.providers.offline.statements import Passage, stems


def found_in(phrase: str, title: str, *texts: str, unit: str = "") -> dict[str, Any]:
    prop, _, subject = phrase.rpartition(" of ")
    passages = [Passage(f"notes/{place}.md", title, text) for place, text in enumerate(texts)]
    return find(stems(f"{prop} {core(subject)}"), unit or measure(stems(prop)), passages)


@pytest.mark.parametrize("name", ["km", "kilometers", "Kilometre"])
def test_a_unit_is_known_by_its_names(name: str) -> None:
    assert unit_of(name) == ("km", "length", 1000)


@pytest.mark.parametrize(
    ("value", "symbol", "text"),
    [(6650, "km", "6,650 km"), (6.417e23, "kg", "6.417e+23 kg"), (-0.5, "°C", "-0.5 °C"), (14048000, "", "14,048,000")],
)
def test_values_are_written_as_people_write_them(value: float, symbol: str, text: str) -> None:
    assert written(value, symbol) == text


@pytest.mark.parametrize(
    ("phrase", "title", "text", "value", "unit"),
    [
        ("length of the Oder", "Oder", "The Oder is about 854 km long.", 854, "km"),
        ("length of the river Oder", "Rivers", "The Oder is 854,000 metres long.", 854, "km"),
        ("length of the Oder", "Oder", "The length of the Warta is 808 km. The Oder's length is 854 km.", 854, "km"),
        ("length of the Oder", "Oder", "**Length:** 854 km\n**Basin:** 119,074 km2", 854, "km"),
        ("length of the Oder", "Oder", "- Length: about 854 km\n- Mouth: 12 m", 854, "km"),
        ("length of the Oder", "Oder", "The Oder was 900 km long in 1800. The Oder is 854 km long now.\n", 854, "km"),
        (
            "height of Mount Rysy",
            "Rysy",
            "Rysy is 2,501 metres high; its north summit is 2,499 metres high.",
            2501,
            "m",
        ),
        ("height of the Palace", "Palace", "The Palace, completed in 1990, is 180 metres tall.", 180, "m"),
        ("area of Lake Blue", "Lake Blue", "Lake Blue covers 5,000 acres.", 20.2343, "km²"),
        ("population of Hel", "Hel", "Hel is home to 1.5 million people (2020 census).", 1_500_000, ""),
        ("population of Hel", "Hel", "Hel has about 3,200 inhabitants.", 3200, ""),
        (
            "mass of the wisent",
            "Wisent",
            "A wisent calf weighs 24 kg. The wisent can weigh up to 0.9 tonnes.",
            900,
            "kg",
        ),
        ("melting point of tin", "Tin", "Tin melts at 231.9 degrees Celsius and boils soon.", 231.9, "°C"),
        ("price of the Pro plan", "Prices", "The Pro plan costs 29 euros a month.", 29, "€ per month"),
        ("price of Pro", "Prices", "Pro is expensive. The price of Pro is $1,200.", 1200, "$"),
        ("rent of the office", "Office", "Rent for the office is 4,200 euros a month.", 4200, "€ per month"),
        ("number of desks of the office", "Office", "The office has 22 desks.", 22, ""),
        (
            "price of a service",
            "Prices",
            "| what | price |\n|---|---|\n| service | €52 |\n| big service | €90 |",
            52,
            "€",
        ),
        ("length of the Oder", "Oder", "| River | Length (km) |\n|---|---|\n| Oder | 854 |", 854, "km"),
        ("number of floors of Taipei 101", "Taipei 101", "Taipei 101 has 99 floors.", 99, ""),
    ],
)
def test_a_figure_counts_only_if_the_sentence_plainly_gives_it(
    phrase: str, title: str, text: str, value: float, unit: str
) -> None:
    found = found_in(phrase, title, text)
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
        ("length of the Oder", "Oder", "The Oder is 5½ km long."),
        ("height of the Ariel", "Rockets", "The Ariel rocket is 46 metres tall."),
        ("population of York", "New York City", "New York City had a population of 8,804,000 in 2020."),
        ("number of moons of Mars", "Mars", "Mars has fewer than 3 moons."),
        ("length of the Oder", "Oder", "The Oder is not 854 km long."),
        ("depth of the Oder", "Oder", "The Oder has an average depth of 3 m."),
        ("height of Rysy", "Rysy", "The hut on Rysy is 2,250 metres high."),
        ("price of Pro", "Prices", "Pro users cost 29 euros."),
        ("price of Pro", "Prices", "Does Pro cost 29 euros?"),
        ("length of the Oder", "Oder", "The Oder is 5 km and 300 m long."),
        ("price of Pro", "Prices", "Pro costs 29 euros less than Team."),
    ],
)
def test_a_figure_of_something_else_is_never_taken(phrase: str, title: str, text: str) -> None:
    assert found_in(phrase, title, text)["found"] is False


def test_a_finding_carries_all_that_an_answer_needs() -> None:
    text = "The Oder is about 854 kilometres long, as of 2020.\n\nSome older books give 912 kilometres."
    assert found_in("length of the oder", "Oder", text, unit="mi") == {
        "found": True,
        "node": "",
        "value": 530.651,
        "unit": "mi",
        "year": 2020,
        "quote": "The Oder is about 854 kilometres long, as of 2020.",
        "source": "notes/0.md",
    }


def test_of_several_years_the_latest_counts_and_of_several_figures_none() -> None:
    old, new = "Hel had a population of 3,900 in 2010.", "Hel had a population of 3,200 in 2021."
    assert found_in("population of Hel", "Hel", old, new)["value"] == 3200
    near = found_in("population of Hel", "Hel", old, "Hel has a population of 3,000.")["near"]
    assert [fact["quote"] for fact in near] == [old, "Hel has a population of 3,000."]
