"""Fields of an update from the command line."""

from typing import Any

import pytest

from starter.client.errors import Refused
from starter.commands.update import read_fields


@pytest.mark.parametrize(
    ("name", "words", "fields"),
    [
        ("answer", ["node=n7", "value=yes"], {"node": "n7", "value": "yes"}),
        ("answer", ["node=n7", 'value={"a": [1]}'], {"node": "n7", "value": {"a": [1]}}),
        ("answer", ['{"node": "n7", "value": 1}'], {"node": "n7", "value": 1}),
        ("retry_node", ["node=n7", "repeat_effect=true"], {"node": "n7", "repeat_effect": True}),
        ("reject", ["node=n7", "reason=7 = 8"], {"node": "n7", "reason": "7 = 8"}),
        ("reject", ["node=n7", "reason=true"], {"node": "n7", "reason": "true"}),
        ("finish", [], {}),
    ],
)
def test_fields_are_read_by_the_type_of_the_update(name: str, words: list[str], fields: dict[str, Any]) -> None:
    assert read_fields(name, words) == fields


@pytest.mark.parametrize(
    ("words", "message"),
    [(["n7"], "write a field as name=value"), (["node=a", "node=b"], "given twice"), (["{"], "not JSON")],
)
def test_fields_of_another_form_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        read_fields("answer", words)
