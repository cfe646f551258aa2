"""What the operator's rules have decided about the writes of a run, kept with the run.

A decision is made once for each generation of a write and its values. A later attempt finds it, and
so does the run that goes on after a reset, whatever the file of rules says by then.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.effect_ledger import Write
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox import Tool
from sennit.activities.toolbox.approval_rules import ApprovalRules
from sennit.workflows.plan.language.nodes import ToolCall


class Ruling(BaseModel):
    """What a rule says of a write; no `decision` if no rule says anything."""

    model_config = ConfigDict(frozen=True)

    decision: Literal["", "allow", "ask", "refuse"] = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Rulings:
    """Decides by the rules of this worker."""

    library: ArtifactReader
    rules: ApprovalRules

    async def of(self, context: NodeContext, write: Write, tool: Tool) -> Ruling:
        """Return what the rules say of a write with its arguments as they would
        be made. Safe to repeat.

        Raises ToolArgumentError if they do not fit the tool, and StoreUnavailable.
        """
        name = f"ruling {write.key} {write.digest}"
        noted = await self.library.noted(context.run_prefix, name)
        if noted is not None:
            return Ruling.model_validate(noted)
        if not self.rules.rules:
            return Ruling()

        assert isinstance(context.work, ToolCall)
        # Paths are followed on the disk, for which no other call of this worker shall wait.
        arguments = context.arguments(context.work)
        rule = await asyncio.to_thread(self.rules.first, tool, arguments)
        ruling = Ruling()
        if rule is not None:
            ruling = Ruling(decision=rule.decision, rule=rule.name)
        await self.library.note(context.run_prefix, name, ruling.model_dump())
        return Ruling.model_validate(await self.library.noted(context.run_prefix, name))
