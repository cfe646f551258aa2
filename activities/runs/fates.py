"""What becomes of each call of an edit or a fork: the play of a run, compared with the calls
that were made before.
"""

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
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    CANCELLED,
    ENDED,
    FAILED,
    IN_DOUBT,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    Status,
)
from sennit.workflows.views.nodes import shown_summary

_CALLS = ("tool", "llm", "agent", "gate")
_IS_OTHER = (
    "its result does not fit any more: its tool, the documents or the models are others, or what "
    "it reads is"
)
_IS_ANSWERED = "a person has answered it, and a fork of a plan does not take that over"
_ELSEWHERE = "the same call was made behind fewer writes, or behind more"
_OF_SCRIPT = ("ProgramFailed", "CallFailed")
"""Errors whose message names what the script has raised."""
_IF_CALLED = "taken over if the script makes it again"


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """A call that a run has made: how it is known, its place in the run, its status, its
    error, when it ended, and whether a person has given its result.
    """

    unit: int
    spec: NodeSpec
    status: Status
    error: str
    shown: str
    ended_at: int
    is_answered: bool


class EarlierCalls:
    """The calls that a run had made before the dry run changed its state, by
    what they are known by.
    """

    def __init__(self, state: RunState, place: RunPlace, program: int | None = None) -> None:
        """Note the calls of a run, or those of one `program` of it, that its
        present scripts have made.
        """
        self._place = place
        self.calls: list[EarlierCall] = []
        graph = state.graph
        for unit, spec in enumerate(graph.specs):
            is_of_it = program is None or graph.program_of(unit) == program
            if not _is_call(state, unit) or not is_of_it or is_replaced(state, unit):
                continue
            error = ""
            if unit in state.notes:
                kind, message = state.notes[unit]
                error = f"{kind}: {message}"
            call = EarlierCall(
                unit=unit,
                spec=spec,
                status=state.units[unit].status,
                error=error,
                shown=state.path(unit),
                ended_at=state.units[unit].ended_at or 0,
                is_answered=unit in state.answers or state.kind_of(unit) == "gate",
            )
            self.calls.append(call)

        # A call of a script is known by its key, and a node of a plan by its id.
        self.by_mark: dict[str, EarlierCall] = {}
        self.by_id: dict[str, EarlierCall] = {}
        for call in self.calls:
            if call.spec.key:
                self.by_mark[call.spec.key] = call
            else:
                self.by_id[call.spec.id] = call

    async def by_content(
        self, library: ArtifactReader, marks: Iterable[str]
    ) -> dict[str, EarlierCall]:
        """Return the calls without these marks, by what they call: the tool with its arguments, or
        the prompt with its material. Of a run with very many steps, only the first ones are
        compared. Raises StoreUnavailable.
        """
        known = dict.fromkeys(marks)
        pages: dict[str, StoredPlan | None] = {}
        by_content: dict[str, EarlierCall] = {}
        for call in self.calls:
            spec = call.spec
            if not spec.key or spec.key in known or not spec.page:
                continue
            if spec.page not in pages and len(pages) < MAX_COMPARED_PAGES:
                pages[spec.page] = await _page(library, self._place.prefix, spec.page)
            content = content_of(pages.get(spec.page), spec.id)
            if content:
                by_content.setdefault(content, call)
        return by_content


async def _page(library: ArtifactReader, prefix: str, page: str) -> StoredPlan | None:
    try:
        return await library.plan(prefix, page)
    except BodyMissing:
        return None


def content_of(page: StoredPlan | None, name: str) -> str:
    """Return what a call of a page calls, as a key; "" if that is not known."""
    if page is None:
        return ""
    node = page.find(name)
    if node is None:
        return ""
    written = node.model_dump(mode="json", exclude={"id", "needs", "retry"})
    return key_of([written, page.materials.get(name, {})])


@dataclass(frozen=True, slots=True)
class FateReader:
    """Reads from a play what becomes of each call. `program` is the program that gets another
    script, None in a fork; `earlier` are the calls of the run before, None if nobody knows them.
    """

    played: Rehearsal
    library: ArtifactReader
    earlier: EarlierCalls | None
    program: int | None = None

    async def report(self, *, stopped: str = "") -> DryRunReport:
        """Return what an edit or a fork would do. Raises StoreUnavailable."""
        state = self.played.state
        marks = [state.graph.specs[unit].key for unit in self.played.called]
        equal: dict[str, EarlierCall] = {}
        if self.earlier is not None:
            equal = await self.earlier.by_content(self.library, marks)
        fates: list[CallFate] = []
        for unit in self._units():
            fates.append(await self._fate(unit, equal))
        is_whole, error = self._end()
        fates += self._uncalled(dict.fromkeys(marks), is_whole=is_whole)
        counts: Counter[Fate] = Counter(fate.fate for fate in fates)
        kept = _most_important(fates)
        return DryRunReport(
            calls=tuple(kept),
            counts=dict(counts),
            left_out=len(fates) - len(kept),
            is_whole=is_whole,
            error=error,
            stopped=stopped,
        )

    def _units(self) -> Iterator[int]:
        """Yield the calls that the run makes or takes over, in the order in which
        its scripts make them.
        """
        played = self.played
        units = list(played.called)
        # A fork plays the whole plan: its nodes come before the calls of its scripts.
        if self.program is None:
            in_plan = [unit for unit in played.state.numbers() if unit not in played.called]
            units = in_plan + units
        for unit in units:
            if _is_call(played.state, unit) and self._is_reached(unit):
                yield unit

    def _is_reached(self, unit: int) -> bool:
        """Whether the run has come to a call, and has not given it up before it was made."""
        played = self.played
        if unit in played.started or unit in played.found:
            return True
        return unit in played.state.taken_over

    async def _fate(self, unit: int, equal: dict[str, EarlierCall]) -> CallFate:
        played = self.played
        state = played.state
        spec = state.spec_of(unit)
        page = None
        caution = ""
        if spec.page:
            page = await _page(self.library, played.place.prefix, spec.page)
        if page is not None:
            caution = page.cautions.get(spec.id, "")
        content = content_of(page, spec.id)
        fate, why = self._of_call(unit, equal.get(content))
        if fate in TAKEN:
            asks = spec.confirms
        else:
            is_asked_about = spec.approval or spec.kind == "gate"
            asks = is_asked_about and state.units[unit].approved is None
        return _call_fate(state, unit, fate, why=caution or why, asks=asks, at=self._ended_at(unit))

    def _ended_at(self, unit: int) -> int:
        """Return when a call ended, 0 if that is not known."""
        ended_at = self.played.state.units[unit].ended_at or 0
        if not ended_at and unit in self.played.found:
            return self.played.found[unit].at
        return ended_at

    def _of_call(self, unit: int, equal: EarlierCall | None) -> tuple[Fate, str]:
        """Return what becomes of a call that the run has come to, and why."""
        played, state = self.played, self.played.state
        if unit in played.unknown:
            return "unknown", played.unknown[unit]
        if unit in played.in_flight:
            return "in flight", ""
        if unit in played.found:
            if played.found[unit].more:
                return "taken over", "its first turn; its tools are called as it asks"
            return "taken over", ""
        if unit in state.taken_over:
            return _as_it_stands(state, unit), ""
        before = self._made_before(unit)
        if before is not None:
            return "made again", _why_again(before)
        if equal is not None:
            return "made again", _ELSEWHERE
        return "new", ""

    def _made_before(self, unit: int) -> EarlierCall | None:
        """Return the call that the run before had in the same place, if it made that."""
        if self.earlier is None:
            return None
        spec = self.played.state.spec_of(unit)
        call = self.earlier.by_id.get(spec.id)
        if spec.key:
            call = self.earlier.by_mark.get(spec.key)
        if call is None:
            return None
        is_under_way = call.status in (RUNNING, WAITING)
        is_made = call.status in ENDED or is_under_way or not is_open(call.status)
        return call if is_made else None

    def _uncalled(self, marks: dict[str, None], *, is_whole: bool) -> list[CallFate]:
        """Return what becomes of calls that only the script before has made."""
        fates: list[CallFate] = []
        if self.earlier is None:
            return fates
        for call in self.earlier.calls:
            if not call.spec.key or call.spec.key in marks:
                continue
            if self.program is not None and call.status not in ENDED:
                # The call goes on, and the new script has nobody who waits for it.
                status = self.played.state.units[call.unit].status
                if status not in (CANCELLED, SKIPPED):
                    # It is not decided yet: the new script has not come to wait for anything else.
                    continue
                why = ""
                if call.spec.effect == "write" and call.status == RUNNING:
                    why = "it is in flight, and the run waits for it"
                fates.append(_earlier_fate(call, "cancelled", why))
            elif call.status == SUCCEEDED:
                why = "" if is_whole else _IF_CALLED
                fates.append(_earlier_fate(call, "not called", why))
        return fates

    def _end(self) -> tuple[bool, str]:
        """Return whether what is played comes to its end, and the error with which it does."""
        state = self.played.state
        lasts = [state.graph.last_of(node) for node in self._played_nodes()]
        for last in lasts:
            if state.units[last].status not in ENDED:
                return False, ""
        for last in lasts:
            if state.units[last].status == FAILED and last in state.notes:
                kind, message = state.notes[last]
                if kind in _OF_SCRIPT:
                    return True, message
                return True, f"{kind}: {message}"
        return True, ""

    def _played_nodes(self) -> list[int]:
        """Return the nodes whose end is that of the play: the edited program, or all
        programs, or else all nodes.
        """
        if self.program is not None:
            return [self.program]
        specs = self.played.state.graph.specs
        programs = [node for node, spec in enumerate(specs) if spec.is_program]
        return programs or list(range(len(specs)))


def _is_call(state: RunState, unit: int) -> bool:
    """Whether a unit is a call as people count them: no sleep of a script, no
    further turn of a model.
    """
    spec = state.spec_of(unit)
    is_further = spec.is_successor and spec.maker >= 0
    is_turn = spec.kind == "llm" and is_further
    is_sleep = spec.tool == SLEEP["name"]
    return state.kind_of(unit) in _CALLS and not is_turn and not is_sleep


def _as_it_stands(state: RunState, unit: int) -> Fate:
    """Return how a call is taken over that the run has made before."""
    status = state.units[unit].status
    if status == WAITING:
        return "waits"
    if status == IN_DOUBT:
        return "unknown"
    if status in ENDED:
        return "taken over"
    return "in flight"


def _why_again(before: EarlierCall) -> str:
    if before.status == FAILED:
        return f"it had failed: {before.error}"
    if before.status == SKIPPED:
        return "it was skipped"
    if before.status == CANCELLED:
        return "it was cut off"
    if before.status == SUCCEEDED and before.is_answered and not before.spec.key:
        return _IS_ANSWERED
    if before.status == SUCCEEDED:
        return _IS_OTHER
    return "its end is not recorded"


def _earlier_fate(call: EarlierCall, fate: Fate, why: str) -> CallFate:
    return CallFate(
        node=call.shown,
        what=_what(call.spec),
        fate=fate,
        why=why,
        at=call.ended_at,
        **_tool(call.spec),
    )


def _call_fate(state: RunState, unit: int, fate: Fate, **fields: Any) -> CallFate:
    spec = state.spec_of(unit)
    fields["why"] = one_line(fields["why"], MAX_FATE_CHARACTERS)
    return CallFate(node=state.path(unit), what=_what(spec), fate=fate, **_tool(spec), **fields)


def _what(spec: NodeSpec) -> str:
    """Return what a call does, behind its place in the script if it has one."""
    _, _, shown = spec.summary.partition(" ")
    if spec.call_site:
        shown = shown_summary(spec)
    return one_line(f"{spec.call_site} {shown}".strip(), MAX_FATE_CHARACTERS)


def _tool(spec: NodeSpec) -> dict[str, Any]:
    calls_tools = spec.kind in ("tool", "map")
    return {"tool": spec.tool, "writes": spec.effect == "write" and calls_tools}


def _most_important(fates: list[CallFate]) -> list[CallFate]:
    """Return as many as a report holds, in order: writes, and what is made or cancelled,
    before what only stays.
    """
    if len(fates) <= MAX_DRY_RUN_CALLS:
        return fates

    def importance(place: int) -> tuple[bool, bool, int]:
        fate = fates[place]
        return not fate.writes, fate.fate in TAKEN, place

    order = sorted(range(len(fates)), key=importance)
    kept = sorted(order[:MAX_DRY_RUN_CALLS])
    return [fates[place] for place in kept]
