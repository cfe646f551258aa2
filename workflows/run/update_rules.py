"""Whether an update fits the run as it stands, what it becomes for the scheduler, and what is said of it."""

from workflows.messages.updates import Answer, Approve, Finish, RaiseBudget, Reject, RetryNode, SkipNode, Update
from workflows.plan.compile.graph import NodeSpec
from workflows.plan.language import json_schema
from workflows.plan.language.problems import place_of
from workflows.plan.scheduling.budget import ledger
from workflows.plan.scheduling.effects import repeated
from workflows.plan.scheduling.events import (
    ApprovalDecided,
    BudgetRaised,
    Event,
    GateAnswered,
    RetryRequested,
    SkipRequested,
    StopRequested,
)
from workflows.plan.scheduling.state import (
    CANCELLED,
    FAILED,
    SHOWN,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)

MAX_ANSWER_CHARACTERS = 64 * 1024
_RETRIABLE = (SUCCEEDED, FAILED, SKIPPED, CANCELLED)


def rejection(state: RunState, update: Update) -> str | None:
    """Return why the update cannot be taken now, as a sentence that says what could; None when it can. Pure."""
    return never_valid(state, update) or not_now(state, update)


def never_valid(state: RunState, update: Update) -> str | None:
    """Return why the update never fits this plan, however its nodes end; None when it may fit at some time. Pure."""
    if isinstance(update, Finish):
        return None
    if isinstance(update, RaiseBudget):
        return None if update.amounts() else "name at least one limit"
    name = getattr(update, "node", "")
    node = state.graph.by_id.get(name.partition("[")[0])
    if node is None:
        return _unknown(name)
    spec = state.graph.specs[node]
    if isinstance(update, RetryNode) and spec.is_fallback:
        return f"`{name}` stands in for another node; retry that one"
    gate = spec.kind == "gate"
    if isinstance(update, Answer):
        return _answer(spec, update) if gate else f"`{name}` is no gate; approve or reject decide on what else waits"
    return f"`{name}` is a gate: use answer" if gate and isinstance(update, Approve | Reject) else None


def not_now(state: RunState, update: Update) -> str | None:
    """Return why an update that fits the plan cannot be taken now; None when it can. Pure."""
    if isinstance(update, Finish):
        return None
    if isinstance(update, RaiseBudget):
        return _lower(state, update)
    name = getattr(update, "node", "")
    unit = state.find(name)
    if unit is None:
        return _unknown(name)
    if isinstance(update, RetryNode):
        return _retry(state, unit, update)
    if isinstance(update, SkipNode):
        return _skip(state, unit)
    waits = state.status[unit] == WAITING
    return None if waits else f"`{name}` is {SHOWN[state.status[unit]]}; it does not wait for anybody"


def _lower(state: RunState, update: RaiseBudget) -> str | None:
    limits = state.budget.limits if state.budget is not None else {}
    lower = [name for name, limit in update.amounts().items() if limit <= limits.get(name, 0)]
    rows = ledger(state.budget)
    now = ", ".join(f"{name} is {rows[name]['limit']}" for name in lower)
    return f"that is no higher limit: {now} already" if lower else None


def _unknown(name: str) -> str:
    return f"there is no node `{name}`; the query `plan` lists them"


def _retry(state: RunState, unit: int, update: RetryNode) -> str | None:
    status = state.status[unit]
    if unit in state.expansion_requests and status == WAITING:
        return f"`{update.node}` wishes for more nodes; reject asks its model again, approve adds them"
    if status not in _RETRIABLE:
        return f"`{update.node}` is {SHOWN[status]}; only a node that has ended can be run again"
    if not update.repeat_effect and (writes := repeated(state, unit)):
        names = ", ".join(state.path(node) for node in writes[:5])
        return f'this may repeat what {names} wrote; add "repeat_effect": true if that is right'
    return None


def _skip(state: RunState, unit: int) -> str | None:
    status = state.status[unit]
    if status in (SUCCEEDED, SKIPPED, CANCELLED):
        return f"`{state.path(unit)}` is already {SHOWN[status]}"
    return None


def _answer(spec: NodeSpec, update: Answer) -> str | None:
    size = len(str(update.value))
    if size > MAX_ANSWER_CHARACTERS:
        return f"the answer has {size} characters; at most {MAX_ANSWER_CHARACTERS}"
    wanted = spec.schema
    for where, sentence in json_schema.violations(update.value, wanted, ("value",)) if wanted else ():
        return f"{place_of(where)}: {sentence}"
    return None


def event_of(state: RunState, update: Update) -> Event:
    """Return the scheduler's event for an admitted update."""
    if isinstance(update, Finish):
        return StopRequested("partial")
    if isinstance(update, RaiseBudget):
        return BudgetRaised(update.amounts())
    unit = state.find(getattr(update, "node", ""))
    if unit is None:
        raise ValueError("not admitted: no such node")
    if isinstance(update, RetryNode):
        return RetryRequested(unit)
    if isinstance(update, SkipNode):
        return SkipRequested(unit)
    if isinstance(update, Answer):
        return GateAnswered(unit, update.value)
    return ApprovalDecided(unit, isinstance(update, Approve), update.reason if isinstance(update, Reject) else "")


def confirmation(state: RunState, update: Update) -> str:
    """Return the sentence an admitted update is answered with, from the state before it."""
    node = getattr(update, "node", "")
    wish = state.expansion_requests.get(state.graph.by_id.get(node, -1))
    if wish is not None and isinstance(update, Approve | Reject):
        what = "are added" if isinstance(update, Approve) else "are refused, and its model is asked again"
        return f"the nodes that {node} asks for {what}"
    sentences = {
        RetryNode: f"{node} runs again",
        SkipNode: f"{node} is given up",
        Answer: f"{node} is answered",
        Approve: f"{node} may run",
        Reject: f"{node} is refused",
        RaiseBudget: "the limit is raised",
        Finish: "the run ends now with what there is",
    }
    return sentences[type(update)]
