"""Which runs may write without asking, and which bring programs that are trusted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from temporalio.client import Client

from sennit.activities.storage.grants import Chain, Grants
from sennit.workflows.plan.language.nodes import ApprovalPolicy


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """What needs a person's approval: at least `least`, whatever a run says, unless
    it has one of `grants`.
    """

    least: ApprovalPolicy
    grants: Grants

    async def of(
        self, asked: ApprovalPolicy, secret: str, topmost: Callable[[], Awaitable[Chain]]
    ) -> ApprovalPolicy:
        """Return the approval of a run that asks for `asked` and shows a secret, or
        has none as a sub-agent.

        `topmost` asks the server for the run itself, or the one above all that have started it.
        Safe to repeat. Raises RPCError if the server does not say, and OSError.
        """
        if asked == "writes" or self.least == "never":
            return asked
        if self.grants.path is None:
            return "writes"
        run = await topmost()
        if await asyncio.to_thread(self.grants.may_write, run, secret):
            return asked
        return "writes"

    async def trusts(self, secret: str, topmost: Callable[[], Awaitable[Chain]]) -> bool:
        """Whether the user of a local stack trusts the programs that a run brings: they have
        granted it that. What the run's input says of itself allows nothing. Safe to repeat. Raises
        RPCError and OSError as `of` does.
        """
        if self.grants.path is None:
            return False
        return await asyncio.to_thread(self.grants.may_trust, await topmost(), secret)

    def without_run(self, asked: ApprovalPolicy, *, is_granted: bool) -> ApprovalPolicy:
        """Return the approval that a run will have which asks for `asked`, and is not there yet:
        its user says whether it `is_granted` that.
        """
        if asked == "writes" or self.least == "never":
            return asked
        if is_granted and self.grants.path is not None:
            return asked
        return "writes"


async def topmost_run(client: Client, workflow: str, run: str) -> Chain:
    """Return the run above all that have started this one, or itself, by what the server
    says. Raises RPCError.
    """
    found = await client.get_workflow_handle(workflow, run_id=run).describe()
    top = found.raw_description.workflow_execution_info.root_execution
    if top.run_id != run:
        found = await client.get_workflow_handle(top.workflow_id, run_id=top.run_id).describe()
    return Chain(found.id, found.raw_description.workflow_execution_info.first_run_id)
