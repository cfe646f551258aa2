"""What an edit or a fork would do: the run is played on in memory, over what is recorded,
and nothing is changed.
"""

import asyncio
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError

from sennit.activities.limits import MAX_DRY_RUN_SECONDS
from sennit.activities.llm.models import Models
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.programs.advance import Programs
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.reading import Read
from sennit.activities.runs.approvals import ApprovalRule
from sennit.activities.runs.check import PlanChecker, Run, compiler_of
from sennit.activities.runs.conversation import Conversation
from sennit.activities.runs.fates import EarlierCalls, FateReader
from sennit.activities.runs.outputs import run_prefix_of
from sennit.activities.runs.prepare import RunPreparer
from sennit.activities.runs.rehearsal import Rehearsal, RunPlace
from sennit.activities.storage.artifacts import ArtifactStore
from sennit.activities.storage.documents import DocumentRule
from sennit.activities.storage.run_context import ArtifactReader, plan_marker
from sennit.activities.storage.scratch import ScratchFull, ScratchStore
from sennit.activities.toolbox import Registry
from sennit.workflows.limits import MAX_STATE_BYTES, MAX_STATE_PART_BYTES
from sennit.workflows.messages.contracts import CheckResult, PrepareCall, ScriptCall
from sennit.workflows.messages.dry_run import DryRunCall, DryRunReport, RunStatePart, RunStateView
from sennit.workflows.messages.request import RunRequest, parse_request
from sennit.workflows.messages.updates import EditProgram
from sennit.workflows.plan.language.nodes import ModelCall
from sennit.workflows.plan.scheduling.events import BudgetRaised, Event, ProgramEdited, RunStarted
from sennit.workflows.plan.scheduling.snapshot import load
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.run.outcomes import graph_of, plan_of
from sennit.workflows.run.update_rules import judge

_MOST_CHANGES = 5
"""How often a run may have gone on while its state was read."""


class NoState(Exception):
    """Why a run does not say where it stands."""


class _NoModels:
    """Stands where a dry run would call models."""

    async def run(self, context: NodeContext, work: ModelCall) -> NodeOutput:
        """Call nothing."""
        raise AssertionError(f"a dry run calls no model: {context.unit.path} {work.role}")


@dataclass(frozen=True, slots=True)
class DryRunner:
    """Plays edits and forks with the tools, models and documents of this worker."""

    store: ArtifactStore
    registry: Registry
    models: Models
    documents: DocumentRule
    approvals: ApprovalRule
    interpreter: Interpreter
    read: Read
    cache: Path
    turns: asyncio.Semaphore

    async def play(self, client: Client, call: DryRunCall) -> DryRunReport:
        """Return what becomes of each call. Nothing is called, claimed or stored, and what it keeps
        in memory goes with it. After `MAX_DRY_RUN_SECONDS` it says what it knows by then.

        Raises what `RunPreparer.prepare` raises, RPCError if the server does not answer,
        BodyMissing, StoreUnavailable.
        """
        async with self.turns:
            play = _Play(self, ScratchStore(self.store), client)
            try:
                if call.request is None:
                    return await play.edit(call)
                return await play.fork(call, parse_request(call.request))
            except NoState as error:
                return DryRunReport(stopped=str(error))


class _Play:
    """One dry run, with a store of its own."""

    def __init__(self, worker: DryRunner, store: ScratchStore, client: Client) -> None:
        self._worker = worker
        self._client = client
        self._store = store
        self._library = library = ArtifactReader(store)
        models, interpreter = worker.models, worker.interpreter
        self._checker = PlanChecker(store, library, models, interpreter, worker.read)
        programs = Programs(library, interpreter, compiler_of, models.providers)
        self._runner = NodeRunner(
            store, library, worker.registry, _NoModels(), programs, worker.cache, worker.documents
        )

    async def edit(self, call: DryRunCall) -> DryRunReport:
        """Play a run on with another script of its program."""
        view, place = await self._standing(call.workflow)
        state = load(graph_of(view.graph), view.state)
        update = EditProgram(node=call.node, script=call.script, repeat_writes=call.repeat_writes)
        verdict = judge(state, update)
        if state.ended or not isinstance(verdict.event, ProgramEdited):
            return DryRunReport(problems=(verdict.rejection or "the run has ended",))

        # The script is checked, and its program kept as a plan of its own, as the update does it.
        unit = verdict.event.unit
        checked = await self._checked_script(state, unit, call, view, place)
        if checked.problems:
            return DryRunReport(problems=checked.problems)
        [spec] = plan_of(checked.execution_plan).specs
        earlier = EarlierCalls(state, place, unit)
        played = Rehearsal(state, self._runner, place)
        event = ProgramEdited(unit, checked.plan, call.script, spec.quote)
        return await self._report(FateReader(played, self._library, earlier, unit), event)

    async def _checked_script(
        self, state: RunState, unit: int, call: DryRunCall, view: RunStateView, place: RunPlace
    ) -> CheckResult:
        """Check a script for a program of a run."""
        fields: dict[str, Any] = {}
        if call.repeat_writes:
            fields["repeat_writes"] = True
        base = state.spec_of(unit).page or view.plan
        script = ScriptCall(
            run=place.run,
            run_context=view.run_context,
            base=base,
            node=state.path(unit),
            script=call.script,
            **fields,
        )
        return await self._checker.check_script(place.prefix, script)

    async def fork(self, call: DryRunCall, request: RunRequest) -> DryRunReport:
        """Play a run that forks another one. Its name is one that no run has."""
        misused = request.fields_of_subagents()
        if misused:
            problems = [f"{name}: only a sub-agent has it" for name in misused]
            return DryRunReport(problems=tuple(problems))
        run = str(uuid.uuid4())
        place = RunPlace(self._client.namespace, run, "", origins=request.origins)
        checked = await self._prepared(call, request, place)
        if checked is None:
            return DryRunReport(
                stopped="its planner may write another plan: what that calls is not known yet"
            )
        if checked.problems:
            return DryRunReport(problems=checked.problems)

        # The state is that of a run which begins, with what its budget allows.
        place = RunPlace(place.namespace, run, checked.plan, origins=request.origins)
        graph = graph_of(checked.execution_plan)
        state = RunState(graph, on_failure=request.on_failure, forks=bool(request.origins))
        if request.budget is not None:
            step(state, BudgetRaised(request.budget.amounts()))
        played = Rehearsal(state, self._runner, place)
        earlier = await self._calls_of(call.workflow)
        return await self._report(FateReader(played, self._library, earlier), RunStarted())

    async def _prepared(
        self, call: DryRunCall, request: RunRequest, place: RunPlace
    ) -> CheckResult | None:
        """Return the plan with which a fork begins, None if only a planner can tell."""
        worker, library = self._worker, self._library
        opens = PrepareCall(run=place.run, first_run=place.run, request=request)
        conversation = Conversation(library)
        history = await conversation.adopt(self._client, place.prefix, opens)
        preparer = RunPreparer(
            library, worker.registry, worker.documents, worker.models, self._checker
        )
        approval = worker.approvals.without_run(request.approval, is_granted=call.is_granted)
        prepared = await preparer.prepare(place.prefix, opens, approval, history)
        if prepared.checked is not None:
            return prepared.checked
        run_context = await library.run_context(place.prefix, prepared.run_context)
        run = Run(place.prefix, prepared.run_context, run_context)
        for origin in request.origins:
            home = f"{place.namespace}/{origin}"
            draft = await self._store.marked(home, plan_marker(prepared.run_context))
            if draft is not None:
                plan = await library.value(home, draft.decode())
                return await self._checker.check_draft(run, plan)
        return None

    async def _calls_of(self, workflow: str) -> EarlierCalls | None:
        """Return the calls of the run that is forked, None if it does not say any
        more which it has made.
        """
        try:
            view, place = await self._standing(workflow)
        except (NoState, RPCError):
            return None
        return EarlierCalls(load(graph_of(view.graph), view.state), place)

    async def _report(self, reader: FateReader, event: Event) -> DryRunReport:
        stopped = ""
        try:
            async with asyncio.timeout(MAX_DRY_RUN_SECONDS):
                await reader.played.play(event)
        except TimeoutError:
            stopped = f"it took more than {MAX_DRY_RUN_SECONDS:.0f} s"
        except ScratchFull as error:
            stopped = str(error)
        return await reader.report(stopped=stopped)

    async def _standing(self, workflow: str) -> tuple[RunStateView, RunPlace]:
        """Return where a run stands, by its own word, and where it keeps what it
        stores, by the server's.

        Raises NoState, RPCError.
        """
        prefix = await run_prefix_of(self._client, workflow)
        text = await self._state_text(workflow)
        view = RunStateView.model_validate_json(text)
        place = RunPlace(self._client.namespace, prefix, view.plan, view.epoch, view.origins)
        return view, place

    async def _state_text(self, workflow: str) -> str:
        """Return the state of a run, whole. Raises NoState."""
        for _ in range(_MOST_CHANGES):
            first = await self._part(workflow, 0)
            if first.parts * MAX_STATE_PART_BYTES > MAX_STATE_BYTES:
                raise NoState("the run has made too many calls for a dry run")
            parts = [first]
            while len(parts) < first.parts and parts[-1].digest == first.digest:
                parts.append(await self._part(workflow, len(parts)))
            if parts[-1].digest == first.digest:
                return "".join(part.body for part in parts)
        raise NoState("the run goes on too fast for a dry run")

    async def _part(self, workflow: str, number: int) -> RunStatePart:
        try:
            found = await self._client.get_workflow_handle(workflow).query(
                "state", {"part": number}
            )
        except WorkflowQueryFailedError as error:
            raise NoState(f"the run does not say where it stands: {error}") from None
        if not isinstance(found, dict):
            raise NoState("its answer has another form")
        if "problem" in found:
            raise NoState(str(found["problem"]))
        return RunStatePart.model_validate(found)
