"""What a goal asks, read by its wording alone; what is not read as a whole is not read at all."""

import pytest

from sennit.activities.providers.offline.questions import Comparison, LookUp, question

AB, ABC = ("the Oder", "the Warta"), ("the Oder", "the Warta", "the Bug")


@pytest.mark.parametrize(
    ("goal", "words", "right", "wrong"),
    [
        ("When does the lease end?", {"leas", "end"}, "The lease ends in 2030.", "The lease ends soon."),
        ("How many people work in Porto?", {"population", "work", "porto"}, "9 people.", "Some people since 2020."),
        ("How long is the Oder?", {"long", "oder"}, "It is 854 km long.", "It is long."),
        ("How much does the Pro plan cost?", {"cost", "pro", "plan"}, "It costs $5.", "It costs little."),
        ("What does the Pro plan cost?", {"pro", "plan", "cost"}, "It costs $5.", "It costs little."),
        ("What is the melting point of tin?", {"tin"}, "At 231 °C.", "It melts."),
        ("How many floors has Taipei 101?", {"floor", "101"}, "Of 99 floors.", "Taipei 101 has some."),
        ("Who owns the van?", {"own", "van"}, "Ann owns the van.", "The van is owned by Ann."),
        ("Who is the owner of X?", {"owner", "x"}, "The owner of X is Ann.", "The owner of X called."),
        ("Who is responsible for x?", {"responsibl", "x"}, "Ann is responsible for x.", "We are responsible for x."),
    ],
)
def test_a_look_up_names_words_and_how_an_answer_looks(goal: str, words: set[str], right: str, wrong: str) -> None:
    found = question(goal)
    assert isinstance(found, LookUp)
    assert words <= found.words
    assert found.form.search(right)
    assert not found.form.search(wrong)


@pytest.mark.parametrize(
    ("goal", "noun", "subjects", "wins", "least"),
    [
        ("Which is longer, the Oder or the Warta?", "length", AB, "is longer", False),
        ("Which of the Oder and the Warta is the longest?", "length", AB, "is the longest", False),
        ("Which is the lowest of the Oder, the Warta and the Bug?", "height", ABC, "is the lowest", True),
        ("Which is cheaper, the Oder or the Warta?", "price", AB, "is cheaper", True),
        ("Which is more expensive, the Oder or the Warta?", "price", AB, "is more expensive", False),
        ("Compare the lengths of the Oder and the Warta.", "lengths", AB, "has the greatest lengths", False),
        ("How much longer is the Oder than the Warta?", "length", AB, "is longer", False),
        (
            "What is the difference between the lengths of the Oder and the Warta?",
            "lengths",
            AB,
            "has the greatest lengths",
            False,
        ),
        ("Which is longer, the Oder or the Warta, and by how much?", "length", AB, "is longer", False),
        (
            "Which of the Oder, the Warta and the Bug is the longest, and how much longer is it than the shortest?",
            "length",
            ABC,
            "is the longest",
            False,
        ),
    ],
)
def test_a_comparison_names_what_decides_and_which_way(
    goal: str, noun: str, subjects: tuple[str, ...], wins: str, least: bool
) -> None:
    found = question(goal)
    assert isinstance(found, Comparison)
    assert (found.property, tuple(found.subjects.values()), found.adds) == (noun, subjects, False)
    assert (found.wins, found.least) == (wins, least)


def test_a_sum_names_what_is_added() -> None:
    found = question("What is the combined length of the Oder, the Warta, and the Bug?")
    assert isinstance(found, Comparison)
    assert (found.property, tuple(found.subjects.values()), found.adds) == ("length", ABC, True)


@pytest.mark.parametrize(
    "goal",
    [
        "How much longer is the Oder than the river Oder?",
        "How long is the Oder, and who has measured it?",
        "How long is the Oder? How high is K2?",
        "How much more does the Oder cost than the Warta?",
        "Is the Oder longer than the Warta?",
        "Why is the Oder long?",
        "Where is the Oder?",
        "Write a poem about the Oder.",
        "What?",
        "When is it?",
        "",
        "How long is the Oder" + " and the Oder" * 100,
    ],
)
def test_any_other_goal_is_left_to_a_model(goal: str) -> None:
    assert question(goal) is None
