"""`sennit report`: a run as one HTML page, to be shown to others; with `--diff`, a
fork beside its origin.
"""

import argparse
import asyncio
import re
from pathlib import Path

from sennit.starter.client.client import Sennit
from sennit.starter.client.errors import Exit, Refused
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import connect
from sennit.starter.report.comparison import comparison_page
from sennit.starter.report.content import Content, content_of
from sennit.starter.report.page import report_page
from sennit.starter.terminal.console import Terminal
from sennit.workflows.plan.language.text import text_bytes


def add_arguments(parser: Parser) -> None:
    examples = (
        "sennit report nightly-1 -o report.html\nsennit report --diff nightly-1 nightly-1-fork-2b3c"
    )
    parser.describe("RUN | --diff RUN RUN", examples)
    parser.add_argument("run", metavar="RUN", nargs="?", default="", help="the run's id")
    diff_help = "compare two runs, such as one and its fork"
    parser.add_argument("--diff", nargs=2, metavar=("RUN", "RUN"), help=diff_help)
    out_help = "where to write the page, - for standard output (default: RUN.html)"
    parser.add_argument("-o", "--out", metavar="FILE", default="", help=out_help)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write the page of a run, whatever the run has come to, and say where it is. A file
    that is there is replaced.
    """
    names = args.diff or [args.run]
    if not names[0] or (args.diff and args.run):
        raise Refused(
            "name one run, or two with --diff: sennit report RUN, or sennit report --diff RUN RUN"
        )
    sennit = await connect(args, terminal)
    contents = [await _content(sennit, name) for name in names]
    for content in contents:
        if content.lacks:
            terminal.notice(f"{content.report.id}: {content.lacks}")
    # To arrange a graph of thousands of nodes takes a second, for which nothing else shall wait.
    if args.diff:
        page = await asyncio.to_thread(comparison_page, *contents)
    else:
        page = await asyncio.to_thread(report_page, contents[0])
    if args.out == "-":
        terminal.answer(page, end="")
        return Exit.ANSWER
    file = Path(args.out or f"{_file_name('-'.join(names))}.html")
    try:
        await asyncio.to_thread(file.write_text, page, "utf-8", "replace")
    except OSError as error:
        raise Refused(
            f"{file} cannot be written: {error.strerror}; name another file with -o"
        ) from None
    terminal.result(str(file), {"file": str(file), "bytes": text_bytes(page), "runs": names})
    return Exit.ANSWER


async def _content(sennit: Sennit, name: str) -> Content:
    found, is_open = await sennit.look_up(name)
    return await content_of(found, is_open=is_open)


def _file_name(name: str) -> str:
    """Return a run's id as the name of a file in this folder."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-")[:120] or "report"
