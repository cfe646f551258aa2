"""What sub-agents wait for, passed on from each run to its parent, so that the root shows all that needs a person."""

import asyncio
import hashlib
from collections.abc import Callable

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import FailureError

from workflows.messages.result import RunStatus
from workflows.messages.views import MOST_PASSED_ON, BlockedOn, SubagentView
from workflows.plan.scheduling.state import RUNNING, RunState
from workflows.views.report import blocked_on

ITEM_BYTES = 2_000
MOST_HEARD = 500
FIRST_EVENTS = 3
"""Of a run whose first workflow task is its first try."""


class SubagentStatus:
    """One run's place between its sub-agents and its parent. `wake` is called when there is something new.

    A sub-agent tells its parent when what it waits for changes, one signal at a time, so that none overtakes another;
    a run with one under way does not continue as new. `told` is the mark of what was told last, "" for nothing, None
    when that is not known. A parent that is over is told in vain.

    What a run hears counts while that sub-agent runs: that of the node's present generation, and of the chain that was
    started for it. It is kept before, for a reset may bring it early.
    """

    def __init__(self, wake: Callable[[], None], told: str = "") -> None:
        self.last_reported: str | None = told
        self._wake = wake
        self._telling: asyncio.Task[None] | None = None
        self._heard: dict[str, SubagentView] = {}
        self._runs: dict[str, str] = {}

    @property
    def busy(self) -> bool:
        """Whether the parent is being told something."""
        return self._telling is not None

    def begun(self, name: str, run: str) -> None:
        """Note that the sub-agent called `name` has started, as the chain of runs that begins with `run`."""
        self._runs[name] = run

    def over(self, name: str) -> None:
        """Forget a sub-agent that has ended."""
        self._runs.pop(name, None)
        if self._heard.pop(name, None):
            self._wake()

    def receive(self, request: object = None, *more: object) -> None:
        """Take what a sub-agent says. Ignores what has another form."""
        try:
            view = SubagentView.model_validate(request)
        except ValidationError:
            return
        if more:
            return
        self._heard.pop(view.name, None)
        if view.blocked:
            self._heard[view.name] = view
        if len(self._heard) > MOST_HEARD:
            del self._heard[next(iter(self._heard))]
        self._wake()

    def running(self, state: RunState) -> dict[int, str]:
        """Return the sub-agents that run now by node, in plan order, each as it is called: `sub`, then `sub~2`."""
        found = {}
        for name in self._runs:
            unit = state.find(name.partition("~")[0])
            if unit is not None and state.status[unit] == RUNNING and state.address(unit) == name:
                found[unit] = name
        return dict(sorted(found.items()))

    def blocked_children(self, state: RunState) -> dict[int, SubagentView]:
        """Return what the sub-agents that run now wait for by their node; those that wait for nothing are left out."""
        views = {unit: self._heard.get(name) for unit, name in self.running(state).items()}
        return {unit: view for unit, view in views.items() if view is not None and view.run == self._runs[view.name]}

    def lines(self, state: RunState, run: str) -> dict[int, str]:
        """Return what there is to say of the sub-agents that nodes of `run` run now, by node."""
        names, below = self.running(state), self.blocked_children(state)
        return {unit: f"run {run}.{name}{' waits for a person' * (unit in below)}" for unit, name in names.items()}

    def report(self, state: RunState, status: RunStatus) -> None:
        """Tell the parent, if there is one, what this run waits for and whether that holds all of it up.

        A run that is about to continue as new leaves it to the next: only that one starts what is ready.
        """
        info, below = workflow.info(), self.blocked_children(state)
        leaves = state.draining and not state.running and self.last_reported is not None
        if info.parent is None or self._telling is not None or leaves:
            return
        waits = status in ("running", "blocked") and (state.waiting or below)
        blocked = blocked_on(state, info.workflow_id, below)[:MOST_PASSED_ON] if waits else ()
        view = SubagentView(
            name=info.workflow_id.removeprefix(f"{info.parent.workflow_id}."),
            run=info.first_execution_run_id,
            is_blocked=status == "blocked",
            blocked=tuple(for_parent(item, info.workflow_id) for item in blocked),
        )
        mark = hashlib.sha256(view.model_dump_json().encode()).hexdigest()[:16] if blocked else ""
        if mark != self.last_reported:
            self.last_reported = mark
            self._telling = asyncio.create_task(self._tell(info.parent.workflow_id, view))

    async def _tell(self, parent: str, view: SubagentView) -> None:
        try:
            await workflow.get_external_workflow_handle(parent).signal("subagent_status", view.model_dump(mode="json"))
        except FailureError as error:
            workflow.logger.info("the parent is over and need not know what is waited for: %s", error)
        self._telling = None
        self._wake()

    def resync_after_reset(self) -> None:
        """Tell the parent how it is now after a reset of this run, which may have told more than it remembers.

        A reset gives another seed; one to the first task does so before there is a workflow to be told.
        """
        workflow.register_random_seed_callback(lambda _: self._tell_again())
        info = workflow.info()
        if info.parent and info.get_current_history_length() > FIRST_EVENTS:
            self._tell_again()

    def _tell_again(self) -> None:
        self.last_reported = None
        self._wake()


def for_parent(item: BlockedOn, run: str) -> BlockedOn:
    """Return an item as it is passed on: with the run that asks; what is too long for a signal is only named."""
    item = item if item.run else item.model_copy(update={"run": run})
    if len(item.model_dump_json()) <= ITEM_BYTES:
        return item
    short = {"question": f"{item.question[:500]}…", "example": {}, "command": f"sennit status {item.run}"}
    return item.model_copy(update=short)
