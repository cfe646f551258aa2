"""The example corpus keeps what examples/README.md promises about its documents."""

import re
import unicodedata
from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
DOCUMENTS = sorted(CORPUS.rglob("*.md"))

NUM = r"(?<![\d,.])-?\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\d])"
YEAR = r"(?:1\d{3}|20\d{2})"
UNIT = (
    r"(?:(?:million |square |cubic |quintillion )?(?:kilometres|metres|kilograms|tonnes|hectares)"
    r"|days|hours|minutes|years|degrees|daltons|grams|percent|floors|letters|people"
    r"|million (?:native )?speakers|moons?)\b"
)

REQUIRED = {
    "rivers": {
        "length": rf"is about {NUM} kilometres long",
        "basin": rf"has a drainage basin of about {NUM} square kilometres",
        "discharge": rf"discharges on average about {NUM} cubic metres per second",
        "mouth": r"flows into the [^,.]+",
    },
    "mountains": {
        "height": rf"is {NUM} metres high",
        "first ascent": r"was first climbed in \d{3,4}\b",
        "prominence": rf"has a topographic prominence of {NUM} metres",
    },
    "planets": {
        "diameter": rf"has a mean diameter of {NUM} kilometres",
        "mass": rf"has a mass of about {NUM} quintillion tonnes",
        "moons": rf"has {NUM} known moons? as of {YEAR}",
        "distance": rf"lies on average {NUM} million kilometres from the Sun",
        "orbit": rf"takes {NUM} days to orbit the Sun",
        "day": rf"has a day of {NUM} hours",
        "temperature": rf"has a mean temperature of about {NUM} degrees Celsius",
    },
    "elements": {
        "atomic number": rf"has the atomic number {NUM}",
        "atomic mass": rf"has an atomic mass of about {NUM} daltons",
        "melting point": rf"melts at {NUM} degrees Celsius",
        "boiling point": rf"boils at {NUM} degrees Celsius",
        "density": rf"has a density of {NUM} grams per cubic centimetre",
    },
    "languages": {
        "native speakers": rf"has about {NUM} million native speakers as of {YEAR}",
        "speakers": rf"has about {NUM} million speakers in all as of {YEAR}",
    },
    "cities": {
        "population": rf"had a population of about {NUM} in {YEAR}",
        "area": rf"covers about {NUM} square kilometres",
        "elevation": rf"lies at an elevation of about {NUM} metres",
    },
    "lakes": {
        "area": rf"has a surface area of about {NUM} square kilometres",
        "depth": rf"has a maximum depth of {NUM} metres",
        "volume": rf"holds about {NUM} cubic kilometres of water",
    },
    "buildings": {
        "height": rf"is {NUM} metres tall",
        "completed": rf"was completed in {YEAR}",
    },
    "bridges": {
        "main span": rf"has a main span of {NUM} metres",
        "length": rf"is {NUM} metres long",
        "completed": rf"was completed in {YEAR}",
    },
    "animals": {
        "top speed": rf"can reach a top speed of about {NUM} kilometres per hour",
        "weight": rf"can weigh about {NUM} kilograms",
        "life span": rf"can live for about {NUM} years",
    },
}

SMALLEST = {
    "rivers": 10,
    "mountains": 8,
    "planets": 8,
    "elements": 10,
    "languages": 6,
    "cities": 10,
    "lakes": 4,
    "buildings": 6,
    "bridges": 4,
    "animals": 4,
}

# Attributes that the world does not give to every member of the family, with the documents that go without.
OPTIONAL = {
    "elements": (rf"was discovered in {YEAR}", {"copper", "gold", "iron"}),
    "cities": (rf"was founded in (?:AD \d+|{YEAR})", {"paris"}),
    "buildings": (rf"has {NUM} floors", {"cn-tower", "eiffel-tower"}),
    "languages": (
        rf"is written with an alphabet of {NUM} letters",
        {"bengali", "hindi", "japanese", "mandarin-chinese"},
    ),
}


def title_of(text: str) -> str:
    """The words after `# ` in the first line."""
    return text.split("\n", 1)[0].removeprefix("# ")


def occurrences(text: str, sentence: str) -> tuple[int, int]:
    """How often the phrase occurs at all, and how often at a line's start after the document's own title."""
    subject = rf"^(?:The )?{re.escape(title_of(text))} "
    anchored = re.findall(subject + sentence, text, flags=re.MULTILINE | re.IGNORECASE)
    return len(re.findall(sentence, text)), len(anchored)


def test_the_corpus_is_large_enough_and_holds_only_kebab_case_markdown() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    strangers = [path for path in files if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*\.md", path.name)]
    assert strangers == []
    assert len(files) >= 60
    assert {path.parent.parent for path in files} == {CORPUS}


def test_every_family_has_enough_members_to_compare() -> None:
    assert [family for family, least in SMALLEST.items() if len(list((CORPUS / family).glob("*.md"))) < least] == []


def test_families_and_their_sentences_are_all_known() -> None:
    assert {path.parent.name for path in DOCUMENTS} == set(REQUIRED) == set(SMALLEST)


def test_no_two_documents_share_a_title() -> None:
    titles = [title_of(path.read_text("utf-8")).casefold() for path in DOCUMENTS]
    assert len(set(titles)) == len(titles)


def test_every_document_is_short_clean_text_under_one_title() -> None:
    for path in DOCUMENTS:
        text = path.read_bytes().decode("utf-8", errors="strict")
        lines = text.split("\n")
        assert re.fullmatch(r"# \S.*\S", lines[0]), path
        assert [line for line in lines[1:] if line.startswith("#")] == [], path
        assert 60 <= len(text.split()) <= 260, path
        assert max(map(len, lines)) <= 400, path
        assert unicodedata.normalize("NFC", text) == text, path
        assert [char for char in text if char != "\n" and unicodedata.category(char).startswith("C")] == [], path
        assert text.endswith("\n"), path
        assert [line for line in lines[1:] if line != line.strip() or (line and not line.endswith((".", "?")))] == [], (
            path
        )


def test_every_document_states_numbers_with_units_and_a_year_and_no_bare_ones() -> None:
    for path in DOCUMENTS:
        text = path.read_text("utf-8")
        assert len(re.findall(rf"{NUM} {UNIT}", text)) >= 2, path
        assert [year for year in re.findall(rf"\b{YEAR}\b", text) if 1500 <= int(year) <= 2026], path
        bare = re.findall(r"(?<![\d.,])\d{4,}(?![\d])", text)
        assert [number for number in bare if not 1000 <= int(number) <= 2026] == [], path


def test_each_attribute_of_the_family_is_stated_exactly_once_of_the_subject_itself() -> None:
    for path in DOCUMENTS:
        text = path.read_text("utf-8")
        for attribute, sentence in REQUIRED[path.parent.name].items():
            assert occurrences(text, sentence) == (1, 1), (path, attribute)


@pytest.mark.parametrize("family", OPTIONAL)
def test_an_optional_attribute_is_stated_once_or_known_to_be_absent(family: str) -> None:
    sentence, without = OPTIONAL[family]
    for path in (CORPUS / family).glob("*.md"):
        expected = (0, 0) if path.stem in without else (1, 1)
        assert occurrences(path.read_text("utf-8"), sentence) == expected, path.stem
