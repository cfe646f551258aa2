"""`sennit output`: the answer of a run, or what one of its nodes has made, whole."""

import argparse
import shlex
from typing import Any

from sennit.starter.client.errors import Exit, Refused
from sennit.starter.commands.command_line import Parser, add_run_argument
from sennit.starter.commands.launch import connect
from sennit.starter.limits import MAX_SHOWN_BYTES
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.text import as_json
from sennit.workflows.plan.language.references import as_text
from sennit.workflows.plan.language.text import clean, text_bytes


def add_arguments(parser: Parser) -> None:
    examples = (
        "sennit output nightly-1 'notes[1]' --path items[0].title\nsennit output nightly-1 report "
        "--raw"
    )
    parser.describe("RUN [NODE]", examples)
    add_run_argument(parser)
    node_help = (
        "the node's id, map[17] for one item, sub.n1 in a sub-agent (default: the run's answer)"
    )
    parser.add_argument("node", nargs="?", metavar="NODE", default="", help=node_help)
    parser.add_argument(
        "--path", metavar="PATH", default="", help="only what is there, such as items[0].title"
    )
    raw_help = (
        "write exactly what is stored, into a file or a pipe: a text as it is, all else as "
        "compact JSON"
    )
    parser.add_argument("--raw", action="store_true", help=raw_help)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write one output to standard output. What a terminal cannot show is refused with the
    command that keeps it.
    """
    if args.raw and terminal.out.isatty():
        raise Refused(
            f"--raw: it may hold what a terminal obeys; write it to a file: {_into_file(args)}"
        )
    sennit = await connect(args, terminal)
    found, _ = await sennit.look_up(args.run)
    masked: list[bool] = []
    value = await found.output(args.node, args.path, on_mask=lambda: masked.append(True))
    if args.raw:
        terminal.answer(as_text(value), end="")
    else:
        text = _shown(value, terminal)
        if terminal.out.isatty() and text_bytes(text) > MAX_SHOWN_BYTES:
            size = f"{text_bytes(text):,} bytes, too many for a terminal"
            raise Refused(
                f"it has {size}; write it to a file: {_into_file(args)}, or choose a part of it "
                "with --path"
            )
        terminal.answer(text)
    if masked:
        terminal.notice("the worker that has read it has masked a secret in it")
    return Exit.ANSWER


def _shown(value: Any, terminal: Terminal) -> str:
    if terminal.output == "jsonl":
        return as_json(value)
    if terminal.output == "json" and not terminal.out.isatty():
        return as_json(value)
    if terminal.output == "json":
        return as_json(value, indent=2)
    if isinstance(value, str):
        return clean(value).rstrip("\n")
    return as_json(value, indent=2)


def _into_file(args: argparse.Namespace) -> str:
    path = ["--path", args.path] if args.path else []
    return (
        shlex.join(["sennit", "output", args.run, *filter(None, [args.node]), *path, "--raw"])
        + " > FILE"
    )
