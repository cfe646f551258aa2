"""The system prompt of each role of a model, and the prompt of a summariser."""

from collections.abc import Callable
from typing import Any

from activities.prompts.outputs import DATA_RULE, cut, fenced
from workflows.plan.language.nodes import RESERVED_IDS, Excerpt, Role
from workflows.plan.language.references import Reference, as_text, filled, path_text, resolve

_ROLES: dict[Role, str] = {
    "planner": "You plan work for others.",
    "worker": "You do one step of a larger task. Do what is asked and nothing else; say so if the material lacks it.",
    "critic": "You judge somebody else's work. Name what is wrong and how to mend it, most important first; no praise.",
    "judge": "You compare candidates and decide. Judge by what was asked, not by length or style.",
    "joiner": "You put results together into the answer that was asked for.",
    "summariser": (
        "You sum up material for a model that cannot read all of it. Keep what its task needs: figures with their "
        "units, names, dates, and where they stand; quote the decisive passages word for word. Add nothing of your own."
    ),
}


def system(role: Role) -> str:
    return f"{_ROLES[role]}\n\n{DATA_RULE}"


def with_fault(prompt: str, fault: str) -> str:
    """Return the prompt, with what was wrong with the last reply if that could not be used; it may quote that reply."""
    if not fault:
        return prompt
    block = fenced("the fault", fault)
    return f"{prompt}\n\nYour last reply could not be used:\n{block}\nReply again, whole and as asked above."


TASK_TOKENS = 2_000
SUMMARY_TEMPLATE = "Summarise this in at most 12 sentences: $text"
"""The same for the offline rules, which read no other words."""


def summary_prompt(excerpt: Excerpt, text: str, template: str, lookup: Callable[[str], Any]) -> str:
    """Return the prompt for one excerpt. `template` is the prompt of the model that it is too long for, in which goal
    and inputs are put in place and all else is only named.
    """

    def write(reference: Reference) -> str:
        if reference.node in RESERVED_IDS:
            return as_text(resolve(reference, lookup(reference.node)))
        return f"[{reference.node}{path_text(reference.path)}]"

    goal, task = as_text(lookup("goal")), filled(template, write).strip()
    parts = [f"The goal:\n\n{goal}"] if goal else []
    if task != goal:
        parts.append(f"Another model works on this:\n\n{cut('the task', task, TASK_TOKENS)}")
    which = f"Part {excerpt.part} of {excerpt.parts} of [{excerpt.name}]" if excerpt.parts > 1 else f"[{excerpt.name}]"
    parts.append(
        f"{which} is below. Sum up in at most {max(20, excerpt.tokens // 2)} words what it says that matters for this: "
        "your summary is read in its place. Reply with the summary alone."
    )
    return "\n\n".join([*parts, fenced(excerpt.name, text)])
