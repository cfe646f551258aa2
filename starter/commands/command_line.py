"""The command line of `sennit`: its commands, and the flags that all of them share.

Light to import: the module of a command is imported, and adds its own flags, when the command is chosen.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from workflows.plan.language.text import did_you_mean

COMMANDS = {
    "demo": ("demo", "answer a sample question over sample documents; needs no key"),
    "ask": ("ask", "plan and answer a question"),
    "run": ("run", "run a plan or a program"),
    "fork": ("run", "run again what is over; calls that both runs make are taken over"),
    "status": ("status", "show a run; exits with the run's own code"),
    "watch": ("watch", "follow a run to its answer"),
    "cancel": ("cancel", "cancel a run"),
    "update": ("update", "send an update to a run"),
    "retry": ("update", "run a failed or finished node again"),
    "skip": ("update", "give up a node; joins go on without it"),
    "edit": ("update", "give a running program another script; calls that both make are taken over"),
    "answer": ("update", "answer a gate, or give the result of a call that failed"),
    "approve": ("update", "approve a waiting write, program or large replan"),
    "reject": ("update", "reject a waiting write, program or large replan"),
    "finish": ("update", "end a run now with what it has"),
    "plan": ("plan", "check a plan or a program, or draw a plan; needs no server"),
    "tools": ("tools", "list the available tools; needs no server"),
    "setup": ("setup", "create missing search attributes; limit the rate of model providers"),
    "gc": ("gc", "delete artifacts of runs that the server no longer knows"),
    "dev": ("dev", "run the local Temporal server and all workers in the foreground"),
    "worker": ("worker", "run a worker in the foreground"),
}
"""The module of each command, and what the command does."""

NOT_BUILT = ("report",)

EXIT_CODES = """\
exit codes: 0 answer, 1 failed or cancelled, 2 wrong usage or refused,
            3 partial answer, 4 still running or blocked, 5 server unreachable,
            130 interrupted (the run goes on)"""


class Parser(argparse.ArgumentParser):
    """Names the nearest known flag or command for a misspelt one, and exits with 2."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)
        self.module: str | None = None

    def describe(self, arguments: str, examples: str, epilog: str = "") -> None:
        """Set the usage line of a command and what its help ends with."""
        self.usage = " ".join(filter(None, (self.prog, arguments, "[flags]")))
        lines = "\n".join(f"  {line}" for line in examples.splitlines())
        self.epilog = (epilog or f"examples:\n{lines}\n") + f"\n{EXIT_CODES}"

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parse, or exit: argparse would blame an unknown flag on the whole program and show its usage."""
        if self.module is not None:
            importlib.import_module(f"starter.commands.{self.module}").add_arguments(self)
            self.module = None
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            hint = did_you_mean(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found, []

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            hint = did_you_mean(str(value), action.choices) or f"; {self.prog} --help lists the commands"
            self.error(f"there is no {self.prog} {value}{hint}")
        super()._check_value(action, value)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line, with `module` None for a command that is not built yet.

    Exits with 2 and a usage line if it is wrong, and with the list of commands if it is empty.
    """
    parser = _parser()
    given = sys.argv[1:] if argv is None else argv
    if not given:
        parser.print_help(sys.stderr)
        parser.exit(2)
    return parser.parse_args(given)


def _parser() -> Parser:
    parser = Parser(prog="sennit", description="Run AI agents as durable, parallel graphs on Temporal.")
    question = "Which is longer, the Nile or the Amazon?"
    parser.describe("COMMAND", f'sennit demo\nsennit ask "{question}" --docs examples/corpus')
    parser.add_argument("--version", action="version", version=f"sennit {version('sennit')}")
    add_common_arguments(parser, None, "text", "auto", False)
    commands = parser.add_subparsers(prog="sennit", dest="command", metavar="COMMAND", required=True)
    for name, (module, about) in COMMANDS.items():
        command = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        command.module = module
        command.set_defaults(module=module)
        add_common_arguments(command)
    for name in NOT_BUILT:
        command = commands.add_parser(name, add_help=False, prefix_chars="\0")
        command.add_argument("rest", nargs=argparse.REMAINDER)
        command.set_defaults(module=None)
    return parser


def add_common_arguments(parser: argparse.ArgumentParser, *defaults: Any) -> None:
    """Add the flags of every command. After a command they have no default, which would undo a flag before it."""
    address, output, colour, quiet = defaults or (argparse.SUPPRESS,) * 4
    group = parser.add_argument_group("connection and output")
    group.add_argument("--address", default=address, metavar="HOST:PORT", help="Temporal server (TEMPORAL_ADDRESS)")
    group.add_argument("--namespace", default=address, help="Temporal namespace (TEMPORAL_NAMESPACE)")
    group.add_argument("--output", choices=("text", "json", "jsonl", "none"), default=output, help="form of stdout")
    group.add_argument("--color", choices=("auto", "always", "never"), default=colour, help="colour on stderr")
    group.add_argument("--quiet", action="store_true", default=quiet, help="no progress on stderr")


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the run's id")
