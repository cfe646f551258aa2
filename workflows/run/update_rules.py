"""Judges updates: whether an update fits the run's state, the event it becomes, and the
sentence that confirms it.

An update and its event are two records, because they hold different things. A person sends an
update: it names nodes by their paths, may be wrong, and may come too early. The scheduler takes
an event: it names units by their numbers, and always fits. Events of the clock and of
activities come from no update.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from sennit.workflows.limits import MAX_GATE_ANSWER_CHARACTERS
from sennit.workflows.messages.updates import (
    Answer,
    Approve,
    EditPlan,
    EditProgram,
    Finish,
    NodeUpdate,
    RaiseBudget,
    Reject,
    RetryNode,
    SkipNode,
    Update,
)
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language import json_schema
from sennit.workflows.plan.language.limits import format_amount
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.text import format_names
from sennit.workflows.plan.scheduling.admission import token_of, waiting_in
from sennit.workflows.plan.scheduling.budget import ledger
from sennit.workflows.plan.scheduling.events import (
    Answered,
    ApprovalDecided,
    BudgetRaised,
    Event,
    PlanRejected,
    ProgramEdited,
    RetryRequested,
    RunStarted,
    SkipRequested,
    StopRequested,
)
from sennit.workflows.plan.scheduling.retry import failed_in, is_passed, repeated
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.termination import blocking_failures
from sennit.workflows.plan.scheduling.unit import (
    CANCELLED,
    FAILED,
    IN_DOUBT,
    SKIPPED,
    STATUS_NAMES,
    SUCCEEDED,
    WAITING,
)
from sennit.workflows.views.writes import names_of

_UNANSWERABLE = {
    "program": "is a program: answer the call that has failed, or edit the script",
    "task": "is a task: answer the call of it that has failed, or edit the script",
    "map": "is a map: answer the item that has failed, by its number in brackets",
    "join": "is a join and calls nothing: answer the input that has failed",
}
_RETRIABLE = (SUCCEEDED, FAILED, SKIPPED, CANCELLED, IN_DOUBT)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on an update: an `event` with the sentence that confirms it, or a
    `rejection` that says what to do.

    A rejection `is_final` if the update never fits this plan, however its nodes end.
    """

    event: Event | None = None
    confirmation: str = ""
    rejection: str = ""
    is_final: bool = False


def judge(state: RunState, update: Update) -> Verdict:
    """Return the decision on an update now. Pure."""
    if isinstance(update, Finish):
        return Verdict(StopRequested("partial"), "the run ends now with what there is")
    if isinstance(update, RaiseBudget):
        return _raise_budget(state, update)
    if is_about_plan(update):
        return _decide_plan(state, update)
    assert isinstance(update, NodeUpdate)
    if state.held is not None:
        return Verdict(
            rejection="nothing of the plan has started: approve, reject or edit the plan first"
        )
    if not update.node:
        return _retry_all(state, update)

    # The node itself: what never fits its kind is refused for good.
    node = state.graph.by_id.get(update.node.partition("[")[0])
    if node is None:
        # A query may have shown it already, before this task takes the end of the
        # advance that has added it.
        has_programs = any(spec.kind == "program" for spec in state.graph.specs)
        return Verdict(rejection=_unknown(state, update), is_final=not has_programs)
    unit = state.find(update.node)
    if unit is not None and isinstance(update, RetryNode | SkipNode):
        unit = failed_in(state, unit)
    is_in_doubt = unit is not None and state.units[unit].status == IN_DOUBT
    misfit = _misfit(state.graph.specs[node], update, is_in_doubt=is_in_doubt)
    if misfit:
        return Verdict(rejection=misfit, is_final=True)

    # The unit, as it stands now.
    if unit is None:
        return Verdict(rejection=_unknown(state, update))
    too_early = _too_early(state, unit, update)
    if too_early:
        return Verdict(rejection=too_early)
    return Verdict(*_event(state, unit, update))


def _unknown(state: RunState, update: NodeUpdate) -> str:
    """Return the rejection of an update about a node that the plan has not."""
    is_known = update.node.partition("[")[0] in state.graph.by_id
    if isinstance(update, EditProgram) and not is_known:
        programs = [spec.id for spec in state.graph.specs if spec.is_program]
        return f"there is no program `{update.node}`; the programs are {format_names(programs)}"
    return f"there is no node `{update.node}`; `sennit status` and the query `plan` list them"


def _raise_budget(state: RunState, update: RaiseBudget) -> Verdict:
    amounts = update.amounts()
    if not amounts:
        return Verdict(rejection="name at least one limit", is_final=True)
    limits: dict[str, int] = {}
    ceilings: dict[str, int] = {}
    if state.budget is not None:
        limits = state.budget.limits
        ceilings = state.budget.ceilings

    rows = ledger(state.budget)
    too_low: list[str] = []
    too_high: list[str] = []
    for name, limit in amounts.items():
        if limit <= limits.get(name, 0):
            present = rows[name]["limit"]
            too_low.append(f"{name} is {present}")
        if limit > ceilings.get(name, limit):
            highest = format_amount(name, ceilings[name])
            too_high.append(f"{name} may be {highest}")
    if too_low:
        listed = ", ".join(too_low)
        return Verdict(rejection=f"the new limit must be higher: {listed} already")
    if too_high:
        listed = ", ".join(too_high)
        wrong = (
            f"the new limit is too high: {listed} at most, by SENNIT_BUDGET_MAX or SENNIT_QUOTA "
            "of the workers"
        )
        return Verdict(rejection=wrong)
    return Verdict(BudgetRaised(amounts), "the limit is raised")


def is_about_plan(update: Update) -> bool:
    """Whether an update is about the plan that waits for approval, and not about a node."""
    if isinstance(update, Approve | Reject):
        return not update.node
    return isinstance(update, EditPlan)


def _decide_plan(state: RunState, update: Update) -> Verdict:
    """Return the decision on an update about the plan. Nobody may approve or reject one
    that they have not been shown. An edited plan is only admitted: a worker checks it
    before it becomes an event.
    """
    if state.held is None:
        return Verdict(
            rejection="no plan waits for approval; name the node, as `sennit status` lists them"
        )
    assert isinstance(update, Approve | Reject | EditPlan)
    if isinstance(update, Approve) and update.args:
        return Verdict(
            rejection="args can be changed of a write only; send another plan with edit_plan"
        )
    if not update.digest and not isinstance(update, EditPlan):
        way = "`sennit status` and the query `plan` show it"
        return Verdict(rejection=f"name the plan that you have read with its `digest`: {way}")
    token = state.held.token()
    if update.digest and update.digest != token:
        return Verdict(
            rejection=f"the plan is another one by now; read it again: its digest is {token}"
        )
    if isinstance(update, EditPlan):
        return Verdict()
    if isinstance(update, Approve):
        return Verdict(RunStarted(), "the plan starts")
    return Verdict(PlanRejected())


def _retry_all(state: RunState, update: NodeUpdate) -> Verdict:
    """Return the decision on a retry of all nodes that block the run: none is
    retried if one cannot be.
    """
    units: Sequence[int] = ()
    if state.parked:
        units = blocking_failures(state)
    if not units:
        return Verdict(rejection="no failed node blocks this run; name the node to run again")
    for unit in units:
        of_unit = update.model_copy(update={"node": state.path(unit)})
        verdict = judge(state, of_unit)
        if verdict.event is None:
            return verdict
    first, *more = units
    names = names_of(state, list(units))
    return Verdict(RetryRequested(first, tuple(more)), f"{names} run again")


def _misfit(spec: NodeSpec, update: NodeUpdate, *, is_in_doubt: bool) -> str | None:
    """Return why an update can never fit a node, or None. People decide on a node that stands in
    for another one only while it is in doubt: the failure has not reached the other node yet.
    """
    name = update.node
    stands_in = spec.is_successor and not is_in_doubt
    if isinstance(update, RetryNode) and stands_in:
        return f"`{name}` stands in for another node; retry that one"
    if isinstance(update, EditProgram) and not spec.is_program:
        return f"`{name}` has no script of its own; name the program, as the plan calls it"
    if isinstance(update, Answer):
        return _answer(spec, update, stands_in=stands_in)
    if isinstance(update, Approve | Reject) and spec.kind == "gate":
        return f"`{name}` is a gate: use answer"
    return None


def _too_early(state: RunState, unit: int, update: NodeUpdate) -> str | None:
    """Return why an update does not fit a unit now, or None."""
    status = state.units[unit].status
    is_gate = state.spec_of(unit).kind == "gate"
    is_repair = isinstance(update, RetryNode | SkipNode | EditProgram)
    if isinstance(update, Answer) and not is_gate:
        is_repair = True
    if state.streaming and is_repair:  # the whole plan may replace this beginning
        return "the plan is still being written; try again in a moment"

    if isinstance(update, RetryNode):
        return _retry(state, unit, update)
    if isinstance(update, EditProgram):
        if status in (SKIPPED, CANCELLED):
            return f"`{update.node}` is {STATUS_NAMES[status]}"
        return None
    if isinstance(update, SkipNode):
        if status in (SUCCEEDED, SKIPPED, CANCELLED):
            return f"`{state.path(unit)}` is already {STATUS_NAMES[status]}"
        return None
    if isinstance(update, Answer) and (not is_gate or status == FAILED):
        return _answer_of_call(state, unit, update)

    # Approvals, rejections and the answers of gates are for units that wait for a person.
    waiting = waiting_in(state, unit)
    if not waiting:
        return f"`{update.node}` is {STATUS_NAMES[status]}; it does not wait for anybody"
    if isinstance(update, Approve):
        return _approve(state, unit, update, waiting)
    return None


def _approve(state: RunState, unit: int, update: Approve, waiting: list[int]) -> str | None:
    """Return why a write must not be approved like this: nobody may approve what
    they have not been shown.
    """
    size = len(str(update.args))
    if size > MAX_GATE_ANSWER_CHARACTERS:
        return f"args has {size:,} characters; at most {MAX_GATE_ANSWER_CHARACTERS:,}"
    if update.args and state.kind_of(unit) == "program":
        return "args can be changed of a write only; to change a program, edit its script"
    is_one_write = unit in state.questions and waiting == [unit]
    if update.args and not is_one_write:
        return "args can be changed of one write at a time; name the node that makes it"
    token = token_of(state, waiting)
    if token and not update.digest:
        about, it = "a write", "it"
        if waiting != [unit]:
            about, it = f"{len(waiting)} writes", "them"
        elif state.kind_of(unit) == "program":
            about = "a program"
        way = "`sennit status` and the query `plan` show the digest"
        return (
            f"`{update.node}` is about {about}; name what you have read of {it} with `digest`: "
            f"{way}"
        )
    wrong = _wrong_arguments(state, unit, update.args)
    if wrong:
        return wrong
    if token and update.digest != token:
        return (
            f"`{update.node}` would write something else by now; read it again: its digest is "
            f"{token}"
        )
    return None


def _wrong_arguments(state: RunState, unit: int, changed: Mapping[str, JsonValue]) -> str | None:
    """Return which changed argument the write's tool does not take, or not with a value of this
    type; or None. The rest of the tool's schema is checked by the activity that writes, which asks
    again if it does not fit.
    """
    question = state.questions.get(unit)
    if question is None or question.arguments is None:
        return None
    for name, value in changed.items():
        wrong = json_schema.wrong_argument(name, value, question.arguments)
        if wrong:
            return f"`{state.path(unit)}` {wrong}"
    return None


def _retry(state: RunState, unit: int, update: RetryNode) -> str | None:
    status = state.units[unit].status
    if status not in _RETRIABLE:
        return (
            f"`{update.node}` is {STATUS_NAMES[status]}; only a node that has ended can be run "
            "again"
        )
    return _repeats(state, update, repeated(state, unit))


def _repeats(state: RunState, update: RetryNode | Answer, writes: list[int]) -> str | None:
    if update.repeat_effect or not writes:
        return None
    return (
        f'this may repeat what {names_of(state, writes)} wrote; add "repeat_effect": true if that '
        "is right"
    )


def _answer_of_call(state: RunState, unit: int, update: Answer) -> str | None:
    """Return why a person may not give the result of a call now, or None."""
    status = state.units[unit].status
    if status == WAITING:
        return f"`{update.node}` is no gate; approve or reject decide on what else waits"
    if status not in (FAILED, IN_DOUBT):
        return (
            f"`{update.node}` is {STATUS_NAMES[status]}; only a gate, and a call that has failed, "
            "take an answer"
        )
    return _repeats(state, update, repeated(state, unit, runs=False))


def _answer(spec: NodeSpec, update: Answer, *, stands_in: bool) -> str | None:
    """Return why a node can never take an answer, or not this one, or None."""
    name = update.node
    size = len(str(update.value))
    if size > MAX_GATE_ANSWER_CHARACTERS:
        return f"the answer has {size} characters; at most {MAX_GATE_ANSWER_CHARACTERS}"
    if spec.kind != "gate" and stands_in:
        return f"`{name}` stands in for another node; answer that one"
    if spec.kind in _UNANSWERABLE and "[" not in name:
        return f"`{name}` {_UNANSWERABLE[spec.kind]}"
    if not spec.schema:
        return None
    for where, sentence in json_schema.violations(update.value, spec.schema, ("value",)):
        return f"{place_of(where)}: {sentence}"
    return None


def _event(state: RunState, unit: int, update: NodeUpdate) -> tuple[Event, str]:
    """Return the event of an update that fits, and the sentence that confirms it."""
    name = update.node
    if isinstance(update, RetryNode):
        return RetryRequested(unit), f"{name} runs again{_rewound(state, unit)}"
    if isinstance(update, SkipNode):
        return SkipRequested(unit), f"{name} is skipped{_rewound(state, unit)}"
    if isinstance(update, EditProgram):
        continues = "runs again with"
        if state.spec_of(unit).approval:
            continues = "asks for approval of"
        return ProgramEdited(
            unit
        ), f"{name} {continues} the new script; calls that it makes again are taken over"
    if isinstance(update, Answer):
        return Answered(unit, update.value), f"{name} is answered{_rewound(state, unit)}"
    if isinstance(update, Approve):
        confirmation = f"{name} may run"
        if update.args:
            confirmation += f" with your changes of {', '.join(update.args)}"
        return ApprovalDecided(unit, approved=True, args=update.args, by=update.by), confirmation
    assert isinstance(update, Reject)
    return ApprovalDecided(
        unit, approved=False, reason=update.reason, by=update.by
    ), f"{name} is rejected"


def _rewound(state: RunState, unit: int) -> str:
    """Return the words for a script that has gone on after the failure of a call, and whose
    call gets another end.
    """
    if not is_passed(state, unit):
        return ""
    return "; the script goes on again from where it read this"
