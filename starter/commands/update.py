"""`sennit update` and its short forms `retry`, `skip`, `answer`, `approve`, `reject`, `finish`."""

import argparse
import json
from typing import Any

from starter.client.errors import Exit, NoAnswer, Refused
from starter.client.run import Run, checked_update
from starter.commands.launch import connect
from starter.terminal.console import Terminal
from starter.terminal.prompt import value_of
from workflows.messages.updates import UPDATES
from workflows.plan.language.text import clean


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Send one update and write the run's sentence about it. The fields are checked before anything is connected."""
    fields = _of_short_form(args) if args.command != "update" else read_fields(args.name, args.fields)
    checked_update(args.name, fields)
    sennit = await connect(args, terminal)
    found = await sennit.find(args.run)
    if args.command == "answer" and not isinstance(fields["value"], str):
        fields["value"] = value_of(args.value, await _expected(found, args.node))
    said = await found.update(args.name, **fields)
    if terminal.output in ("json", "jsonl"):
        terminal.answer_json({"run": found.id, "update": args.name, "said": said})
    else:
        terminal.answer(clean(said))
    return Exit.ANSWER


def _of_short_form(args: argparse.Namespace) -> dict[str, Any]:
    fields = {name: getattr(args, name, None) for name in ("node", "reason", "repeat_effect")}
    given = {name: value for name, value in fields.items() if value}
    return {**given, "value": value_of(args.value)} if args.command == "answer" else given


async def _expected(run: Run, node: str) -> Any:
    """Return an example of the value a gate waits for, so that `7` can be the text that it wants."""
    try:
        view = await run.view()
    except NoAnswer:
        return None
    return next((item.example.get("value") for item in view.blocked if item.node == node), None)


def read_fields(name: str, words: list[str]) -> dict[str, Any]:
    """Return an update's fields from `name=value` words or one JSON object; raises Refused."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            return dict(json.loads(words[0]))
        except (ValueError, RecursionError) as error:
            raise Refused(f"the fields of {name} are not JSON: {error}") from None
    model = next((model for model in UPDATES if model.name == name), None)
    fields: dict[str, Any] = {}
    for word in words:
        field, equals, text = word.partition("=")
        if not equals:
            example = f"; for example {model.example}" if model else ""
            raise Refused(f"{word[:60]!r}: write a field as name=value, or all of them as one JSON object{example}")
        if field in fields:
            raise Refused(f"the field `{field}` is given twice")
        kind = model.model_fields[field].annotation if model and field in model.model_fields else None
        fields[field] = text if kind is str else value_of(text)
    return fields
