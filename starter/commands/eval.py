"""`sennit eval`: answer a file of cases with one or more models, and say how
many answers are right.
"""

import argparse
import asyncio
from pathlib import Path

from sennit.starter.client.errors import Exit, Refused, SennitError
from sennit.starter.client.request import checked_new_id
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import (
    add_run_arguments,
    connect,
    model_names,
    run_options,
    typed,
    whole,
)
from sennit.starter.evaluation.cases import read_cases
from sennit.starter.evaluation.evaluator import Evaluator, attempts_of
from sennit.starter.evaluation.results import CaseResult, Evaluation, evaluation_of, read_earlier
from sennit.starter.evaluation.table import table
from sennit.starter.limits import MAX_CASES_AT_ONCE
from sennit.starter.terminal.console import Terminal
from sennit.workflows.plan.language.limits import parse_duration
from sennit.workflows.plan.language.nodes import OnFailure

AT_ONCE = 4
ON_FAILURE: OnFailure = "partial"
"""What a failed node leads to: nobody is there to repair it."""
EXAMPLES = """\
sennit eval cases.yaml --model openai:A --model openai:B --output json
sennit eval cases.yaml --model openai:A --id tuesday --against monday.json"""


def add_arguments(parser: Parser) -> None:
    parser.describe("CASES", EXAMPLES)
    add = parser.add_argument
    add("cases", metavar="CASES", help="a file of cases: cases.yaml")
    model_help = (
        "answer every case with this model; repeat it to compare models (default: as the workers "
        "are set)"
    )
    add(
        "--model",
        action="append",
        default=[],
        type=typed(model_names),
        dest="models",
        metavar="NAME",
        help=model_help,
    )
    add(
        "--judge",
        type=typed(model_names),
        metavar="NAME",
        help="the model that judges (default: that of the role judge)",
    )
    add("--case", action="append", default=[], metavar="NAME", help="only this case; repeatable")
    at_once_help = f"cases that are answered at once (default: {AT_ONCE})"
    add(
        "--at-once",
        type=whole(1, MAX_CASES_AT_ONCE),
        default=AT_ONCE,
        metavar="N",
        help=at_once_help,
    )
    add(
        "--id",
        metavar="NAME",
        help="what the ids of the runs begin with (default: the name of the set)",
    )
    add("--again", action="store_true", help="start new runs for the cases whose runs are over")
    add(
        "--against",
        metavar="FILE",
        help="compare with an earlier result, as --output json wrote it",
    )
    limit_help = "leave a case that takes longer (exit code 4); its run goes on"
    add("--timeout", type=typed(parse_duration), metavar="30s", help=limit_help)
    add_run_arguments(parser, replans=True, model=False, on_failure=ON_FAILURE)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Answer the cases, and write the table or the JSON to standard output. Everything that can be
    checked is checked before anything is started. Started again, the same evaluation goes on: a
    case that has been answered costs nothing.
    """
    cases = read_cases(args.cases).only(args.case)
    earlier = None
    if args.against:
        earlier = _earlier(args.against, [case.name for case in cases.cases])
    prefix = cases.name
    if args.id is not None:
        prefix = checked_new_id(args.id)
    attempts = attempts_of(cases, args.models, prefix)
    options = run_options(args)
    options["on_failure"] = args.on_failure or ON_FAILURE

    sennit = await connect(args, terminal, renew="always")
    evaluator = Evaluator(sennit, options, args.judge, args.again, args.timeout)
    shown = _Progress(terminal, len(attempts))
    try:
        results = await evaluator.evaluate(attempts, args.at_once, shown.show)
    except (asyncio.CancelledError, SennitError):
        same = "the same command without --again" if args.again else "the same command"
        terminal.notice(
            f"{shown.done} of {len(attempts)} cases are over, and the runs that have begun go on; "
            f"{same} goes on"
        )
        raise

    evaluation = evaluation_of(cases.name, results, earlier)
    terminal.result(table(evaluation, terminal.columns), evaluation.model_dump(mode="json"))
    return exit_of(evaluation)


def exit_of(evaluation: Evaluation) -> Exit:
    """Return 4 if a run is not over, else 1 if a run was refused. Else 0 if every answer is
    right, or if the evaluation is compared with an earlier one and no case that was right
    then is wrong now; else 1.
    """
    if any(result.is_open for result in evaluation.results):
        return Exit.OPEN
    if any(result.status == "refused" for result in evaluation.results):
        return Exit.FAILED
    for change in evaluation.changes:
        if change.worse:
            return Exit.FAILED
    is_right = all(result.right for result in evaluation.results)
    return Exit.ANSWER if is_right or evaluation.changes else Exit.FAILED


class _Progress:
    """Tells how each case ended when it has."""

    def __init__(self, terminal: Terminal, count: int) -> None:
        self.done = 0
        self._terminal = terminal
        self._count = count

    def show(self, result: CaseResult) -> None:
        self.done += 1
        model = ""
        if result.model:
            model = f" · {result.model}"
        ending = "right" if result.right else result.why
        self._terminal.say(f"{self.done}/{self._count}  {result.case}{model}: {ending}")
        if self._terminal.output == "jsonl":
            self._terminal.answer_json(result.model_dump(mode="json"))


def _earlier(path: str, cases: list[str]) -> Evaluation:
    """Return the earlier result in a file. Raises Refused if it is none, or
    has none of the cases.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise Refused(
            f"--against {path[:60]}: {getattr(error, 'strerror', None) or error}"
        ) from None
    earlier = read_earlier(path, text)
    if not any(result.case in cases for result in earlier.results):
        raise Refused(
            f"--against {path[:60]}: it has none of these cases; it is a result of the set "
            f"{earlier.set}"
        )
    return earlier
