"""Which figure a document gives for a thing, and which it only mentions."""

import pytest

from activities.providers.offline.extract import Wanted, extract
from activities.providers.offline.sentences import Passage
from activities.providers.offline.words import named


def find(attribute: str, subject: str, title: str, text: str, year: int | None = None) -> dict[str, object]:
    known = named(attribute)
    assert known is not None
    return extract(Wanted(known, subject, known.unit, year), [Passage("notes/x.md", title, text)])


@pytest.mark.parametrize(
    ("attribute", "subject", "title", "text", "value", "unit"),
    [
        ("length", "the Oder", "Oder", "The Oder is 854 km long.", 854, "km"),
        ("height", "the Palace", "Palace", "The Palace stands 2 km from the station and is 80 m tall.", 80, "m"),
        (
            "year completed",
            "the Palace",
            "Palace",
            "The Palace was completed in 1955 and rebuilt in 1990.",
            1955,
            "year",
        ),
        (
            "length",
            "the Oder",
            "Oder",
            "The Oder flows 854 km through three countries and drains 119,074 km².",
            854,
            "km",
        ),
        ("length", "the Oder", "Oder", "The Oder stretches over 0.8 thousand kilometres.", 800, "km"),
        ("length", "the river Oder", "Oder", "With a length of 854 km, the Oder is a river of Poland.", 854, "km"),
        (
            "length",
            "Oder",
            "Oder",
            "Its longest tributary, the Warta, runs for 808 km. The river is 854 km long.",
            854,
            "km",
        ),
        ("length", "the Oder", "Oder", "The Oder Delta is 60 km long. The length of the Oder is 854 km.", 854, "km"),
        ("length", "the Oder", "Oder", "The length of the Warta is 808 km. The Oder's length is 854 km.", 854, "km"),
        ("length", "the Oder", "Rivers", "The Warta is 808 km long, while the Oder is 854 km long.", 854, "km"),
        ("length", "the Oder", "Oder", "**Length:** 854 km\n**Basin:** 119,074 km2", 854, "km"),
        ("length", "the Oder", "Oder", "The Oder was 900 km long in 1800. It is 854 km long as of 2020.", 854, "km"),
        (
            "height",
            "Mount Rysy",
            "Rysy",
            "Rysy is 2,501 metres high; its north summit is 2,499 metres high.",
            2501,
            "m",
        ),
        (
            "height",
            "Rysy",
            "Mount Rysy",
            "Mount Rysy's south summit is 2,473 m high. Its height is 2,501 m.",
            2501,
            "m",
        ),
        (
            "height",
            "the Palace",
            "Palace",
            "The Palace is 12 metres taller than the Hall. The Palace is 80 metres tall.",
            80,
            "m",
        ),
        (
            "height",
            "the Palace",
            "Palace",
            "Its antenna is 24 m tall. The Palace, completed in 1990, stands 180 metres tall.",
            180,
            "m",
        ),
        ("height", "the Palace", "Palace", "The Palace was once 120 m tall. Today it is 95 m tall.", 95, "m"),
        ("height", "Tower 101", "Tower 101", "Tower 101 is 508 metres tall.", 508, "m"),
        (
            "depth",
            "Lake Blue",
            "Lake Blue",
            "Lake Blue has an average depth of 30 m and a maximum depth of 90 m.",
            90,
            "m",
        ),
        (
            "average depth",
            "Lake Blue",
            "Lake Blue",
            "Lake Blue has an average depth of 30 m and a maximum depth of 90 m.",
            30,
            "m",
        ),
        ("area", "Lake Blue", "Lake Blue", "Lake Blue covers 5,000 acres.", 20.234282112, "km²"),
        (
            "population",
            "Łódź",
            "Lodz",
            "The metropolitan area has 1.1 million inhabitants. The city's population was 670,642.",
            670642,
            "",
        ),
        (
            "population",
            "Lodz",
            "Łódź",
            "In 2010, Lodz had a population of 737,098. In 2021, Lodz had a population of 670,642.",
            670642,
            "",
        ),
        ("population", "Lodz", "Łódź", "Łódź had a population of 670,642 in 2021, after 793,217 in 2002.", 670642, ""),
        ("population", "Hel", "Hel", "Hel is home to 1.5 million people (2020 census).", 1500000, ""),
        (
            "population",
            "Hel",
            "Hel",
            "Hel has a population of 3,200. It has a population density of 150 people per square kilometre.",
            3200,
            "",
        ),
        (
            "population density",
            "Hel",
            "Hel",
            "Hel has a population of 3,200 and a population density of 150 people per square kilometre.",
            150,
            "people/km²",
        ),
        ("number of floors", "the Palace", "Palace", "The Palace has 42 floors above the ground.", 42, ""),
        (
            "mass",
            "the wisent",
            "Wisent",
            "A wisent calf weighs 24 kg. The wisent can weigh up to 0.9 tonnes.",
            900,
            "kg",
        ),
        ("speed", "an emu", "Common emu", "The common emu reaches 31 mph.", 49.889664, "km/h"),
        ("life span", "the wisent", "Wisent", "The wisent can live for about 24 years.", 24, "years"),
        (
            "melting point",
            "tin",
            "Tin",
            "Tin melts at 231.9 degrees Celsius and boils at 2,602 degrees Celsius.",
            231.9,
            "°C",
        ),
        (
            "boiling point",
            "tin",
            "Tin",
            "Tin melts at 231.9 degrees Celsius and boils at 2,602 degrees Celsius.",
            2602,
            "°C",
        ),
        ("temperature", "Hel", "Hel", "The temperature of Hel is 14 °F.", -10, "°C"),
        (
            "distance from the Sun",
            "Ceres",
            "Ceres",
            "Ceres is 414 million kilometres from the Sun and 263 million from Earth.",
            414000000,
            "km",
        ),
        ("orbital period", "Ceres", "Ceres", "Ceres takes 1,682 days to orbit the Sun.", 1682, "days"),
        ("wingspan", "the condor", "Andean condor", "The Andean condor has a wingspan of up to 3.3 m.", 3.3, "m"),
        ("price", "the Palace", "Palace", "The Palace cost $5.2 million to build.", 5200000, "$"),
        (
            "year completed",
            "the Palace",
            "Palace",
            "Work began in 1870. The Palace was completed in 1883 and opened in 1884.",
            1883,
            "year",
        ),
        ("year opened", "the Palace", "Palace", "It was inaugurated on 27 May 1937.", 1937, "year"),
        ("year founded", "Hel", "Hel", "Hel was founded in AD 47, give or take a few years.", 47, "year"),
        ("year first climbed", "Rysy", "Rysy", "The mountain was first climbed in 1840.", 1840, "year"),
        ("age", "the Palace", "Palace", "The Palace was completed in 1955.", 1955, "year"),
        ("height", "Hel", "Hel", "Hel lies at an elevation of about 3 metres.", 3, "m"),
    ],
)
def test_the_figure_of_the_thing_itself_is_found(
    attribute: str, subject: str, title: str, text: str, value: float, unit: str
) -> None:
    found = find(attribute, subject, title, text)
    assert found["found"], found
    assert (found["value"], found["unit"]) == (pytest.approx(value), unit)
    assert str(found["quote"]) in text.replace("\n", " ").replace("*", "") or "|" in text


@pytest.mark.parametrize(
    ("attribute", "subject", "title", "text"),
    [
        ("length", "the Oder", "Oder", "The Oder is joined by the Warta, which is 808 km long."),
        ("length", "the Oder", "Oder", "Its delta is 60 km long, and the Oder Canal is 41 km long."),
        ("length", "the Oder", "Oder", "The Oder is 250 km longer than the Warta."),
        ("length", "the Oder", "Warta", "It is second to the Oder, at 854 km, and reaches 808 km in length."),
        ("length", "the Oder", "Oder", "The Oder is 854 m wide."),
        ("height", "the Palace", "Palace", "The Palace is 400 m long."),
        ("height", "Nida", "Blue Nida", "Blue Nida is 20 m high."),
        ("population", "York", "New York City", "New York City had a population of 8,804,000 in 2020."),
        ("population", "Lodz", "Łódź", "The metropolitan area has 1.1 million inhabitants."),
        ("population", "the Palace", "Palace", "About 1,500 people worked on the project for 40 months."),
        ("depth", "Lake Blue", "Lake Blue", "Lake Blue has an average depth of 30 m."),
        ("year completed", "the Palace", "Palace", "The Palace burnt down in 1912."),
        ("number of moons", "Ganymede", "Jupiter", "Jupiter has 97 known moons."),
        ("length", "the Warta", "Rivers", "The Oder (854 km long) is joined by the Warta (808 km long)."),
        ("length", "the Oder", "Warta", "The Warta, unlike the Oder with its 854 km long course, is short."),
        ("length", "the Oder", "Oder", "| Property | Value |\n|---|---|\n| Length | 854 km |\n| Basin | 5 km² |"),
        (
            "length",
            "the Oder",
            "Rivers",
            "| River | Length (km) | Basin (km²) |\n|---|---|---|\n| Warta | 808 | 54,529 |\n| Oder | 854 | 119,074 |",
        ),
        ("drainage basin", "the Oder", "Oder", "The Oder basin covers 119,074 km². The Oder is 854 km long."),
        ("length", "the Oder", "Oder", "The Oder is between 850 and\n858 km long."),
        ("height", "Rysy", "Rysy", "At 2,501 metres (8,205 ft), Rysy is the highest mountain of Poland."),
        ("population", "Hel", "Hel", "1500 people live in Hel."),
        ("number of moons", "Venus", "Venus", "Venus has no moons."),
        ("number of legs", "a spider", "Spider", "Spiders have eight legs."),
        ("year completed", "the Palace", "Palace", "The Palace was built between 1870 and 1883."),
        ("age", "the Palace", "Palace", "The Palace is 120 years old."),
        ("height", "the Ariel 5", "Rockets", "The Ariel 5 rocket is 46 metres tall."),
        ("mass", "rex", "Pets", "Our small dog Rex weighs 8 kg."),
        ("speed", "the Batory", "MS Batory", "- Length: 160.3 m\n- Speed: 20 knots"),
        ("height", "Nida", "Nida", "Nida stands in the plain, some 15 kilometres from the border."),
        ("height", "the Palace", "Palace", "The Palace stands 2 km from the station."),
        ("depth", "Lake Blue", "Lake Blue", "Lake Blue is not 90 m deep."),
        ("year completed", "the Palace", "Palace", "The Palace was not completed in 1955."),
        ("year completed", "the Palace", "Palace", "The Palace's west wing was completed in 1960."),
        ("number of floors", "the Palace", "Palace", "The Palace has 3 underground floors."),
        ("number of moons", "Mars", "Mars", "Mars has fewer than 3 moons."),
        ("length", "the Oder", "Oder", "The Oder and the Warta are 1,662 km long together."),
        ("length", "the Oder", "Oder", "Length of the delta: 60 km"),
        ("area", "Hel", "Hel", "The lake near Hel covers 5 square kilometres."),
        ("population", "Paris", "Paris", "The Paris region had a population of 12,000,000 in 2020."),
    ],
)
def test_a_figure_of_something_else_is_never_taken(attribute: str, subject: str, title: str, text: str) -> None:
    found = find(attribute, subject, title, text)
    assert found["found"] is False, found
    assert found["looked_in"] == ["notes/x.md"]


def test_a_finding_carries_all_that_an_answer_needs() -> None:
    text = "The Oder is about 854 kilometres long, as of 2020.\n\nSome older books give 912 kilometres."
    assert find("length", "the oder", "Oder", text) == {
        "found": True,
        "subject": "the oder",
        "name": "the Oder",
        "attribute": "length",
        "value": 854,
        "unit": "km",
        "text": "854 kilometres",
        "year": 2020,
        "quote": "The Oder is about 854 kilometres long, as of 2020.",
        "source": "notes/x.md",
        "differs": "Some older books give 912 kilometres.",
    }


def test_only_the_year_asked_for_counts() -> None:
    text = "In 2010, Hel had a population of 3,900. In 2021, Hel had a population of 3,200."
    assert find("population", "Hel", "Hel", text, 2010)["value"] == 3900
    assert find("population", "Hel", "Hel", text, 1950)["reason"] == "no passage gives the population of Hel in 1950"


def test_two_things_that_could_be_meant_are_named_instead_of_guessed() -> None:
    known = named("mass")
    assert known is not None
    passages = [
        Passage("a.md", "African elephant", "The African elephant weighs 6,000 kg."),
        Passage("b.md", "Asian elephant", "The Asian elephant weighs 4,000 kg."),
    ]
    found = extract(Wanted(known, "elephant"), passages)
    assert found["reason"] == "several documents could be meant: African elephant, Asian elephant"
