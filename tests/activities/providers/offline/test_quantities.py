"""Figures in running text: numbers, scales, units, ranges, years; and how they are written back."""

import pytest

from activities.providers.offline.quantities import quantities, written
from activities.providers.offline.units import COUNT, YEAR, convert, unit_of, usual


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("about 2,850 kilometres long", [(2850, "km")]),
        ("6650km long", [(6650, "km")]),
        ("a 14-kilometre-long tunnel", [(14, "km")]),
        ("5,972 quintillion tonnes (5.972 \u00d7 10^24 kilograms)", [(5.972e21, "t"), (5.972e24, "kg")]),
        ("5.97\u00d710²⁴ kg and 1.9e27 kg", [(5.97e24, "kg"), (1.9e27, "kg")]),
        ("at -252.9 °C, \u22125 °C or minus 3 K", [(-252.9, "°C"), (-5, "°C"), (-3, "K")]),
        ("3.4 million square kilometres, 12 sq km, 7 km2", [(3.4e6, "km²"), (12, "km²"), (7, "km²")]),
        ("2,830 cubic metres per second", [(2830, "m³/s")]),
        ("70 mph, 112 km/h, 20.5 metres per second", [(70, "mph"), (112, "km/h"), (20.5, "m/s")]),
        ("19.3 grams per cubic centimetre", [(19.3, "g/cm³")]),
        ("32 people per square kilometre", [(32, "people/km²")]),
        ("$5.2 million, US$ 30 and €7", [(5.2e6, "$"), (30, "$"), (7, "€")]),
        ("between 800 and 810 km", []),
        ("800\u2013810 km or 10 to 20 metres", []),
        ("population of 14,048,000 in 2020", [(14048000, ""), (2020, "year")]),
        ("opened on 27 May 1937", [(27, ""), (1937, "year")]),
        ("founded in AD 47, refounded 753 BC", [(47, "year")]),
        ("from 1914-1918, since 2020-05-27", []),
        ("the 87th floor, the 1990s, K2 and 10:30", []),
        ("6 metres a day and 1,010 metres in a minute", []),
    ],
)
def test_figures_are_read_with_their_unit(text: str, found: list[tuple[float, str]]) -> None:
    assert [(item.value, item.unit.symbol) for item in quantities(text) if not item.vague] == found


@pytest.mark.parametrize(
    ("value", "symbol", "text"),
    [
        (6650, "km", "6,650 km"),
        (6.417e23, "kg", "6.417e+23 kg"),
        (-110, "°C", "-110 °C"),
        (0.00008988, "g/cm³", "0.00008988 g/cm³"),
        (1, "years", "1 year"),
        (40, "%", "40%"),
        (5e6, "$", "$5,000,000"),
    ],
)
def test_values_are_written_as_people_write_them(value: float, symbol: str, text: str) -> None:
    unit = unit_of(symbol)
    assert unit is not None
    assert written(value, unit) == text


def test_counts_and_years_have_no_unit_behind_them() -> None:
    assert [written(14048000), written(1889, YEAR), written(7, COUNT)] == [
        "14,048,000",
        "1889",
        "7",
    ]


def test_units_convert_within_their_dimension_only() -> None:
    km, mile, celsius, fahrenheit = (unit_of(name) for name in ("km", "miles", "degrees Celsius", "°F"))
    assert km is not None
    assert mile is not None
    assert celsius is not None
    assert fahrenheit is not None
    assert convert(10, mile, km) == pytest.approx(16.09344)
    assert convert(212, fahrenheit, celsius) == pytest.approx(100)
    with pytest.raises(ValueError, match="km measures length, °C temperature"):
        convert(1, km, celsius)


def test_every_dimension_has_a_usual_unit() -> None:
    assert {name: (unit.symbol if (unit := usual(name)) else None) for name in ("length", "area", "speed", "time")} == {
        "length": "m",
        "area": "km²",
        "speed": "km/h",
        "time": "days",
    }
