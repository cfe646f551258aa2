"""Each error that Sennit knows is in one class: one that is new must be put into the table."""

import re

from test_architecture import ROOT

from sennit.activities import definitions  # noqa: F401  imports every module that defines an error
from sennit.activities.nodes import error_mapping
from sennit.activities.providers import errors as provider_errors
from sennit.activities.providers.model import ProviderError
from sennit.activities.toolbox import ToolError
from sennit.workflows.plan.figures.failures import CLASSES, NO_FAILURES, class_of


def below(kind: type[BaseException]) -> list[type[BaseException]]:
    """Return the classes of our own below one."""
    found = [kind]
    for each in kind.__subclasses__():
        found += below(each)
    return [each for each in found if each.__module__.startswith("sennit.activities.")]


def test_each_class_of_error_of_tools_models_and_nodes_is_in_the_table() -> None:
    assert provider_errors.RateLimited in below(ProviderError)
    known = [each.__name__ for kind in (ToolError, ProviderError) for each in below(kind)]
    known += [
        name
        for name, each in vars(error_mapping).items()
        if isinstance(each, type)
        and name in dir(error_mapping)
        and issubclass(each, Exception)
        and each.__module__ == error_mapping.__name__
    ]
    assert len(known) > 40
    assert [name for name in known if name not in CLASSES] == []


def test_each_error_that_the_scheduler_writes_is_in_the_table() -> None:
    """The errors that it fails nodes with, those that activities and runs are failed with, and its own constants."""
    name = r'"([A-Z][a-z]+(?:[A-Z][a-z]+)*)"'
    raised = re.compile(rf"(?:fail\(state, \w+, |type=){name}")
    constant = re.compile(rf"^[_A-Z, ]+ = \(?{name}", re.MULTILINE)
    scheduling = _text_of("workflows/plan/scheduling")
    written = [*raised.findall(scheduling), *constant.findall(scheduling), *raised.findall(_text_of("workflows/run"))]
    assert {"GateTimeout", "MapFailed", "JoinDeadline", "ConditionError", "Rejected", "TooDeep"} <= {*written}
    assert [kind for kind in written if kind not in CLASSES and kind not in NO_FAILURES] == []


def _text_of(folder: str) -> str:
    return "".join(path.read_text() for path in sorted((ROOT / folder).glob("*.py")))


def test_an_error_that_nobody_here_knows_is_the_tools_own() -> None:
    assert class_of("KeyError") == "tool"
