"""The whole check of a plan file, with the tools and types that a worker with this
environment would have.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sennit.starter.client.errors import Refused
from sennit.starter.plans.catalogue import Catalogue, read_catalogue, read_type_problems
from sennit.starter.plans.plan_file import PlanFile
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.programs.syntax import DOUBT


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """A plan without problems, what it was checked against, and doubts about
    the types of its script.
    """

    plan: Plan
    catalogue: Catalogue
    doubts: list[Problem]


async def check_plan(
    file: PlanFile, note: Callable[[str], None], say: Callable[[str], None]
) -> CheckedPlan:
    """Return the plan of a file that has no problems. Raises BadPlan with all that it has: those of
    its form, of its calls, and of the types of a program.

    The types of a program are checked even if something else is wrong with it, but on no line
    of which that is known. If the tools cannot be listed, `note` is told and the other problems
    are raised; without any, Refused is. `say` is told which tools are unavailable. The caller's
    loop goes on meanwhile.
    """
    try:
        catalogue = await read_catalogue()
    except Refused as refused:
        problems = await asyncio.to_thread(file.problems, None)
        if problems:
            note(f"sennit: {refused}")
            file.refuse(problems)
        raise
    for reason in sorted(set(catalogue.unavailable.values())):
        say(f"unavailable: {reason}")

    problems = await asyncio.to_thread(file.problems, catalogue)
    if file.script and not any(problem.code in ("syntax", "size") for problem in problems):
        lines = {problem.where[-1] for problem in problems if "line" in problem.where}
        for problem in await read_type_problems(file.script):
            if problem.where[-1] not in lines:
                problems.append(problem)

    doubts: list[Problem] = []
    wrong: list[Problem] = []
    for problem in problems:
        if problem.code == DOUBT:
            doubts.append(problem)
        else:
            wrong.append(problem)
    file.refuse(wrong)
    plan = await asyncio.to_thread(file.check, catalogue)
    return CheckedPlan(plan, catalogue, doubts)
