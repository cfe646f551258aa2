"""Reports what sub-agents wait for from each run to its parent, so that
the root shows all of it.
"""

import asyncio
import hashlib
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError

from sennit.workflows.limits import (
    MAX_PASSED_ON,
    MAX_STATUS_BYTES,
    MAX_STATUS_CHARACTERS,
    MAX_STATUS_ITEM_BYTES,
    MAX_SUBAGENT_VIEWS,
    MAX_SUBAGENT_WRITES,
)
from sennit.workflows.messages.message import message_bytes, message_in
from sennit.workflows.messages.result import BlockedOn, RunStatus, WriteLine
from sennit.workflows.messages.views import SubagentView
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling.events import WriteStatus
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import RUNNING
from sennit.workflows.views.shown_run import ShownRun

FIRST_EVENTS = 3
"""The length of a history at the first workflow task, if its first try succeeds."""


class SubagentStatus:
    """One run's link between its sub-agents and its parent. `wake` is called when there is news.

    A sub-agent reports to its parent when what it waits for changes, one signal at a time, so that
    none overtakes another. A run does not continue as new while it sends one. `last_reported` is
    the mark of the last report: "" for an empty one, None if it is not known. A report to a parent
    that has ended is dropped.

    A report counts while its sub-agent runs: it must come from the node's present generation, and
    from the chain of runs that was started for it. An earlier report is kept too, because after a
    reset it may come early.
    """

    def __init__(self, wake: Callable[[], None], last_reported: str = "") -> None:
        self.last_reported: str | None = last_reported
        self._wake = wake
        self._reporting: asyncio.Task[None] | None = None
        self._views: dict[str, SubagentView] = {}
        self._runs: dict[str, str] = {}
        self._effects: dict[str, tuple[tuple[str, WriteStatus], ...] | None] = {}
        self._last: dict[str, SubagentView] = {}
        self._usage: dict[str, Usage] = {}

    @property
    def busy(self) -> bool:
        """Whether a report is on its way to the parent."""
        return self._reporting is not None

    def begun(self, name: str, run: str) -> None:
        """Note that the sub-agent called `name` has started, as the chain of runs
        that begins with `run`.
        """
        self._runs[name] = run
        self._effects[name] = None

    def wrote(self, name: str, report: object) -> None:
        """Note what the report of a sub-agent says of its writes; without a report it may
        still tell of them itself.
        """
        if isinstance(report, dict):
            writes = [WriteLine.model_validate(write) for write in report.get("writes", ())]
            self._effects[name] = _effects(writes)

    def effects_of(self, name: str) -> tuple[tuple[str, WriteStatus], ...] | None:
        """Return what a sub-agent that is over has said of its writes: nothing if it has never
        begun, and None if it could not say it.
        """
        return self._effects.pop(name, ())

    def usage_of(self, name: str) -> Usage | None:
        """Return what a sub-agent that was cancelled has used, None if it has not said so."""
        return self._usage.pop(name, None)

    def ended(self, name: str) -> None:
        """Note that a sub-agent is over. One that was cancelled has told of its
        writes and its usage itself.
        """
        run = self._runs.pop(name, None)
        last = self._last.pop(name, None)
        if last is not None and last.run == run:
            self._usage[name] = last.usage
            if self._effects.get(name, ()) is None:
                self._effects[name] = _effects(last.writes or ())
        if self._views.pop(name, None):
            self._wake()

    def receive(self, request: object = None, *more: object) -> None:
        """Take a sub-agent's report. Ignores input of any other form, or larger than any report."""
        view = message_in(SubagentView, request, *more)
        if view is None or message_bytes(view) > MAX_STATUS_BYTES:
            return
        self._views.pop(view.name, None)
        if view.writes is not None:
            self._last[view.name] = view
        if view.blocked:
            self._views[view.name] = view
        for views in (self._views, self._last):
            if len(views) > MAX_SUBAGENT_VIEWS:
                del views[next(iter(views))]
        self._wake()

    def running(self, state: RunState) -> dict[int, str]:
        """Return the running sub-agents by node, in plan order, each by its
        name: `sub`, then `sub~2`.
        """
        names: dict[int, str] = {}
        for name in self._runs:
            path, _, generation = name.partition("~")
            unit = state.find(path)  # a program that ran again may call the node otherwise by now
            if unit is None or state.units[unit].status != RUNNING:
                continue
            if state.units[unit].generation == int(generation or 1):
                names[unit] = name
        return dict(sorted(names.items()))

    def blocked_children(self, state: RunState) -> dict[int, SubagentView]:
        """Return what the running sub-agents wait for, by their nodes. The other
        sub-agents are left out.
        """
        blocked: dict[int, SubagentView] = {}
        if not self._views:
            return blocked  # as a rule: hundreds may run, and this is asked several times a turn
        for unit, name in self.running(state).items():
            view = self._views.get(name)
            if view is not None and view.run == self._runs[name]:
                blocked[unit] = view
        return blocked

    def lines(self, state: RunState, run: str) -> dict[int, str]:
        """Return a line about each running sub-agent of `run`, by its node."""
        blocked = self.blocked_children(state)
        lines: dict[int, str] = {}
        for unit, name in self.running(state).items():
            lines[unit] = f"run {run}.{name}"
            if unit in blocked:
                lines[unit] += " waits for a person"
        return lines

    def report(self, shown: ShownRun, status: RunStatus) -> None:
        """Report to the parent, if there is one, what this run waits for and whether
        that blocks the whole run.

        A run that is about to continue as new leaves this to the next run, because only that
        one starts what is ready.
        """
        state = shown.state
        if state.draining and not state.running and self.last_reported is not None:
            return
        items: Sequence[BlockedOn] = ()
        if status in ("running", "blocked") and (state.waiting or shown.children):
            items = shown.blocked
        self.report_items(items, is_blocked=status == "blocked")

    def report_items(self, items: Sequence[BlockedOn], *, is_blocked: bool) -> None:
        """Report to the parent, if there is one, that this run waits for these, unless it knows."""
        info = workflow.info()
        if info.parent is None or self._reporting is not None:
            return
        blocked: list[BlockedOn] = []
        for item in items[:MAX_PASSED_ON]:
            blocked.append(for_parent(item, info.workflow_id))
        view = SubagentView(
            name=_name_of(info),
            run=info.first_execution_run_id,
            is_blocked=is_blocked,
            blocked=tuple(blocked),
        )
        mark = ""
        if blocked:
            digest = hashlib.sha256(view.model_dump_json().encode())
            mark = digest.hexdigest()[:16]
        if mark != self.last_reported:
            self.last_reported = mark
            sending = self._send(info.parent.workflow_id, view)
            self._reporting = asyncio.create_task(sending)

    async def tell_end(self, writes: Sequence[WriteLine], usage: Usage) -> None:
        """Tell the parent what this run, which was cancelled, has written and used. Returns when
        that knows it, or is over.
        """
        info = workflow.info()
        if info.parent is not None:
            if self._reporting is not None:
                await self._reporting
            view = SubagentView(
                name=_name_of(info),
                run=info.first_execution_run_id,
                writes=tuple(writes[:MAX_SUBAGENT_WRITES]),
                usage=usage,
            )
            await self._send(info.parent.workflow_id, view)

    async def _send(self, parent: str, view: SubagentView) -> None:
        try:
            await workflow.get_external_workflow_handle(parent).signal(
                "subagent_status", view.model_dump(mode="json")
            )
        except FailureError as error:
            workflow.logger.info(
                "the parent is over and need not know what is waited for: %s", error
            )
        self._reporting = None
        self._wake()

    def resync_after_reset(self) -> None:
        """Report again after a reset of this run to its first task, which nobody else learns of."""
        info = workflow.info()
        if info.parent and info.get_current_history_length() > FIRST_EVENTS:
            self.report_again()

    def report_again(self) -> None:
        """Report after a reset of this run, which may have reported more than it remembers."""
        self.last_reported = None
        self._wake()


def _name_of(info: workflow.Info) -> str:
    """Return what the parent calls this sub-agent: its node with the generation."""
    assert info.parent is not None
    return info.workflow_id.removeprefix(f"{info.parent.workflow_id}.")


def _effects(writes: Sequence[WriteLine]) -> tuple[tuple[str, WriteStatus], ...]:
    return tuple((each.node, each.status) for each in writes)


def for_parent(item: BlockedOn, run: str) -> BlockedOn:
    """Return an item as the parent gets it: with the run that asks, and with
    too long a text left out.
    """
    if not item.run:
        item = item.model_copy(update={"run": run})
    command = shlex.join(["sennit", "status", item.run or run])
    if len(item.shown) > MAX_STATUS_CHARACTERS:
        beginning = item.shown[:MAX_STATUS_CHARACTERS]
        item = item.model_copy(update={"shown": f"{beginning}\n… the whole: {command}"})
    if message_bytes(item) <= MAX_STATUS_ITEM_BYTES:
        return item
    short: dict[str, Any] = {
        "question": f"{item.question[:500]}…",
        "shown": "",
        "example": {},
        "full": {},
        "arguments": None,
        "command": command,
    }
    return item.model_copy(update=short)
