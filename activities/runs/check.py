"""Checks plans, and compiles those that can run: too long for the workflow, and it
reads and writes artifacts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from sennit.activities.limits import MAX_EXECUTION_PLAN_BYTES, MAX_SHOWN_PROBLEMS
from sennit.activities.llm.models import Models
from sennit.activities.nodes.binding import parse_unit, work_at
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.pages import PlanTooLarge, page_after, page_of_plan
from sennit.activities.programs.reading import Read, Unreadable, ask, problem_of
from sennit.activities.prompts.planner import with_line_numbers
from sennit.activities.runs.absent_tools import absent_tools
from sennit.activities.runs.attachments import media_problems
from sennit.activities.runs.model_choice import (
    called_models,
    disallowed_models,
    longest_reply,
    model_problems,
    price_a_million,
    price_problems,
    price_warnings,
    queue_of,
    serving_models,
)
from sennit.activities.runs.plan_forecast import plan_forecast
from sennit.activities.runs.program_quote import quote_in_plan
from sennit.activities.storage.artifacts import ArtifactStore, digest_of, encode
from sennit.activities.storage.run_context import (
    ArtifactReader,
    RunContext,
    StoredPlan,
    plan_marker,
)
from sennit.workflows.messages.contracts import (
    AnswerCall,
    CheckResult,
    DraftCall,
    LoadCall,
    PlanPage,
    ReplanCall,
    ScriptCall,
    ToolLoopCall,
)
from sennit.workflows.plan.checking.inputs import bind_inputs, input_problems
from sennit.workflows.plan.checking.validation import parse_plan, problems_of
from sennit.workflows.plan.compile import forecast
from sennit.workflows.plan.compile.compiler import Keep, PlanCompiler
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan
from sennit.workflows.plan.edits.call_keys import same_plan
from sennit.workflows.plan.edits.merge import Delta, merge
from sennit.workflows.plan.edits.prefix import PlanPrefix, continued
from sennit.workflows.plan.edits.tool_loop import expand_tool_calls
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.dependencies import Links
from sennit.workflows.plan.language.facts import FactTooLarge, facts_of, facts_of_conditions
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.nodes import ModelCall, Plan, ProgramNode
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, place_of
from sennit.workflows.plan.programs.program_plan import policy_problems, problem_at, programs_of
from sennit.workflows.plan.programs.syntax import DOUBT

_WIDE = 2_000
"""Nodes that may be ready at once before a person hears of it."""


@dataclass(frozen=True, slots=True)
class Run:
    """The run whose plan is checked: where its artifacts are, and what it is bound to,
    with the digest of that.
    """

    prefix: str
    digest: str
    context: RunContext


@dataclass(frozen=True, slots=True)
class Progress:
    """The plan that a run works on, with its digest, and the outputs of its
    nodes that have ended.
    """

    plan: StoredPlan
    digest: str
    refs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanChecker:
    """Checks plans of runs on this worker."""

    store: ArtifactStore
    library: ArtifactReader
    models: Models
    interpreter: Interpreter
    read: Read

    async def check(self, run_prefix: str, call: DraftCall) -> CheckResult:
        """Check a draft that lies in the store, or a plan that a person has sent, and mark the plan
        of a planner with which the run begins: after a rejection the later one.

        Raises BodyMissing, StoreUnavailable; so do all checks.
        """
        run = await self._run(run_prefix, call.run_context)
        if call.plan is not None:
            return await self.check_draft(run, call.plan)
        draft = await self.library.value(run_prefix, call.draft)
        progress = None
        if call.base:
            progress = await self._progress(run_prefix, call)
        checked = await self.check_draft(run, draft, progress)
        if checked.problems:
            return checked

        marker = plan_marker(call.run_context)
        draft_name = call.draft.encode()
        if await self.store.mark(run_prefix, marker, draft_name) != draft_name:
            # A person has rejected the plan before. A reset and a fork begin with this
            # one, and not with that.
            await self.store.unmark(run_prefix, marker)
            await self.store.mark(run_prefix, marker, draft_name)
        return checked

    async def _progress(self, run_prefix: str, call: DraftCall) -> Progress:
        plan = await self.library.plan(run_prefix, call.base)
        return Progress(plan, call.base, call.refs)

    async def begin(
        self,
        run_prefix: str,
        digest: str,
        prefix: PlanPrefix,
        nodes: list[dict[str, Any]],
        base: str = "",
    ) -> PlanPage | None:
        """Add nodes to the beginning of a plan and return what of it may run and is not in the plan
        `base`; None if no more of it may than before.
        """
        run = await self._run(run_prefix, digest)
        if disallowed_models(nodes, run.context.models):
            return None  # the whole plan will be refused
        if not prefix.add(nodes, run.context.tools):
            return None
        progress = None
        if base:
            progress = Progress(await self.library.plan(run_prefix, base), base)
        checked = await self._checked(run, prefix.plan(), progress)
        if checked.problems:
            return None
        return checked.page or PlanPage(plan=checked.plan, specs=checked.execution_plan)

    async def load(self, run_prefix: str, call: LoadCall) -> CheckResult:
        """Return a plan checked before. Raises BodyMissing, StoreUnavailable."""
        checked = await self.library.plan(run_prefix, call.plan)
        return CheckResult(
            plan=call.plan, execution_plan=checked.execution_plan, warnings=checked.warnings
        )

    async def _run(self, prefix: str, digest: str) -> Run:
        context = await self.library.run_context(prefix, digest)
        return Run(prefix, digest, context)

    async def check_draft(
        self, run: Run, data: Any, progress: Progress | None = None, *, of_item: bool = False
    ) -> CheckResult:
        """Check a whole plan: a new one, or one to go on with after this progress. That of an item
        of a map may use the tools that Sennit alone writes into plans.
        """
        try:
            plan = parse_plan(data)
        except InvalidPlan as error:
            return refused(error.problems)
        longer = None
        if progress is not None:
            longer = continued(progress.plan.plan, plan)
        return await self._checked(
            run, longer or plan, progress, continues=longer is not None, every_tool=of_item
        )

    async def check_tool_calls(self, run_prefix: str, call: ToolLoopCall) -> CheckResult:
        """Go on with the tool calls, or the summaries, that a model asks for: each
        call is checked by itself.
        """
        run = await self._run(run_prefix, call.run_context)
        base = await self.library.plan(run_prefix, call.base)
        asked = await self.library.value(run_prefix, call.draft)
        longer = _with_calls(base, run.context, call, asked)
        try:
            page = await page_after(self.library, compiler_of, run.prefix, call.base, longer)
        except PlanTooLarge as error:
            return CheckResult(problems=(str(error),))
        return CheckResult(page=page)

    async def check_replan(self, run_prefix: str, call: ReplanCall) -> CheckResult:
        """Check a plan with what a joiner wants to add. A request for nothing new is
        refused: it leads nowhere.
        """
        run = await self._run(run_prefix, call.run_context)
        progress = await self._progress(run_prefix, call)
        base = progress.plan.plan
        asked = await self.library.value(run_prefix, call.draft)
        delta = Delta.of(asked)
        beyond = await model_problems(self.read, delta.nodes, run.context.models)
        if beyond:
            return CheckResult(problems=tuple(beyond))
        merged = merge(base, delta)
        if not isinstance(merged, Plan):
            return refused(merged)
        checked = await self._checked(run, merged, progress)
        if checked.problems:
            names = merged.ids
            problems = [with_line_numbers(problem, names) for problem in checked.problems]
            return CheckResult(problems=tuple(problems))
        if same_plan(base, merged):
            return refused(
                (
                    Problem(
                        "same_plan", (), "the new nodes only repeat calls that were made already"
                    ),
                )
            )
        return checked

    async def check_script(self, run_prefix: str, call: ScriptCall) -> CheckResult:
        """Check another script for a program, and keep the program with it as a plan of its own."""
        run = await self._run(run_prefix, call.run_context)
        base = await self.library.plan(run_prefix, call.base)
        program = base.node(call.node)
        assert isinstance(program, ProgramNode)
        node = program.model_copy(update={"script": call.script})
        plan = base.plan.model_copy(update={"nodes": (node,)})

        # Types are only worth a look in a script that can run.
        problems = await self._program_problems(plan, run.context.catalogue)
        if not problems:
            problems = await self._type_problems(plan, run.context.catalogue)
        in_script = [_of_script(problem) for problem in problems]
        wrong, doubts = _parted(in_script)
        if wrong:
            return refused(wrong)

        quote = await quote_in_plan(self.read, node, run.context, base.inputs)
        spec = replace(base.spec(call.node), script="", quote=quote)
        packed = ExecutionPlan([spec], []).pack()
        # A copy would keep what is cached.
        fields = {name: getattr(base, name) for name in StoredPlan.model_fields}
        fields["plan"] = plan
        fields["execution_plan"] = packed
        fields["repeat_writes"] = call.repeat_writes
        edited = StoredPlan.model_construct(**fields)
        kept = await self.library.keep(run.prefix, edited)
        return CheckResult(plan=kept, execution_plan=packed, warnings=tuple(map(str, doubts)))

    async def check_answer(self, run_prefix: str, call: AnswerCall) -> CheckResult:
        """Check what a person gives as the result of a model call."""
        base = await self.library.plan(run_prefix, call.base)
        unit = parse_unit(call.node)
        work = work_at(base.node(unit.id), unit)
        if not isinstance(work, ModelCall) or not work.output_schema:
            return CheckResult()
        sentences: list[str] = []
        for where, sentence in violations(call.answer, work.output_schema, ("value",)):
            sentences.append(f"{place_of(where)}: {sentence}")
        return CheckResult(problems=tuple(sentences[:MAX_SHOWN_PROBLEMS]))

    async def _checked(
        self,
        run: Run,
        plan: Plan,
        progress: Progress | None = None,
        *,
        continues: bool = True,
        every_tool: bool = False,
    ) -> CheckResult:
        """Check and compile a plan. After some progress it `continues` the plan so
        far, or takes its place.
        """
        if not continues:
            progress = None
        links = [dependencies.links_of(node) for node in plan.nodes]
        every_tool = every_tool or progress is not None
        problems = await self._problems(run.context, plan, links, every_tool=every_tool)
        wrong, doubts = _parted(problems)
        if wrong:
            return refused([*_unavailable(plan, run.context), *wrong])
        execution_plan = await self._compiled(run, plan, links)
        if len(execution_plan) > MAX_EXECUTION_PLAN_BYTES:
            size = f"the plan is {len(execution_plan):,} bytes packed; use `map` for repeated nodes"
            return refused((Problem("too_large", (), size),))

        warnings = (
            *_warnings(plan),
            *map(str, doubts[:MAX_SHOWN_PROBLEMS]),
            *_absences(run.context),
            *price_warnings(run.context.models, plan),
            *self.models.notes(called_models(run.context.models, plan)),
            *_settings_without_effect(self.models, run.context, plan),
        )
        checked = _stored(run, plan, execution_plan, warnings)
        digest = await self.library.keep(run.prefix, checked)
        if progress is not None:
            return await self._page(run.prefix, digest, checked, progress)
        takes = ""
        if run.context.approve_plan:
            takes = plan_forecast(plan, ExecutionPlan.unpack(execution_plan))
        return CheckResult(
            plan=digest, execution_plan=execution_plan, warnings=warnings, forecast=takes
        )

    async def _problems(
        self, run_context: RunContext, plan: Plan, links: Sequence[Links], *, every_tool: bool
    ) -> list[Problem]:
        """Return what is wrong with a plan, or else what its types make doubtful. With `every_tool`
        it may use those that are not there now: its beginning may have used them.
        """
        catalogue = run_context.catalogue
        if every_tool:
            catalogue = list(run_context.tools.values())
        problems = problems_of(plan, catalogue, models=self.models.providers, links=links)
        problems += input_problems(plan, run_context.inputs)
        inputs = bind_inputs(plan, run_context.inputs)
        problems += media_problems(run_context.models, plan, inputs)
        problems += await self._program_problems(plan, run_context.catalogue)
        if run_context.priced:
            problems += price_problems(run_context.models, plan)
        if problems:
            return problems
        return await self._type_problems(plan, run_context.catalogue)

    async def _page(
        self, run_prefix: str, digest: str, checked: StoredPlan, progress: Progress
    ) -> CheckResult:
        """Return what a checked plan has behind that which has run so far."""
        try:
            facts, awaits = await self._new_facts(run_prefix, progress, checked.wanted)
        except FactTooLarge as error:
            return refused((Problem("facts", (), str(error)),))
        whole = ExecutionPlan.unpack(checked.execution_plan)
        old = progress.plan.plan.ids
        fallbacks: dict[str, dict[str, Any]] = {}
        for spec in whole.specs[: len(old)]:
            if spec.id in awaits and spec.fallback is not None:
                _, _, facts_of_fallback = spec.fallback
                fallbacks[spec.id] = facts_of_fallback
        page = page_of_plan(digest, progress.digest, whole, old)
        page = page.model_copy(update={"facts": facts, "fallbacks": fallbacks})
        return CheckResult(page=page, awaits=awaits, warnings=checked.warnings)

    async def _type_problems(self, plan: Plan, catalogue: list[dict[str, Any]]) -> list[Problem]:
        """Return what the types of a plan's scripts do not allow, and what is only
        suspected, with the code DOUBT.
        """
        programs = list(programs_of(plan))
        if not programs:
            return []
        stubs = await ask(self.read, "stubs", catalogue)
        problems: list[Problem] = []
        for place, node in programs:
            tools = _named(node.script, catalogue)
            doubts = await ask(self.read, "doubts", node.script, tools)
            in_script = [Problem(*doubt) for doubt in doubts]
            in_script += await self.interpreter.type_problems(node.script, stubs)
            for problem in in_script:
                where = ("script", *problem.where)
                in_node = Problem(problem.code, where, problem.message)
                problems.append(problem_at(place, in_node, node.script))
        return problems

    async def _program_problems(self, plan: Plan, catalogue: list[dict[str, Any]]) -> list[Problem]:
        """Return what is wrong with the scripts of a plan and their arguments:
        `program_problems`, read elsewhere.
        """
        problems: list[Problem] = []
        for place, node in programs_of(plan):
            for problem in policy_problems(node):
                problems.append(problem_at(place, problem, node.script))
            tools = _named(node.script, catalogue)
            arguments = list(node.arguments)
            try:
                in_script = await ask(self.read, "problems", node.script, arguments, tools)
            except Unreadable as error:
                large = problem_of(error)
                in_script = [(large.code, ("script", *large.where), large.message)]
            for code, where, message in in_script:
                problem = Problem(code, tuple(where), message)
                problems.append(problem_at(place, problem, node.script))
        return problems

    async def _new_facts(
        self, run_prefix: str, progress: Progress, wanted: dict[str, list[str]]
    ) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
        """Return the facts of nodes that have ended which only the new plan asks for, and the
        others it asks facts of.

        Raises FactTooLarge.
        """
        facts: dict[str, dict[str, Any]] = {}
        awaits: list[str] = []
        for node in progress.plan.plan.nodes:
            name = node.id
            names = facts_of_conditions(wanted.get(name, []))
            if names == facts_of_conditions(progress.plan.wanted.get(name, [])):
                continue
            if name not in progress.refs:
                awaits.append(name)
                continue
            value = await self.library.value(run_prefix, progress.refs[name])
            try:
                facts[name] = facts_of(value, names)
            except FactTooLarge as error:
                raise FactTooLarge(f"a condition tests `${name}`, but {error}") from None
        return facts, tuple(awaits)

    async def _compiled(self, run: Run, plan: Plan, links: Sequence[Links]) -> str:
        kept: list[bytes] = []

        def keep(value: Any) -> tuple[str, int]:
            body = encode(value)
            kept.append(body)
            return digest_of(body), len(body)

        compiled = compiler_of(plan, run.context, keep).execution_plan(None, links)
        inputs = bind_inputs(plan, run.context.inputs)
        for node, spec in zip(plan.nodes, compiled.specs, strict=True):
            if isinstance(node, ProgramNode):
                spec.quote = await quote_in_plan(self.read, node, run.context, inputs)
                spec.approval = run.context.approve_plan
        for body in kept:
            await self.store.put(run.prefix, body)
        return compiled.pack()


def _stored(run: Run, plan: Plan, execution_plan: str, warnings: tuple[str, ...]) -> StoredPlan:
    """Return a checked plan as it lies in the store."""
    return StoredPlan(
        run_context=run.digest,
        goal=run.context.goal or plan.goal or "",
        docs=run.context.docs,
        inputs=bind_inputs(plan, run.context.inputs),
        material=run.context.material,
        plan=plan,
        execution_plan=execution_plan,
        wanted=dependencies.facts_wanted(plan),
        models=run.context.models,
        settings=run.context.settings,
        history=run.context.history,
        instructions=run.context.instructions,
        attached=run.context.attached,
        warnings=warnings,
    )


def _settings_without_effect(
    models: Models, run_context: RunContext, plan: Plan
) -> tuple[str, ...]:
    """Return a warning for each setting that a model which a plan calls is
    known to take none of.
    """
    warnings: dict[str, None] = {}
    for node in plan.nodes:
        for _, work in dependencies.works_of(node):
            if isinstance(work, ModelCall):
                settings = run_context.settings_of(work.role).under(work.settings)
                names = serving_models(run_context.models, work)
                warnings |= dict.fromkeys(models.lacking(names, settings))
    return tuple(warnings)[:MAX_SHOWN_PROBLEMS]


def compiler_of(plan: Plan, run_context: RunContext, keep: Keep) -> PlanCompiler:
    """Return the compiler of a plan of a run; `keep` stores its fallback values."""

    def longest(call: ModelCall) -> int:
        settings = run_context.settings_of(call.role).under(call.settings)
        return longest_reply(run_context.models, settings.max_tokens, call)

    return PlanCompiler(
        plan,
        run_context.tools,
        inputs=bind_inputs(plan, run_context.inputs),
        keep=keep,
        goal=run_context.goal or plan.goal,
        docs=_real(run_context.docs),
        queues=partial(queue_of, run_context.models, run_context.tools),
        prices=partial(price_a_million, run_context.models),
        replies=longest,
        approval=run_context.approval,
    )


def _with_calls(
    base: StoredPlan, run_context: RunContext, call: ToolLoopCall, body: dict[str, Any]
) -> Plan:
    """Return the plan with the tool calls that a model asks for in `body`."""
    unit = parse_unit(call.node)
    return expand_tool_calls(
        base.plan,
        unit.id,
        unit.generation,
        body["calls"],
        call.draft,
        run_context.tools,
        body.get("outputs", {}),
        body.get("workspace"),
        body.get("running", ()),
    )


def _parted(problems: Sequence[Problem]) -> tuple[list[Problem], list[Problem]]:
    """Return what is wrong, and what is only in doubt: doubts are warnings
    of a plan that may run.
    """
    wrong: list[Problem] = []
    doubts: list[Problem] = []
    for problem in problems:
        if problem.code == DOUBT:
            doubts.append(problem)
        else:
            wrong.append(problem)
    return wrong, doubts


def _of_script(problem: Problem) -> Problem:
    """Return a problem of the only node of a plan as one of its script:
    without the node's place.
    """
    if problem.where[:1] == ("line",):
        return problem
    _, _, *place = problem.where
    if place[0] == "script":
        place = place[1:]
    return Problem(problem.code, tuple(place), problem.message)


def _named(script: str, catalogue: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the tools by name. Only a tool that the script may name comes with its
    schemas: they are long.
    """
    tools: dict[str, Any] = {}
    for entry in catalogue:
        name = entry["name"]
        tools[name] = None
        if name in script:
            tools[name] = {key: entry.get(key) for key in ("schema", "output_schema", "large")}
    return tools


def _real(docs: str | None) -> str | None:
    if not docs:
        return None
    return str(Path(docs).resolve())


def refused(problems: Sequence[Problem]) -> CheckResult:
    """Return problems as a check's result."""
    sentences = [str(problem) for problem in problems[:MAX_SHOWN_PROBLEMS]]
    if len(problems) > MAX_SHOWN_PROBLEMS:
        sentences.append(f"... and {len(problems) - MAX_SHOWN_PROBLEMS} more")
    return CheckResult(problems=tuple(sentences))


def _unavailable(plan: Plan, run_context: RunContext) -> Iterator[Problem]:
    for name, reason in absent_tools(plan, run_context).items():
        yield Problem("unavailable", (), f"the tool {name} is unavailable: {reason}")


def _absences(run_context: RunContext) -> tuple[str, ...]:
    """Return which tools a planner did not know of because they were not there."""
    if not run_context.goal:
        return ()
    sentences: list[str] = []
    for reason in run_context.absences.values():
        sentences.append(f"planned without tools that were unavailable: {reason}")
    return tuple(sentences)


def _warnings(plan: Plan) -> tuple[str, ...]:
    if len(plan.nodes) <= _WIDE:
        return ()
    width = forecast.width(plan)
    if width <= _WIDE:
        return ()
    return (f"{width} nodes may be ready at once; a `map` says the same in one node",)
