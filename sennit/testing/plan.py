"""Runs a plan in a unit test: the checks, the scheduler and the binding of a run,
without server and waiting.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from sennit.activities.llm.models import Models
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.reader import ScriptReader
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.runs.check import PlanChecker
from sennit.activities.runs.conclusion import RunConcluder
from sennit.activities.runs.prepare import RunPreparer
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.documents import DocumentRule
from sennit.activities.storage.grants import Grants
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox import Registry, ToolContext, load_tools
from sennit.activities.toolbox.definition import Tool
from sennit.activities.toolbox.errors import ToolArgumentError
from sennit.testing.clock import VirtualLoop
from sennit.testing.play import PREFIX, RUN, Play
from sennit.testing.program import Fake, checked_value, fake_of, run_async
from sennit.workflows.messages.contracts import ConcludeCall, PrepareCall
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.messages.result import RunReport
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.nodes import ApprovalPolicy, ModelCall, OnFailure, ProgramNode
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, place_of
from sennit.workflows.plan.programs.vocabulary import WORDS
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import SUCCEEDED
from sennit.workflows.views.report import report_of
from sennit.workflows.views.shown_run import ShownRun

PEOPLE = ("ask", "approve", "repair")
_NO_TOOLS = (*WORDS, *PEOPLE)


def run_plan(
    plan: Mapping[str, Any],
    fakes: Mapping[str, Fake],
    /,
    *,
    tools: Sequence[str] = (),
    approval: ApprovalPolicy = "writes",
    on_failure: OnFailure | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> RunReport:
    """Return the report of a plan that runs with fakes, in virtual time: waits, timeouts, deadlines
    and pauses between attempts are exact, and take no time.

    `tools` are modules with tools of your own: their fakes get what the schemas allow, and their
    effects count. Built-in tools that neither read nor write run themselves. Raises InvalidPlan
    with every problem of the plan, and WrongFake for a fake that is missing, or has returned what a
    schema does not allow.
    """
    request = RunRequest(
        plan=_with_time(plan), inputs=dict(inputs or {}), approval=approval, on_failure=on_failure
    )
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_played(request, fakes, tools))


def _with_time(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan whose programs have a day: here, one is a single node, and not a node
    for each step and call.
    """
    nodes = plan.get("nodes")
    if not isinstance(nodes, Sequence):
        return dict(plan)
    patient: list[Any] = []
    for node in nodes:
        if isinstance(node, Mapping) and node.get("kind") == "program":
            node = {**node, "timeout": "24h"}
        patient.append(node)
    return {**plan, "nodes": patient}


async def _played(
    request: RunRequest, fakes: Mapping[str, Fake], modules: Sequence[str]
) -> RunReport:
    loop = cast("VirtualLoop", asyncio.get_running_loop())
    with TemporaryDirectory(prefix="sennit-test-") as folder, loop.work():
        # What a worker has, with a store of its own.
        place = Path(folder)
        DirectoryStore(place / "artifacts").create()
        store = DirectoryStore(place / "artifacts")
        library = ArtifactReader(store)
        documents = DocumentRule(place, (), Grants(None), RUN)
        registry = _registry(loop, fakes, modules)
        models = Models.of(ModelSettings())
        scripts = ScriptReader()
        async with Interpreter(scripts, trusts_scripts=True) as interpreter:
            # The plan is prepared and checked as in a run.
            checker = PlanChecker(store, library, models, interpreter, scripts)
            preparer = RunPreparer(library, registry, documents, models, checker)
            call = PrepareCall(run=RUN, first_run=RUN, request=request)
            prepared = await preparer.prepare(PREFIX, call, request.approval)
            checked = prepared.checked
            assert checked is not None
            if checked.problems:
                raise InvalidPlan([Problem("plan", (), problem) for problem in checked.problems])

            # Then this process carries out what the scheduler decides.
            words = _Words(loop, fakes)
            runner = NodeRunner(store, library, registry, words, words, place, documents)
            state = RunState(Graph(ExecutionPlan.unpack(checked.execution_plan)))
            if request.on_failure:
                state.on_failure = request.on_failure
            play = Play(loop, state, runner, checked.plan, fakes)
            with loop.rest():
                status = await play.to_the_end()

            refs: dict[str, str] = {}
            for node in state.graph.execution_plan.answer:
                if state.units[node].status == SUCCEEDED:
                    refs[state.path(node)] = state.units[node].digest or ""
            conclude = ConcludeCall(run=RUN, plan=checked.plan, refs=refs)
            conclusion = await RunConcluder(store, library).conclude(PREFIX, conclude)
    if status == "done" and conclusion.partial:
        status = "partial"
    report = report_of(ShownRun(state), status, conclusion, "")
    warnings = (*checked.warnings, *conclusion.warnings)
    return report.model_copy(update={"id": RUN, "warnings": warnings})


def _registry(loop: VirtualLoop, fakes: Mapping[str, Fake], modules: Sequence[str]) -> Registry:
    """Return the tools as the plan's check sees them, each with its fake."""
    found = {tool.name: tool for tool in load_tools(modules)}
    for name in fakes:
        if name not in found and name not in _NO_TOOLS:
            found[name] = Tool(
                name=name,
                description="a fake",
                effect="read",
                timeout=60.0,
                schema={"type": "object"},
                output_schema=None,
                function=fakes[name],
            )
    return Registry(_faked(loop, tool, fakes) for tool in found.values())


def _faked(loop: VirtualLoop, tool: Tool, fakes: Mapping[str, Fake]) -> Tool:
    if tool.effect == "pure" and tool.name not in fakes:
        return tool

    def call(**arguments: Any) -> Any:  # a fake is only missed when the plan calls it
        return fake_of(tool.name, fakes)(**arguments)

    parts = {field.name: getattr(tool, field.name) for field in fields(tool)}
    parts["function"] = partial(loop.in_its_time, call)
    parts["preview"] = None
    return _FakeTool(**parts)


class _FakeTool(Tool):
    """A tool that calls its fake here and now, and not in the threads of tools."""

    __slots__ = ()

    async def call(
        self,
        arguments: Mapping[str, Any],
        context: ToolContext,
        limit: asyncio.Timeout | None = None,
        *,
        isolated: bool = False,
    ) -> Any:
        del context, limit, isolated
        for where, sentence in violations(dict(arguments), self.schema):
            raise ToolArgumentError(f"{place_of(where) or 'arguments'}: {sentence}")
        value = await self.function(**arguments)
        if self.output_schema is not None:
            checked_value(value, self.output_schema, f"the fake of `{self.name}`")
        return value


class _Words:
    """The fakes of model calls, and programs with the fakes of what they call."""

    def __init__(self, loop: VirtualLoop, fakes: Mapping[str, Fake]) -> None:
        self._loop = loop
        self._fakes = fakes

    async def run(self, context: NodeContext, work: ModelCall) -> NodeOutput:
        prompt = str(context.binder.bound(f"{work.prompt} ")).rstrip()
        fake = fake_of("llm", self._fakes)
        value = await self._loop.in_its_time(fake, prompt, role=work.role, node=context.unit.path)
        if work.output_schema is not None:
            checked_value(value, work.output_schema, f"the fake of `llm` for {context.unit.path}")
        return NodeOutput(value)

    async def advance(self, context: NodeContext, *_: object) -> NodeOutput:
        node = context.node
        assert isinstance(node, ProgramNode)
        await context.binder.load(context.unit)
        arguments = context.binder.bound(node.arguments)
        with self._loop.rest():  # the script counts its own work
            return NodeOutput(await run_async(node.script, self._fakes, **arguments))
