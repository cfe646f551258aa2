"""Another script for a run that is forked."""

from typing import Any

import pytest

from starter.client.errors import Refused
from starter.client.origin import LONGEST_NAME, Origin
from workflows.plan.programs.program_plan import program_plan

OLD, NEW = "async def main(a):\n    return a\n", "async def main(b):\n    return b\n"


def program(name: str, script: str = OLD) -> dict[str, Any]:
    return {"id": name, "kind": "program", "script": script, "arguments": {"a": 1}}


def plan(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": [*nodes, {"id": "t", "kind": "tool", "tool": "search"}], "answer": "$t"}


def test_the_program_of_a_file_has_the_inputs_of_the_new_script() -> None:
    origin = Origin("r", {"inputs": {"a": 1}}, ("home",), program_plan(OLD, {"a": 1}))
    assert origin.with_script(NEW, inputs={"b": 2}).plan == program_plan(NEW, {"b": 2})
    assert (origin.inputs, origin.with_script(NEW).inputs) == ({"a": 1}, {})


def test_a_program_of_a_plan_keeps_its_place() -> None:
    origin = Origin("r", {}, ("home",), plan(program("p"), program("q")))
    assert origin.with_script(NEW, "q").plan == plan(program("p"), program("q", NEW))
    assert Origin("r", {}, ("home",), plan(program("p"))).with_script(NEW).plan == plan(program("p", NEW))


def test_a_program_that_a_planner_wrote_still_has_its_goal() -> None:
    script = "async def main(goal: str):\n    return goal\n"
    forked = Origin("r", {"goal": "x"}, ("home",), has_program=True).with_script(script).plan
    assert forked is not None
    assert forked["nodes"][0]["arguments"] == {"goal": "$goal"}


@pytest.mark.parametrize(
    ("origin", "node", "message"),
    [
        (Origin("r", {"goal": "x"}, ()), "", "r has no programs to give a script to; fork it without --with"),
        (Origin("r", {}, (), plan()), "", "r has no programs"),
        (Origin("r", {}, (), plan(program("p"), program("q"))), "", "r has 2 programs .* --node; there are p, q"),
        (Origin("r", {}, (), plan(program("p"))), "t", "r has no program 't'; there are p"),
    ],
)
def test_it_must_be_clear_which_program_gets_the_script(origin: Origin, node: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        origin.with_script(NEW, node)


def test_the_id_of_a_fork_is_new_and_not_too_long() -> None:
    origin = Origin("r" * 255, {}, ())
    assert origin.fork_id != origin.fork_id
    assert len(origin.fork_id) <= LONGEST_NAME + 10
