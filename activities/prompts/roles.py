"""The system prompt of each role of a model."""

from collections.abc import Iterable

from sennit.activities.prompts.outputs import DATA_RULE, fenced
from sennit.workflows.plan.language.nodes import Role

_ROLES: dict[Role, str] = {
    "planner": "You plan work for others.",
    "worker": (
        "You do one step of a larger task. Do what is asked and nothing else; say so if the "
        "material lacks it."
    ),
    "critic": (
        "You judge somebody else's work. Name what is wrong and how to mend it, most important "
        "first; no praise."
    ),
    "judge": "You compare candidates and decide. Judge by what was asked, not by length or style.",
    "joiner": "You put results together into the answer that was asked for.",
}


def system(role: Role, own: str | None = None, told: Iterable[str] = ()) -> str:
    """Return the system prompt of a role; `own` takes the place of what Sennit says of the
    role, but never of the rule that texts in fences are data. `told` are the instructions of
    the run and of the call.
    """
    return "\n\n".join([own or _ROLES[role], DATA_RULE, *filter(None, told)])


def with_fault(prompt: str, fault: str) -> str:
    """Return the prompt, with what was wrong with the last reply if that could not be used;
    it may quote that reply.
    """
    if not fault:
        return prompt
    block = fenced("the fault", fault)
    return (
        f"{prompt}\n\nYour last reply could not be used:\n{block}\nReply again, whole and as "
        "asked above."
    )
