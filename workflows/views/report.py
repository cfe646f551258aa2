"""The report at the end of a run."""

from collections.abc import Sequence

from sennit.workflows.limits import (
    MAX_PLACE_CHARACTERS,
    MAX_REPORT_BYTES,
    MAX_SUMMARIES_CHARACTERS,
    MIN_SUMMARY_CHARACTERS,
)
from sennit.workflows.messages.contracts import Conclusion
from sennit.workflows.messages.message import message_bytes
from sennit.workflows.messages.result import NodeLine, RunReport, RunStatus
from sennit.workflows.plan.language.limits import NO_USAGE
from sennit.workflows.plan.language.text import cut, text_bytes
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    CANCELLED,
    FAILED,
    SKIPPED,
    STATUS_NAMES,
    SUCCEEDED,
)
from sennit.workflows.views.nodes import fields_of, shown_summary
from sennit.workflows.views.quote import shortage, spent
from sennit.workflows.views.shown_run import ShownRun
from sennit.workflows.views.warnings import why_in_doubt, why_lost

_NAMED_REASONS = 3


def report_lines(shown: ShownRun) -> tuple[tuple[NodeLine, ...], int]:
    """Return the lines for the report and how many were left out to keep it below a payload's size:
    no failed one before any other.
    """
    room = MAX_SUMMARIES_CHARACTERS // len(shown.state.graph.specs)
    lines = [_report_line(shown, unit, room) for unit in shown.units]
    sizes = list(map(_size, lines))
    if sum(sizes) <= MAX_REPORT_BYTES:
        return tuple(lines), 0

    # Failed lines come first where not all fit, each kind in the order of the plan.
    order = sorted(range(len(lines)), key=lambda place: lines[place].status != "failed")
    size = 0
    kept: list[NodeLine] = []
    for place in order:
        size += sizes[place]
        if size > MAX_REPORT_BYTES:
            break
        kept.append(lines[place])
    return tuple(kept), len(lines) - len(kept)


def _size(line: NodeLine) -> int:
    approved = 0
    if line.approved is not None:
        approved = message_bytes(line.approved)
    texts = (line.error or "", line.summary, line.call_site)
    return 200 + sum(map(text_bytes, texts)) + approved


def _report_line(shown: ShownRun, unit: int, room: int) -> NodeLine:
    state = shown.state
    spec = state.spec_of(unit)
    if spec.page:
        room = max(room, MAX_PLACE_CHARACTERS)
    used = shown.usage.get(unit, NO_USAGE)
    fields = fields_of(state, unit, shown.caught, used)
    if not state.is_item(unit) and room >= MIN_SUMMARY_CHARACTERS:
        fields["summary"] = cut(shown_summary(spec), room)
    return NodeLine(**fields)


def why_unanswered(state: RunState) -> str:
    """Return why the answer, or parts of it, have no value: "`publish` was skipped: its condition
    was false"; "" if all have one.
    """
    reasons = []
    for node in state.graph.execution_plan.answer:
        reason = _why_without_value(state, node)
        if reason:
            reasons.append(reason)
    return "; ".join(reasons[:_NAMED_REASONS])


def _why_without_value(state: RunState, node: int) -> str:
    """Return how a node ended without a value, then those for which it did, up to the
    one that has a reason.
    """
    names: list[str] = []
    seen: dict[int, None] = {}
    while state.units[node].status in (SKIPPED, CANCELLED, FAILED) and node not in seen:
        seen[node] = None
        ended = STATUS_NAMES[state.units[node].status]
        if ended != "failed":
            ended = f"was {ended}"
        names.append(f"`{state.path(node)}` {ended}")
        if node in state.notes:
            _, reason = state.notes[node]
            return ": ".join([*names, reason])
        node = _dependency_without_value(state, node)
    return ": ".join(names)


def _dependency_without_value(state: RunState, node: int) -> int:
    """Return the first dependency that did not succeed, or the node itself where all did."""
    for dependency in state.graph.deps[node]:
        if state.units[dependency].status != SUCCEEDED:
            return dependency
    return node


def report_of(shown: ShownRun, status: RunStatus, found: Conclusion, unanswered: str) -> RunReport:
    """Return the report of an ended run, but for what only the workflow
    knows: ids, usage, warnings.

    `unanswered` says why the answer could not be put together, if it could not.
    """
    lines, left_out = report_lines(shown)
    problem = None
    if status != "done" or found.answer is None:
        problem = unanswered or _problem(shown, lines) or None
    return RunReport(
        id="",
        run_id="",
        status=status,
        answer=found.answer,
        answer_ref=found.ref,
        evidence=found.evidence,
        counts=shown.counts,
        nodes=lines,
        nodes_left_out=left_out,
        problem=problem,
        writes=shown.writes,
        quote=shown.quote,
    )


def _problem(shown: ShownRun, lines: Sequence[NodeLine]) -> str:
    """Return the reason that says most about why a run has no answer, or not all of it."""
    state = shown.state
    failed: list[str] = []
    for line in lines:
        if line.status == "failed":
            failed.append(f"{line.id}: {line.error}")
    if failed:
        return "; ".join(failed[:_NAMED_REASONS])

    # Nodes that never began may have waited for budget until the run ended.
    if state.budget is not None:
        exceeded = state.budget.short()
        if exceeded:
            return spent(state.budget, exceeded)
    never_began = [unit for unit in state.units_in(SKIPPED) if unit not in state.notes]
    missing = shortage(state, never_began)
    if missing is not None:
        return missing.sentence
    return why_unanswered(state) or why_lost(state) or why_in_doubt(shown.writes)
