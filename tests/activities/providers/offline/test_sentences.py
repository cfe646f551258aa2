"""Documents as sentences, and which of them say the words of a question."""

import pytest

from sennit.activities.providers.offline.sentences import Passage, nearest, says, sentences, stems


def passage(text: str, title: str = "Notes") -> Passage:
    return Passage("a.md", title, text, "")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("responsible hardware", "Chidi Okafor is responsible for hardware."),
        ("lease ends", "The leases ended in 2020."),
        ("Nile's delta long", "The Nile's delta is 240 km long."),
        ("length of the river Oder", "The Oder is long."),
        ("price of Pro", "Pro costs 29 euros."),
    ],
)
def test_a_sentence_says_words_in_any_form(words: str, text: str) -> None:
    assert says(stems(words), text)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("Nile long", "The Blue Nile is 1,450 km long."),
        ("Nile long", "The Nile's delta is 240 km long."),
        ("Tower built", "It was built in 1900."),
        ("Tower built", "The hall was built in 1900."),
        ("palace designed", "Ann Lee designed the Palace Hotel."),
    ],
)
def test_a_sentence_about_something_else_says_nothing(words: str, text: str) -> None:
    assert not says(stems(words), text)


def test_sentences_are_split_at_ends_and_not_at_abbreviations() -> None:
    text = "# Title\n\nSt. Ann met Dr. J. Lee. He said: “Go!” She went.\n- One\n- Two\nwrapped\n\n| a | b |\n"
    expected = ["St. Ann met Dr. J. Lee.", "He said: “Go!”", "She went.", "One", "Two wrapped", "| a | b |"]
    assert [each.text for each in sentences([passage(text)])] == expected


def test_a_row_and_a_key_are_sentences_of_their_own_and_a_number_at_the_end_is_no_item() -> None:
    text = "We paid €95. The rent is 20.\nOwner: Ann\nBackup: Bob\n| Pro | 5 |\n| Team | 9 |"
    expected = ["We paid €95.", "The rent is 20.", "Owner: Ann", "Backup: Bob", "| Pro | 5 |", "| Team | 9 |"]
    assert [each.text for each in sentences([passage(text)])] == expected


def test_the_nearest_sentences_share_most_words_with_the_question() -> None:
    palace = passage("Lev designed it. It has floors. Trees grow near. It is old.", "Palace")
    found = nearest(stems("Who designed the floors?"), [palace])
    assert [each.text for each in found] == ["Lev designed it.", "It has floors."]
    assert [each.text for each in nearest(stems("Anything else"), [palace])] == ["Lev designed it."]
    assert nearest(stems("Anything"), []) == []
