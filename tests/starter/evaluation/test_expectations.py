"""What a case expects, against answers."""

from typing import Any

import pytest

from sennit.starter.evaluation.expectations import Expectation, numbers_in

CITY = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.mark.parametrize(
    ("expect", "answer"),
    [
        ({"equals": "It is Rome"}, "It is  Rome [1][2]"),
        ({"equals": 7}, "7"),
        ({"equals": 7}, 7.0),
        ({"equals": {"a": [1, True]}}, '{"a": [1, true]}'),
        ({"equals": None}, None),
        ({"contains": "nile"}, "The Nile [1]."),
        ({"contains": ["Nile", "the amazon"]}, "The Nile, then the\nAmazon"),
        ({"contains": "Rome"}, {"city": "Rome"}),
        ({"number": 6650}, "It is 6,650 km long [3]."),
        ({"number": 4805.59, "within": 1}, "4,806 metres"),
        ({"number": 0.3, "within": 0.1}, "about 0.4"),
        ({"number": -12.05}, "at −12.05 degrees"),  # noqa: RUF001
        ({"number": 3}, {"count": 3}),
        ({"number": 3}, 3),
        ({"schema": CITY}, {"name": "Rome"}),
        ({"schema": CITY}, '{"name": "Rome"}'),
        ({"schema": {"type": "string"}}, "7"),
    ],
)
def test_an_answer_that_is_as_expected(expect: dict[str, Any], answer: Any) -> None:
    assert list(Expectation.model_validate(expect).failures(answer)) == []


@pytest.mark.parametrize(
    ("expect", "answer", "why"),
    [
        ({"equals": "It is Rome"}, "it is Rome", 'it does not equal "It is Rome"'),
        ({"equals": 1}, True, "it does not equal 1"),
        ({"equals": True}, "1", "it does not equal true"),
        ({"equals": None}, "", "it does not equal null"),
        ({"equals": {"a": 1}}, {"a": 1, "b": 2}, "it does not equal an object with a"),
        ({"contains": ["Nile", "Rhine"]}, "The Nile", 'it does not contain "Rhine"'),
        ({"number": 3}, "It has 4 [3].", "it has no number 3"),
        ({"number": 2}, "K2 and 2nd and 2024.2.28", "it has no number 2"),
        ({"number": 650}, "6,650", "it has no number 650"),
        ({"number": 10, "within": 2}, "12.1", "it has no number 10 within 2"),
        ({"number": 1}, True, "it has no number 1"),
        ({"schema": CITY}, {"nom": "Rome"}, "its schema: "),
        ({"schema": CITY}, "Rome", "its schema: "),
    ],
)
def test_an_answer_that_is_not_says_why(expect: dict[str, Any], answer: Any, why: str) -> None:
    failures = list(Expectation.model_validate(expect).failures(answer))
    assert len(failures) == 1
    assert failures[0].startswith(why)


def test_all_that_is_expected_must_hold() -> None:
    expect = Expectation.model_validate({"contains": ["a", "b"], "number": 3})
    assert list(expect.failures("a 4")) == ['it does not contain "b"', "it has no number 3"]


def test_numbers_are_read_as_english_text_has_them() -> None:
    text = "From 1,234.5 to 12,34: -3, 7. In 1999, 5% of 10 000 and v2 or 3rd, 1.2.3"
    assert numbers_in(text) == [1234.5, -3, 7, 1999, 5, 10, 0]
