"""Fields of an update from the command line."""

from pathlib import Path
from typing import Any

import pytest

from starter.client.errors import Refused
from starter.commands.command_line import parse
from starter.commands.update import fields_of, read_fields


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


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("approve r n7", {"node": "n7"}),
        ("approve r n7 --digest 3f2a", {"node": "n7", "digest": "3f2a"}),
        ("approve r m[0] --set text=a=b --set n=3", {"node": "m[0]", "args": {"text": "a=b", "n": 3}}),
        ("reject r n7 rude", {"node": "n7", "reason": "rude"}),
        ("retry r n7 --repeat-effect", {"node": "n7", "repeat_effect": True}),
    ],
)
def test_a_short_form_has_the_fields_of_its_update(words: str, fields: dict[str, Any]) -> None:
    assert fields_of(parse(words.split())) == fields


def test_a_script_is_read_and_looked_through_before_it_is_sent(tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text("async def main():\n    return 1\n")
    given = fields_of(parse(["edit", "r", str(script), "--node", "p"]))
    assert given == {"node": "p", "script": script.read_text()}
    script.write_text("async def main():\n    return open('x')\n")
    with pytest.raises(Refused, match=r"one\.py:2: "):
        fields_of(parse(["edit", "r", str(script)]))


def test_a_changed_argument_has_a_name() -> None:
    with pytest.raises(Refused, match="write an argument as name=value"):
        fields_of(parse(["approve", "r", "n7", "--set", "text"]))
