"""Asks a worker what an edit or a fork would do."""

from datetime import timedelta

from temporalio.client import Client

from sennit.starter.client.short_workflows import ask_worker
from sennit.workflows.messages.dry_run import DryRunCall, DryRunReport

_LONGEST = timedelta(seconds=50)
"""A worker has 40 s, and plays for 15 s of them."""


async def dry_run(client: Client, call: DryRunCall) -> DryRunReport:
    """Return what becomes of each call. Nothing is changed. Raises NoAnswer
    or another SennitError.
    """
    name = f"{call.workflow}.dry-run"  # no sub-agent has this name
    return await ask_worker(
        client, "DryRun", call, DryRunReport, name=name, limit=_LONGEST, task="play the dry run"
    )
