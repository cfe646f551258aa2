"""Does what a run suggests to a person, in the state in which it suggests it."""

import json
import re
import shlex
from typing import Any

from sennit.starter.client.decisions import checked_update
from sennit.starter.commands.command_line import parse
from sennit.starter.commands.update import fields_of
from sennit.starter.terminal.prompt import _CHOICES, decision, value_of
from sennit.workflows.messages.result import BlockedOn
from sennit.workflows.messages.updates import UPDATES, parse_update
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.run.update_rules import judge
from sennit.workflows.views.board import board
from sennit.workflows.views.questions import blocked_on
from sennit.workflows.views.shown_run import ShownRun

_MODELS = {model.name: model for model in UPDATES}
_ON_BOARD = re.compile(r"`(\w+)` with (`+) ?(\{.*?\}) ?\2$", re.MULTILINE)
Suggestion = tuple[str, dict[str, Any]]


def refusals(state: RunState) -> list[str]:
    """Return every suggestion about this run that the run would refuse, with its reason; of board and terminal too."""
    items = blocked_on(state, "run-1", {})
    found = [suggestion for item in items for suggestion in (*_printed(item), *_typed(item))]
    drawn = board(ShownRun(state, "run-1"), title="t")
    found += [(name, json.loads(text)) for name, _, text in _ON_BOARD.findall(drawn)]
    return [f"{name} {fields}: {why}" for name, fields in found if (why := _refusal(state, name, fields))]


def _printed(item: BlockedOn) -> list[Suggestion]:
    """Return the update with its example, and what its command sends."""
    args = parse(shlex.split(item.command)[1:])
    fields = fields_of(args)
    if item.update == "answer" and isinstance(item.example["value"], str):
        fields["value"] = value_of(args.value, item.example["value"])  # the command asks the run which type it expects
    return [(item.update, item.example), (args.name, checked_update(args.name, fields))]


def _typed(item: BlockedOn) -> list[Suggestion]:
    """Return what each word stands for that a person may type."""
    if item.update == "answer":
        return [decision(item, json.dumps(item.example["value"]))]
    return [decision(item, word) for word in _CHOICES[item.update]]


def _refusal(state: RunState, name: str, fields: dict[str, Any]) -> str:
    verdict = judge(state, parse_update(_MODELS[name], fields))
    return verdict.rejection if verdict.event is None else ""
