"""`sennit update` and its short forms `retry`, `skip`, `edit`, `answer`,
`approve`, `reject`, `finish`.
"""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from sennit.starter.client.decisions import MODELS, checked_update
from sennit.starter.client.errors import Exit, NoAnswer, Refused
from sennit.starter.client.run import Run
from sennit.starter.commands.command_line import Parser, add_run_argument
from sennit.starter.commands.edit_plan import edit_plan
from sennit.starter.commands.launch import connect
from sennit.starter.commands.review import Review, add_review_arguments
from sennit.starter.plans.inputs import pairs
from sennit.starter.plans.plan_file import read_script
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.prompt import Typist, ask_line, value_of
from sennit.starter.terminal.render import blocked_lines
from sennit.workflows.messages.result import BlockedOn
from sennit.workflows.messages.updates import UPDATES
from sennit.workflows.plan.language.json_schema import typed_value, wrong_argument
from sennit.workflows.plan.language.text import clean

SHORT_FORMS = {
    "retry": ("retry_node", "sennit retry nightly-1\nsennit retry nightly-1 n7 --repeat-effect"),
    "skip": ("skip_node", "sennit skip nightly-1 n7\nsennit skip nightly-1 'pages[17]'"),
    "edit": (
        "edit_program",
        "sennit edit nightly-1 research.py --dry-run\nsennit edit nightly-1 look.py --node look",
    ),
    "answer": (
        "answer",
        "sennit answer nightly-1 n7 yes\nsennit answer nightly-1 main_6 '{\"found\": true}'",
    ),
    "approve": (
        "approve",
        (
            "sennit approve note n7 --digest 3f2a9c01b4d7e85a6c21 --set to=ann\nsennit approve "
            "nightly-1 --edit-plan"
        ),
    ),
    "reject": (
        "reject",
        (
            'sennit reject nightly-1 n7 "wrong file"\n'
            'sennit reject nightly-1 --digest 1fa0b62c78e3d945c0aa --reason "look at the Ob, too"'
        ),
    ),
    "finish": ("finish", "sennit finish nightly-1\nsennit finish nightly-1 --output none"),
}
_PLACES = {
    "finish": "",
    "retry": "[NODE]",
    "answer": "NODE [VALUE]",
    "edit": "FILE.py",
    "approve": "[NODE]",
    "reject": "[NODE] [REASON]",
}


def add_arguments(parser: Parser) -> None:
    command = parser.prog.rpartition(" ")[2]
    add_run_argument(parser)
    if command == "update":
        parser.description = "Send an update to a run. Fields are name=value, or one JSON object."
        parser.describe("RUN NAME [FIELD=VALUE ...|JSON]", "", _list_of_updates())
        parser.add_argument("name", metavar="NAME", help="one of the updates below")
        parser.add_argument(
            "fields", nargs="*", metavar="NAME=VALUE|JSON", help="the update's fields"
        )
        return
    name, examples = SHORT_FORMS[command]
    parser.describe(f"RUN {_PLACES.get(command, 'NODE')}".rstrip(), examples)
    parser.set_defaults(name=name)
    if command == "retry":
        parser.add_argument(
            "node", nargs="?", metavar="NODE", help="without it, what blocks the run"
        )
    elif command == "edit":
        parser.add_argument(
            "script", metavar="FILE.py", help="the whole script, - for standard input"
        )
        parser.add_argument(
            "--node", metavar="NODE", help="the program's id in a plan of yours (default: main)"
        )
    elif command in ("approve", "reject"):
        parser.add_argument(
            "node", nargs="?", metavar="NODE", help="without it, the plan that waits for approval"
        )
    elif command != "finish":
        parser.add_argument("node", metavar="NODE", help="the node's id, or map[17] for one item")
    if command == "answer":
        value_help = "JSON, or text; '\"7\"' is the text 7 (default: ask for it on the terminal)"
        parser.add_argument("value", metavar="VALUE", nargs="?", help=value_help)
    if command in ("approve", "reject"):
        parser.add_argument(
            "--digest", metavar="DIGEST", help="what you have read, as `sennit status` shows it"
        )
    if command == "reject":
        parser.add_argument("why", nargs="?", metavar="REASON", help="why")
        reason_help = (
            "why; for a plan, what its planner should do instead (without it, the run ends)"
        )
        parser.add_argument("--reason", metavar="REASON", help=reason_help)
    if command == "approve":
        edit_help = (
            "edit the plan that waits as YAML in $EDITOR, or send that of FILE; the run asks again"
        )
        parser.add_argument("--edit-plan", nargs="?", const="", metavar="FILE", help=edit_help)
        parser.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", help="change an argument"
        )
    if command == "edit":
        parser.add_argument(
            "--repeat-writes", action="store_true", help="do not ask about writes of the old script"
        )
        add_review_arguments(parser)
    if command in ("retry", "answer"):
        parser.add_argument(
            "--repeat-effect", action="store_true", help="repeat a write that succeeded"
        )


def _list_of_updates() -> str:
    lines = []
    for model in UPDATES:
        names: list[str] = []
        for name, field in model.model_fields.items():
            names.append(name if field.is_required() else f"[{name}]")
        fields = " ".join(names)
        lines.append(f"  {model.name:<12} {fields:<22} {model.example}")
    return "\n".join(["updates:", *lines, ""])


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Send one update and write what the run says about it. The fields are
    checked before connecting.
    """
    if getattr(args, "edit_plan", None) is not None:
        if args.node or args.set:
            raise Refused("--edit-plan is about the whole plan: leave out the node and --set")
        sennit = await connect(args, terminal, renew="code")
        waiting, _ = await sennit.look_up(args.run)
        return await edit_plan(waiting, args.edit_plan, args.digest or "", terminal)
    fields = fields_of(args)
    is_to_be_asked = args.command == "answer" and args.value is None
    if not is_to_be_asked:
        checked_update(args.name, fields)
    # So that a retry runs a tool that was mended.
    sennit = await connect(args, terminal, renew="code")
    found, _ = await sennit.look_up(args.run)
    if is_to_be_asked:
        args.value = await _ask_value(found, args.node, terminal)
        fields = fields_of(args)
    if args.command == "answer" and not isinstance(fields["value"], str):
        fields["value"] = value_of(args.value, await _expected_value(found, args.node))
    if args.command == "approve" and args.set:
        fields["args"] = await _changed_arguments(found, args.node, args.set)
    shown: dict[str, Any] = {}
    if args.command == "edit":
        review = Review(args, terminal)
        node = fields.get("node", "main")
        dry_run = found.dry_run(fields["script"], node=node, repeat_writes=args.repeat_writes)
        await review.show(dry_run, f"give {node} this script?")
        if review.exit is not None:
            return review.exit
        shown = review.data
    message = await found.update(args.name, **fields)
    terminal.result(
        clean(message), {"run": found.id, "update": args.name, "message": message, **shown}
    )
    return Exit.ANSWER


def fields_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the update's fields; raises Refused."""
    if args.command == "update":
        return read_fields(args.name, args.fields)
    fields: dict[str, Any] = {}
    for name in ("node", "reason", "repeat_effect", "digest", "repeat_writes"):
        value = getattr(args, name, None)
        if value:
            fields[name] = value
    why = getattr(args, "why", None)
    if why:
        fields.setdefault("reason", why)
    changed = getattr(args, "set", None)
    if changed:
        pairs(changed, "--set")  # their form; `run` reads the values when it knows the tool
    if args.command == "edit":
        fields["script"] = read_script(args.script)
    if args.command == "answer" and args.value is not None:
        fields["value"] = value_of(args.value)
    return fields


async def _changed_arguments(run: Run[Any], node: str, words: list[str]) -> dict[str, Any]:
    """Return arguments from `name=value` words, read by the types that the tool of the
    waiting write takes. Raises Refused for one that the tool does not have, or whose
    value is of no such type.
    """
    item = await _waiting_for(run, node, "approve")
    if item is None:
        raise Refused(f"{node} waits for no approval now; see: sennit status {run.id}")
    known = item.arguments
    changed: dict[str, Any] = {}
    for name, text in pairs(words, "--set").items():
        types: Sequence[str] = ()
        if known is not None:
            types = known.get(name, ())
        if list(types) == ["string"]:
            changed[name] = text
        else:
            changed[name] = typed_value(text, frozenset(types))
        if known is not None:
            wrong = wrong_argument(name, changed[name], known)
            if wrong:
                raise Refused(f"--set {name[:60]}: {node} {wrong}")
    return changed


async def _waiting_for(run: Run[Any], node: str, update: str) -> BlockedOn | None:
    """Return what the run waits for at this node that this update would
    settle; None if it does not.
    """
    view = await run.view()
    for item in view.blocked:
        if item.node == node and item.update == update:
            return item
    return None


async def _ask_value(run: Run[Any], node: str, terminal: Terminal) -> str:
    """Return what the person at the terminal answers. Raises Refused without one, or if
    the node asks nothing.
    """
    item = await _waiting_for(run, node, "answer")
    if item is None:
        raise Refused(
            f"{node} asks for no value now; to see what the run waits for: sennit status "
            f"{run.id}{terminal.flags}"
        )
    if not terminal.has_person:
        raise Refused(
            f"nobody is at a terminal to be asked; give the value: {item.command}{terminal.flags}"
        )
    for line in blocked_lines(item, terminal.flags):
        terminal.notice(line, "yellow")
    typed = await ask_line(Typist(terminal).ask, item, terminal.notice)
    if typed is None:
        raise Refused(f"{node} was given no value and waits for one")
    return typed


async def _expected_value(run: Run[Any], node: str) -> Any:
    """Return an example of the value that a gate expects, so that `7` can be sent
    as the text it asks for.
    """
    try:
        view = await run.view()
    except NoAnswer:
        return None
    for item in view.blocked:
        if item.node == node:
            return item.example.get("value")
    return None


def read_fields(name: str, words: list[str]) -> dict[str, Any]:
    """Return an update's fields from `name=value` words or one JSON object; raises Refused."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            return dict(json.loads(words[0]))
        except (ValueError, RecursionError) as error:
            raise Refused(f"the fields of {name} are not JSON: {error}") from None
    model = MODELS.get(name)
    fields: dict[str, Any] = {}
    for word in words:
        field, equals, text = word.partition("=")
        if not equals:
            example = ""
            if model:
                example = f"; for example {model.example}"
            raise Refused(
                f"{word[:60]!r}: write a field as name=value, or all of them as one JSON "
                f"object{example}"
            )
        if field in fields:
            raise Refused(f"the field `{field}` is given twice")
        kind = None
        if model and field in model.model_fields:
            kind = model.model_fields[field].annotation
        if kind is str:
            fields[field] = text
        else:
            fields[field] = value_of(text)
    return fields
