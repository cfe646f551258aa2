"""RunQuota: keeps the quota of a namespace, as a Temporal workflow."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from sennit.workflows.limits import MAX_QUOTA_ASKS
    from sennit.workflows.messages import queues
    from sennit.workflows.messages.quota import (
        ASK_UPDATE,
        ENDED_RUNS,
        GIVE_BACK_SIGNAL,
        PLACE_SIGNAL,
        QUOTA_TYPE,
        STATE_QUERY,
        EndedRuns,
        PlaceAsked,
        PlaceEnd,
        QuotaRuns,
    )
    from sennit.workflows.plan.quota import (
        MILLIS_A_DAY,
        PlaceReply,
        PlaceRequest,
        Quota,
        QuotaState,
    )
    from sennit.workflows.run.timer import milliseconds

LOOK_EVERY, LOOK_EVERY_WITH_LINE = timedelta(minutes=10), timedelta(minutes=1)
"""How often the quota looks whether its runs still go on: one that was
terminated gives nothing back.
"""


@workflow.defn(name=QUOTA_TYPE)
class RunQuota:
    """Gives runs their places, in the order in which they ask. It goes on as long
    as the namespace has it.

    It never takes a place away from a run that goes on. If somebody terminates it, the next run
    that asks starts it anew; runs that go on then keep going, and count no more.
    """

    @workflow.init
    def __init__(self, state: QuotaState) -> None:
        self._quota = Quota(state)
        self._asks = 0
        self._has_changed = False
        self._is_outdated = False
        self._looked_at = workflow.now()
        """When the quota last knew which of its runs go on."""

    @workflow.run
    async def run(self, state: QuotaState) -> None:
        """Serve, and continue as new before the history gets too long."""
        del state  # the quota has it
        while not self._must_continue():
            try:
                await workflow.wait_condition(
                    lambda: self._has_changed or self._must_continue(),
                    timeout=self._pause(),
                    timeout_summary="do the runs that hold places still go on?",
                )
            except TimeoutError:
                await self._free_places_of_ended_runs()
                self._looked_at = workflow.now()
            self._has_changed = False
            self._quota.begin_day(_today())
            for request in self._quota.to_call():
                await self._call(request)
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(
            self._quota.state,
            initial_versioning_behavior=workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
        )

    @workflow.update(name=ASK_UPDATE, description="A run asks for its place")
    def ask(self, asked: PlaceAsked) -> PlaceReply:
        """Give a run its place, or say why it waits or cannot have one."""
        self._asks += 1
        self._has_changed = True
        if self._quota.is_empty:
            self._looked_at = workflow.now()
        self._quota.begin_day(_today())
        return self._quota.ask(asked.request, asked.limits)

    @workflow.signal(name=GIVE_BACK_SIGNAL, description="A run that is over gives its place back")
    def give_back(self, end: PlaceEnd) -> None:
        """Free the place of a run."""
        self._has_changed = True
        self._quota.begin_day(_today())
        self._quota.give_back(end.first_run, end.used)

    @workflow.signal(name="upgrade", description="Move to the current version of the workers")
    def upgrade(self) -> None:
        """Continue as new, on the current version: the quota may go on for longer than
        the old one has workers.
        """
        self._is_outdated = True

    @workflow.query(
        name=STATE_QUERY, description="Limits, what is spent today, who goes on and who waits"
    )
    def state(self) -> QuotaState:
        """Return the quota as it stands."""
        return self._quota.state

    def _must_continue(self) -> bool:
        is_long = self._asks >= MAX_QUOTA_ASKS or workflow.info().is_continue_as_new_suggested()
        return is_long or self._is_outdated

    def _pause(self) -> timedelta | None:
        """Return after what time the quota looks again whether runs still go on; None if it knows
        none. Runs that ask meanwhile do not put that off.
        """
        if self._quota.is_empty:
            return None
        every = LOOK_EVERY
        if self._quota.has_line:
            every = LOOK_EVERY_WITH_LINE
        return max(self._looked_at + every - workflow.now(), timedelta(milliseconds=1))

    async def _free_places_of_ended_runs(self) -> None:
        """Free the places of runs that have ended without a word. All that was reserved
        for them counts as spent.
        """
        try:
            ended = await workflow.execute_activity(
                ENDED_RUNS.name,
                QuotaRuns(runs=self._quota.next_to_look_at()),
                result_type=EndedRuns,
                task_queue=queues.TOOLS,
                schedule_to_close_timeout=LOOK_EVERY,
                start_to_close_timeout=LOOK_EVERY_WITH_LINE,
                retry_policy=RetryPolicy(maximum_attempts=3),
                summary="which of the runs that hold places are over?",
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            workflow.logger.warning(
                "the quota could not look whether its runs still go on: %s", error
            )
            return
        for first_run in ended.first_runs:
            self._quota.give_back(first_run, None)

    async def _call(self, request: PlaceRequest) -> None:
        """Tell a run that there is a place now. A run that does not hear this asks again by itself.

        The quota learns of runs that are over when it looks.
        """
        try:
            await workflow.get_external_workflow_handle(request.run).signal(PLACE_SIGNAL)
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            workflow.logger.info("a run that waits could not be told of its place: %s", error)


def _today() -> int:
    """Return the number of the day, in UTC."""
    return milliseconds() // MILLIS_A_DAY
