"""Opens a run: fixes its tools, models and documents, and checks the plan that it brings."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sennit.activities.llm.models import OFFLINE, Models
from sennit.activities.providers.prices import price_to_add
from sennit.activities.runs.absent_tools import absent_tools
from sennit.activities.runs.attachments import Attachments, unseen
from sennit.activities.runs.check import PlanChecker, Run, refused
from sennit.activities.runs.model_choice import needs_default_models
from sennit.activities.storage.artifacts import digest_of
from sennit.activities.storage.documents import DocumentRule
from sennit.activities.storage.run_context import ArtifactReader, RunContext
from sennit.activities.toolbox import Registry
from sennit.activities.toolbox.errors import McpUnavailable
from sennit.activities.toolbox.registry import absence_of
from sennit.workflows.messages import queues
from sennit.workflows.messages.contracts import CheckResult, PrepareCall, PreparedRun
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.plan.checking.validation import parse_plan
from sennit.workflows.plan.language.media import Media
from sennit.workflows.plan.language.nodes import ApprovalPolicy, Role
from sennit.workflows.plan.language.packing import unpack_plan
from sennit.workflows.plan.language.problems import OFFERED, InvalidPlan, Problem
from sennit.workflows.plan.language.text import format_name, format_names
from sennit.workflows.plan.language.workspaces import Workspace


@dataclass(frozen=True, slots=True)
class RunPreparer:
    """Prepares runs on this worker."""

    library: ArtifactReader
    registry: Registry
    documents: DocumentRule
    models: Models
    checker: PlanChecker

    async def prepare(
        self,
        run_prefix: str,
        call: PrepareCall,
        approval: ApprovalPolicy,
        history: str = "",
        *,
        may_trust: bool = False,
    ) -> PreparedRun:
        """Store the run_context, with the approval that the run has and the digest of the
        turns before it, and check the plan that it may bring. Whether its scripts `may` be
        trusted the worker says.

        The models are chosen here, once, so that every worker calls the same. Raises DocsNotFound,
        BadMedia, WorkspaceRefused, StoreUnavailable, ProviderError when a model must be chosen and
        cannot, and McpUnavailable for a tool that may be there later.
        """
        folder = self.documents.folder(call.request.docs, scheduled=call.scheduled)
        request = call.request

        # The plan that the run brings, and its models. What is wrong with either is told when
        # the context is stored.
        rejected: CheckResult | None = None
        try:
            plan = await self._brought(run_prefix, request)
        except InvalidPlan as error:
            plan = {}
            rejected = refused(error.problems)
        try:
            models = self.models.wanted(request.model)
            if plan is None or needs_default_models(plan):
                models = await self.models.chosen(request.model)
        except ValueError as error:
            models = self.models.wanted()
            rejected = CheckResult(problems=(str(error),))

        # Files are inputs of a plan; without one, they are shown with the goal.
        attachments = Attachments(self.library, self.documents)
        attached = await attachments.keep(run_prefix, call)
        inputs = dict(request.inputs)
        shown: Mapping[str, Media] = {}
        if plan is None:
            shown = _media_of(attached)
        else:
            inputs |= _inputs_of(attached)

        catalogue = self.registry.catalogue()
        if request.tools is not None:
            catalogue = [entry for entry in catalogue if entry["name"] in request.tools]
        trusted_scripts: tuple[str, ...] = ()
        if may_trust and request.trust_program:
            trusted_scripts = tuple(_scripts_in(plan))
        run_context = RunContext(
            goal=request.goal,
            inputs=inputs,
            docs=str(folder) if folder else None,
            approval=approval,
            approve_plan=request.approve_plan,
            trusted_scripts=trusted_scripts,
            catalogue=catalogue,
            absences=self.registry.absences,
            models={role: list(names) for role, names in models.items()},
            settings=self.models.settings(request.settings),
            material=await self._material(run_prefix, request),
            history=history,
            instructions=request.instructions,
            attached=tuple(shown.values()),
            priced=call.priced,
            repeat_writes=request.repeat_writes,
            agents_above=request.agents_above,
        )
        digest = await self.library.keep(run_prefix, run_context)

        problem = _unasked(call) or self._unknown_tools(call, run_context)
        if plan is None:
            problem = problem or self._unplannable(call, shown, models)
        if problem:
            return PreparedRun(run_context=digest, checked=CheckResult(problems=(problem,)))
        if rejected is not None:
            return PreparedRun(run_context=digest, checked=rejected)
        if plan is None:
            model = run_context.models["planner"][0]
            streams = model not in OFFLINE and not request.approve_plan
            return PreparedRun(run_context=digest, planner=queues.llm_queue(model), streams=streams)
        if run_context.absences:
            _wait_for_tools_of(plan, call, run_context)
        run = Run(run_prefix, digest, run_context)
        checked = await self.checker.check_draft(run, plan, of_item=bool(request.draft))
        return PreparedRun(run_context=digest, checked=checked)

    async def _material(self, run_prefix: str, request: RunRequest) -> str:
        """Return the digest of the material that a run is given, now among its own
        artifacts; "" without any.
        """
        if not request.material:
            return ""
        return await self.library.adopt(run_prefix, request.material)

    def _unplannable(
        self, call: PrepareCall, attached: Mapping[str, Media], models: Mapping[Role, Sequence[str]]
    ) -> str:
        """Return why no plan can be written for the goal of a run, "" if one can."""
        problem = self._unseen(attached, models)
        if problem or not call.priced:
            return problem
        return price_to_add(set[str]().union(*models.values()))

    async def _brought(self, run_prefix: str, request: RunRequest) -> dict[str, Any] | None:
        """Return the plan that a run brings, None if it has to be planned. Raises InvalidPlan for
        one that cannot be unpacked.
        """
        if request.draft:
            draft = await self.library.adopt(run_prefix, request.draft)
            plan: dict[str, Any] = await self.library.value(run_prefix, draft)
            return plan
        if request.plan is None and request.plan_packed is not None:
            return _unpack(request.plan_packed)
        return request.plan

    def _unseen(self, attached: Mapping[str, Media], models: Mapping[Any, Sequence[str]]) -> str:
        """Return why what is attached to a goal would be seen by nobody, "" if it will be."""
        if attached and self.models.plan_format == "program":
            return (
                "attachments: a planner that writes programs cannot pass them on; use `sennit "
                "run` with a program"
            )
        return unseen(attached, models)

    def _unknown_tools(self, call: PrepareCall, run_context: RunContext) -> str:
        """Return what is wrong with the tools that a run is to use. Raises McpUnavailable
        for those that may come.

        The run of an item has all that the run above it had, and one of these may be away now. The
        check of its plan names those that it needs.
        """
        if call.request.draft:
            return ""
        unknown = [name for name in call.request.tools or () if name not in self.registry]
        if not unknown:
            return ""
        if call.request.on_failure in (None, "park"):
            absent: dict[str, str] = {}
            for name in unknown:
                reason = absence_of(name, run_context.absences)
                if reason:
                    absent[name] = reason
            _wait_for(absent)
        problem = f"tools: unknown tool {', '.join(map(format_name, unknown))}"
        offered = [f"`{name}`: {OFFERED[name]}" for name in unknown if name in OFFERED]
        if offered:
            return f"{problem}; {'; '.join(offered)}"
        known = sorted(entry["name"] for entry in self.registry.catalogue())
        return f"{problem}; known: {format_names(known)}"


def _inputs_of(attached: Mapping[str, Media | Workspace]) -> dict[str, Any]:
    """Return what is attached as values of a plan's inputs."""
    return {name: value.model_dump(mode="json") for name, value in attached.items()}


def _media_of(attached: Mapping[str, Media | Workspace]) -> dict[str, Media]:
    """Return what models can be shown of it."""
    return {name: value for name, value in attached.items() if isinstance(value, Media)}


def _unasked(call: PrepareCall) -> str:
    """Return why a run that nobody starts may not write without asking."""
    if not call.scheduled or call.request.approval != "never":
        return ""
    return (
        "approval: a scheduled run asks before it writes, because no person starts it; leave "
        "`never` out"
    )


def _wait_for_tools_of(plan: Any, call: PrepareCall, run_context: RunContext) -> None:
    with suppress(InvalidPlan):  # the check says what is wrong with it
        parsed = parse_plan(plan)
        if (call.request.on_failure or parsed.on_failure or "park") == "park":
            _wait_for(absent_tools(parsed, run_context))


def _wait_for(absent: dict[str, str]) -> None:
    """Raise McpUnavailable if tools are absent that may come. Not another attempt but the run
    decides whether it waits: the worker asks the server again by itself.
    """
    for name, reason in absent.items():
        more = ""
        if len(absent) > 1:
            more = f" (and {len(absent) - 1} more)"
        raise McpUnavailable(f"the tool {name} is unavailable: {reason}{more}")


def _unpack(text: str) -> dict[str, Any]:
    try:
        return unpack_plan(text)
    except ValueError as error:
        raise InvalidPlan([Problem("packed", (), str(error))]) from None


def _scripts_in(part: Any) -> Iterator[str]:
    """Yield the digests of all scripts that a plan brings."""
    if isinstance(part, list):
        for each in part:
            yield from _scripts_in(each)
    elif isinstance(part, dict):
        for name, each in part.items():
            if name == "script" and isinstance(each, str):
                yield digest_of(each.encode())
            else:
                yield from _scripts_in(each)
