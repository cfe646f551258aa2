"""Opens a run and checks its plans: what the workflow must not do itself, because it is I/O or takes long."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from activities.llm.call import OFFLINE
from activities.llm.models import Models
from activities.nodes.binding import parse_address
from activities.nodes.documents import DocumentRule
from activities.prompts.planner import with_line_numbers
from activities.runs.model_choice import needs_default_models, price_a_million, price_warnings, queue_of
from activities.runs.model_policy import disallowed_models
from activities.storage.artifacts import ArtifactStore, digest_of, encode
from activities.storage.run_context import ArtifactReader, RunContext, StoredPlan
from activities.toolbox import Registry
from workflows.messages import queues
from workflows.messages.contracts import CheckCall, CheckResult, LoadCall, PrepareCall, PreparedRun
from workflows.plan.checking.inputs import bind_inputs, input_problems
from workflows.plan.checking.validation import parse_plan, problems_of
from workflows.plan.compile import forecast
from workflows.plan.compile.compiler import PlanCompiler
from workflows.plan.edits.merge import Delta, merge, same_plan
from workflows.plan.edits.prefix import continued, startable
from workflows.plan.edits.summaries import with_summaries
from workflows.plan.edits.tool_loop import expand_tool_calls
from workflows.plan.language import dependencies
from workflows.plan.language.facts import FactTooLarge, facts_of
from workflows.plan.language.nodes import Excerpt, Plan
from workflows.plan.language.packing import unpack_plan
from workflows.plan.language.problems import InvalidPlan, Problem
from workflows.plan.language.text import format_name, format_names

SHOWN_PROBLEMS = 40
WHY_CHARACTERS = 500
SKELETON_BYTES = 1_500_000


@dataclass(frozen=True, slots=True)
class Ran:
    """The plan that a run works on, and the outputs of its nodes that have ended."""

    plan: StoredPlan
    refs: dict[str, str]


@dataclass(frozen=True, slots=True)
class RunPreparer:
    """Prepares runs on this worker."""

    store: ArtifactStore
    library: ArtifactReader
    registry: Registry
    documents: DocumentRule
    models: Models

    async def prepare(self, run_prefix: str, call: PrepareCall) -> PreparedRun:
        """Store the charter and, when the run brings its plan, check it.

        The models are chosen here, once, so that every worker calls the same. Raises DocsNotFound, StoreUnavailable,
        and ProviderError when a model must be chosen and cannot.
        """
        folder = self.documents.folder(call.docs)
        given = call.plan is not None or call.plan_packed is not None
        try:
            plan = call.plan if call.plan is not None else _unpack(call.plan_packed or "") if given else None
            refused: CheckResult | None = None
        except InvalidPlan as error:
            plan, refused = {}, _refused(error.problems)
        models = await self.models.chosen() if plan is None or needs_default_models(plan) else self.models.wanted()
        charter = RunContext(
            goal=call.goal,
            inputs=call.inputs,
            docs=str(folder) if folder else None,
            approval=call.approval,
            catalogue=[
                entry for entry in self.registry.catalogue() if call.tools is None or entry["name"] in call.tools
            ],
            models={role: list(names) for role, names in models.items()},
            given=await self.library.adopt(run_prefix, call.given) if call.given else "",
        )
        digest = await self.library.keep(run_prefix, charter)
        unknown = [name for name in call.tools or () if name not in self.registry]
        if unknown:
            known = format_names(sorted(entry["name"] for entry in self.registry.catalogue()))
            problem = f"tools: unknown tool {', '.join(map(format_name, unknown))}; known: {known}"
            return PreparedRun(charter=digest, checked=CheckResult(problems=(problem,)))
        if plan is None:
            model = charter.models["planner"][0]
            return PreparedRun(charter=digest, planner=queues.llm_queue(model), streams=model not in OFFLINE)
        return PreparedRun(charter=digest, checked=refused or await self._check(run_prefix, digest, charter, plan))

    async def check(self, run_prefix: str, call: CheckCall) -> CheckResult:
        """Check a draft that lies in the store. Raises BodyMissing, StoreUnavailable."""
        charter = await self.library.charter(run_prefix, call.charter)
        draft = await self.library.value(run_prefix, call.draft)
        base = await self.library.plan(run_prefix, call.base) if call.base else None
        if base is None:
            return await self._check(run_prefix, call.charter, charter, draft)
        ran = Ran(base, call.refs)
        if call.adds == "calls":
            return await self._checked(run_prefix, call.charter, charter, _with_calls(base, charter, call, draft), ran)
        if call.adds == "replan":
            return await self._grown(run_prefix, call.charter, charter, draft, ran)
        return await self._check(run_prefix, call.charter, charter, draft, ran)

    async def begin(self, run_prefix: str, digest: str, nodes: list[dict[str, Any]]) -> CheckResult | None:
        """Check what of a plan's first nodes may run before the rest is written; None when nothing may."""
        charter = await self.library.charter(run_prefix, digest)
        try:
            written = parse_plan({"nodes": nodes, "answer": None})
        except InvalidPlan:
            return None
        begun = startable(list(written.nodes), charter.tools)
        if not begun:
            return None
        ids = [f"${node.id}" for node in begun]
        plan = written.model_copy(update={"nodes": tuple(begun), "answer": ids})
        checked = await self._checked(run_prefix, digest, charter, plan)
        return None if checked.problems else checked

    async def load(self, run_prefix: str, call: LoadCall) -> CheckResult:
        """Return a plan checked before. Raises BodyMissing, StoreUnavailable."""
        checked = await self.library.plan(run_prefix, call.plan)
        return CheckResult(plan=call.plan, execution_plan=checked.execution_plan, warnings=checked.warnings)

    async def _check(
        self, run_prefix: str, digest: str, charter: RunContext, data: Any, ran: Ran | None = None
    ) -> CheckResult:
        try:
            plan = parse_plan(data)
        except InvalidPlan as error:
            return _refused(error.problems)
        longer = continued(ran.plan.plan, plan) if ran is not None else None
        return await self._checked(run_prefix, digest, charter, longer or plan, ran, continues=longer is not None)

    async def _grown(self, run_prefix: str, digest: str, charter: RunContext, wish: Any, ran: Ran) -> CheckResult:
        """Check a plan with what a joiner wishes to add; a wish for nothing new is refused, for it leads nowhere."""
        base, delta = ran.plan.plan, Delta.of(wish)
        if beyond := disallowed_models(delta.nodes, charter.models):
            return CheckResult(problems=tuple(beyond))
        merged = merge(base, delta)
        if not isinstance(merged, Plan):
            return _refused(merged)
        if same_plan(base, merged):
            return _refused((Problem("same_plan", (), "the new nodes only repeat calls that were made already"),))
        checked = await self._checked(run_prefix, digest, charter, merged, ran)
        if checked.problems:
            names = [node.id for node in merged.nodes]
            return CheckResult(problems=tuple(with_line_numbers(problem, names) for problem in checked.problems))
        more = forecast.tokens(merged.nodes) - forecast.tokens(base.nodes)
        return checked.model_copy(update={"why": delta.why[:WHY_CHARACTERS], "tokens": more})

    async def _checked(
        self,
        run_prefix: str,
        digest: str,
        charter: RunContext,
        plan: Plan,
        ran: Ran | None = None,
        *,
        continues: bool = True,
    ) -> CheckResult:
        """Return the verdict on a plan. Where it is given what has `ran`, it `continues` that, or takes its place."""
        catalogue = list(charter.tools.values()) if ran is not None and continues else charter.catalogue
        problems = problems_of(plan, catalogue, models=self.models.providers)
        problems += input_problems(plan, charter.inputs)
        if problems:
            return _refused(tuple(problems))
        execution_plan = await self._skeleton(run_prefix, charter, plan)
        if len(execution_plan) > SKELETON_BYTES:
            size = Problem(
                "too_large", (), f"the plan is {len(execution_plan):,} bytes packed; use `map` for repeated nodes"
            )
            return _refused((size,))
        checked = StoredPlan(
            charter=digest,
            goal=charter.goal or plan.goal or "",
            docs=charter.docs,
            inputs=bind_inputs(plan, charter.inputs),
            plan=plan,
            execution_plan=execution_plan,
            wanted=dependencies.facts_wanted(plan),
            models=charter.models,
            warnings=(*_warnings(plan), *price_warnings(charter.models, plan)),
        )
        verdict = CheckResult(
            plan=await self.library.keep(run_prefix, checked), execution_plan=execution_plan, warnings=checked.warnings
        )
        if ran is None or not continues:
            return verdict
        try:
            facts, awaits = await self._asked(run_prefix, ran, checked.wanted)
        except FactTooLarge as error:
            return _refused((Problem("facts", (), str(error)),))
        return verdict.model_copy(update={"continues": True, "facts": facts, "awaits": awaits})

    async def _asked(
        self, run_prefix: str, ran: Ran, wanted: dict[str, list[str]]
    ) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
        """Return the facts of nodes that have ended which only the new plan asks for, and the others it asks facts of.

        Raises FactTooLarge.
        """
        facts, awaits = {}, []
        for node in ran.plan.plan.nodes:
            name, names = node.id, wanted.get(node.id, [])
            if names == ran.plan.wanted.get(name, []):
                continue
            if name not in ran.refs:
                awaits.append(name)
                continue
            try:
                facts[name] = facts_of(await self.library.value(run_prefix, ran.refs[name]), names)
            except FactTooLarge as error:
                raise FactTooLarge(f"a condition tests `${name}`, but {error}") from None
        return facts, tuple(awaits)

    async def _skeleton(self, run_prefix: str, charter: RunContext, plan: Plan) -> str:
        kept: list[bytes] = []

        def keep(value: Any) -> tuple[str, int]:
            kept.append(encode(value))
            return digest_of(kept[-1]), len(kept[-1])

        annotator = PlanCompiler(
            plan,
            charter.tools,
            inputs=bind_inputs(plan, charter.inputs),
            keep=keep,
            goal=charter.goal or plan.goal,
            docs=_real(charter.docs),
            queues=partial(queue_of, charter.models, charter.tools),
            prices=partial(price_a_million, charter.models),
            approval=charter.approval,
        )
        packed = annotator.execution_plan(None).pack()
        for body in kept:
            await self.store.put(run_prefix, body)
        return packed


def _with_calls(base: StoredPlan, charter: RunContext, call: CheckCall, body: dict[str, Any]) -> Plan:
    """Return the plan with the summaries or the tool calls that a model asks for in `body`."""
    address = parse_address(call.node)
    if "excerpts" in body:
        excerpts = [Excerpt.model_validate(each) for each in body["excerpts"]]
        return with_summaries(base.plan, address.id, address.generation, excerpts)
    outputs = body.get("outputs", {})
    return expand_tool_calls(
        base.plan, address.id, address.generation, body["calls"], call.draft, charter.tools, outputs
    )


def _real(docs: str | None) -> str | None:
    return str(Path(docs).resolve()) if docs else None


def _refused(problems: tuple[Problem, ...]) -> CheckResult:
    shown = [str(problem) for problem in problems[:SHOWN_PROBLEMS]]
    if len(problems) > SHOWN_PROBLEMS:
        shown.append(f"... and {len(problems) - SHOWN_PROBLEMS} more")
    return CheckResult(problems=tuple(shown))


def _warnings(plan: Plan) -> tuple[str, ...]:
    width = forecast.width(plan)
    return (f"{width} nodes may be ready at once; a `map` says the same in one node",) if width > 2_000 else ()


def _unpack(text: str) -> dict[str, Any]:
    try:
        return unpack_plan(text)
    except ValueError as error:
        raise InvalidPlan([Problem("packed", (), str(error))]) from None
