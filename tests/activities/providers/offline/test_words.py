"""Units, figures and attributes: tables that are read as they are meant."""

import re

import pytest

from activities.providers.offline.words import FIGURE, figure_of, named, read_phrase, unit_of, written


@pytest.mark.parametrize(
    ("text", "value", "symbol"),
    [
        ("2,850 kilometres", 2850, "km"),
        ("6650km", 6650, "km"),
        ("14-kilometer", 14, "km"),
        ("-252.9 °C", -252.9, "°C"),
        ("\u22125 degrees Celsius", -5, "°C"),
        ("3.4 million square kilometres", 3.4e6, "km²"),
        ("7 km2", 7, "km²"),
        ("2,830 cubic metres per second", 2830, "m³/s"),
        ("112 km/h", 112, "km/h"),
        ("20.5 meters per second", 20.5, "m/s"),
        ("19.3 grams per cubic centimetre", 19.3, "g/cm³"),
        ("641.7 quintillion tonnes", 6.417e20, "t"),
        ("14,048,000", 14048000, ""),
        ("1 foot", 1, "ft"),
    ],
)
def test_a_figure_is_read_with_its_unit(text: str, value: float, symbol: str) -> None:
    match = re.fullmatch(FIGURE, text)
    assert match
    read, unit = figure_of(match)
    assert read == pytest.approx(value)
    assert unit.symbol == symbol


@pytest.mark.parametrize(
    ("value", "symbol", "text"),
    [
        (6650, "km", "6,650 km"),
        (6.417e23, "kg", "6.417e+23 kg"),
        (-110, "°C", "-110 °C"),
        (40, "%", "40%"),
        (14048000, "", "14,048,000"),
        (0, "m", "0 m"),
    ],
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


def test_what_names_nothing_is_none() -> None:
    assert (read_phrase("everything"), named("5 things"), unit_of("furlong")) == (None, None, None)
