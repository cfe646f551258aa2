"""What becomes of each call of an edit or a fork: the play of a run, compared with the calls that were made before."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sennit.activities.limits import MAX_COMPARED_PAGES
from sennit.activities.runs.rehearsal import Rehearsal, RunPlace
from sennit.activities.storage.artifacts import BodyMissing, key_of
from sennit.activities.storage.run_context import ArtifactReader, StoredPlan
from sennit.activities.toolbox.read_output import SLEEP
from sennit.workflows.limits import MAX_DRY_RUN_CALLS, MAX_FATE_CHARACTERS
from sennit.workflows.messages.dry_run import TAKEN, CallFate, DryRunReport, Fate
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.scheduling.joins import is_open
from sennit.workflows.plan.scheduling.programs import is_replaced
from sennit.workflows.plan.scheduling.state import (
    CANCELLED,
    ENDED,
    FAILED,
    IN_DOUBT,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)
from sennit.workflows.views.nodes import shown_summary

_CALLS = ("tool", "llm", "agent", "gate")
_IS_OTHER = "its result does not fit any more: its tool, the documents or the models are others, or what it reads is"
_ELSEWHERE = "the same call was made in another function or task"
_OF_SCRIPT = ("ProgramFailed", "CallFailed")
"""Errors whose message names what the script has raised."""
_IF_CALLED = "taken over if the script makes it again"


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """A call that a run has made: how it is known, its place in the run, its status, its error, and when it ended."""

    unit: int
    spec: NodeSpec
    status: int
    error: str
    shown: str
    ended_at: int


class EarlierCalls:
    """The calls that a run had made before the dry run changed its state, by what they are known by."""

    def __init__(self, state: RunState, place: RunPlace, program: int | None = None) -> None:
        """Note the calls of a run, or those of one `program` of it, that its present scripts have made."""
        self._place = place
        self.calls: list[EarlierCall] = []
        graph = state.graph
        for unit, spec in enumerate(graph.specs):
            is_of_it = program is None or graph.program_of(unit) == program
            if not _is_call(state, unit) or not is_of_it or is_replaced(state, unit):
                continue
            kind, message = state.notes.get(unit, ("", ""))
            error = f"{kind}: {message}" if kind else ""
            known = state.status[unit], error, state.shown(unit), state.ended_at.get(unit, 0)
            self.calls.append(EarlierCall(unit, spec, *known))
        self.by_mark = {call.spec.key: call for call in self.calls if call.spec.key}
        self.by_id = {call.spec.id: call for call in self.calls if not call.spec.key}

    async def by_content(self, library: ArtifactReader, marks: Iterable[str]) -> dict[str, EarlierCall]:
        """Return the calls without these marks, by what they call: the tool with its arguments, or the prompt with its
        material. Of a run with very many steps, only the first ones are compared. Raises StoreUnavailable.
        """
        known, pages = dict.fromkeys(marks), dict[str, StoredPlan | None]()
        found: dict[str, EarlierCall] = {}
        for call in self.calls:
            if not call.spec.key or call.spec.key in known or not call.spec.page:
                continue
            if call.spec.page not in pages and len(pages) < MAX_COMPARED_PAGES:
                pages[call.spec.page] = await _page(library, self._place.prefix, call.spec.page)
            content = content_of(pages.get(call.spec.page), call.spec.id)
            if content:
                found.setdefault(content, call)
        return found


async def _page(library: ArtifactReader, prefix: str, page: str) -> StoredPlan | None:
    try:
        return await library.plan(prefix, page)
    except BodyMissing:
        return None


def content_of(page: StoredPlan | None, name: str) -> str:
    """Return what a call of a page calls, as a key; "" if that is not known."""
    node = page.find(name) if page is not None else None
    if page is None or node is None:
        return ""
    written = node.model_dump(mode="json", exclude={"id", "needs", "retry"})
    return key_of([written, page.materials.get(name, {})])


@dataclass(frozen=True, slots=True)
class FateReader:
    """Reads from a play what becomes of each call. `program` is the program that gets another script, None in a fork;
    `earlier` are the calls of the run before, None if nobody knows them.
    """

    played: Rehearsal
    library: ArtifactReader
    earlier: EarlierCalls | None
    program: int | None = None

    async def report(self, *, stopped: str = "") -> DryRunReport:
        """Return what an edit or a fork would do. Raises StoreUnavailable."""
        state = self.played.state
        marks = [state.graph.specs[unit].key for unit in self.played.called]
        equal = await self.earlier.by_content(self.library, marks) if self.earlier is not None else {}
        fates = [await self._fate(unit, equal) for unit in self._units()]
        is_whole, error = self._end()
        fates += self._uncalled(dict.fromkeys(marks), is_whole=is_whole)
        counts: dict[Fate, int] = dict(Counter(each.fate for each in fates))
        kept = _most_important(fates)
        return DryRunReport(
            calls=tuple(kept),
            counts=counts,
            left_out=len(fates) - len(kept),
            is_whole=is_whole,
            error=error,
            stopped=stopped,
        )

    def _units(self) -> Iterator[int]:
        """Yield the calls that the run makes or takes over, in the order in which its scripts make them."""
        played, state = self.played, self.played.state
        if self.program is None:
            of_plan = [unit for unit in state.units() if unit not in played.called]
            yield from (unit for unit in of_plan if _is_call(state, unit) and self._is_reached(unit))
        yield from (unit for unit in played.called if _is_call(state, unit) and self._is_reached(unit))

    def _is_reached(self, unit: int) -> bool:
        """Whether the run has come to a call, and has not given it up before it was made."""
        played = self.played
        return unit in played.started or unit in played.found or unit in played.state.taken_over

    async def _fate(self, unit: int, equal: dict[str, EarlierCall]) -> CallFate:
        played, state = self.played, self.played.state
        spec = state.spec_of(unit)
        page = await _page(self.library, played.place.prefix, spec.page) if spec.page else None
        caution = page.cautions.get(spec.id, "") if page is not None else ""
        fate, why = self._of_call(unit, equal.get(content_of(page, spec.id)))
        is_made = fate not in TAKEN
        asks = is_made and (spec.approval or spec.kind == "gate") and unit not in state.approved
        asks |= spec.confirms and not is_made
        return _call_fate(state, unit, fate, why=caution or why, asks=asks, at=self._ended_at(unit))

    def _ended_at(self, unit: int) -> int:
        reply = self.played.found.get(unit)
        return self.played.state.ended_at.get(unit, 0) or (reply.at if reply is not None else 0)

    def _of_call(self, unit: int, equal: EarlierCall | None) -> tuple[Fate, str]:
        """Return what becomes of a call that the run has come to, and why."""
        played, state = self.played, self.played.state
        if unit in played.unknown:
            return "unknown", played.unknown[unit]
        if unit in played.in_flight:
            return "in flight", ""
        if unit in played.found:
            return "taken over", "its first turn; its tools are called as it asks" if played.found[unit].more else ""
        if unit in state.taken_over:
            return _as_it_stands(state, unit), ""
        before = self._made_before(unit)
        if before is not None:
            return "made again", _why_again(before)
        return ("made again", _ELSEWHERE) if equal is not None else ("new", "")

    def _made_before(self, unit: int) -> EarlierCall | None:
        """Return the call that the run before had in the same place, if it made that."""
        if self.earlier is None:
            return None
        spec = self.played.state.spec_of(unit)
        found = self.earlier.by_mark.get(spec.key) if spec.key else self.earlier.by_id.get(spec.id)
        is_made = found is not None and (found.status in ENDED or not is_open(found.status))
        return found if is_made or (found is not None and found.status in (RUNNING, WAITING)) else None

    def _uncalled(self, marks: dict[str, None], *, is_whole: bool) -> list[CallFate]:
        """Return what becomes of calls that only the script before has made."""
        state, found = self.played.state, list[CallFate]()
        for call in self.earlier.calls if self.earlier is not None else ():
            if not call.spec.key or call.spec.key in marks:
                continue
            is_cancelled = self.program is not None and call.status not in ENDED
            if is_cancelled and state.status[call.unit] not in (CANCELLED, SKIPPED):
                continue  # it is not decided yet: the new script has not come to wait for anything else
            if not is_cancelled and call.status != SUCCEEDED:
                continue
            fate: Fate = "cancelled" if is_cancelled else "not called"
            why = "" if is_whole or is_cancelled else _IF_CALLED
            if is_cancelled and call.spec.effect == "write" and call.status == RUNNING:
                why = "it is in flight, and the run waits for it"
            about = {"node": call.shown, "what": _what(call.spec), "at": call.ended_at, **_tool(call.spec)}
            found.append(CallFate(fate=fate, why=why, **about))
        return found

    def _end(self) -> tuple[bool, str]:
        """Return whether what is played comes to its end, and the error with which it does."""
        state, graph = self.played.state, self.played.state.graph
        programs = [node for node, spec in enumerate(graph.specs) if spec.is_program]
        nodes = [self.program] if self.program is not None else programs or list(range(len(graph.specs)))
        lasts = [graph.last_of(node) for node in nodes]
        if any(state.status[last] not in ENDED for last in lasts):
            return False, ""
        for last in lasts:
            if state.status[last] == FAILED and last in state.notes:
                kind, message = state.notes[last]
                return True, message if kind in _OF_SCRIPT else f"{kind}: {message}"
        return True, ""


def _is_call(state: RunState, unit: int) -> bool:
    """Whether a unit is a call as people count them: no sleep of a script, no further turn of a model."""
    spec = state.spec_of(unit)
    is_turn = spec.kind == "llm" and spec.is_successor and spec.maker >= 0
    return state.kind_of(unit) in _CALLS and not is_turn and spec.tool != SLEEP["name"]


def _as_it_stands(state: RunState, unit: int) -> Fate:
    """Return how a call is taken over that the run has made before."""
    status = state.status[unit]
    if status == WAITING:
        return "waits"
    if status == IN_DOUBT:
        return "unknown"
    return "taken over" if status in ENDED else "in flight"


def _why_again(before: EarlierCall) -> str:
    if before.status == FAILED:
        return f"it had failed: {before.error}"
    if before.status in (CANCELLED, SKIPPED):
        return "it was cut off"
    return _IS_OTHER if before.status == SUCCEEDED else "its end is not recorded"


def _call_fate(state: RunState, unit: int, fate: Fate, **fields: Any) -> CallFate:
    spec = state.spec_of(unit)
    fields["why"] = one_line(fields["why"], MAX_FATE_CHARACTERS)
    return CallFate(node=state.shown(unit), what=_what(spec), fate=fate, **_tool(spec), **fields)


def _what(spec: NodeSpec) -> str:
    """Return what a call does, behind its place in the script if it has one."""
    shown = shown_summary(spec) if spec.call_site else spec.summary.partition(" ")[2]
    return one_line(f"{spec.call_site} {shown}".strip(), MAX_FATE_CHARACTERS)


def _tool(spec: NodeSpec) -> dict[str, Any]:
    return {"tool": spec.tool, "writes": spec.effect == "write" and spec.kind in ("tool", "map")}


def _most_important(fates: list[CallFate]) -> list[CallFate]:
    """Return as many as a report holds, in order: writes, and what is made or cancelled, before what only stays."""
    if len(fates) <= MAX_DRY_RUN_CALLS:
        return fates
    order = sorted(range(len(fates)), key=lambda place: (not fates[place].writes, fates[place].fate in TAKEN, place))
    return [fates[place] for place in sorted(order[:MAX_DRY_RUN_CALLS])]
