"""Connects to the server that a command line names, and starts the run that it describes."""

import argparse
import os
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast, get_args

from pydantic import ValidationError

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import configured_server, connect_client, silence_sdk_log
from sennit.starter.client.errors import Exit, NoServerYet, Refused
from sennit.starter.client.local import has_local_runs
from sennit.starter.client.request import RunOptions, docs_folder
from sennit.starter.client.run import Run
from sennit.starter.dev.stack import Renew
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.prompt import value_of
from sennit.starter.terminal.wait import detach, wait_for_run
from sennit.workflows.messages.queues import models_in
from sennit.workflows.messages.result import RunReport
from sennit.workflows.plan.language.call_settings import CallSettings
from sennit.workflows.plan.language.limits import parse_duration
from sennit.workflows.plan.language.limits_text import parse_limits
from sennit.workflows.plan.language.nodes import OnFailure
from sennit.workflows.plan.language.validation_messages import describe_errors
from sennit.workflows.plan.limits import MAX_NODES

Begin = Callable[[Sennit], Awaitable[dict[str, Any]]]
SETTING_EXAMPLE = "temperature=0.2, max_tokens=2000 or effort=high"
LIMITS_EXAMPLE = "tokens=20000,cost_usd=0.5,calls=20,nodes=100,time=10m"


async def connect(
    args: argparse.Namespace, terminal: Terminal, *, docs: str | None = None, renew: Renew = "never"
) -> Sennit:
    """Connect to the server that flags, environment or profile name, else to the local
    stack, which is restarted as `renew` says: always for a new run, and with changed code
    for what has a run go on.

    A missing documents folder is refused before anything is started. A local stack is not started
    just to look for a run if none ever ran here. Raises Refused or ServerUnreachable.
    """
    for_new = renew == "always"
    silence_sdk_log()
    server = configured_server(args.address, args.namespace)
    if docs:
        docs_folder(docs, must_exist=server is None or server.is_local)
    if server is None and not for_new and not has_local_runs():
        raise NoServerYet(
            "there is no Temporal server; pass --address, set TEMPORAL_ADDRESS, or start one with "
            "`sennit dev`"
        )
    if server is None:
        return await Sennit.local(namespace=args.namespace, say=terminal.say, renew=renew)
    if for_new and server.ui is None and not server.is_local and not os.environ.get("SENNIT_UI"):
        terminal.say(
            "the web UI of this server is not known; with SENNIT_UI=https://HOST:PORT you get links"
        )
    return Sennit(await connect_client(server), server)


async def launch(
    args: argparse.Namespace,
    terminal: Terminal,
    *,
    docs: str | None,
    fork: Begin | None = None,
    review: Callable[[Sennit, dict[str, Any]], Awaitable[Exit | None]] | None = None,
    **what: Any,
) -> Exit:
    """Start a run, or join the one of that id, and wait for it as the flags say. `fork` returns the
    run that it forks and what else is given, and `review` shows what that would do: it returns how
    the command ends if it goes no further.
    """
    if args.again and args.id is None:
        raise Refused("--again starts the run of an --id anew; without --id every run is new")
    renew: Renew = "always"
    # There is nothing to fork, so no stack is started for it.
    if fork is not None and not has_local_runs():
        renew = "never"
    sennit = await connect(args, terminal, docs=docs, renew=renew)
    begin: Callable[..., Awaitable[Run[RunReport]]] = sennit.start
    if fork is not None:
        begin = sennit.fork
        what = await fork(sennit)
    if review is not None:
        ended = await review(sennit, what)
        if ended is not None:
            return ended
    run = await begin(**what, docs=docs, id=args.id, again=args.again, **run_options(args))
    if args.detach:
        return detach(run, terminal)
    return await wait_for_run(run, terminal, wait=args.wait, limit=args.timeout)


def add_wait_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the commands that wait for a run."""
    parser.add_argument(
        "--wait", action="store_true", help="if the run blocks, wait for others to act; never ask"
    )
    parser.add_argument(
        "--timeout",
        type=typed(parse_duration),
        metavar="30s",
        help="stop waiting after this time (exit code 4)",
    )


def run_options(args: argparse.Namespace) -> RunOptions:
    """Return how a run is done, as the flags of `add_run_arguments` say."""
    names = [name for name in RunOptions.__annotations__ if name in vars(args)]
    return cast("RunOptions", {name: getattr(args, name) for name in names})


def add_start_arguments(
    parser: argparse.ArgumentParser, *, replans: bool = False, docs: bool = False
) -> None:
    """Add the flags of the commands that start a run."""
    add_wait_arguments(parser)
    parser.add_argument(
        "--detach", action="store_true", help="start, print the run's id and return (exit code 0)"
    )
    parser.add_argument(
        "--id", help="start at most one run with this id: join it, or return its result"
    )
    parser.add_argument(
        "--again", action="store_true", help="with --id: start a new run if that one is over"
    )
    add_run_arguments(parser, replans=replans, docs=docs)


def add_run_arguments(
    parser: argparse.ArgumentParser,
    *,
    replans: bool = False,
    docs: bool = False,
    model: bool = True,
    on_failure: OnFailure = "park",
) -> None:
    """Add the flags that say how a run is done. Without `model` the command has a flag of its own
    for it; `on_failure` is what the command does without that flag.
    """
    add = parser.add_argument
    if docs:
        add("--docs", metavar="DIR", help="folder of documents to search and read")
    if replans:
        replans_help = "how often a model may add to the plan (default: 2)"
        add("--max-replans", type=whole(0, 20), metavar="N", help=replans_help)
    failure_help = f"what a failed node leads to (default: {on_failure})"
    add("--on-failure", choices=get_args(OnFailure), help=failure_help)
    add("--approval", choices=("writes", "never"), help="what needs approval (default: writes)")
    plan_help = "ask about the plan, with its forecast, before any of it starts"
    add("--approve-plan", action="store_true", default=None, help=plan_help)
    trust_help = (
        "run your program also where the kernel cannot confine it, on a local stack: it can do "
        "what you can"
    )
    add("--trust-program", action="store_true", default=None, help=trust_help)
    add(
        "--window", type=whole(1, 500), metavar="N", help="most activities in flight (default: 100)"
    )
    add(
        "--in-flight",
        type=whole(1, MAX_NODES),
        metavar="N",
        help="most nodes in flight (default: 1,024)",
    )
    add(
        "--fuse",
        choices=("auto", "on", "off"),
        help="whether short calls share an activity (default: auto)",
    )
    speculate_help = (
        "whether calls that only read may be made before they are asked for (default: as the "
        "workers say)"
    )
    add("--speculate", choices=("off", "on"), help=speculate_help)
    budget_help = (
        "what the run may spend: tokens, cost_usd, calls, nodes, time; for example "
        "tokens=20000,time=10m"
    )
    add("--budget", type=typed(read_limits), metavar="tokens=N,...", help=budget_help)
    add("--tenant", metavar="NAME", help="who the run is for; queues serve tenants in turn")
    model_help = "the model of every role, such as openai:NAME (default: as the workers are set)"
    if model:
        add("--model", type=typed(model_names), metavar="NAME", help=model_help)
    instructions_help = "what all models of the run are told beside their task"
    add("--instructions", metavar="TEXT", help=instructions_help)
    set_help = (
        "a setting of every model call, over those of the roles; may be repeated; for example "
        "temperature=0"
    )
    add("--set", action=_Setting, dest="settings", metavar="NAME=VALUE", help=set_help)
    add("--tools", type=_names, metavar="A,B", help="the tools the run may use (default: all)")


class _Setting(argparse.Action):
    """Takes `--set name=value`, once for each setting, and checks it."""

    def __call__(self, _: Any, args: argparse.Namespace, text: Any, __: Any = None) -> None:
        given: dict[str, Any] = getattr(args, self.dest) or {}
        try:
            name, read = read_setting(str(text))
            if name in given:
                raise ValueError(f"the setting `{name}` is given twice")
        except ValueError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        setattr(args, self.dest, {**given, name: read})


def read_setting(text: str) -> tuple[str, Any]:
    """Return (name, value) of a setting as a request has it; raises ValueError."""
    name, equals, written = (piece.strip() for piece in text.partition("="))
    if not equals or not name:
        raise ValueError(f"{text[:40]!r} is not a setting; write for example {SETTING_EXAMPLE}")
    is_text = name in ("system", "effort") or (name == "stop" and not written.startswith("["))
    value = written
    if not is_text:
        value = value_of(written)
    try:
        return name, CallSettings.model_validate({name: value}).model_dump(mode="json").get(
            name, value
        )
    except ValidationError as error:
        raise ValueError(describe_errors(error, CallSettings.model_fields)) from None


def _names(text: str) -> list[str]:
    return list(filter(None, text.split(",")))


def model_names(text: str) -> str:
    """Return the names of models; raises ValueError about one that no provider has."""
    models_in(text)
    return text


def typed(reader: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a type for argparse, which then shows the sentence of the
    ValueError that a reader raises.
    """

    def read(text: str) -> Any:
        try:
            return reader(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not least <= int(text) <= most:
            raise ValueError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return typed(read)


def read_limits(text: str) -> dict[str, Any]:
    """Return a budget as a request has it; raises ValueError."""
    limits = parse_limits(text, LIMITS_EXAMPLE)
    return limits.model_dump(mode="json", exclude_none=True)
