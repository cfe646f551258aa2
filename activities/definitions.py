"""The activities of a worker: every contract of `sennit.workflows.messages.contracts`
with the code behind it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from sennit.activities.limits import MAX_DRY_RUNS, MAX_THREADS
from sennit.activities.llm.call import ModelCalls
from sennit.activities.llm.models import Models
from sennit.activities.nodes import tracing
from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.binding import parse_unit
from sennit.activities.nodes.error_mapping import (
    BudgetExceeded,
    GrantTooSmall,
    OtherPython,
    failure,
    kind_of,
    message_of,
)
from sennit.activities.nodes.group import GroupRun
from sennit.activities.nodes.heartbeats import beating
from sennit.activities.nodes.in_flight import worker_stops
from sennit.activities.nodes.prefetch import Prefetcher
from sennit.activities.nodes.run_signals import signal_run
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.nodes.server_time import millis_now, seconds_now
from sennit.activities.nodes.short_calls import AdvanceAlone
from sennit.activities.programs.advance import Programs
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.reader import ScriptReader
from sennit.activities.providers import prices
from sennit.activities.providers.errors import OutputCut
from sennit.activities.providers.model import ProviderError
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.runs.agents import AgentPreparer
from sennit.activities.runs.approvals import ApprovalRule, topmost_run
from sennit.activities.runs.budgets import BudgetRule
from sennit.activities.runs.check import PlanChecker, compiler_of
from sennit.activities.runs.conclusion import RunConcluder
from sennit.activities.runs.conversation import Conversation
from sennit.activities.runs.dry_run import DryRunner
from sennit.activities.runs.namespace import NamespaceAttributes
from sennit.activities.runs.outputs import OutputReader
from sennit.activities.runs.planner import Planner, PlanStreamer
from sennit.activities.runs.pollers import QueueWorkers
from sennit.activities.runs.prepare import RunPreparer
from sennit.activities.runs.quota import QuotaRule, ended_runs
from sennit.activities.runs.speculation import SpeculateChoice, SpeculationRule
from sennit.activities.runs.trajectory import LearnChoice, RunNoter
from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.activities.storage.documents import DocumentRule
from sennit.activities.storage.garbage import KnownRuns, Owner, claim, claim_origin
from sennit.activities.storage.grants import Grants
from sennit.activities.storage.learned import LearnedStore
from sennit.activities.storage.location import open_store
from sennit.activities.storage.patience import PatientStore
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.storage.timings import CallTimings
from sennit.activities.toolbox import Registry
from sennit.activities.toolbox.approval_rules import ApprovalRules
from sennit.workflows.messages import contracts
from sennit.workflows.messages.activity_options import (
    OVERHEAD,
    SERVICE_ATTEMPTS,
    STORE_AWAY,
    STORE_PATIENCE,
)
from sennit.workflows.messages.contracts import (
    Call,
    CheckResult,
    DraftCall,
    GroupReply,
    NodeError,
    NodeReply,
    PlanCall,
    PlanResult,
    PrefetchReply,
    PrepareCall,
    PreparedAgents,
    PreparedRun,
)
from sennit.workflows.messages.converter import StackedError
from sennit.workflows.messages.dry_run import DRY_RUN, DryRunCall, DryRunReport
from sennit.workflows.messages.node_calls import (
    AgentsCall,
    AnswersCall,
    BudgetedCall,
    FollowedCall,
    GroupCall,
    LlmNodeCall,
    NodeCall,
    PrefetchCall,
    ProgramNodeCall,
    ToolNodeCall,
    WriteNodeCall,
)
from sennit.workflows.messages.outputs import OUTPUTS, OutputsCall, OutputsReply
from sennit.workflows.messages.quota import ENDED_RUNS, TAKE_PLACE, EndedRuns, PlaceCall, QuotaRuns
from sennit.workflows.messages.trajectory import NOTE_RUN, NoteCall, Noted
from sennit.workflows.plan.compile.compiler import READ_ATTEMPTS
from sennit.workflows.plan.language.nodes import ApprovalPolicy
from sennit.workflows.plan.limits import MAX_ATTEMPTS
from sennit.workflows.plan.quota import PlaceReply

log = logging.getLogger("tools")
T = TypeVar("T")
Paid = TypeVar("Paid", NodeReply, PlanResult)
Prepared = TypeVar("Prepared", PreparedRun, PreparedAgents)


@dataclass(frozen=True, slots=True)
class WorkerPaths:
    """Where this worker keeps and finds things; artifacts may be in a bucket."""

    artifacts: Path | str
    index: Path
    docs: Path | None
    docs_roots: tuple[Path, ...]
    grants: Path | None = None


class Activities:
    """Builds the activities once for a worker process."""

    def __init__(
        self,
        places: WorkerPaths,
        registry: Registry,
        models: Models | None = None,
        *,
        identity: str,
        approval: ApprovalPolicy = "writes",
        rules: ApprovalRules | None = None,
        budgets: BudgetRule | None = None,
        quota: QuotaRule | None = None,
        slots: int | None = None,
        learn: LearnChoice = "off",
        plan_hints: bool = False,
        speculate: SpeculateChoice = "asked",
    ) -> None:
        """Open the stores. Without `models` there are the offline rules; `approval` is the least
        that any run has, `rules` decide about its writes before a person is asked, `budgets` bound
        what a run may spend, and the `quota` what all runs of the namespace may. With more than 250
        `slots`, so many plain functions run at once. `learn` says whether it is noted what runs
        have called, and `plan_hints` whether planners are told of it; `speculate` says which runs
        may make calls early. Whether the artifact store is there shows when it is used. Raises
        OSError for the index, or StoreUnavailable for wrong settings of a bucket.
        """
        self.store = open_store(places.artifacts)
        self._store = store = PatientStore(self.store, _patience, _missed)
        places.index.mkdir(parents=True, exist_ok=True)
        self._library = ArtifactReader(store)
        self._models = models or Models.of(ModelSettings())
        grants = Grants(places.grants)
        documents = DocumentRule(places.docs, places.docs_roots, grants, identity)
        self._scripts = scripts = ScriptReader()
        self._interpreter = interpreter = Interpreter(scripts)
        self._checker = PlanChecker(store, self._library, self._models, interpreter, scripts)
        self._approvals = ApprovalRule(approval, grants)
        self._budgets = budgets or BudgetRule()
        self._quota = quota or QuotaRule()
        self._preparer = RunPreparer(
            self._library, registry, documents, self._models, self._checker
        )
        self._conversation = Conversation(self._library)
        self._namespace = NamespaceAttributes()
        self._learned = LearnedStore(self.store)
        known = self._learned if plan_hints else None
        self._planner = Planner(store, self._library, self._models, scripts, known)
        self._concluder = RunConcluder(store, self._library)
        self._outputs = OutputReader(self._library)
        self._dry_runs = DryRunner(
            store,
            registry,
            self._models,
            documents,
            self._approvals,
            interpreter,
            scripts,
            places.index,
            asyncio.Semaphore(MAX_DRY_RUNS),
        )
        llm = ModelCalls(self._models, self._library)
        threads = asyncio.Semaphore(max(MAX_THREADS, slots or 0))
        programs = Programs(
            self._library, interpreter, compiler_of, self._models.providers, backlog=self._backlog
        )
        self._timings, self._workers = CallTimings(), QueueWorkers()
        self._learn = learn
        self._noter = RunNoter(self._learned, self._library, keeps_values=learn == "full")
        self._registry = registry
        self._nodes = NodeRunner(
            store,
            self._library,
            registry,
            llm,
            programs,
            places.index,
            documents,
            threads,
            self._timings,
            rules or ApprovalRules(),
        )
        self._speculation = SpeculationRule(self._learned, self._library, speculate)
        self._prefetcher = Prefetcher(self._nodes, self._learned)
        self._agents = AgentPreparer(self._nodes, self._preparer)

    def load_prices(self) -> None:
        """Load the prices that the first model call would wait for, if some role has a model."""
        if self._models.has_servers:
            prices.load()

    def warm_up(self) -> None:
        """Start what the first program would wait for, and load the prices. Without it,
        that program starts it.
        """
        self.load_prices()
        try:
            self._scripts.warm_up()
        except InterpreterCrashed as error:
            log.warning(
                "the first program waits for a process that reads scripts: %s", message_of(error)
            )
        try:
            self._interpreter.warm_up()
        except InterpreterCrashed as error:
            log.warning("the first program waits for the process of scripts: %s", message_of(error))

    @property
    def providers(self) -> tuple[str, ...]:
        """The model providers there are; each has a queue."""
        return self._models.providers

    def tools(self) -> list[Callable[..., Any]]:
        """Return the activities of the tools queue."""
        kinds: tuple[Call[NodeCall, GroupReply], ...] = (
            contracts.TOOL,
            contracts.WRITE,
            contracts.JOIN,
            contracts.GATE,
            contracts.AGENT,
            contracts.PROGRAM,
        )
        nodes = [self._node_activity(kind) for kind in kinds]
        checker = self._checker
        short = [
            self._short_activity(contracts.CHECK_PLAN, lambda *call: checker.check(*call)),
            self._short_activity(contracts.CHECK_REPLAN, lambda *call: checker.check_replan(*call)),
            self._short_activity(
                contracts.CHECK_TOOL_CALLS, lambda *call: checker.check_tool_calls(*call)
            ),
            self._short_activity(contracts.CHECK_SCRIPT, lambda *call: checker.check_script(*call)),
            self._short_activity(contracts.CHECK_ANSWER, lambda *call: checker.check_answer(*call)),
            self._short_activity(contracts.LOAD_PLAN, lambda *call: checker.load(*call)),
            self._short_activity(contracts.CONCLUDE, lambda *call: self._concluder.conclude(*call)),
            self._short_activity(contracts.LEDGER, lambda *call: self._nodes.ledger(*call)),
            self._short_activity(
                contracts.PREPARE_AGENT, lambda *call: self._nodes.subagent_request(*call)
            ),
        ]
        of_agents: list[Callable[..., Any]] = [self.prepare_agents, self.answers]
        of_runs: list[Callable[..., Any]] = [
            self.prepare,
            self.take_place,
            self.ended_runs,
            self.note_run,
        ]
        of_tools: list[Callable[..., Any]] = [self.group, self.prefetch]
        return [*of_runs, *of_agents, self.outputs, self.dry_run, *of_tools, *short, *nodes]

    def sandbox(self) -> list[Callable[..., Any]]:
        """Return the activities of the sandbox queue."""
        nodes = [self._node_activity(contracts.TOOL), self._node_activity(contracts.WRITE)]
        return [self.group, self.prefetch, *nodes]

    def llm(self) -> list[Callable[..., Any]]:
        """Return the activities of a model provider's queue."""
        return [self.plan, self._node_activity(contracts.LLM)]

    @activity.defn(name=contracts.PREPARE.name)
    async def prepare(self, call: PrepareCall) -> PreparedRun:
        """Open a run. Safe to repeat."""
        with beating(tuple):
            return await self._prepared(call)

    async def _prepared(self, call: PrepareCall) -> PreparedRun:
        await self._claim(call)
        budget, bounds = self._budgets.of(call.request)
        call = call.model_copy(
            update={"request": call.request.model_copy(update={"budget": budget})}
        )
        info = activity.info()
        topmost = partial(
            topmost_run, activity.client(), info.workflow_id or "", info.workflow_run_id or ""
        )
        approval = await _typed(
            self._approvals.of(call.request.approval, call.request.grant, topmost)
        )
        run_prefix = _run_prefix(call.run)
        history = await _typed(self._conversation.adopt(activity.client(), run_prefix, call))
        may_trust = False
        if call.request.trust_program:
            may_trust = await _typed(self._approvals.trusts(call.request.grant, topmost))
        prepared = await _typed(
            self._preparer.prepare(run_prefix, call, approval, history, may_trust=may_trust)
        )

        # What the operator of these workers says about the run.
        ceilings = self._budgets.ceiling_of(call.request)
        rules: dict[str, Any] = {}
        if self._quota.counts and not call.request.depth:
            ceilings = self._quota.ceilings(budget, ceilings)
            rules["has_quota"] = True
        rules["ceilings"] = ceilings
        if bounds:
            rules |= {"budget": budget, "bounds": bounds}
        if self._learn != "off" and not call.request.depth:
            rules["learns"] = True
        speculation = await _typed(
            self._speculation.of(run_prefix, call.request, prepared.run_context)
        )
        if speculation is not None:
            rules["speculation"] = speculation
        return await self._with_workers(prepared.model_copy(update=rules))

    @activity.defn(name=contracts.PREPARE_AGENTS.name)
    async def prepare_agents(self, call: AgentsCall) -> PreparedAgents:
        """Prepare the runs of sub-agents. Safe to repeat."""
        with beating(tuple):
            info = activity.info()
            topmost = partial(
                topmost_run, activity.client(), info.workflow_id or "", info.workflow_run_id or ""
            )
            approvals: dict[ApprovalPolicy, ApprovalPolicy] = {}

            async def rule(asked: ApprovalPolicy) -> ApprovalPolicy:
                if asked not in approvals:
                    approvals[asked] = await self._approvals.of(asked, "", topmost)
                return approvals[asked]

            work = self._agents.prepare(
                _run_prefix(call.run),
                call,
                rule,
                Attempts.of_this_activity,
                is_last=_is_last_attempt(info),
            )
            return await self._with_workers(await _typed(work))

    @activity.defn(name=TAKE_PLACE.name)
    async def take_place(self, call: PlaceCall) -> PlaceReply:
        """Ask for the place of a run in the quota of its namespace. Safe to repeat."""
        return await self._quota.take(activity.client(), call)

    @activity.defn(name=ENDED_RUNS.name)
    async def ended_runs(self, call: QuotaRuns) -> EndedRuns:
        """Say which of some runs are over. Changes nothing."""
        return await ended_runs(activity.client(), call)

    @activity.defn(name=contracts.ANSWERS.name)
    async def answers(self, call: AnswersCall) -> GroupReply:
        """Store the answers of sub-agents. Safe to repeat."""
        with beating(tuple):
            is_last = _is_last_attempt(activity.info())
            work = self._agents.store(
                _run_prefix(call.run), call, Attempts.of_this_activity, is_last=is_last
            )
            return await _typed(work)

    async def _backlog(self, queue: str) -> int | None:
        return await self._workers.backlog(activity.client(), queue)

    async def _with_workers(self, prepared: Prepared) -> Prepared:
        """Return what is prepared with what a run has to know of the namespace and its workers."""
        names = await self._namespace.attributes(activity.client())
        namespace = activity.info().namespace
        await self._timings.flush(self.store, namespace)
        measured: dict[str, str] = {}
        queues: list[str] = []
        for tool in self._registry:
            queues.append(tool.queue)
            if not tool.typical and tool.effect != "write":
                measured[tool.name] = tool.version
        found = {
            "attributes": names,
            "rates": self._models.rates,
            "workers": await self._workers.counts(activity.client(), queues),
            "timings": await self._timings.millis(self.store, namespace, measured),
        }
        return prepared.model_copy(update={name: value for name, value in found.items() if value})

    async def _claim(self, call: PrepareCall) -> None:
        """Say whose artifacts these are, and that those of the runs which it forks are kept as
        long. Without the server's word on its namespace, they are never deleted.
        """
        namespace = ""
        try:
            known = await KnownRuns.of(activity.client())
            namespace = known.namespace
        except RPCError as error:
            log.warning(
                "the server names no namespace, so nothing deletes this run's artifacts: %s",
                error.message,
            )
        owner = Owner(
            namespace=namespace, workflow=activity.info().workflow_id or "", run=call.first_run
        )
        for origin in call.request.origins:
            await _typed(claim_origin(self._store, _run_prefix(origin), owner))
        await _typed(claim(self._store, _run_prefix(call.run), owner))

    def _short_activity(
        self, kind: Call[BaseModel, BaseModel], work: Callable[[str, Any], Awaitable[BaseModel]]
    ) -> Callable[..., Any]:
        """Return an activity that reads and writes the run's artifacts, and
        that is safe to repeat.
        """

        async def run(call: Any) -> Any:
            with beating(tuple):
                return await _typed(work(_run_prefix(call.run), call))

        return _named(kind, run)

    @activity.defn(name=contracts.PLAN.name)
    async def plan(self, call: PlanCall) -> PlanResult:
        """Ask a planner for a draft."""
        attempts = Attempts.of_this_activity()
        with beating(attempts.beat):
            attempts.allow(SERVICE_ATTEMPTS)
            await _typed(self.store.identify(), attempts)  # a model's reply could not be kept
            streamer = None
            if call.stream:
                streamer = self._streamer(call)
            planned = await _typed(self._traced_plan(call, attempts, streamer), attempts)
            # Else it is checked as the end of what has begun.
            is_first = streamer is None or not streamer.has_begun
            if call.checks and is_first and not planned.problems:
                checked = await self._verdict(call, planned)
                planned = planned.model_copy(update={"checked": checked})
        return _with_usage(planned, attempts)

    async def _verdict(self, call: PlanCall, planned: PlanResult) -> CheckResult | None:
        """Return the verdict on a draft, None if it cannot be had now: the reply is paid for,
        so the run asks again.
        """
        draft = DraftCall(run=call.run, run_context=call.run_context, draft=planned.draft)
        work = self._checker.check(_run_prefix(call.run), draft)
        [found] = await asyncio.gather(work, return_exceptions=True)
        if isinstance(found, Exception):
            log.warning("the plan of run %s is checked apart: %s", call.run, message_of(found))
            return None
        if isinstance(found, BaseException):
            raise found
        return found

    async def _traced_plan(
        self, call: PlanCall, attempts: Attempts, streamer: PlanStreamer | None
    ) -> PlanResult:
        add = None
        if streamer is not None:
            add = streamer.add
        with tracing.planning(call.run, attempts):
            return await self._planner.plan(_run_prefix(call.run), call, attempts, add)

    def _streamer(self, call: PlanCall) -> PlanStreamer:
        send = partial(signal_run, "plan_draft")
        return PlanStreamer(
            self._checker, _run_prefix(call.run), call, activity.info().attempt, send
        )

    @activity.defn(name=OUTPUTS.name)
    async def outputs(self, call: OutputsCall) -> OutputsReply:
        """Read outputs for a client. Safe to repeat."""
        with beating(tuple):
            return await _typed(self._outputs.read(activity.client(), call))

    @activity.defn(name=DRY_RUN.name)
    async def dry_run(self, call: DryRunCall) -> DryRunReport:
        """Play what an edit or a fork would do. It changes nothing. Safe to repeat."""
        with beating(tuple):
            return await _typed(self._dry_runs.play(activity.client(), call))

    @activity.defn(name=NOTE_RUN.name)
    async def note_run(self, call: NoteCall) -> Noted:
        """Note what a run has called that is over. Safe to repeat. A worker that does
        not learn notes nothing.
        """
        if self._learn == "off":
            return Noted()
        return await _typed(self._noter.note(_run_prefix(call.run), call))

    def _node_activity(
        self, kind: Call[NodeCall, GroupReply]
    ) -> Callable[..., Awaitable[GroupReply]]:
        async def run_node(call: NodeCall) -> GroupReply:
            run_prefix = _run_prefix(call.run)
            attempts = Attempts.of_this_activity()

            # What the run says about this attempt, by the kind of the node.
            if isinstance(call, BudgetedCall):
                attempts.left = call.left
            if isinstance(call, LlmNodeCall):
                attempts.grant = call.grant
                attempts.is_measured = call.is_measured
            if isinstance(call, WriteNodeCall):
                attempts.lost |= call.resumes
            elif isinstance(call, ToolNodeCall):
                attempts.number += call.tried
            with beating(attempts.beat):
                # While there is no result to lose.
                await self._timings.flush(self.store, activity.info().namespace)
                if kind is contracts.PROGRAM:
                    attempts.allow(READ_ATTEMPTS)
                if kind is contracts.LLM:
                    attempts.allow(MAX_ATTEMPTS)  # until the plan says how many
                    checked = await _typed(self._library.plan(run_prefix, call.plan), attempts)
                    attempts.allow(checked.spec(parse_unit(call.nodes[0]).id).attempts)
                work = self._nodes.run(
                    call, call.nodes[0], call.refs, run_prefix=run_prefix, attempts=attempts
                )
                if isinstance(call, LlmNodeCall):
                    work = _accounted(_within_grant(work, attempts), attempts)
                reply = await _typed(work, attempts)
                if not isinstance(call, FollowedCall) or call.then is None:
                    return GroupReply(nodes=(_with_usage(reply, attempts),))

                # The advance comes behind all that its script was told before: a time that a
                # fork has taken over moves.
                at = max(reply.at or millis_now(), call.then.after + 1)
                moved: tuple[str, ...] = ()
                if reply.at and reply.at != at:
                    moved = (call.then.follows,)
                reply = reply.model_copy(update={"at": at})
                then = call.then.model_copy(update={"moved": moved})
                advance = await self._advance_after(call, then, reply, run_prefix)
            return GroupReply(nodes=(_with_usage(reply, attempts), *advance))

        return _named(kind, run_node)

    async def _advance_after(
        self, call: NodeCall, then: ProgramNodeCall, reply: NodeReply, run_prefix: str
    ) -> tuple[NodeReply, ...]:
        """Advance a program that waits for nothing but this node. If that fails,
        it is done again alone.
        """
        if reply.ref is None or reply.more or reply.question is not None:
            return ()
        refs = {then.follows: reply.ref}
        used = {"tokens": reply.usage.tokens, "cost": reply.usage.cost, "calls": reply.usage.calls}
        left = {name: max(0, rest - used.get(name, 0)) for name, rest in then.left.items()}
        then = then.model_copy(
            update={"refs": refs, "left": left, "ends": {then.follows: reply.at}}
        )
        try:
            advance = await self._nodes.run(
                then, then.nodes[0], refs, run_prefix=run_prefix, attempts=Attempts(1, 0)
            )
            return (advance,)
        except AdvanceAlone:
            return ()
        except Exception as error:  # noqa: BLE001  the call has its result, whatever becomes of the advance
            reason = f"{kind_of(error)}: {message_of(error)}"
            path = parse_unit(call.nodes[0]).path
            log.warning(
                "the advance of a program behind `%s` has failed, and is made again alone: %s",
                path,
                reason,
            )
            return ()

    @activity.defn(name=contracts.PREFETCH.name)
    async def prefetch(self, call: PrefetchCall) -> PrefetchReply:
        """Make a call early that only reads. Its run does not depend on it."""
        attempts = Attempts.of_this_activity()
        with beating(attempts.beat):
            return await _typed(
                self._prefetcher.make(_run_prefix(call.run), call, attempts), attempts
            )

    @activity.defn(name=contracts.GROUP.name)
    async def group(self, call: GroupCall) -> GroupReply:
        """Run several nodes with the edges among them. Never raises for a node."""
        run_prefix, attempts = _run_prefix(call.run), Attempts.of_this_activity()
        group: GroupRun | None = None

        async def run_one(path: str, refs: dict[str, str]) -> NodeReply:
            return await self._nodes.run_beside(
                call, path, refs, run_prefix=run_prefix, attempts=attempts, page=checked
            )

        with beating(lambda: group.progress() if group is not None else ()):
            await self._timings.flush(self.store, activity.info().namespace)
            checked = await _typed(self._library.plan(run_prefix, call.plan))
            info = activity.info()
            group = GroupRun(checked, call.nodes, call.refs, run_one, info.heartbeat_details)
            signal = partial(signal_run, "group_progress")
            teller = asyncio.create_task(group.tell(call, info.attempt, attempts.record, signal))
            try:
                await _typed(
                    group.run(
                        lambda digest: self._library.value(run_prefix, digest), checked.wanted
                    )
                )
            except asyncio.CancelledError:
                if not activity.is_cancelled():
                    raise
            finally:
                teller.cancel()
        return GroupReply(nodes=group.replies())


async def _accounted(work: Awaitable[NodeReply], attempts: Attempts) -> NodeReply:
    """Return a node's reply: of a model call that was cancelled, what it has used. A worker that
    stops says nothing: the next attempt charges the call.
    """
    try:
        return await work
    except asyncio.CancelledError:
        if not any(attempts.spent.plus(attempts.open)) or worker_stops():
            raise
        return NodeReply(
            error=NodeError(type="Cancelled", message="the call was cancelled"), usage=attempts.open
        )


async def _within_grant(work: Awaitable[NodeReply], attempts: Attempts) -> NodeReply:
    """Return a node's reply: of a model call that its grant was too small for,
    how large its prompt is.
    """
    try:
        return await work
    except GrantTooSmall as error:
        return NodeReply(needs=error.tokens, usage=attempts.open)
    except OutputCut:
        if not attempts.is_short:
            raise
        too_small = attempts.cut_short()
        if isinstance(too_small, BudgetExceeded):
            raise too_small from None
        return NodeReply(needs=too_small.tokens, usage=attempts.open)


def _named(
    kind: Call[BaseModel, BaseModel], run: Callable[[Any], Awaitable[Any]]
) -> Callable[..., Any]:
    """Return a function as the activity of this name and these types: by them its input is read."""
    run.__annotations__.update({"call": kind.takes, "return": kind.gives})
    return activity.defn(name=kind.name)(run)


async def _typed(work: Awaitable[T], attempts: Attempts | None = None) -> T:
    """The activity boundary: any error leaves as a typed failure with a short message."""
    try:
        return await work
    except ApplicationError:
        raise
    except Exception as error:  # noqa: BLE001  the one boundary where anything may arrive
        attempts = attempts or Attempts.of_this_activity()
        failed = attempts.failed(error)
        if isinstance(failed, StackedError) and failed.stack:
            log.warning(
                "%s in a tool's own code, at attempt %d:\n%s",
                failed.type,
                attempts.number,
                failed.stack,
            )
        _count(failed)
        is_put_off = isinstance(error, ProviderError) and not error.is_attempt
        if is_put_off or isinstance(error, OtherPython):
            await attempts.confirm()
        raise failed from None


def _patience() -> float:
    """Return for how many seconds this activity may wait for the store, and then still say why it
    has failed. Where its run waits for the store by itself, and says so, those are few.
    """
    info = activity.info()
    if info.retry_policy is not None and STORE_AWAY in (
        info.retry_policy.non_retryable_error_types or ()
    ):
        return STORE_PATIENCE.total_seconds()
    limit = info.start_to_close_timeout or timedelta()
    return info.started_time.timestamp() - seconds_now() + (limit - OVERHEAD).total_seconds()


def _missed(error: StoreUnavailable) -> None:
    """Count each look for a store that is away as an attempt that has failed,
    though the activity goes on.
    """
    _count(failure(error))


def _count(failed: ApplicationError) -> None:
    """Count a failed attempt on /metrics: by the activity, by its error, and by
    whether it is the last.
    """
    counter = activity.metric_meter().create_counter(
        "sennit_failed_attempts", "Attempts of activities that failed"
    )
    counter.add(1, {"error": failed.type or "", "final": str(failed.non_retryable).lower()})


def _with_usage(reply: Paid, attempts: Attempts) -> Paid:
    """Return the reply with what all attempts used; that of a marked node has what was cut off."""
    if not any(attempts.spent):
        return reply
    return reply.model_copy(update={"usage": attempts.spent.plus(reply.usage)})


def _is_last_attempt(info: activity.Info) -> bool:
    """Whether Temporal makes no other attempt of an activity."""
    if info.retry_policy is None:
        return False
    return 0 < info.retry_policy.maximum_attempts <= info.attempt


def _run_prefix(run: str) -> str:
    """Return the folder of a run's artifacts. Raises a final failure for a
    name that is not a run id.
    """
    is_run_id = all(part.isalnum() for part in run.split("-"))
    if not is_run_id:
        raise ApplicationError(
            f"{run!r:.80} is no run id", type="InvalidRequest", non_retryable=True
        )
    return f"{activity.info().namespace}/{run}"
