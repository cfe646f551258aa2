"""The command line of `sennit`: every command with its flags, and nothing of what they do.

Light to import: a command's module is loaded when it is chosen.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from starter.limits import read_limits
from starter.terminal.parser import Parser
from workflows.messages.updates import NOT_BUILT as UPDATES_NOT_BUILT
from workflows.messages.updates import UPDATES
from workflows.plan.language.limits import parse_duration
from workflows.plan.language.nodes import MAX_NODES

NOT_BUILT = ("report", "fork", "gc")
_Commands = Any  # argparse keeps the class of subparsers private

EXIT_CODES = """\
exit codes: 0 answer, 1 failed or cancelled, 2 wrong usage or refused,
            3 partial answer, 4 still running or blocked, 5 server unreachable,
            130 interrupted (the run goes on)"""

EXAMPLES = {
    "sennit": """\
sennit demo
sennit ask "Which is longer, the Nile or the Amazon?" --docs examples/corpus""",
    "demo": "sennit demo\nsennit demo --output json",
    "ask": 'sennit ask "How high is Mont Blanc?" --docs examples/corpus\necho "How high is Mont Blanc?" | sennit ask -',
    "run": "sennit run plan.yaml --input city=Rome\nsennit run plan.json --id nightly-1 --output json",
    "status": "sennit status agent-mont-blanc-1a2b3c4d\nsennit status nightly-1 --output json",
    "watch": "sennit watch agent-mont-blanc-1a2b3c4d\nsennit watch nightly-1 --wait --timeout 10m",
    "cancel": "sennit cancel agent-mont-blanc-1a2b3c4d\nsennit cancel nightly-1 --wait",
    "retry": "sennit retry nightly-1 n7\nsennit retry nightly-1 n7 --repeat-effect",
    "skip": "sennit skip nightly-1 n7\nsennit skip nightly-1 'pages[17]'",
    "answer": 'sennit answer nightly-1 n7 yes\nsennit answer nightly-1 n7 \'{"city": "Rome"}\'',
    "approve": "sennit approve nightly-1 n7\nsennit approve nightly-1 n7 --output none",
    "reject": 'sennit reject nightly-1 n7\nsennit reject nightly-1 n7 "wrong file"',
    "finish": "sennit finish nightly-1\nsennit finish nightly-1 --output none",
    "plan": "sennit plan check plan.yaml\nsennit plan draw plan.yaml --format svg",
    "tools": "sennit tools\nSENNIT_TOOLS=mytools sennit tools --output json",
    "setup": "sennit setup --address temporal.example.com:7233 --namespace agents\nsennit setup --rates openai=600",
    "dev": "sennit dev\nsennit dev --stop",
    "worker": "sennit worker tools\nsennit worker all --address temporal.example.com:7233",
}


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line; exits with 2 and a usage line when it is wrong, with all commands without one."""
    parser = build_parser()
    given = sys.argv[1:] if argv is None else argv
    if not given:
        parser.print_help(sys.stderr)
        parser.exit(2)
    return parser.parse_args(given)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="sennit",
        usage="sennit COMMAND [flags]",
        description="Run AI agents as durable, parallel graphs on Temporal.",
        epilog=_epilog("sennit"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sennit {version('sennit')}")
    _connection(parser, None, "text", "auto", False)
    commands = parser.add_subparsers(prog="sennit", dest="command", metavar="COMMAND", required=True)
    _add_starting(commands)
    _add_looking(commands)
    _add_updates(commands)
    _add_offline(commands)
    for name in NOT_BUILT:
        command = commands.add_parser(name, add_help=False, prefix_chars="\0")
        command.add_argument("rest", nargs=argparse.REMAINDER)
        command.set_defaults(module="unbuilt")
    return parser


def _epilog(name: str) -> str:
    examples = "\n".join(f"  {line}" for line in EXAMPLES[name].splitlines())
    return f"examples:\n{examples}\n\n{EXIT_CODES}"


def _connection(parser: argparse.ArgumentParser, *defaults: Any) -> None:
    """Add the flags every command has. On a command they have no default, so as not to undo what stood before it."""
    address, output, colour, quiet = defaults or (argparse.SUPPRESS,) * 4
    group = parser.add_argument_group("connection and output")
    group.add_argument("--address", default=address, metavar="HOST:PORT", help="Temporal server (TEMPORAL_ADDRESS)")
    group.add_argument("--namespace", default=address, help="Temporal namespace (TEMPORAL_NAMESPACE)")
    group.add_argument("--output", choices=("text", "json", "jsonl", "none"), default=output, help="form of stdout")
    group.add_argument("--color", choices=("auto", "always", "never"), default=colour, help="colour on stderr")
    group.add_argument("--quiet", action="store_true", default=quiet, help="no progress on stderr")


def _command(
    commands: _Commands, name: str, about: str, takes: str = "", module: str | None = None
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        usage=" ".join(filter(None, ("sennit", name, takes, "[flags]"))),
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=_epilog(name),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(module=module or name)
    _connection(command)
    return command


def _typed(reader: Callable[[str], Any], name: str) -> Callable[[str], Any]:
    """Give a reader the name that argparse shows when it raises ValueError, with the reader's own sentence."""

    def read(text: str) -> Any:
        try:
            return reader(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    read.__name__ = name
    return read


_duration = _typed(parse_duration, "duration")


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not least <= int(text) <= most:
            raise ValueError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return _typed(read, "number")


def _waiting(command: argparse.ArgumentParser) -> None:
    command.add_argument("--wait", action="store_true", help="when the run blocks, wait for others; never ask")
    command.add_argument("--timeout", type=_duration, metavar="30s", help="stop waiting after this time (exit code 4)")


def _starting(command: argparse.ArgumentParser) -> None:
    _waiting(command)
    command.add_argument("--detach", action="store_true", help="start, print the run's id and return (exit code 0)")
    command.add_argument("--id", help="start at most one run of this id: join it, or return its result")
    command.add_argument("--again", action="store_true", help="with --id: start anew when that run is over")
    command.add_argument("--on-failure", choices=("park", "partial", "fail"), help="when a node fails (default: park)")
    command.add_argument("--approval", choices=("writes", "never"), help="what needs approval (default: writes)")
    command.add_argument(
        "--approve-replans-above",
        type=_whole(0, MAX_NODES),
        metavar="N",
        help="ask before a model adds more than N nodes at once to the plan (default: never ask)",
    )
    command.add_argument("--window", type=_whole(1, 500), metavar="N", help="nodes in flight at most (default: 100)")
    command.add_argument(
        "--budget",
        type=_typed(read_limits, "budget"),
        metavar="tokens=N,...",
        help="what the run may spend: tokens, cost_usd, calls, nodes, time; for example tokens=20000,time=10m",
    )
    command.add_argument("--tenant", metavar="NAME", help="whom the run is for; queues serve tenants in turn")
    command.add_argument("--tools", metavar="A,B", help="the tools the run may use (default: all)")


def _add_starting(commands: _Commands) -> None:
    demo = _command(commands, "demo", "answer a sample question over sample documents; needs no key")
    _starting(demo)
    ask = _command(commands, "ask", "plan and answer a question", "GOAL")
    ask.add_argument("goal", metavar="GOAL", help="the question or task; - reads it from standard input")
    run = _command(commands, "run", "run a plan file", "PLAN")
    run.add_argument("plan", metavar="PLAN", help="plan.yaml, plan.json, or - for standard input")
    run.add_argument("--input", action="append", default=[], metavar="NAME=VALUE", help="an input; repeatable")
    for command in (demo, ask):
        command.add_argument(
            "--max-replans", type=_whole(0, 20), metavar="N", help="times that a model may add to the plan (default: 2)"
        )
    for command in (ask, run):
        command.add_argument("--docs", metavar="DIR", help="folder of documents to search and read")
        _starting(command)


def _add_looking(commands: _Commands) -> None:
    status = _command(commands, "status", "show a run; exits with the run's own code", "RUN")
    watch = _command(commands, "watch", "follow a run to its answer", "RUN")
    cancel = _command(commands, "cancel", "cancel a run", "RUN")
    for command in (status, watch, cancel):
        command.add_argument("run", metavar="RUN", help="the run's id")
    _waiting(watch)
    cancel.add_argument("--wait", action="store_true", help="wait until it is cancelled")


def _add_updates(commands: _Commands) -> None:
    update = commands.add_parser(
        "update",
        usage="sennit update RUN NAME [FIELD=VALUE ...|JSON] [flags]",
        help="send an update to a run",
        description="Send an update to a run. Fields are name=value, or one JSON object.",
        epilog=_updates_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    update.set_defaults(module="update")
    _connection(update)
    update.add_argument("run", metavar="RUN", help="the run's id")
    update.add_argument("name", metavar="NAME", help="one of the updates below")
    update.add_argument("fields", nargs="*", metavar="NAME=VALUE|JSON", help="the update's fields")
    for name, about, takes in (
        ("retry", "run a failed or finished node again", ("node",)),
        ("skip", "give a node up; joins go on without it", ("node",)),
        ("answer", "answer a gate", ("node", "value")),
        ("approve", "let a waiting write or large replan go on", ("node",)),
        ("reject", "refuse a waiting write or large replan", ("node", "reason")),
        ("finish", "end a run now with what there is", ()),
    ):
        _short(commands, name, about, takes)


def _short(commands: _Commands, name: str, about: str, takes: tuple[str, ...]) -> None:
    places = ["RUN", *(f"[{part.upper()}]" if part == "reason" else part.upper() for part in takes)]
    command = _command(commands, name, about, " ".join(places), "update")
    command.set_defaults(name={"retry": "retry_node", "skip": "skip_node"}.get(name, name))
    command.add_argument("run", metavar="RUN", help="the run's id")
    if "node" in takes:
        command.add_argument("node", metavar="NODE", help="the node's id, or map[17] for one item")
    if "value" in takes:
        command.add_argument("value", metavar="VALUE", help="JSON, or text; '\"7\"' is the text 7")
    if "reason" in takes:
        command.add_argument("reason", nargs="?", metavar="REASON", help="why")
    if name == "retry":
        command.add_argument("--repeat-effect", action="store_true", help="repeat a write that succeeded")


def _updates_epilog() -> str:
    lines = []
    for model in UPDATES:
        fields = " ".join(name if field.is_required() else f"[{name}]" for name, field in model.model_fields.items())
        lines.append(f"  {model.name:<12} {fields:<22} {model.example}")
    return "\n".join(["updates:", *lines, f"not built yet: {', '.join(UPDATES_NOT_BUILT)}", "", EXIT_CODES])


def _add_offline(commands: _Commands) -> None:
    plan = _command(commands, "plan", "check or draw a plan file; needs no server", "check|draw PLAN")
    actions = plan.add_subparsers(prog="sennit plan", dest="action", metavar="check|draw", required=True)
    for action, about in (("check", "say what is wrong with a plan"), ("draw", "draw a plan's graph")):
        command = actions.add_parser(action, usage=f"sennit plan {action} PLAN [flags]", help=about, allow_abbrev=False)
        _connection(command)
        command.add_argument("plan", metavar="PLAN", help="plan.yaml, plan.json, or - for standard input")
    command.add_argument(
        "--format", choices=("text", "mermaid", "svg"), default="text", help="how to draw (default: text)"
    )
    _command(commands, "tools", "list the tools there are; needs no server")
    setup = _command(commands, "setup", "create the search attributes that the namespace lacks; cap model providers")
    setup.add_argument(
        "--rates", metavar="PROVIDER=N,...", help="calls a minute that all workers together may make of it"
    )
    dev = _command(commands, "dev", "run the local Temporal server and all workers in the foreground")
    dev.add_argument("--stop", action="store_true", help="stop the local stack that runs in the background")
    worker = _command(commands, "worker", "run a worker in the foreground", "ROLE")
    worker.add_argument("role", metavar="ROLE", help="what it serves; `python -m workers` lists the roles")
