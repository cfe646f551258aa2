"""Units and attributes: tables that are read as they are meant."""

import pytest

from activities.providers.offline.words import read_phrase, unit_of, written


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
    ("phrase", "found", "thing"),
    [
        ("length of the Nile", "length of {}", "the Nile"),
        ("lengths of the Nile", "length of {}", "the Nile"),
        ("length of the Bridge of Sighs", "length of {}", "the Bridge of Sighs"),
        ("length of a day of Mars", "length of a day of {}", "Mars"),
        ("number of moons of Mars", "number of moons of {}", "Mars"),
        ("main span of the Golden Gate Bridge", "main span of {}", "the Golden Gate Bridge"),
        ("year in which the Palace was completed", "year in which {} was completed", "the Palace"),
        ("person who first climbed K2", "person who first climbed {}", "K2"),
    ],
)
def test_a_phrase_names_an_attribute_and_a_thing(phrase: str, found: str, thing: str) -> None:
    read = read_phrase(phrase)
    assert read
    assert (read[0].phrase, read[1]) == (found, thing)
