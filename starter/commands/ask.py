"""`sennit ask`: answer a question by a plan that a model writes, or by a program of the library."""

import argparse
import sys
from pathlib import Path
from typing import Any

from starter.client.errors import Exit, Refused
from starter.client.request import checked_goal
from starter.commands.command_line import Parser
from starter.commands.launch import add_start_arguments, launch
from starter.plans.plan_file import read_plan
from starter.terminal.console import Terminal
from workflows.plan.language.nodes import MAX_GOAL_BYTES
from workflows.plan.language.text import nearest_or_known

LIBRARY = Path(__file__).resolve().parents[2] / "examples" / "programs"
EXAMPLES = """\
sennit ask "How high is Mont Blanc?" --docs examples/corpus
sennit ask "Is nuclear power needed?" --program debate"""


def add_arguments(parser: Parser) -> None:
    parser.describe("GOAL", EXAMPLES)
    parser.add_argument("goal", metavar="GOAL", help="the question or task; - reads it from standard input")
    program_help = "answer by this program of the library in examples/programs, in the place of a plan"
    parser.add_argument("--program", metavar="NAME", help=program_help)
    add_start_arguments(parser, replans=True, docs=True)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Start a run of the goal and wait for its answer."""
    goal = checked_goal(_read_stdin() if args.goal == "-" else args.goal)
    what = program_for(args.program, goal) if args.program is not None else {"goal": goal}
    return await launch(args, terminal, **what, docs=args.docs)


def program_for(name: str, goal: str) -> dict[str, Any]:
    """Return what starts a program of the library with the goal as its one argument; raises Refused."""
    names = sorted(path.stem for path in LIBRARY.glob("*.py"))
    if name not in names:
        is_file = name.endswith(".py") and Path(name).stem not in names
        way = f"; run a file of your own with: sennit run {name[:60]}" if is_file else nearest_or_known(name, names)
        raise Refused(f"--program {name[:60]}: there is no such program{way}")
    file = read_plan(str(LIBRARY / f"{name}.py"))
    inputs = file.check(None).inputs
    required = [each for each, spec in inputs.items() if "default" not in spec.model_fields_set]
    if [inputs[each].type for each in required] != ["string"]:
        way = " ".join(f"--input {each}=..." for each in required)
        raise Refused(f"--program {name} takes more than a goal: sennit run examples/programs/{name}.py {way}")
    return {"program": file.script, "inputs": {required[0]: goal}, "title": goal}


def _read_stdin() -> str:
    body = sys.stdin.buffer.read(MAX_GOAL_BYTES + 2)
    try:
        return body.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        if error.start < MAX_GOAL_BYTES - 4:
            raise Refused("the goal on standard input is not UTF-8 text") from None
        return body.decode(errors="replace")
