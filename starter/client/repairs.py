"""How often a planner had to correct the plan of a run, as the run's history has it."""

from temporalio.client import Client
from temporalio.service import RPCError

from sennit.starter.client.server_errors import error_of
from sennit.workflows.messages.contracts import PLAN, PlanCall


async def plan_repairs(client: Client, name: str, run_id: str) -> int:
    """Return how often the planner of this run was shown what is wrong with its plan; `run_id` is
    the first run of its chain, which has planned. Raises SennitError.
    """
    repairs = 0
    try:
        async for event in client.get_workflow_handle(name, run_id=run_id).fetch_history_events():
            scheduled = event.activity_task_scheduled_event_attributes
            if scheduled.activity_type.name != PLAN.name:
                continue
            call, *_ = await client.data_converter.decode(scheduled.input.payloads, [PlanCall])
            if call.problems:
                repairs += 1
    except RPCError as error:
        raise error_of(error) from None
    return repairs
