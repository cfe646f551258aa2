"""Whether an update fits the run as it stands, what it becomes for the scheduler, and what is said of it."""

from workflows.plan import schema
from workflows.plan.decisions import Answered, Event, GivenUp, Judged, Retried, Stopped
from workflows.plan.problems import place_of
from workflows.plan.state import (
    CANCELLED,
    FAILED,
    SHOWN,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)
from workflows.updates import Answer, Approve, Finish, Reject, RetryNode, SkipNode, Update

MAX_ANSWER_CHARACTERS = 64 * 1024
_RETRIABLE = (SUCCEEDED, FAILED, SKIPPED, CANCELLED)


def objection(state: RunState, update: Update) -> str | None:
    """Return why the update cannot be taken now, as a sentence that says what could; None when it can. Pure."""
    if isinstance(update, Finish):
        return None
    name = getattr(update, "node", "")
    unit = state.find(name)
    if unit is None:
        return f"there is no node `{name}`; the query `plan` lists them"
    if isinstance(update, RetryNode):
        return _retry(state, unit, update)
    if isinstance(update, SkipNode):
        return _skip(state, unit)
    if state.status[unit] != WAITING:
        return f"`{name}` is {SHOWN[state.status[unit]]}; it does not wait for anybody"
    gate = state.spec_of(unit).kind == "gate"
    if isinstance(update, Answer):
        return _answer(state, unit, update) if gate else f"`{name}` waits for approval: use approve or reject"
    return f"`{name}` is a gate: use answer" if gate else None


def _retry(state: RunState, unit: int, update: RetryNode) -> str | None:
    status = state.status[unit]
    if status not in _RETRIABLE:
        return f"`{update.node}` is {SHOWN[status]}; only a node that has ended can be run again"
    if state.spec_of(unit).lends:
        return f"`{update.node}` stands in for another node; retry that one"
    writes = [node for node in _downstream(state, state.node_of(unit)) if _wrote(state, node)]
    if writes and not update.repeat_effect:
        names = ", ".join(state.path(node) for node in writes[:5])
        return f'this may repeat what {names} wrote; add "repeat_effect": true if that is right'
    return None


def _downstream(state: RunState, node: int) -> list[int]:
    """Return a node and everything that may run again when its output changes, in the order found."""
    found = {node: True}
    stack = [node]
    while stack:
        here = stack.pop()
        for other in (*state.graph.consumers[here], *state.graph.joins[here]):
            if other not in found:
                found[other] = True
                stack.append(other)
    return list(found)


def _wrote(state: RunState, node: int) -> bool:
    return state.graph.specs[node].effect == "write" and state.status[node] == SUCCEEDED


def _skip(state: RunState, unit: int) -> str | None:
    status = state.status[unit]
    if status in (SUCCEEDED, SKIPPED, CANCELLED):
        return f"`{state.path(unit)}` is already {SHOWN[status]}"
    return None


def _answer(state: RunState, unit: int, update: Answer) -> str | None:
    size = len(str(update.value))
    if size > MAX_ANSWER_CHARACTERS:
        return f"the answer has {size} characters; at most {MAX_ANSWER_CHARACTERS}"
    wanted = state.spec_of(unit).schema
    for where, sentence in schema.faults(update.value, wanted, ("value",)) if wanted else ():
        return f"{place_of(where)}: {sentence}"
    return None


def event_of(state: RunState, update: Update) -> Event:
    """Return the scheduler's event for an admitted update."""
    if isinstance(update, Finish):
        return Stopped("partial")
    unit = state.find(getattr(update, "node", ""))
    if unit is None:
        raise ValueError("not admitted: no such node")
    if isinstance(update, RetryNode):
        return Retried(unit)
    if isinstance(update, SkipNode):
        return GivenUp(unit)
    if isinstance(update, Answer):
        return Answered(unit, update.value)
    return Judged(unit, isinstance(update, Approve), update.reason if isinstance(update, Reject) else "")


def said(update: Update) -> str:
    """Return the sentence an admitted update is answered with."""
    node = getattr(update, "node", "")
    sentences = {
        RetryNode: f"{node} runs again",
        SkipNode: f"{node} is given up",
        Answer: f"{node} is answered",
        Approve: f"{node} may run",
        Reject: f"{node} is refused",
        Finish: "the run ends now with what there is",
    }
    return sentences[type(update)]
