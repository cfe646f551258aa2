"""`sennit demo`: a sample question over the sample documents of the repository."""

import argparse
from pathlib import Path

from starter.client.errors import Exit, Refused
from starter.commands.command_line import Parser
from starter.commands.launch import add_start_arguments, launch
from starter.terminal.console import Terminal

QUESTION = (
    "Which of the Nile, the Amazon, the Yangtze and the Mississippi is the longest, "
    "and how much longer is it than the shortest?"
)
CORPUS = Path(__file__).resolve().parents[2] / "examples" / "corpus"


def add_arguments(parser: Parser) -> None:
    parser.describe("", "sennit demo\nsennit demo --output json")
    add_start_arguments(parser, replans=True)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Ask the sample question and say what happens."""
    if not CORPUS.is_dir():
        raise Refused("the demo needs the documents in examples/corpus, which come with the repository")
    terminal.say(f"Sennit answers a question from the documents in {CORPUS.parent.name}/{CORPUS.name}:")
    terminal.say(f"  {QUESTION}", "bold")
    terminal.say("It plans a graph of look-ups, runs them in parallel as a Temporal workflow, and joins the results.")
    return await launch(args, terminal, goal=QUESTION, docs=str(CORPUS))
