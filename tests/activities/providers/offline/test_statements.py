"""Documents as statements, and which of them carry the words of a question."""

import pytest

from sennit.activities.providers.offline.statements import Passage, carries, nearest, statements, stems


def carried(words: str, text: str, title: str = "Notes") -> list[str]:
    return [
        each.text
        for each in statements(Passage("a.md", title, text))
        if carries(stems(words), frozenset(), each) is not None
    ]


@pytest.mark.parametrize(
    ("words", "title", "text"),
    [
        ("responsible hardware", "Notes", "Chidi Okafor is responsible for hardware."),
        ("owns billing service", "Billing service", "Owner: Priya Natarajan"),
        ("price backups", "Prices", "| Add-on | Price |\n|---|---|\n| Backups | 5 |"),
        ("decide logo", "Board", "## Decisions\n\n- Keep the old logo."),
        ("lease ends", "Notes", "The leases ended in 2020."),
        ("Nile's delta long", "Nile", "The Nile's delta is 240 km long."),
    ],
)
def test_a_statement_carries_words_itself_or_by_what_it_is_said_of(words: str, title: str, text: str) -> None:
    assert len(carried(words, text, title)) == 1


@pytest.mark.parametrize(
    ("words", "title", "text"),
    [
        ("Nile long", "Nile", "The Blue Nile is 1,450 km long."),
        ("Nile long", "Nile", "The Nile's delta is 240 km long."),
        ("Tower built", "Tower", "Next to it stands the Hall. It was built in 1900."),
        ("Tower built", "Tower", "The hall was built in 1900."),
        ("palace designed", "Notes", "Ann Lee designed the Palace Hotel."),
        ("hardware", "Hardware", "Prices rose."),
    ],
)
def test_a_statement_about_something_else_carries_nothing(words: str, title: str, text: str) -> None:
    assert carried(words, text, title) == []


def test_sentences_are_split_at_ends_and_not_at_abbreviations() -> None:
    text = "# Title\n\nSt. Ann met Dr. J. Lee. He said: “Go!” She went.\n- One\n- Two\nwrapped\n\n| a | b |\n"
    expected = ["St. Ann met Dr. J. Lee.", "He said: “Go!”", "She went.", "One", "Two wrapped"]
    assert [each.text for each in statements(Passage("a.md", "A", text))] == expected


def test_the_nearest_sentences_share_most_words_with_the_question() -> None:
    passage = Passage("a.md", "Palace", "Lev designed it. It has floors. Trees grow near. It is old.")
    assert [each.text for each in nearest("Who designed the floors?", [passage], 2)] == [
        "Lev designed it.",
        "It has floors.",
    ]
    assert [each.text for each in nearest("Anything else", [passage])] == ["Lev designed it."]
    assert nearest("Anything", []) == []


def test_a_long_paragraph_is_read_sentence_by_sentence() -> None:
    """Each asks what stands before it; reading all of that each time would take minutes."""
    text = " ".join(f"The rate of part {number} is {number} euros." for number in range(4_000))
    assert carried("rate yacht", text) == []
    assert carried("rate yacht", f"We have a yacht. {text}")[:1] == ["The rate of part 0 is 0 euros."]
