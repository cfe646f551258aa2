"""Malformed JSON that can mean one thing only is read as that; anything else is refused, and in linear time."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.planner_format.json_text import Unreadable, decode


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "x\ny"} rest', {"a": "x\ny"}),
        ("{'a': 'it\\'s \"b\"', 'c': [True, None,],}", {"a": 'it\'s "b"', "c": [True, None]}),
        ('{a: 1, // so\n "b": "http://x"}', {"a": 1, "b": "http://x"}),
        ('{“a”: “say "x"”}', {"a": 'say "x"'}),
        ('{"a": "\\_ \\" \\n"}', {"a": '\\_ " \n'}),
        ('{"a": "\\(x\\) and\\nmore"}', {"a": "\\(x\\) and\nmore"}),
        ('{"a": "C:\\Users\\Nile"}', {"a": "C:\\Users\\Nile"}),
        ('{"a": 1, // so\n}', {"a": 1}),
        ('{\n// so\n"a": 1}', {"a": 1}),
    ],
)
def test_what_is_plain_is_repaired(text: str, value: Any) -> None:
    found, end = decode(text)
    assert (found, text[end:]) == (value, " rest" if text.endswith("rest") else "")


@pytest.mark.parametrize(
    "text",
    [
        *(
            '{"a": 1',
            '{"a": [1, 2',
            '{"a": "b',
            "{'a': 'b",
            '{"a": "the "Nile" r"}',
            "{'a': 'it's', 'b': 's'}",
            "[1 2]",
        ),
        *("[,]", "[1,,]", '{"a": some}', '{"a" 1}', '{"a": NaN}', '{"a": 1]', "]", "", "x", '{"a": "\\u12"}'),
        *("[1,\n// more items\n]", "[1\n// and so on\n]", "[1, // ...\n2]", '{"a": "C:\\Users\\nile"}'),
    ],
)
def test_what_is_cut_or_ambiguous_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        decode(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", ['"', "'", "“", '\\"', "[", '{"a":', '{"a" ', "/", "a ", ",", '{"\\', "[1,", "\\"])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    for opening in "{[":
        with pytest.raises(Unreadable):
            decode(opening + unit * (300_000 // len(unit)) + '"')


@given(st.text(alphabet="{}[]:,'\"“”\\/ \nau1", max_size=40))
def test_any_text_is_a_value_or_refused(text: str) -> None:
    try:
        _, end = decode(text)
    except Unreadable:
        return
    assert 0 < end <= len(text)
