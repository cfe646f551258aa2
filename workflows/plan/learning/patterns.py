"""The table of patterns of one tenant: which call follows which, with which
arguments, and how often.

A table is made by folding runs into it, one after the other. What is seldom goes first
when it gets too large.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sennit.workflows.plan.learning.limits import (
    MAX_FOLDED,
    MAX_MAPPING_CHARACTERS,
    MAX_MAPPINGS,
    MAX_PAIRS,
    MAX_PLANS,
    MAX_TABLE_BYTES,
    MAX_TOOLS,
    MAX_TOOLS_OF_RUN,
)
from sennit.workflows.plan.learning.trajectory import (
    Count,
    Mark,
    Millis,
    NotedCall,
    PlanShape,
    Source,
    Trajectory,
    name_in,
)

Row = TypeVar("Row")
Pair = tuple[str, str]
"""The keys of two calls, the earlier one first."""
_ARROW = " -> "


class _Row(BaseModel):
    """A row of a table. Unlike what is kept of a run it changes while runs are folded into it."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PairRow(_Row):
    """What is known of a call that comes after another, both by their keys.

    `together` are runs in which the second began when the first had ended, and `used` those of them
    in which it was given something of its output. `needed` are runs in which it waited for the
    first by `needs` alone. `followed` counts calls of the first whose output a call of the second
    was given, and `mappings` how.
    """

    together: Count = 0
    used: Count = 0
    needed: Count = 0
    followed: Count = 0
    mappings: dict[Annotated[str, Field(max_length=MAX_MAPPING_CHARACTERS)], Count] = Field(
        default_factory=dict, max_length=MAX_MAPPINGS
    )


class ToolRow(_Row):
    """How often a tool or a role was called with success, and how long that took in all."""

    calls: Count = 0
    millis: Millis = 0


class PlanRow(_Row):
    """A shape of plans that have led to an answer: how many runs had it, when the last one ended,
    and the words of that run's goal as marks.
    """

    shape: PlanShape
    words: tuple[Mark, ...] = ()
    seen: Count = 1
    ended: Millis = 0


class PatternTable(_Row):
    """What all runs of a tenant have taught. `folded` names those whose objects may
    still lie beside the table.
    """

    form: Literal[1] = 1
    runs: Count = 0
    tools: dict[str, ToolRow] = Field(default_factory=dict)
    pairs: dict[str, PairRow] = Field(default_factory=dict)
    plans: list[PlanRow] = Field(default_factory=list)
    folded: list[str] = Field(default_factory=list, max_length=MAX_FOLDED)

    def fold(self, run: Trajectory) -> None:
        """Add one run. A run that is folded in twice counts twice: who
        folds asks `folded` first.
        """
        self.runs += 1
        self.folded = [*self.folded, run.run][-MAX_FOLDED:]
        made = [call for call in run.calls if not call.failure]
        for call in made:
            row = self.tools.setdefault(call.key, ToolRow())
            row.calls += 1
            row.millis += call.took or call.millis

        for pair in _pairs_together(made):
            self._row(*pair).together += 1
        self._fold_uses(run)
        if run.status == "done" and run.plan is not None and run.plan.tools:
            self._fold_plan(run, run.plan)

    def _row(self, first: str, second: str) -> PairRow:
        pair = f"{first}{_ARROW}{second}"
        return self.pairs.setdefault(pair, PairRow())

    def _fold_uses(self, run: Trajectory) -> None:
        """Count what calls were given of the outputs of earlier ones, and
        what they only waited for.
        """
        used: dict[Pair, None] = {}
        needed: dict[Pair, None] = {}
        followed: dict[tuple[int, str], None] = {}
        for call in run.calls:
            if call.failure:
                continue
            for earlier in call.uses:
                first = run.calls[earlier].key
                used[first, call.key] = None
                if (earlier, call.key) not in followed:
                    followed[earlier, call.key] = None
                    row = self._row(first, call.key)
                    self._count_mapping(row, call, earlier)
            for earlier in call.after:
                first = run.calls[earlier].key
                needed[first, call.key] = None
        for pair in used:
            self._row(*pair).used += 1
        for pair in needed:
            self._row(*pair).needed += 1

    def _count_mapping(self, row: PairRow, call: NotedCall, earlier: int) -> None:
        row.followed += 1
        mapping = mapping_of(call.sources, earlier)
        if not mapping or len(mapping) > MAX_MAPPING_CHARACTERS:
            return
        mappings = row.mappings
        if mapping not in mappings and len(mappings) >= MAX_MAPPINGS:
            rarest = min(mappings, key=lambda known: mappings[known])
            del mappings[rarest]
        mappings[mapping] = mappings.get(mapping, 0) + 1

    def _fold_plan(self, run: Trajectory, shape: PlanShape) -> None:
        known = None
        for row in self.plans:
            if row.shape == shape:
                known = row
        if known is None:
            self.plans.append(PlanRow(shape=shape, words=run.words, ended=run.ended))
        else:
            known.seen += 1
            if run.ended >= known.ended:
                known.words = run.words
                known.ended = run.ended
        self.plans.sort(key=lambda row: row.ended)
        self.plans = self.plans[-MAX_PLANS:]

    def trim(self) -> bytes:
        """Return the table as JSON within its bound; rows that were seen least go, until it is."""
        calls = {key: row.calls for key, row in self.tools.items()}
        self.tools = _most_seen(self.tools, calls, MAX_TOOLS)
        most_pairs = MAX_PAIRS
        most_plans = MAX_PLANS
        while True:
            together = {key: row.together for key, row in self.pairs.items()}
            self.pairs = _most_seen(self.pairs, together, most_pairs)
            self.plans = self.plans[-most_plans:]
            body = self.model_dump_json(exclude_defaults=True).encode()
            if len(body) <= MAX_TABLE_BYTES:
                return body
            most_pairs = len(self.pairs) // 2
            most_plans = max(1, len(self.plans) // 2)

    def with_schemas(
        self, versions: Mapping[str, str]
    ) -> Iterator[tuple[str, str, PairRow, ToolRow]]:
        """Yield pairs (first, second, what is known of them, of the first) of tools
        and roles by their names.

        `versions` are the keys that tools have today: patterns of a tool with
        other schemas are not used.
        """
        for first, second, row in self.rows():
            if _is_current(first, versions) and _is_current(second, versions):
                known = self.tools.get(first, ToolRow())
                yield name_in(first), name_in(second), row, known

    def rows(self) -> Iterator[tuple[str, str, PairRow]]:
        """Yield each pair of keys with what is known of it."""
        for pair, row in self.pairs.items():
            first, _, second = pair.partition(_ARROW)
            yield first, second, row


def _is_current(key: str, versions: Mapping[str, str]) -> bool:
    """Whether a tool, or a role, has this key today; one that has no key today may have any."""
    return versions.get(name_in(key), key) == key


def read_table(body: bytes | None) -> PatternTable | None:
    """Return the table in what lies in a store; None if it is none, or cut off."""
    if body is None or len(body) > 2 * MAX_TABLE_BYTES:
        return None
    try:
        return PatternTable.model_validate_json(body)
    except ValidationError:
        return None


def mapping_of(sources: Sequence[Source], earlier: int) -> str:
    """Return how the arguments of a call came about, seen from an `earlier` call whose output it
    was given: as `path <- output items[0].path; mode <- constant 3f...`. What came from other
    calls is `other`. It is "" if no argument is wholly a part of that output: of a text nobody
    knows what stands around it.
    """
    parts: dict[str, None] = {}
    is_direct = False
    for source in sorted(sources, key=attrgetter("argument", "origin", "path")):
        argument = source.argument or "."
        if source.call is not None and source.call != earlier:
            parts[f"{argument} <- other"] = None
            continue
        if source.origin == "output":
            is_direct = True
        detail = source.mark or source.path
        part = f"{argument} <- {source.origin} {detail}"
        parts[part.rstrip()] = None
    if not is_direct:
        return ""
    return "; ".join(parts)


def _pairs_together(calls: Sequence[NotedCall]) -> Iterable[Pair]:
    """Return each pair of keys of which a call of the second began when one of the first had ended,
    for the first keys of a run.
    """
    first_end: dict[str, int] = {}
    last_start: dict[str, int] = {}
    for call in calls:
        key = call.key
        if key not in first_end and len(first_end) == MAX_TOOLS_OF_RUN:
            continue
        earlier_end = first_end.get(key, call.ended)
        first_end[key] = min(call.ended, earlier_end)
        earlier_start = last_start.get(key, call.began)
        last_start[key] = max(call.began, earlier_start)
    found = []
    for first, ended in first_end.items():
        for second, began in last_start.items():
            if began >= ended:
                found.append((first, second))
    return found


def _most_seen(rows: dict[str, Row], seen: Mapping[str, int], most: int) -> dict[str, Row]:
    """Return as many rows as there may be, those that were seen most, in the order in
    which they were first seen.
    """
    if len(rows) <= most:
        return rows
    by_count = sorted(rows, key=lambda key: -seen[key])
    kept = dict.fromkeys(by_count[:most])
    return {key: row for key, row in rows.items() if key in kept}
