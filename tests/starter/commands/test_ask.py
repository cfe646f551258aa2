"""`sennit ask` with a program of the library."""

import pytest

from sennit.starter.client.errors import Refused
from sennit.starter.commands.ask import program_for


@pytest.mark.parametrize(("name", "argument"), [("debate", "question"), ("research", "topic"), ("race", "goal")])
def test_a_program_gets_the_goal_as_its_one_argument(name: str, argument: str) -> None:
    what = program_for(name, "Why tides?")
    assert (what["inputs"], what["title"]) == ({argument: "Why tides?"}, "Why tides?")
    assert "async def main(" in what["program"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("debat", "no such program; did you mean `debate`?"),
        ("../plans/x", "no such program"),
        ("my/own.py", "run a file of your own with: sennit run my/own.py"),
        ("best_of", "sennit run examples/programs/best_of.py --input problem=... --input tests=..."),
        ("figures", "takes more than a goal"),
    ],
)
def test_a_program_that_is_unknown_or_takes_more_is_refused(name: str, message: str) -> None:
    with pytest.raises(Refused) as caught:
        program_for(name, "x")
    assert message in str(caught.value)
