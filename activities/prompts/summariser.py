"""What a summariser is told: the goal, the task that its summary is for, and the text."""

from collections.abc import Callable
from typing import Any

from activities.prompts.fence import fenced
from activities.prompts.outputs import cut
from workflows.plan.language.nodes import RESERVED_IDS, Excerpt
from workflows.plan.language.references import Reference, as_text, filled, path_text, resolve

TASK_TOKENS = 2_000
TEMPLATE = "Summarise this in at most 12 sentences: $text"
"""The same for the offline rules, which read no other words."""


def prompt(excerpt: Excerpt, text: str, template: str, lookup: Callable[[str], Any]) -> str:
    """Return the prompt for one excerpt. `template` is the prompt of the model that it is too long for, in which goal
    and inputs are put in place and all else is only named.
    """

    def write(reference: Reference) -> str:
        if reference.node in RESERVED_IDS:
            return as_text(resolve(reference, lookup(reference.node)))
        return f"[{reference.node}{path_text(reference.path)}]"

    goal, task = as_text(lookup("goal")), filled(template, write).strip()
    told = [f"The goal:\n\n{goal}"] if goal else []
    if task != goal:
        told.append(f"Another model works on this:\n\n{cut('the task', task, TASK_TOKENS)}")
    which = f"Part {excerpt.part} of {excerpt.parts} of [{excerpt.name}]" if excerpt.parts > 1 else f"[{excerpt.name}]"
    told.append(
        f"{which} is below. Sum up in at most {max(20, excerpt.tokens // 2)} words what it says that matters for this: "
        "your summary is read in its place. Reply with the summary alone."
    )
    return "\n\n".join([*told, fenced(excerpt.name, text)])
