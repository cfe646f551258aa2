"""What a goal asks, read by its wording alone; what is not read as a whole is not read at all."""

import pytest

from sennit.activities.providers.offline.questions import question

AB, ABC = ("the Oder", "the Warta"), ("A", "B", "C")


@pytest.mark.parametrize(
    ("goal", "kind", "words"),
    [
        ("Who is responsible for hardware?", "person", {"own", "hardwar"}),
        ("When does the lease end?", "time", {"leas", "end"}),
        ("On what date did the Palace open?", "time", {"palac", "open"}),
        ("Why did we drop Heroku?", "reason", {"drop", "heroku"}),
        ("How many people work in Porto?", "figure", {"population", "work", "porto"}),
        ("Where is the safe?", "place", {"saf"}),
        ("What did the board decide about hiring?", "", {"board", "decide", "hir"}),
        ("How long does a restore take?", "duration", {"restor", "tak"}),
        ("How long is the Oder?", "figure", {"long", "oder"}),
        ("Please tell me what is the Oder's length?", "figure", {"long", "oder"}),
        ("How much does the Pro plan cost?", "figure", {"cost", "pro", "plan"}),
        ("How many moons does Ceres have?", "figure", {"moon", "cer"}),
        ("What is the melting point of tin?", "", {"melt", "point", "tin"}),
    ],
)
def test_a_look_up_names_words_and_what_answers(goal: str, kind: str, words: set[str]) -> None:
    found = question(goal)
    assert found
    assert (found.shape, found.subjects, found.kind) == ("lookup", (), kind)
    assert found.words == words


@pytest.mark.parametrize(
    ("goal", "noun", "sign", "wins"),
    [
        ("Which is longer, the Oder or the Warta?", "length", 1, "is longer"),
        ("Which of the Oder and the Warta is the longest?", "length", 1, "is the longest"),
        ("Which has more bridges, the Oder or the Warta?", "number of bridges", 1, "has more bridges"),
        ("Which of the Oder and the Warta has the smallest area?", "area", -1, "has the smallest area"),
        ("Which is cheaper, the Oder or the Warta?", "price", -1, "is cheaper"),
        ("Compare the lengths of the Oder and the Warta.", "lengths", 1, "has the greatest lengths"),
    ],
)
def test_a_comparison_names_what_decides_and_which_way(goal: str, noun: str, sign: int, wins: str) -> None:
    found = question(goal)
    assert found
    assert (found.shape, found.property, found.subjects) == ("compare", noun, AB)
    assert (found.sign, found.wins) == (sign, wins)


@pytest.mark.parametrize(
    ("goal", "shape", "subjects", "leads"),
    [
        ("How much longer is the Oder than the Warta?", "difference", AB, False),
        ("What is the difference between the lengths of the Oder and the Warta?", "difference", AB, False),
        ("How many more moons does Ceres have than Vesta?", "difference", ("Ceres", "Vesta"), False),
        ("What is the combined length of A, B and C?", "sum", ABC, False),
        ("What is the total price of A, B, and C?", "sum", ABC, False),
        ("Which is longer, the Oder or the Warta, and by how much?", "compare", AB, True),
        ("Which of A, B and C is the longest, and how much longer is it than the shortest?", "compare", ABC, True),
    ],
)
def test_reckoning_keeps_the_order(goal: str, shape: str, subjects: tuple[str, ...], leads: bool) -> None:
    found = question(goal)
    assert found
    assert (found.shape, found.subjects, found.leads) == (shape, subjects, leads)


def test_a_unit_is_part_of_the_question() -> None:
    found = question("How long is the Oder in miles?")
    assert found
    assert found.words == {"long", "oder"}
    assert found.unit == "mi"


@pytest.mark.parametrize(
    "goal",
    [
        "Which is larger, Berlin or Paris?",
        "Which of A, B and C is the longest, and by how much?",
        "How much longer is the Oder than the river Oder?",
        "How long is the Oder, and who has measured it?",
        "How long is the Oder? How high is K2?",
        "Is the Oder longer than the Warta?",
        "Write a poem about the Oder.",
        "What?",
        "",
    ],
)
def test_any_other_goal_is_left_to_a_model(goal: str) -> None:
    assert question(goal) is None
