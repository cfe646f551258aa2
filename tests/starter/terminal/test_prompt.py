"""What a typed line means, and reading it."""

import asyncio
import os
import pty
from collections.abc import Callable
from typing import Any

import pytest
from doubles.followed import make_gate

from sennit.starter.client.errors import Refused
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.prompt import Typist, decision, question, value_of
from sennit.starter.terminal.render import blocked_lines
from sennit.workflows.messages.result import BlockedOn

Make = Callable[..., Any]


def test_a_spent_budget_is_raised_as_proposed_or_not() -> None:
    item = BlockedOn(
        node="",
        why="budget",
        question="spent",
        update="raise_budget",
        example={"tokens": 200},
        command="sennit update r",
    )
    assert question(item) == "raise the budget (tokens 200)? [y]es, [f]inish with what there is: "
    assert decision(item, "y") == ("raise_budget", {"tokens": 200})
    assert decision(item, "finish") == ("finish", {})
    with pytest.raises(Refused, match="type y or f, or send other limits: sennit update r"):
        decision(item, "r")
    assert blocked_lines(item) == ["budget: spent", "    sennit update r"]


def test_a_plan_is_approved_or_rejected_as_it_was_shown() -> None:
    item = BlockedOn(
        node="",
        why="plan",
        question="may this plan of 2 nodes run?",
        shown="n1 search",
        update="approve",
        example={"digest": "3f2a"},
        command="sennit approve r --digest 3f2a",
        also=("reject", "edit_plan"),
    )
    assert question(item) == "run this plan? [y]es, [n]o, [n]o and what to do instead: "
    assert decision(item, "y") == ("approve", {"digest": "3f2a"})
    assert decision(item, "n") == ("reject", {"digest": "3f2a"})
    assert decision(item, "no look at the Ob, too") == ("reject", {"digest": "3f2a", "reason": "look at the Ob, too"})
    assert blocked_lines(item)[-1] == "    sennit approve r --digest 3f2a  # or reject, --edit-plan"
    with pytest.raises(Refused, match="type y or n"):
        decision(item, "e")


def test_planning_that_failed_is_tried_again_or_given_up() -> None:
    fields: dict[str, Any] = {"update": "retry_node", "example": {}, "command": "sennit retry r"}
    item = BlockedOn(node="", why="planning", question="down", **fields)
    assert question(item) == "[r]etry now, [f]inish with what there is: "
    assert [decision(item, word) for word in "rf"] == [("retry_node", {}), ("finish", {})]
    with pytest.raises(Refused, match="type r or f; "):
        decision(item, "s")
    assert blocked_lines(item) == ["planning: down", "    sennit retry r"]


@pytest.mark.parametrize(
    ("update", "line", "expected"),
    [
        ("answer", "yes", ("answer", {"node": "n7", "value": "yes"})),
        ("answer", ' "a b" ', ("answer", {"node": "n7", "value": "a b"})),
        ("answer", "7", ("answer", {"node": "n7", "value": "7"})),
        ("approve", "y", ("approve", {"node": "n7"})),
        ("approve", "Yes", ("approve", {"node": "n7"})),
        ("approve", "n", ("reject", {"node": "n7"})),
        ("approve", "no  wrong file ", ("reject", {"node": "n7", "reason": "wrong file"})),
        ("retry_node", "r", ("retry_node", {"node": "n7"})),
        ("retry_node", "Skip", ("skip_node", {"node": "n7"})),
        ("retry_node", "f", ("finish", {})),
    ],
)
def test_a_line_stands_for_an_update(update: str, line: str, expected: Any) -> None:
    assert decision(make_gate("n7", update), line) == expected


@pytest.mark.parametrize(
    ("update", "line"), [("answer", " "), ("approve", ""), ("approve", "maybe"), ("retry_node", "y")]
)
def test_a_line_that_stands_for_none_is_refused_with_what_would(update: str, line: str) -> None:
    with pytest.raises(Refused, match="Ctrl-D leaves the run waiting"):
        decision(make_gate("n7", update), line)


@pytest.mark.parametrize(
    ("text", "example", "value"),
    [
        ("yes", None, "yes"),
        ("7", None, 7),
        ("7", "rome", "7"),
        ("7", 1, 7),
        ('"7"', "rome", "7"),
        ("true", None, True),
        ('{"a": 1}', {}, {"a": 1}),
        ("{a", None, "{a"),
        ("1e999", None, "1e999"),
        ("NaN", None, "NaN"),
        ("[" * 100_000, None, "[" * 100_000),
    ],
)
def test_a_value_is_json_where_it_is_json_and_text_where_text_is_expected(text: str, example: Any, value: Any) -> None:
    assert value_of(text, example) == value


def test_a_question_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in question(make_gate("n7\x1b[2J"))


class TestTypist:
    @pytest.fixture
    def typed(self, make_terminal: Make) -> Any:
        ours, theirs = pty.openpty()
        with os.fdopen(theirs, "r") as stdin:
            terminal: Terminal = make_terminal(tty=True)
            terminal.stdin = stdin
            yield ours, Typist(terminal), terminal.err
        os.close(ours)

    async def test_lines_come_one_by_one_also_when_typed_ahead(self, typed: Any) -> None:
        ours, typist, err = typed
        os.write(ours, b"first\nsecond\n")
        assert [await typist.ask("? "), await typist.ask("? ")] == ["first", "second"]
        assert err.getvalue() == "? ? "

    async def test_the_end_of_input_is_none(self, typed: Any) -> None:
        ours, typist, _ = typed
        os.write(ours, b"\x04")
        assert await typist.ask("? ") is None

    async def test_a_question_can_be_withdrawn(self, typed: Any) -> None:
        ours, typist, _ = typed
        asking = asyncio.create_task(typist.ask("? "))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        os.write(ours, b"later\n")
        assert await typist.ask("? ") == "later"
