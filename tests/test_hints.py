"""Whatever board, terminal, query or command suggests to a person, the run takes in the state where it is printed."""

from typing import Any

import pytest
from doubles.hints import refusals
from doubles.plan.play import Play, each, gate, node
from simulation.simulator import Habits, Simulation

from sennit.workflows.messages.updates import UPDATES, parse_update
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling.budget import Budget
from sennit.workflows.plan.scheduling.events import Event, Outcome
from sennit.workflows.run.update_rules import judge
from sennit.workflows.views.board import board
from sennit.workflows.views.questions import blocked_on
from sennit.workflows.views.shown_run import ShownRun

_UPDATES = {update.name: update for update in UPDATES}

SCHEMAS: list[Any] = [
    None,
    {"enum": ["no", "yes"]},
    {"enum": ["-x"]},
    {"const": 7},
    {"type": "integer", "minimum": 10, "maximum": 12},
    {"type": "integer", "exclusiveMaximum": 0},
    {"type": "number", "exclusiveMinimum": 2, "exclusiveMaximum": 2.5},
    {"type": "string", "minLength": 12},
    {"type": "string", "maxLength": 1},
    {"type": "string", "pattern": "^[A-Z]{3}$", "examples": ["ROM"]},
    {"type": ["null", "string"]},
    {"type": "array", "items": {"type": "integer", "minimum": 3}, "minItems": 2},
    {"type": "object", "properties": {"city": {"$ref": "#/$defs/city"}}, "required": ["city"],
     "$defs": {"city": {"type": "string", "minLength": 4}}},
    {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
]  # fmt: skip


def one_node(kind: str = "tool", **fields: Any) -> Play:
    play = Play(node("w", kind=kind, **fields), answer="w")
    play.begin()
    return play


def failed(error: str, **fields: Any) -> Play:
    play = one_node(**fields)
    play.fail("w", error)
    return play


def asked(schema: Any) -> Play:
    play = Play(gate("g", question="?", schema=schema), answer="g")
    play.begin()
    return play


def failed_map(effect: str) -> Play:
    play = Play(node("a"), each("m", "a", effect=effect), answer="m")
    play.begin()
    play.ok("a", length=2)
    play.ok("m[0]")
    play.fail("m[1]", "UnknownOutcome")
    return play


def writes_of_a_map() -> Play:
    play = Play(node("a"), each("m", "a", effect="write", approval=True), answer="m")
    play.begin()
    play.ok("a", length=3)
    return play


def failed_before_a_write() -> Play:
    """A write that has gone on without `a`, which runs again before it."""
    play = Play(node("a"), node("w", effect="write", needs=["a"]), node("b", "w"), answer="b")
    play.begin()
    play.ok("a", "w")
    play.fail("b")
    return play


def out_of_budget() -> Play:
    play = Play(node("a"), node("b", "a"), answer="b")
    play.state.budget = Budget({"nodes": 1})
    play.begin()
    play.end("a", Outcome("of a", 1, usage=Usage(1)))
    return play


@pytest.mark.parametrize(
    "play",
    [
        *(asked(schema) for schema in SCHEMAS),
        one_node(approval=True, effect="write"),
        writes_of_a_map(),
        failed("Boom"),
        failed("UnknownOutcome", effect="write"),
        failed_map("read"),
        failed_map("write"),
        failed_before_a_write(),
        out_of_budget(),
    ],
)
def test_what_is_suggested_is_taken(play: Play) -> None:
    assert blocked_on(play.state, "run-1", {}), "something waits for a person"
    assert refusals(play.state) == []


class Advised(Simulation):
    """A run in which now and then all that is suggested is judged."""

    refused: tuple[str, ...] = ()

    def _act(self, event: Event) -> None:
        super()._act(event)
        waits = self.state.parked or self.state.waiting
        if waits and not self.state.ended and not self.story.turns % 5:
            self.refused = (*self.refused, *refusals(self.state))


@pytest.mark.parametrize("seed", range(12))
def test_what_is_suggested_is_taken_in_any_state(seed: int) -> None:
    run = Advised(seed, Habits(edits=10, failing=25))
    run.run()
    assert run.refused == ()


@pytest.mark.parametrize(
    ("play", "also"),
    [
        (failed("Boom"), ("skip_node", "answer")),
        (failed("Boom", kind="llm"), ("skip_node", "answer")),
        (failed("Boom", kind="program"), ("skip_node", "edit_program")),
        (failed_map("read"), ("skip_node",)),
        (one_node(approval=True, effect="write"), ("reject",)),
        (out_of_budget(), ()),
    ],
)
def test_a_hint_names_what_else_fits(play: Play, also: tuple[str, ...]) -> None:
    [item] = blocked_on(play.state, "run-1", {})
    assert item.also == also
    for name in also:
        given: dict[str, dict[str, Any]] = {
            "answer": {"value": 1},
            "edit_program": {"script": "async def main(): return 1"},
        }
        fields = given.get(name, {})
        assert judge(play.state, parse_update(_UPDATES[name], {"node": item.node, **fields})).event is not None
    assert [f"`{name}` with" in board(ShownRun(play.state, "run-1"), title="t") for name in also] == [True] * len(also)


def test_what_may_write_twice_says_so() -> None:
    [item] = blocked_on(failed("UnknownOutcome", effect="write").state, "run-1", {})
    assert item.question == "UnknownOutcome: it broke; to run it again may repeat what w wrote"
    assert item.command == "sennit retry run-1 w --repeat-effect"


def test_where_no_value_can_be_made_up_the_place_for_one_is_marked() -> None:
    [item] = blocked_on(asked({"type": "string", "pattern": "^[A-Z]{3}$"}).state, "run-1", {})
    assert item.command == "sennit answer run-1 g VALUE"
