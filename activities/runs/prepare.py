"""Opens a run: fixes its tools, models and documents, and checks the plan that it brings."""

from dataclasses import dataclass
from typing import Any

from activities.llm.call import OFFLINE
from activities.llm.models import Models
from activities.nodes.documents import DocumentRule
from activities.runs.check import PlanChecker, Run, refused
from activities.runs.model_choice import needs_default_models
from activities.storage.grants import Grants
from activities.storage.run_context import ArtifactReader, RunContext
from activities.toolbox import Registry
from workflows.messages import queues
from workflows.messages.contracts import CheckResult, PrepareCall, PreparedRun
from workflows.plan.language.nodes import ApprovalPolicy
from workflows.plan.language.packing import unpack_plan
from workflows.plan.language.problems import InvalidPlan, Problem
from workflows.plan.language.text import format_name, format_names


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """What needs a person's approval: at least `least`, whatever a run says, except in runs that `grants` name."""

    least: ApprovalPolicy
    grants: Grants

    def of(self, asked: ApprovalPolicy, root: str) -> ApprovalPolicy:
        """Return the approval of a run that asks for `asked`; `root` is the workflow id of the topmost run above it."""
        return asked if self.least == "never" or self.grants.may_write(root) else "writes"


@dataclass(frozen=True, slots=True)
class RunPreparer:
    """Prepares runs on this worker."""

    library: ArtifactReader
    registry: Registry
    documents: DocumentRule
    approvals: ApprovalRule
    models: Models
    checker: PlanChecker

    async def prepare(self, run_prefix: str, call: PrepareCall) -> PreparedRun:
        """Store the run_context and, when the run brings its plan, check it.

        The models are chosen here, once, so that every worker calls the same. Raises DocsNotFound, StoreUnavailable,
        and ProviderError when a model must be chosen and cannot.
        """
        folder = self.documents.folder(call.docs)
        given = call.plan is not None or call.plan_packed is not None
        try:
            plan = call.plan if call.plan is not None else _unpack(call.plan_packed or "") if given else None
            rejected: CheckResult | None = None
        except InvalidPlan as error:
            plan, rejected = {}, refused(error.problems)
        try:
            chooses = plan is None or needs_default_models(plan)
            models = await self.models.chosen(call.model) if chooses else self.models.wanted(call.model)
        except ValueError as error:
            models, rejected = self.models.wanted(), CheckResult(problems=(str(error),))
        run_context = RunContext(
            goal=call.goal,
            inputs=call.inputs,
            docs=str(folder) if folder else None,
            approval=self.approvals.of(call.approval, call.root),
            approve_plan=call.approve_plan,
            catalogue=[
                entry for entry in self.registry.catalogue() if call.tools is None or entry["name"] in call.tools
            ],
            models={role: list(names) for role, names in models.items()},
            given=await self.library.adopt(run_prefix, call.given) if call.given else "",
        )
        digest = await self.library.keep(run_prefix, run_context)
        unknown = [name for name in call.tools or () if name not in self.registry]
        if unknown:
            known = format_names(sorted(entry["name"] for entry in self.registry.catalogue()))
            problem = f"tools: unknown tool {', '.join(map(format_name, unknown))}; known: {known}"
            return PreparedRun(run_context=digest, checked=CheckResult(problems=(problem,)))
        if plan is None and call.approve_plan and self.models.plan_format != "program":
            problem = "approve_plan: only programs can be approved. Start the workers with SENNIT_PLAN_FORMAT=program"
            return PreparedRun(run_context=digest, checked=CheckResult(problems=(problem,)))
        if plan is None and rejected is None:
            model = run_context.models["planner"][0]
            return PreparedRun(run_context=digest, planner=queues.llm_queue(model), streams=model not in OFFLINE)
        checked = rejected or await self.checker.check_draft(Run(run_prefix, digest, run_context), plan or {})
        return PreparedRun(run_context=digest, checked=checked)


def _unpack(text: str) -> dict[str, Any]:
    try:
        return unpack_plan(text)
    except ValueError as error:
        raise InvalidPlan([Problem("packed", (), str(error))]) from None
