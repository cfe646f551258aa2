"""What the workflow calls exists, once, with the same types; what people may send is handled and checked."""

import inspect
from pathlib import Path
from typing import get_type_hints

from temporalio import activity, workflow

from activities.host import Host, Places
from activities.toolbox import load_tools
from workflows.agent_run import AgentRun
from workflows.contracts import CALLS
from workflows.updates import UPDATES


def registered(tmp_path: Path) -> dict[str, object]:
    host = Host(Places(tmp_path / "a", tmp_path / "i", None, (), True), load_tools(), identity="tests")
    found: dict[str, object] = {}
    for function in (*host.tools(), *host.llm()):
        name = activity._Definition.must_from_callable(function).name
        assert name is not None
        assert name not in found, f"two activities are called {name}"
        found[name] = function
    return found


def test_every_contract_has_one_activity_of_its_types(tmp_path: Path) -> None:
    found = registered(tmp_path)
    assert sorted(found) == sorted(call.name for call in CALLS)
    for call in CALLS:
        function = found[call.name]
        assert callable(function)
        hints = get_type_hints(function)
        result = hints.pop("return")
        assert list(hints.values()) == [call.takes], call.name
        assert result is call.gives, call.name


def test_every_update_is_handled_and_checked() -> None:
    handlers = workflow._Definition.must_from_class(AgentRun).updates
    for update in UPDATES:
        assert handlers[update.name].validator is not None
        assert handlers[update.name].description == update.about
    assert handlers[None].validator is not None, "any other name must be refused, not left to fail"


def test_run_updates_and_queries_take_anything() -> None:
    """Typed parameters would fail a workflow task for ever on an input of another shape."""
    definition = workflow._Definition.must_from_class(AgentRun)
    functions = [definition.run_fn, *(query.fn for query in definition.queries.values())]
    functions += [handler.fn for name, handler in definition.updates.items() if name is not None]
    for function in functions:
        request, *extra = list(inspect.signature(function).parameters.values())[1:]
        assert request.default is None, function
        assert [each.kind for each in extra] == [inspect.Parameter.VAR_POSITIONAL] or extra[0].default is None, function
