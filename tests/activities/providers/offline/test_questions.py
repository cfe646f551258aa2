"""What a goal asks, read by its wording alone; and what is refused instead of answered by half."""

import pytest

from activities.providers.offline.questions import NotUnderstood, Question, questions

AB = ("the Oder", "the Warta")


def one(goal: str) -> Question:
    (found,) = questions(goal)
    return found


@pytest.mark.parametrize(
    ("goal", "attribute", "subject"),
    [
        ("What is the length of the Oder?", "length", "the Oder"),
        ("How long is the Oder?", "length", "the Oder"),
        ("Please tell me how long the Oder is.", "length", "the Oder"),
        ("What's the Oder's length?", "length", "the Oder"),
        ("how long is the oder", "length", "the oder"),
        ("How long is the Bridge of Sighs?", "length", "the Bridge of Sighs"),
        ("How high is Rysy?", "height", "Rysy"),
        ("How deep is Lake Blue?", "depth", "Lake Blue"),
        ("How old is the Palace?", "year of origin", "the Palace"),
        ("How many people live in Hel?", "population", "Hel"),
        ("How much does a wisent weigh?", "mass", "a wisent"),
        ("How fast can a wisent run?", "speed", "a wisent"),
        ("How long does a wisent live?", "life span", "a wisent"),
        ("How many moons does Ceres have?", "number of moons", "Ceres"),
        ("How many floors are in the Palace?", "number of floors", "the Palace"),
        ("How far is Ceres from the Sun?", "distance from the Sun", "Ceres"),
        ("How long does Ceres take to orbit the Sun?", "orbital period", "Ceres"),
        ("How long is a day on Ceres?", "length of a day", "Ceres"),
        ("At what temperature does tin melt?", "melting point", "tin"),
        ("What is the melting point of tin?", "melting point", "tin"),
        ("When was the Palace completed?", "year completed", "the Palace"),
        ("In which year was Hel founded?", "year founded", "Hel"),
        ("What is the average depth of Lake Blue?", "average depth", "Lake Blue"),
    ],
)
def test_a_look_up_names_a_property_and_a_thing(goal: str, attribute: str, subject: str) -> None:
    found = one(goal)
    assert found.attribute is not None
    assert (found.shape, found.attribute.name, found.subjects) == ("lookup", attribute, (subject,))


@pytest.mark.parametrize(
    ("goal", "attribute", "sign"),
    [
        ("Which is longer, the Oder or the Warta?", "length", 1),
        ("Which river is shorter: the Oder or the Warta?", "length", -1),
        ("Which of the Oder and the Warta is the longest?", "length", 1),
        ("Of the Oder and the Warta, which is longer?", "length", 1),
        ("Which has more bridges, the Oder or the Warta?", "number of bridges", 1),
        ("Which has the larger drainage basin, the Oder or the Warta?", "drainage basin", 1),
        ("Which is closer to the sea, the Oder or the Warta?", "distance from the sea", -1),
        ("Which was completed first, the Oder or the Warta?", "year completed", -1),
        ("Which is older, the Oder or the Warta?", "year of origin", -1),
        ("Which is more populous, the Oder or the Warta?", "population", 1),
        ("Compare the lengths of the Oder and the Warta.", "length", 1),
        ("Compare the length of the Oder with that of the Warta.", "length", 1),
        ("Compare the Oder and the Warta by length.", "length", 1),
    ],
)
def test_a_comparison_names_what_decides_and_which_way(goal: str, attribute: str, sign: int) -> None:
    found = one(goal)
    assert found.attribute is not None
    assert (found.shape, found.attribute.name, found.subjects, found.sign) == ("compare", attribute, AB, sign)


@pytest.mark.parametrize(
    ("goal", "shape", "subjects"),
    [
        ("How much longer is the Oder than the Warta?", "difference", AB),
        ("By how much is the Oder longer than the Warta?", "difference", AB),
        ("How many kilometres longer is the Oder than the Warta?", "difference", AB),
        ("What is the difference between the lengths of the Oder and the Warta?", "difference", AB),
        ("What is the difference in length between the Oder and the Warta?", "difference", AB),
        ("How much higher is the melting point of tin than that of lead?", "difference", ("tin", "lead")),
        ("How many more moons does Ceres have than Vesta?", "difference", ("Ceres", "Vesta")),
        ("How many times longer is the Oder than the Warta?", "ratio", AB),
        ("How many times as long as the Warta is the Oder?", "ratio", AB),
        ("How many times as long is the Oder as the Warta?", "ratio", AB),
        ("What is the ratio of the length of the Oder to that of the Warta?", "ratio", AB),
        ("What is the combined length of A, B and C?", "sum", ("A", "B", "C")),
        ("How long are A and B together?", "sum", ("A", "B")),
        ("What is the total number of moons of A and B?", "sum", ("A", "B")),
        ("How many people live in A and B together?", "sum", ("A", "B")),
        ("List the lengths of A, B and C.", "list", ("A", "B", "C")),
        ("How long are A, B and C?", "list", ("A", "B", "C")),
    ],
)
def test_reckoning_keeps_the_order(goal: str, shape: str, subjects: tuple[str, ...]) -> None:
    found = one(goal)
    assert (found.shape, found.subjects) == (shape, subjects)


@pytest.mark.parametrize(
    ("goal", "by"),
    [
        ("Which is longer, the Oder or the Warta, and by how much?", "next"),
        ("Which is longer, the Oder or the Warta, and what is the difference?", "next"),
        ("Which of A, B and C is the longest, and how much longer is it than the shortest?", "last"),
        ("Which of A, B and C is the longest, and how much longer is it than the next?", "next"),
        ("Which of A, B and C is the longest, and how long is it?", ""),
    ],
)
def test_the_tail_asks_for_the_lead(goal: str, by: str) -> None:
    assert (one(goal).shape, one(goal).by) == ("compare", by)


@pytest.mark.parametrize(
    ("goal", "shape", "family", "attribute"),
    [
        ("What is the longest river?", "superlative", "river", "length"),
        ("Which river is the shortest?", "superlative", "river", "length"),
        ("Which planet has the most moons?", "superlative", "planet", "number of moons"),
        ("What is the largest city by population?", "superlative", "city", "population"),
        ("Which element was discovered first?", "superlative", "element", "year discovered"),
        ("List the lengths of the rivers.", "list", "river", "length"),
        ("What are the heights of all mountains?", "list", "mountain", "height"),
    ],
)
def test_a_kind_of_thing_ranges_over_the_folder(goal: str, shape: str, family: str, attribute: str) -> None:
    found = one(goal)
    assert found.attribute is not None
    assert (found.shape, found.family, found.attribute.name) == (shape, family, attribute)


def test_a_unit_and_a_year_are_part_of_the_question() -> None:
    assert one("How long is the Oder in miles?").unit == "mi"
    assert one("What was the population of Hel in 1950?").year == 1950


@pytest.mark.parametrize(
    "goal",
    [
        "Who designed the Palace?",
        "Where does the Oder rise?",
        "What is the capital of Poland?",
        "What is the longest river in Africa?",
        "Tell me about the Oder.",
        "Is the Oder longer than the Warta?",
        "Which rivers are longer than 500 km?",
        "What is the second highest mountain?",
        "Which planets have no moons?",
        "How many times hotter is A than B?",
        "Which is longer, the Oder?",
        "How long are the rivers together?",
        "What is the length of the Oder and the height of Rysy?",
        "What was the population of Hel in 1900 and 2000?",
        "How much longer is the Oder than the river Oder?",
        "How many kilograms longer is the Oder than the Warta?",
        "How many cities are there?",
    ],
)
def test_any_other_question_gets_the_passages_found(goal: str) -> None:
    assert one(goal).shape == "passage"


def test_what_is_left_unread_of_a_question_is_not_dropped() -> None:
    found = questions("What is the longest river, and by how much?")
    assert [(item.shape, item.text) for item in found] == [
        ("superlative", "What is the longest river"),
        ("passage", "by how much"),
    ]


def test_several_questions_are_all_read_and_a_pronoun_is_resolved() -> None:
    found = questions("When was the Palace completed and how tall is it? How long is the Oder?")
    assert [(item.attribute.name if item.attribute else "", item.subjects) for item in found] == [
        ("year completed", ("the Palace",)),
        ("height", ("the Palace",)),
        ("length", ("the Oder",)),
    ]


@pytest.mark.parametrize(
    ("goal", "part"),
    [
        ("Write a poem about the Oder.", "Write a poem about the Oder"),
        ("Compare the Oder and the Warta.", "Compare the Oder and the Warta"),
        ("List the rivers.", "List the rivers"),
        ("What?", "What"),
        ("How long is the Oder? Write a poem.", "Write a poem"),
        ("...", "..."),
    ],
)
def test_what_asks_nothing_is_named(goal: str, part: str) -> None:
    with pytest.raises(NotUnderstood) as error:
        questions(goal)
    assert error.value.part == part
