"""The command line of `sennit`: its commands, and the flags that all of them share.

Light to import: the module of a command is imported, and adds its own flags, when
the command is chosen.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from sennit.private_interfaces import commands_of, flags_of
from sennit.workflows.plan.language.text import did_you_mean

COMMANDS = {
    "demo": ("ask", "answer a sample question over sample documents; needs no key"),
    "ask": ("ask", "plan and answer a question"),
    "run": ("run", "run a plan or a program"),
    "fork": ("run", "run again what is over; calls that both runs make are taken over"),
    "schedule": ("schedule", "start runs at times: add, list, pause, resume, run, remove"),
    "list": ("list", "list runs, newest first, and what they wait for"),
    "status": ("status", "show a run; exits with the run's own code"),
    "figures": ("figures", "tell what parallelism has brought to many runs, and what has failed"),
    "report": ("report", "write a run as one HTML page, or compare two"),
    "audit": ("audit", "list who, or which rule, has decided what in a run, and when"),
    "output": ("output", "write the answer of a run, or the output of one of its nodes, whole"),
    "watch": ("status", "follow a run to its answer"),
    "cancel": ("cancel", "cancel a run"),
    "update": ("update", "send an update to a run"),
    "retry": ("update", "run a failed or finished node again"),
    "skip": ("update", "give up a node; joins go on without it"),
    "edit": (
        "update",
        "give a running program another script; calls that both make are taken over",
    ),
    "answer": ("update", "answer a gate, or give the result of a call that failed"),
    "approve": ("update", "approve a waiting write, program or plan"),
    "reject": ("update", "reject a waiting write, program or plan"),
    "finish": ("update", "end a run now with what it has"),
    "eval": ("eval", "answer a file of cases, and compare models by right answers, time and cost"),
    "plan": ("plan", "check a plan or a program, draw a plan, or write that of a run into a file"),
    "tools": ("tools", "list the available tools; needs no server"),
    "setup": (
        "setup",
        "prepare a namespace, create the artifact store, limit the rate of model providers",
    ),
    "quota": (
        "quota",
        "show the quota of a namespace: which runs go on, which wait, and what is spent today",
    ),
    "gc": ("worker", "delete artifacts of runs that the server no longer knows"),
    "learn": (
        "learn",
        "show which calls followed which in earlier runs, forget them, or export training data",
    ),
    "serve": ("serve", "let other agents start runs and read them (MCP, A2A)"),
    "dev": ("dev", "run the local Temporal server and all workers in the foreground"),
    "worker": ("worker", "run a worker in the foreground"),
}
"""The module of each command, and what the command does."""

HEADINGS = {
    "demo": "start runs",
    "list": "look at runs",
    "cancel": "act on runs",
    "eval": "plans and tools",
    "setup": "operate",
}
"""The first command of each group in the list of commands, and what the group is for."""

EXIT_CODES = """\
exit codes: 0 answer, 1 failed or cancelled, 2 wrong usage or refused,
            3 partial answer, 4 still running or blocked, 5 server unreachable,
            130 interrupted (the run goes on)"""


CONNECTION = "flags for the connection and the output: sennit --help"


class Parser(argparse.ArgumentParser):
    """Names the nearest known flag or command for a misspelt one, and exits with 2."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options
        )
        self.module: str | None = None

    def describe(self, arguments: str, examples: str, epilog: str = "") -> None:
        """Set the usage line of a command and what its help ends with."""
        self.usage = " ".join(filter(None, (self.prog, arguments, "[flags]")))
        lines = "\n".join(f"  {line}" for line in examples.splitlines())
        shared = ""
        if self.prog != "sennit":
            shared = f"\n\n{CONNECTION}"
        self.epilog = (epilog or f"examples:\n{lines}\n") + f"\n{EXIT_CODES}{shared}"

    def load(self) -> None:
        """Add the flags of the command, if its module has not been imported yet."""
        if self.module is not None:
            importlib.import_module(f"sennit.starter.commands.{self.module}").add_arguments(self)
            self.module = None

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse, or exit: argparse would blame an unknown flag on the whole
        program and show its usage.
        """
        self.load()
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            hint = did_you_mean(unknown[0].partition("=")[0], flags_of(self))
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found, []

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        commands = commands_of(action)
        if commands and value not in commands:
            hint = did_you_mean(str(value), commands) or f"; {self.prog} --help lists the commands"
            self.error(f"there is no {self.prog} {value}{hint}")
        super()._check_value(action, value)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line.

    Exits with 2 and a usage line if it is wrong, and with the list of commands if it is empty.
    """
    parser, commands = _parser()
    if "_ARGCOMPLETE" in os.environ:
        _complete(parser, commands)
    if argv is None:
        argv = sys.argv[1:]
    if not argv:
        parser.print_help(sys.stderr)
        parser.exit(2)
    return parser.parse_args(argv)


def _parser() -> tuple[Parser, Mapping[str, Parser]]:
    """Return the parser, and those of the commands by name."""
    parser = Parser(
        prog="sennit", description="Run AI agents as durable, parallel graphs on Temporal."
    )
    question = "Which is longer, the Nile or the Amazon?"
    examples = f'examples:\n  sennit demo\n  sennit ask "{question}" --docs examples/corpus\n'
    parser.describe("COMMAND", "", f"{_list_of_commands()}\n{examples}")
    parser.add_argument("--version", action="version", version=f"sennit {version('sennit')}")
    shells = "print what your shell needs to complete commands and flags"
    parser.add_argument(
        "--completion", action=_Completion, choices=("bash", "zsh", "fish"), help=shells
    )
    add_common_arguments(parser, None, "text", "auto", False)
    commands = parser.add_subparsers(
        prog="sennit", dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS
    )
    for name, (module, about) in COMMANDS.items():
        command = commands.add_parser(name, description=f"{about[0].upper()}{about[1:]}.")
        command.module = module
        command.set_defaults(module=module)
        add_common_arguments(command)
    return parser, commands.choices


def _list_of_commands() -> str:
    lines: list[str] = []
    for name, (_, about) in COMMANDS.items():
        if name in HEADINGS:
            lines += ["", f"{HEADINGS[name]}:"]
        lines.append(f"  {name:<10} {about}")
    return "\n".join([*lines[1:], "", "sennit COMMAND --help says more about one", ""])


class _Completion(argparse.Action):
    """Prints the code by which a shell completes commands, and ends."""

    def __call__(
        self, parser: argparse.ArgumentParser, _: Any, shell: Any, __: str | None = None
    ) -> None:
        from argcomplete.shell_integration import shellcode

        sys.stdout.write(shellcode(["sennit"], shell=shell))
        parser.exit()


def _complete(parser: Parser, commands: Mapping[str, Parser]) -> None:
    """Answer the shell that asks how the line goes on, and end. Only the command
    on the line is imported.
    """
    from argcomplete import autocomplete

    words = os.environ.get("COMP_LINE", "").split()
    for name in [word for word in words if word in commands][:1]:
        commands[name].load()
    autocomplete(parser)


def add_common_arguments(parser: argparse.ArgumentParser, *defaults: Any) -> None:
    """Add the flags of every command. After a command they have no default, which would undo a flag
    before it, and its help leaves them out.
    """
    address, output, colour, quiet = defaults or (argparse.SUPPRESS,) * 4

    def about(text: str) -> str:
        return text if defaults else argparse.SUPPRESS

    group = parser.add_argument_group("connection, before or after any command")
    address_help, namespace_help = (
        about("Temporal server (TEMPORAL_ADDRESS)"),
        about("namespace (TEMPORAL_NAMESPACE)"),
    )
    group.add_argument("--address", default=address, metavar="HOST:PORT", help=address_help)
    group.add_argument("--namespace", default=address, help=namespace_help)
    group = parser.add_argument_group("output, before or after any command")
    forms = ("text", "json", "jsonl", "none")
    group.add_argument("--output", choices=forms, default=output, help=about("form of stdout"))
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default=colour,
        help=about("colour on stderr"),
    )
    group.add_argument(
        "--quiet", action="store_true", default=quiet, help=about("no progress on stderr")
    )


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the run's id")
