"""`sennit demo`: a sample question over the sample documents of the repository."""

import argparse
from pathlib import Path

from starter.client.errors import Exit, Refused
from starter.commands.launch import launch
from starter.terminal.console import Terminal

QUESTION = (
    "Which of the Nile, the Amazon, the Yangtze and the Mississippi is the longest, "
    "and how much longer is it than the shortest?"
)
CORPUS = Path(__file__).resolve().parents[2] / "examples" / "corpus"


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Ask the sample question and say what happens."""
    if not CORPUS.is_dir():
        raise Refused("the demo needs the documents in examples/corpus, which come with the repository")
    terminal.say(f"Sennit answers a question from the documents in {CORPUS.parent.name}/{CORPUS.name}:")
    terminal.say(f"  {QUESTION}", "bold")
    terminal.say("It plans a graph of look-ups, runs them side by side as a Temporal workflow, and joins the results.")
    return await launch(args, terminal, goal=QUESTION, docs=str(CORPUS))
