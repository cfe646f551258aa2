"""What the workflow calls is what the workers serve, and what people may send is what the run listens to."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from doubles.stores import store_in
from pydantic import BaseModel, ValidationError
from temporalio import activity, workflow

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.workflows.agent_run import AgentRun
from sennit.workflows.messages.contracts import CALLS, PLAN, TOOL, Call
from sennit.workflows.messages.dry_run import DRY_RUN
from sennit.workflows.messages.message import Message
from sennit.workflows.messages.outputs import OUTPUTS
from sennit.workflows.messages.quota import ENDED_RUNS, TAKE_PLACE
from sennit.workflows.messages.request import ContinuedState, RunRequest
from sennit.workflows.messages.result import RunReport
from sennit.workflows.messages.trajectory import NOTE_RUN
from sennit.workflows.messages.updates import UPDATES, Update, parse_update
from sennit.workflows.plan.language.validation_messages import Frozen
from sennit.workflows.run.queries import HELP

ALL = (*CALLS, DRY_RUN, OUTPUTS, NOTE_RUN, TAKE_PLACE, ENDED_RUNS)
# The SDK's own definitions: there is no public way to ask which updates and queries a class has.
DEFINITION = workflow._Definition.must_from_class(AgentRun)


@pytest.fixture
def served(tmp_path: Path) -> dict[str, Callable[..., Any]]:
    """Every activity that a worker registers, by the name Temporal knows."""
    host = Activities(WorkerPaths(store_in(tmp_path / "a"), tmp_path / "i", None, ()), load_tools([]), identity="test")
    found: dict[str, Callable[..., Any]] = {}
    for function in (*host.tools(), *host.llm()):
        name = activity._Definition.must_from_callable(function).name
        assert name is not None
        assert name not in found, f"{name} is registered twice"
        found[name] = function
    return found


def test_every_call_has_exactly_one_activity(served: dict[str, Callable[..., Any]]) -> None:
    assert sorted(served) == sorted(call.name for call in ALL)


@pytest.mark.parametrize("call", ALL, ids=lambda call: call.name)
def test_an_activity_takes_and_gives_what_its_call_says(
    served: dict[str, Callable[..., Any]], call: Call[Any, Any]
) -> None:
    function = served[call.name]
    given = [name for name in inspect.signature(function).parameters if name != "self"]
    hints = get_type_hints(function)
    assert len(given) == 1, "a second parameter would arrive as a raw dict"
    assert hints[given[0]] is call.takes
    assert hints["return"] is call.gives
    assert inspect.iscoroutinefunction(function)


TRAVELLING: list[type[BaseModel]] = list(dict.fromkeys(model for call in ALL for model in (call.takes, call.gives)))


@pytest.mark.parametrize("model", TRAVELLING)
def test_messages_are_frozen_and_strict(model: type[BaseModel]) -> None:
    """The answer to a run that asks for a place is a value of the core."""
    assert issubclass(model, Message | Frozen)
    assert model.model_config["frozen"]
    assert model.model_config["extra"] == "forbid"


@pytest.mark.parametrize("model", [RunRequest, ContinuedState, RunReport, *UPDATES], ids=lambda model: model.__name__)
def test_what_people_write_and_read_is_frozen_and_strict(model: type[RunRequest]) -> None:
    assert model.model_config["frozen"]
    assert model.model_config["extra"] == "forbid"


def test_the_run_listens_to_every_update_and_to_no_other() -> None:
    assert {name for name in DEFINITION.updates if name} == {update.name for update in UPDATES}
    assert None in DEFINITION.updates, "a dynamic handler refuses all other names with the list of those there are"


@pytest.mark.parametrize("name", list(DEFINITION.updates), ids=str)
def test_every_update_has_a_validator(name: str | None) -> None:
    handler = DEFINITION.updates[name]
    assert handler.validator is not None, "without one, a wrong input fails the workflow task for ever"


@pytest.mark.parametrize(
    "function",
    [
        AgentRun.__init__,
        AgentRun.run,
        *(query.fn for query in DEFINITION.queries.values()),
        *(update.fn for name, update in DEFINITION.updates.items() if name),
        *(update.validator for name, update in DEFINITION.updates.items() if name),
    ],
    ids=lambda function: function.__name__,
)
def test_whatever_people_send_any_number_of_inputs_reaches_our_own_check(function: Callable[..., Any]) -> None:
    """A typed or missing parameter would leave the refusal to the SDK, which repeats the task for ever."""
    first, *rest = [p for name, p in inspect.signature(function).parameters.items() if name != "self"]
    assert (first.annotation, first.default) == (Any, None)
    assert [(p.kind, p.annotation) for p in rest] == [(inspect.Parameter.VAR_POSITIONAL, Any)]


def test_the_queries_are_there_and_described() -> None:
    assert (
        {str(name) for name in DEFINITION.queries}
        == set(HELP["queries"])
        == {"plan", "node", "script", "costs", "outputs", "events", "sharing", "state", "figures", "help"}
    )
    assert all(query.description for query in DEFINITION.queries.values())


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: update.name)
def test_an_update_is_described_and_its_example_can_be_sent(update: type[Update]) -> None:
    assert DEFINITION.updates[update.name].description == update.about
    assert parse_update(update, json.loads(update.example)).model_fields_set <= set(update.model_fields)
    assert HELP["updates"][update.name] == {"about": update.about, "example": update.example}
    assert update.example in update.about or update.example == "{}"


@pytest.mark.parametrize("origin", ["../other/run", "a/b", "..", "", "run\n"])
@pytest.mark.parametrize(
    ("takes", "fields"),
    [
        (RunRequest, {"goal": "x"}),
        (PLAN.takes, {"run": "r", "run_context": "d"}),
        (TOOL.takes, {"run": "r", "plan": "d", "nodes": ["n"]}),
    ],
)
def test_no_activity_takes_over_what_lies_in_another_namespace(takes: Any, fields: dict[str, Any], origin: str) -> None:
    """Whoever reaches the server can ask for an activity by hand."""
    takes.model_validate({**fields, "origins": ["0a1b2c3d-0000"]})
    with pytest.raises(ValidationError, match="origins"):
        takes.model_validate({**fields, "origins": [origin]})
