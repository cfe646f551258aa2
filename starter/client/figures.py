"""The figures of runs: of one as it stands, from its worker; of many that are over, from
what their histories keep.
"""

import asyncio
from collections.abc import Sequence

from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError

from sennit.starter.client.errors import Refused
from sennit.starter.client.outcome import outcome_of_failure, outcome_of_result
from sennit.starter.client.runs import RunSummary
from sennit.starter.client.server_errors import error_of
from sennit.starter.limits import MAX_REPORTS_AT_ONCE
from sennit.workflows.plan.figures.figures import Figures


async def figures_of_runs(client: Client, runs: Sequence[RunSummary]) -> dict[str, Figures]:
    """Return the figures of those of these runs that have any, by their ids: of runs that are
    over and have a report. One that was cancelled or ended by the server has none, and neither
    has one of an older Sennit.

    Asks no worker. Raises SennitError if the server does not answer.
    """
    room = asyncio.Semaphore(MAX_REPORTS_AT_ONCE)

    async def read(run: RunSummary) -> Figures | None:
        async with room:
            return await _figures_of(client, run)

    closed = [run for run in runs if run.closed]
    found = await asyncio.gather(*map(read, closed))
    return {
        run.id: figures for run, figures in zip(closed, found, strict=True) if figures is not None
    }


async def _figures_of(client: Client, run: RunSummary) -> Figures | None:
    handle = client.get_workflow_handle(run.id, run_id=run.run_id)
    try:
        return outcome_of_result(run.id, await handle.result(follow_runs=False)).report.figures
    except WorkflowFailureError as failure:
        return outcome_of_failure(run.id, run.run_id, failure.cause).report.figures
    except Refused:  # a result of another form
        return None
    except RPCError as error:
        raise error_of(error) from None
