"""Fields of an update from the command line."""

import asyncio
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start, serving
from doubles.runs import call
from doubles.stores import store_in
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.starter.client.errors import Exit, Refused
from sennit.starter.commands import update
from sennit.starter.commands.command_line import parse
from sennit.starter.commands.update import fields_of, read_fields
from sennit.starter.terminal.console import Terminal
from sennit.workflows.messages.queues import WORKFLOW


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
        ("approve r m[0] --set text=a=b --set n=3", {"node": "m[0]"}),
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
    assert given == {"node": "p", "script": f"{script.read_text()}# ==== main: one.py ====\n"}
    script.write_text("async def main():\n    return open('x')\n")
    with pytest.raises(Refused, match=r"one\.py:2: "):
        fields_of(parse(["edit", "r", str(script)]))


@pytest.mark.parametrize(
    ("words", "problem"), [(["text"], "text: write it as name=value"), (["to=ann", "to=bob"], "to: given twice")]
)
def test_a_changed_argument_has_a_name_and_one_value(words: list[str], problem: str) -> None:
    changes = [part for word in words for part in ("--set", word)]
    with pytest.raises(Refused, match=f"--set {problem}"):
        fields_of(parse(["approve", "r", "n7", *changes]))


FORM = {
    "type": "object",
    "properties": {
        "good": {"type": "boolean"},
        "note": {"type": "string"},
        "why": {"type": "string"},
        "by": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
    },
    "required": ["good", "why"],
}


async def test_an_answer_without_a_value_is_asked_for_on_a_terminal_and_refused_without_one(
    client: Client, server_address: str, tmp_path: Path, make_terminal: Callable[..., Terminal]
) -> None:
    host = Activities(WorkerPaths(store_in(tmp_path / "store"), tmp_path, None, ()), load_tools(), identity="tests")
    name = f"asks-{uuid.uuid4().hex[:8]}"
    args = ["answer", name, "ok", "--address", server_address]
    plan = {"nodes": [{"id": "ok", "kind": "gate", "question": "Good?", "schema": FORM}]}
    async with serving(client, host):
        run = await client.start_workflow("AgentRun", {"plan": plan}, id=name, task_queue=WORKFLOW)
        await until_blocked(run)
        with pytest.raises(Refused) as refused:
            await update.run(parse(args), make_terminal())
        command = f"""sennit answer {name} ok '{{"good": true, "why": "yes"}}'"""
        assert str(refused.value) == f"nobody is at a terminal to be asked; give the value: {command}"
        with pytest.raises(Refused, match="other asks for no value now; to see what the run waits for: sennit status"):
            await update.run(parse([*args[:2], "other", *args[3:]]), make_terminal())
        keyboard, line = os.openpty()
        terminal = make_terminal(tty=True)
        with os.fdopen(line) as terminal.stdin:
            os.write(keyboard, b"false\n\n7\nIda\n\n")
            assert await update.run(parse(args), terminal) == Exit.ANSWER
        assert (await run.result())["answer"] == {"good": False, "why": "7", "by": {"name": "Ida"}}
        os.close(keyboard)
    asked = terminal.err.getvalue()  # type: ignore[attr-defined]
    assert "ok takes an object: answer field by field" in asked
    assert 'note (such as "yes"; Enter leaves it out): why (such as "yes"): by.name (such as "yes"; Enter' in asked


async def test_changed_arguments_are_read_by_the_types_of_the_tool(
    start: Start, server_address: str, make_terminal: Callable[..., Terminal]
) -> None:
    run = await start(plan={"nodes": [call("w", "pay", args={"amount": 1})]})
    await until_blocked(run)
    [item] = (await run.query("plan"))["blocked"]
    args = ["approve", run.id, "w", "--digest", item["example"]["digest"], "--address", server_address]
    for change, why in (
        ("amoun=2", "--set amoun: w has no argument `amoun`; did you mean `amount`?"),
        ("amount=much", "--set amount: w takes as `amount` integer, and this is string"),
    ):
        with pytest.raises(Refused) as refused:
            await update.run(parse([*args, "--set", change]), make_terminal())
        assert str(refused.value) == why
    assert await update.run(parse([*args, "--set", "amount=2"]), make_terminal()) == Exit.ANSWER
    assert (await run.result())["status"] == "done"


async def until_blocked(run: WorkflowHandle[Any, Any]) -> None:
    while True:
        with suppress(RPCError):
            if (await run.query("plan")).get("status") == "blocked":
                return
        await asyncio.sleep(0.1)
