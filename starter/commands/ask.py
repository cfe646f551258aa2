"""`sennit ask`: plan and answer a question."""

import argparse
import sys

from starter.client.errors import Exit, Refused
from starter.client.request import checked_goal
from starter.commands.command_line import Parser
from starter.commands.launch import add_start_arguments, launch
from starter.terminal.console import Terminal
from workflows.plan.language.nodes import MAX_GOAL_BYTES

EXAMPLES = """\
sennit ask "How high is Mont Blanc?" --docs examples/corpus
echo "How high is Mont Blanc?" | sennit ask -"""


def add_arguments(parser: Parser) -> None:
    parser.describe("GOAL", EXAMPLES)
    parser.add_argument("goal", metavar="GOAL", help="the question or task; - reads it from standard input")
    add_start_arguments(parser, replans=True, docs=True)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Start a run of the goal and wait for its answer."""
    goal = checked_goal(_read_stdin() if args.goal == "-" else args.goal)
    return await launch(args, terminal, goal=goal, docs=args.docs)


def _read_stdin() -> str:
    body = sys.stdin.buffer.read(MAX_GOAL_BYTES + 2)
    try:
        return body.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        if error.start < MAX_GOAL_BYTES - 4:
            raise Refused("the goal on standard input is not UTF-8 text") from None
        return body.decode(errors="replace")
