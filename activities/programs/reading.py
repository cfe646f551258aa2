"""What workers read in scripts, each a function of JSON: a worker has it done in a process of its
own, as a script can be made to take long or much memory. In a process that serves one person
alone it is done at once.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

from sennit.activities.programs.checkouts import processors
from sennit.activities.programs.classes import classes_of
from sennit.activities.programs.loops import endless_loop
from sennit.workflows.plan.language.problems import Problem, Where
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.programs.parsing import own_text
from sennit.workflows.plan.programs.program_plan import wrong_in
from sennit.workflows.plan.programs.reply import (
    UnreadableProgram,
    foreign_models,
    planned_problems,
    program_plan_of,
    script_in,
)
from sennit.workflows.plan.programs.stubs import stubs_of
from sennit.workflows.plan.programs.syntax import doubts_in, problems_in
from sennit.workflows.plan.quotes.quote import quote_of

_OWN_ERRORS = (
    MemoryError, RecursionError, LookupError, ValueError, ArithmeticError, TypeError,
    AttributeError, AssertionError,
)  # fmt: skip
_THREADS = ThreadPoolExecutor(processors(), "sennit-reading")
PARSER = Lock()
"""Held by a thread that parses Python: until 3.13 CPython counts the levels
of all threads together.
"""
Read = Callable[..., Any]
"""Does a reading by its name. Raises Unreadable."""


class Unreadable(Exception):
    """A script that takes too much to be read: more time, memory or levels than there
    are. It is the same again.
    """


def problem_of(error: Unreadable) -> Problem:
    """Return it as a problem of the script."""
    return Problem("size", ("line", 1), f"the script is too large: {error}")


def read(name: str, *arguments: Any) -> Any:
    """Do a reading in this process. Raises Unreadable."""
    try:
        with PARSER:
            return _READINGS[name](*arguments)
    except _OWN_ERRORS as error:
        raise Unreadable(
            f"it cannot be read: {type(error).__name__}: {one_line(str(error), 100)}"
        ) from error


async def ask(reading: Read, name: str, *arguments: Any) -> Any:
    """Have a reading done outside the event loop; those that wait for their turn keep nothing else
    waiting. Raises Unreadable, InterpreterCrashed.
    """
    return await asyncio.get_running_loop().run_in_executor(_THREADS, reading, name, *arguments)


def _problems(
    script: str, arguments: Collection[str], tools: Mapping[str, Any]
) -> list[tuple[str, Where, str]]:
    return _rows(wrong_in(script, arguments, tools))


def _doubts(script: str, tools: Mapping[str, Any]) -> list[tuple[str, Where, str]]:
    return _rows(doubts_in(script, tools))


def _rows(problems: Iterable[Problem]) -> list[tuple[str, Where, str]]:
    """Return problems as JSON has them."""
    return [(problem.code, problem.where, problem.message) for problem in problems]


def _quote(
    script: str,
    effects: Mapping[str, str],
    prices: Mapping[str, tuple[int, int]],
    inputs: Mapping[str, Any],
) -> tuple[Any, ...]:
    """Return a program's quote. `prices` are those of the roles and of the models
    that the script names.
    """
    tools = {name: {"effect": effect} for name, effect in effects.items()}
    return quote_of(script, tools, prices.get, inputs).in_short()


def _models(script: str, models: Collection[str]) -> list[str]:
    """Return the problems of calls that may ask other models than these."""
    return [*foreign_models(script, set(models))]


def _planned(
    text: str, goal: str, tools: Collection[str], models: Collection[str], stop: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the plan of a planner's script, and what keeps it from being worth checking:
    then all that is wrong.
    """
    if stop == "length":
        cut = "the script was cut off because it is too long; write a shorter one"
        return program_plan_of(text, goal), [cut]
    try:
        script = script_in(text)
    except UnreadableProgram as error:
        return program_plan_of(text, goal), [str(error)]
    problems = [*planned_problems(script, set(models))]
    if problems:
        more = problems_in(script, dict.fromkeys(tools))
        problems += map(str, more)
    return program_plan_of(script, goal), problems


_READINGS: dict[str, Callable[..., Any]] = {
    "problems": _problems,
    "doubts": _doubts,
    "quote": _quote,
    "stubs": stubs_of,
    "planned": _planned,
    "models": _models,
    "own_text": own_text,
    "classes": classes_of,
    "loop": endless_loop,
}
