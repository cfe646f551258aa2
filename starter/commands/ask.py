"""`sennit ask`: answer a question by a plan that a model writes, or by a program of the library.

`sennit demo`: answer a sample question over the sample documents.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from sennit.folders import CORPUS, PROGRAMS
from sennit.starter.client.errors import Exit, Refused
from sennit.starter.client.request import checked_goal, checked_id
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import add_start_arguments, launch
from sennit.starter.plans.plan_file import read_plan
from sennit.starter.terminal.console import Terminal
from sennit.workflows.plan.language.text import nearest_or_known
from sennit.workflows.plan.limits import MAX_GOAL_BYTES

EXAMPLES = """\
sennit ask "How high is Mont Blanc?" --docs examples/corpus
sennit ask "And the Matterhorn?" --docs examples/corpus --continue RUN"""
QUESTION = (
    "Which of the Nile, the Amazon, the Yangtze and the Mississippi is the longest, "
    "and how much longer is it than the shortest?"
)


def add_arguments(parser: Parser) -> None:
    if parser.prog.endswith(" demo"):
        parser.describe("", "sennit demo\nsennit demo --output json")
        add_start_arguments(parser, replans=True)
        return
    parser.describe("GOAL", EXAMPLES)
    parser.add_argument(
        "goal", metavar="GOAL", help="the question or task; - reads it from standard input"
    )
    program_help = "answer by this program of the library instead of a plan"
    parser.add_argument("--program", metavar="NAME", help=program_help)
    continue_help = "go on with the conversation of this run, which has its answer"
    parser.add_argument("--continue", dest="continues", metavar="RUN", help=continue_help)
    attach_help = "an image, PDF or recording that the models are shown with the goal; repeatable"
    parser.add_argument("--attach", action="append", default=[], metavar="FILE", help=attach_help)
    add_start_arguments(parser, replans=True, docs=True)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Start a run of the goal and wait for its answer."""
    if args.command == "demo":
        return await _demo(args, terminal)
    goal = args.goal
    if goal == "-":
        goal = _read_stdin()
    goal = checked_goal(goal)
    what: dict[str, Any] = {"goal": goal}
    if args.program is not None:
        what = program_for(args.program, goal)
        if args.attach:
            raise Refused(
                "--attach: programs of the library take no files; use `sennit run` with a program "
                "that does"
            )
    if args.attach:
        what["attachments"] = _numbered(args.attach)
    if args.continues is not None:
        what["continues"] = checked_id(args.continues)
    return await launch(args, terminal, **what, docs=args.docs)


def _numbered(files: list[str]) -> dict[str, str]:
    """Return the files that are attached to a goal, by names that say their order."""
    return {f"file_{number:02d}": file for number, file in enumerate(files, 1)}


async def _demo(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Ask the sample question and say what happens."""
    if not CORPUS.is_dir():
        raise Refused("the demo needs the documents in examples/corpus, which come with Sennit")
    terminal.say(
        f"Sennit answers a question from the documents in {CORPUS.parent.name}/{CORPUS.name}:"
    )
    terminal.say(f"  {QUESTION}", "bold")
    terminal.say(
        "It plans a graph of look-ups, runs them in parallel as a Temporal workflow, and joins "
        "the results."
    )
    return await launch(args, terminal, goal=QUESTION, docs=str(CORPUS))


def program_for(name: str, goal: str) -> dict[str, Any]:
    """Return what starts a program of the library with the goal as its one
    argument; raises Refused.
    """
    names = sorted(path.stem for path in PROGRAMS.glob("*.py"))
    if name not in names:
        way = nearest_or_known(name, names)
        if name.endswith(".py") and Path(name).stem not in names:
            way = f"; run a file of your own with: sennit run {name[:60]}"
        raise Refused(f"--program {name[:60]}: there is no such program{way}")
    path = PROGRAMS / f"{name}.py"
    file = read_plan(str(path))
    inputs = file.check(None).inputs
    required = [name for name, spec in inputs.items() if spec.is_required]
    if len(required) != 1 or inputs[required[0]].type != "string":
        shown = path
        if path.is_relative_to(Path.cwd()):
            shown = path.relative_to(Path.cwd())
        way = " ".join(f"--input {name}=..." for name in required)
        raise Refused(f"--program {name} takes more than a goal: sennit run {shown} {way}")
    return {"program": file.script, "inputs": {required[0]: goal}, "title": goal}


def _read_stdin() -> str:
    most = 2 * MAX_GOAL_BYTES  # with white space around the goal
    body = sys.stdin.buffer.read(most)
    if len(body) == most:
        raise Refused(
            f"the goal on standard input is longer than {MAX_GOAL_BYTES:,} bytes; put long text in "
            "a document"
        )
    try:
        return body.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise Refused("the goal on standard input is not UTF-8 text") from None
