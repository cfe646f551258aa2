"""Whether a run may speculate, and what it is told of earlier runs for that."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sennit.activities.storage.learned import LearnedStore
from sennit.activities.storage.run_context import ArtifactReader
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.plan.compile.execution_plan import FRESH_MILLIS
from sennit.workflows.plan.language.workspaces import mentions_workspace
from sennit.workflows.plan.learning.patterns import PairRow, PatternTable, ToolRow
from sennit.workflows.plan.learning.trajectory import keys_of
from sennit.workflows.plan.speculation.follower import EarlyTool, Follower, Speculation
from sennit.workflows.plan.speculation.limits import (
    KNOWN_RUNS,
    MAX_CHAIN,
    MAX_EARLY_TOOLS,
    MAX_FOLLOWERS,
    SLOW_MILLIS,
    THRESHOLD,
)
from sennit.workflows.plan.speculation.mapping import parse_mapping

SpeculateChoice = Literal["off", "asked", "on"]
"""Which runs may speculate: none, those that ask for it, or all that do not refuse it."""


@dataclass(frozen=True, slots=True)
class SpeculationRule:
    """What the operator of this worker says about speculation."""

    learned: LearnedStore
    library: ArtifactReader
    choice: SpeculateChoice = "asked"

    async def of(
        self, run_prefix: str, request: RunRequest, run_context: str
    ) -> Speculation | None:
        """Return what a run may call early; None if it may call nothing.

        A fork takes over what its origin has called, and a sub-agent knows nothing of the writes
        beside it: neither speculates. Raises BodyMissing, StoreUnavailable.
        """
        is_asked = request.speculate == "on"
        is_allowed = self.choice == "on" or (self.choice == "asked" and is_asked)
        if not is_allowed or request.speculate == "off":
            return None
        if request.depth or request.origins:
            return None

        # A run that asks for it has enough with what there is.
        least = 1 if is_asked else KNOWN_RUNS
        namespace = run_prefix.rpartition("/")[0]
        known = await self.learned.hints(namespace, request.tenant)
        is_known = known.table.runs >= least
        if not is_known and not is_asked:
            return None
        context = await self.library.run_context(run_prefix, run_context)
        followers: list[Follower] = []
        mappings: list[str] = []
        if is_known:
            followers, mappings = followers_of(known.table, context.catalogue, least)
        patterns = ""
        if mappings:
            patterns = await self.library.put(run_prefix, mappings)
        tools = early_tools_of(known.table, context.catalogue)
        return Speculation(
            patterns=patterns, followers=tuple(followers), tools=tuple(tools), chain=MAX_CHAIN
        )


class _Pattern(NamedTuple):
    """One call that usually follows another, and how its arguments are made from that."""

    probability: float
    first: str
    second: str
    mapping: str


def early_tools_of(table: PatternTable, catalogue: Sequence[Mapping[str, Any]]) -> list[EarlyTool]:
    """Return the tools whose calls are worth making while the reply that asks for them still
    comes: those that only read, but for the ones of which it is known that they are fast.
    The slowest come first.
    """
    keys = keys_of(catalogue)
    tools: list[EarlyTool] = []
    for entry in catalogue:
        key = keys[entry["name"]]
        millis = _usual(table.tools.get(key))
        is_fast = 0 < millis < SLOW_MILLIS
        if _is_read_early(entry) and not is_fast:
            fields = _read_call(entry, millis)
            tools.append(EarlyTool(name=entry["name"], **fields))
    tools.sort(key=lambda tool: (-tool.millis, tool.name))
    return tools[:MAX_EARLY_TOOLS]


def followers_of(
    table: PatternTable, catalogue: Sequence[Mapping[str, Any]], least: int
) -> tuple[list[Follower], list[str]]:
    """Return the calls that usually follow others, the most probable first, and how
    their arguments are made.

    Only tools that read count, with the schemas that they have now, of which at least so
    many first calls are known. A mapping that cannot be bound again, as where a model has
    written a text, is left out.
    """
    tools = {str(entry["name"]): entry for entry in catalogue}
    keys = keys_of(catalogue)
    patterns: list[_Pattern] = []
    for first, second, row, seen in table.with_schemas(keys):
        has_both = first in tools and second in tools
        if not has_both or seen.calls < least:
            continue
        if not _is_read_early(tools[first]) or not _is_read_early(tools[second]):
            continue
        for mapping, probability in _likely(row, seen):
            patterns.append(_Pattern(probability, first, second, mapping))
    patterns.sort(key=_by_probability)

    followers: list[Follower] = []
    mappings: list[str] = []
    for pattern in patterns[:MAX_FOLLOWERS]:
        millis = _usual(table.tools.get(keys[pattern.second]))
        if millis >= SLOW_MILLIS:
            entry = tools[pattern.second]
            followers.append(_follower(entry, pattern, len(mappings), millis))
            mappings.append(pattern.mapping)
    return followers, mappings


def _by_probability(pattern: _Pattern) -> tuple[float, str, str, str]:
    """Return the key that sorts the most probable pattern first, and equally
    probable ones by their texts.
    """
    return -pattern.probability, pattern.first, pattern.second, pattern.mapping


def _likely(row: PairRow, first: ToolRow) -> Iterator[tuple[str, float]]:
    """Yield the mappings of a pair with the share of the first calls that were followed so,
    as far as it is enough.
    """
    for mapping, count in row.mappings.items():
        probability = min(1.0, count / first.calls)
        if probability >= THRESHOLD and parse_mapping(mapping) is not None:
            yield mapping, probability


def _is_read_early(entry: Mapping[str, Any]) -> bool:
    schemas = (entry.get("schema"), entry.get("output_schema"))
    has_folders = any(map(mentions_workspace, schemas))
    return entry.get("effect") in ("pure", "read") and not has_folders


def _usual(row: ToolRow | None) -> int:
    """Return how long a call of a tool has taken in the mean, in milliseconds."""
    if row is None or not row.calls:
        return 0
    return row.millis // row.calls


def _follower(entry: Mapping[str, Any], pattern: _Pattern, place: int, millis: int) -> Follower:
    return Follower(
        first=pattern.first,
        second=pattern.second,
        place=place,
        probability=round(pattern.probability, 3),
        **_read_call(entry, millis),
    )


def _read_call(entry: Mapping[str, Any], millis: int) -> dict[str, Any]:
    """Return the fields of a `ReadCall` for a tool of the catalogue."""
    fresh_for = FRESH_MILLIS
    if "fresh_for" in entry:
        fresh_for = round(1000 * entry["fresh_for"])
    resource = str(entry.get("resource") or "")
    return {
        "millis": millis,
        "kind": resource.partition(":")[0],
        "queue": entry["queue"],
        "timeout": round(1000 * entry["timeout"]),
        "fresh_for": fresh_for,
    }
