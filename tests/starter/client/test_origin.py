"""Another script for a run that is forked."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import Input, Meta, Outcome, Request

from sennit.starter.client import origin as module
from sennit.starter.client.errors import Refused
from sennit.starter.client.origin import Origin
from sennit.starter.limits import MAX_WORKFLOW_NAME_CHARACTERS
from sennit.workflows.messages.converter import DATA_CONVERTER
from sennit.workflows.plan.programs.program_plan import program_plan

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
    assert len(origin.fork_id) <= MAX_WORKFLOW_NAME_CHARACTERS + 10


@pytest.mark.parametrize("was_reset", [False, True])
async def test_the_script_of_an_edit_is_found_also_behind_a_reset(
    monkeypatch: pytest.MonkeyPatch, was_reset: bool
) -> None:
    """The server then has the update in its admission alone."""
    [given] = await DATA_CONVERTER.encode([{"node": "main", "script": NEW}])
    asked = Request(meta=Meta(update_id="u"), input=Input(name="edit_program"))
    asked.input.args.payloads.append(given)
    events = [HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED)]
    if was_reset:
        events.insert(0, HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED))
        events[0].workflow_execution_update_admitted_event_attributes.request.CopyFrom(asked)
    else:
        events[0].workflow_execution_update_accepted_event_attributes.accepted_request.CopyFrom(asked)
    events.append(HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED))
    done = events[-1].workflow_execution_update_completed_event_attributes
    done.meta.update_id = "u"
    done.outcome.CopyFrom(Outcome())
    done.outcome.success.payloads.append(given)

    async def history(*_: object) -> AsyncIterator[HistoryEvent]:
        for event in events:
            yield event

    monkeypatch.setattr(module, "_events", history)
    client = cast("Any", SimpleNamespace(data_converter=DATA_CONVERTER))
    read = await module._read_run(client, "r", "1")
    assert read.scripts == {"main": NEW}
