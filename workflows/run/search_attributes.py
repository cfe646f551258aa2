"""Search attributes: how people tell runs apart in the web UI's lists and in
`temporal workflow list`.

A namespace must know an attribute before a run may set it: an unknown one fails the workflow task
for ever. So `prepare` finds out which exist, and a run sets only those. A run that began before an
attribute was created goes on without it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, SearchAttributeUpdate

from sennit.workflows.messages.result import BlockedOn, RunStatus
from sennit.workflows.plan.language.limits import Usage, dollars
from sennit.workflows.views.shown_run import ShownRun

EVERY = timedelta(seconds=10)
KEYS: dict[str, SearchAttributeKey[Any]] = {
    key.name: key
    for key in (
        SearchAttributeKey.for_keyword("SennitStatus"),
        SearchAttributeKey.for_keyword("SennitPhase"),
        SearchAttributeKey.for_keyword("SennitTenant"),
        SearchAttributeKey.for_keyword("SennitBlockedOn"),
        SearchAttributeKey.for_int("SennitNodesTotal"),
        SearchAttributeKey.for_int("SennitNodesDone"),
        SearchAttributeKey.for_int("SennitNodesFailed"),
        SearchAttributeKey.for_float("SennitTokens"),  # a namespace has room for three Ints only
        SearchAttributeKey.for_float("SennitCostUsd"),
    )
}
KINDS = {name: key.indexed_value_type.name.capitalize() for name, key in KEYS.items()}
"""The type of each as the `temporal` command writes it."""

OF_SUBAGENTS = ("SennitStatus", "SennitBlockedOn")
"""What a sub-agent writes. Lists of Sennit show the runs above it, which
count for all below them.
"""
_UNUSUAL = ("blocked", "partial", "failed", "cancelled")

Value = str | int | float | None


@dataclass(slots=True)
class SearchAttributes:
    """The attributes of one run. `names` are those that its namespace has; with
    none, nothing is ever set.

    Every write is an event of the history, so a write carries only changes. There is one when
    status or phase changes, and when the run begins or stops needing a person. Otherwise there is
    one at most every ten seconds; a timer sees to it that nodes which ended in between are written
    too, so that a list is never further behind than that.

    What is due is decided by the attributes that the history has recorded, and by nothing
    that a workflow task without commands could have left here: a replay may join such a
    task with the next one.
    """

    names: tuple[str, ...] = ()
    tenant: str = ""
    of_subagent: bool = False
    """Whether lists show only what is unusual: a person has to act, or the run
    has come to no good end.
    """
    _written_at: datetime | None = None
    _looked_at: tuple[int, int, int] | None = None
    _timer: asyncio.Task[None] | None = None

    def publish(
        self,
        status: RunStatus,
        phase: str,
        shown: ShownRun | None,
        spent: Usage,
        started: int = 0,
        outage: Sequence[BlockedOn] = (),
        wake: Callable[[], None] | None = None,
    ) -> None:
        """Write what is due, or have the run woken by `wake` when it is. `started` counts the nodes
        started so far; `outage` is what planning waits for.
        """
        if not self.names:
            return
        waits_for = None
        if status in ("running", "blocked"):
            waits_for = _waits_for(shown, outage)
        if self.of_subagent:
            self._publish_unusual(status, waits_for)
            return
        activity = (started, 0, 0)
        if shown is not None:
            activity = (started, shown.state.running, shown.ended)
        has_changed = self._has_changed(status, phase, is_blocked=waits_for is not None)
        if not has_changed and self._written_at is not None:
            if activity == self._looked_at:  # no node has started or ended
                return
            # The end of the timer decides, and not the clock: a replay may join this task with a
            # later one, whose time it then has.
            if self._timer is not None:
                return
            due = self._written_at + EVERY
            if workflow.now() < due:
                self._wait(due, wake)
                return

        self._looked_at = activity
        values: dict[str, Value] = {
            "SennitStatus": status,
            "SennitPhase": phase,
            "SennitBlockedOn": waits_for,
        }
        values |= self._figures(shown, spent)
        changes = self._changes(values)
        if changes:
            self._stop_waiting()
            workflow.upsert_search_attributes(changes)
        if changes or self._written_at is None:
            self._written_at = workflow.now()

    def _figures(self, shown: ShownRun | None, spent: Usage) -> dict[str, Value]:
        """Return how much the run has used, for whom, and how far it is."""
        values: dict[str, Value] = {
            "SennitTokens": float(spent.tokens),
            "SennitCostUsd": dollars(spent.cost),
        }
        if self.tenant:
            values["SennitTenant"] = self.tenant
        if shown is not None:
            values |= progress(shown)
        return values

    def _publish_unusual(self, status: RunStatus, waits_for: str | None) -> None:
        unusual_status = None
        if status in _UNUSUAL:
            unusual_status = status
        changes = self._changes({"SennitStatus": unusual_status, "SennitBlockedOn": waits_for})
        if changes:
            workflow.upsert_search_attributes(changes)

    def _has_changed(self, status: RunStatus, phase: str, *, is_blocked: bool) -> bool:
        """Whether lists show another status or phase of the run, or wrongly that it
        needs a person or does not.
        """
        has = workflow.info().typed_search_attributes
        blocked_on = has.get(KEYS["SennitBlockedOn"])
        if self._differs("SennitStatus", has.get(KEYS["SennitStatus"]), status):
            return True
        if self._differs("SennitPhase", has.get(KEYS["SennitPhase"]), phase):
            return True
        return self._differs("SennitBlockedOn", blocked_on is not None, is_blocked)

    def _differs(self, name: str, recorded: object, value: object) -> bool:
        return name in self.names and recorded != value

    def _wait(self, due: datetime, wake: Callable[[], None] | None) -> None:
        """Have the run woken at `due`."""
        if wake is not None:
            self._timer = asyncio.create_task(self._ring(due - workflow.now(), wake))

    async def _ring(self, pause: timedelta, wake: Callable[[], None]) -> None:
        await workflow.sleep(pause, summary="telling lists how far the run is")
        self._timer = None
        wake()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def notes(self) -> list[str]:
        """Return the board's note about attributes that the namespace lacks; none if it has all,
        and on the board of a sub-agent, because that above it has the note.
        """
        if self.of_subagent:
            return []
        missing = [name for name in KEYS if name not in self.names]
        if not missing:
            return []
        listed = ", ".join(missing)
        return ["", f"Missing search attributes: {listed}. Run `sennit setup` to create them."]

    def _changes(self, values: dict[str, Value]) -> list[SearchAttributeUpdate[Any]]:
        """Return what differs from the run's attributes: those it has set, continued with, or got
        from a copied start form. An absent number counts as zero.
        """
        has = workflow.info().typed_search_attributes
        changes: list[SearchAttributeUpdate[Any]] = []
        for name, value in values.items():
            key = KEYS[name]
            if name not in self.names:
                continue
            is_same = (has.get(key) or None) == (value or None)
            if is_same:
                continue
            if value is None:
                changes.append(key.value_unset())
            else:
                changes.append(key.value_set(value))
        return changes


def _waits_for(shown: ShownRun | None, outage: Sequence[BlockedOn]) -> str | None:
    """Return in a few words how a run that is not over needs a person; None if it does not."""
    if shown is None:
        return blocker(outage)
    if outage or shown.waits:
        return blocker(shown.blocked)
    return None


def of_subagents(names: Sequence[str]) -> tuple[str, ...]:
    """Return the attributes of a namespace that a sub-agent writes."""
    return tuple(name for name in names if name in OF_SUBAGENTS)


def at_start(names: Sequence[str], tenant: str) -> list[SearchAttributePair[Any]]:
    """Return the attributes that a sub-agent has from its start, which are no
    events of its history.
    """
    if not tenant or "SennitTenant" not in names:
        return []
    return [SearchAttributePair(KEYS["SennitTenant"], tenant)]


def progress(shown: ShownRun) -> dict[str, Value]:
    """Return the numbers of nodes as every view of the run counts them: all, those that have
    ended, and the failed.
    """
    return {
        "SennitNodesTotal": sum(shown.counts.values()),
        "SennitNodesDone": shown.ended,
        "SennitNodesFailed": shown.counts.get("failed", 0),
    }


def blocker(items: Sequence[BlockedOn]) -> str | None:
    """Return what a run waits for, or None: `gate n7`, `approval sub.n3 and 2 more`, `failed
    n5`, `budget`, `planning`.
    """
    if not items:
        return None
    first = min(items, key=lambda item: bool(item.node))
    words = f"{first.why} {first.node}".rstrip()
    if len(items) > 1:
        words += f" and {len(items) - 1} more"
    return words
