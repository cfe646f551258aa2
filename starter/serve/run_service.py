"""What the agents of a caller may do with runs, in whatever protocol they ask for it.

An agent may start runs, look at them, retry and cancel them. It may neither approve nor answer: its
caller is a model, and the questions of a run are for people. Each caller reaches the runs that were
started for it, and no others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import connect_client
from sennit.starter.client.errors import InvalidRequest, NoAnswer, NotAllowed
from sennit.starter.client.request import RunOptions, checked_goal, checked_id, checked_new_id
from sennit.starter.client.run import Run
from sennit.starter.dev.stack import Renew
from sennit.starter.limits import (
    MAX_ANSWER_CHARACTERS,
    MAX_CHECKS_AT_ONCE,
    MAX_REPLY_RUNS,
    MAX_SERVE_YAML_BYTES,
)
from sennit.starter.plans.catalogue import Catalogue, read_catalogue
from sennit.starter.plans.plan_check import check_plan
from sennit.starter.plans.plan_file import BadPlan, PlanFile, plan_of, program_of
from sennit.starter.serve.replies import Done, OutputPart, PlanCheck, RunLine, RunList, RunState
from sennit.starter.terminal.prompt import decision
from sennit.starter.terminal.render import counts_text, report_of, status_text
from sennit.workflows.messages.result import BlockedOn, RunReport, RunStatus
from sennit.workflows.messages.views import RunView
from sennit.workflows.plan.language.references import as_text
from sennit.workflows.plan.language.text import text_bytes

Connect = Callable[[Renew], Awaitable[Sennit]]
"""Gives a connection, as the commands make one: a local stack that is away is
started for a new run only.
"""
Tell = Callable[[float, str], Awaitable[None]]
"""Tells the agent after how many seconds of its call the run is how far."""
_UNCHECKED: Final = (
    "tools, models and types: the workers of this server check them when the run starts"
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose agents ask. `tenant` is for whom their runs are queued, unless the operator
    has named one for all.
    """

    name: str
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """What the person who runs the server has settled for all callers.

    `options` and `docs` are those of every run: no agent names a folder, a budget or an approval
    itself. `flags` is what commands need to reach the same server. With `has_tools` the workers
    have the tools of this environment, so that plans are checked against them. With `all_runs` a
    caller reaches the runs of others, too.
    """

    options: RunOptions
    docs: str | None = None
    flags: str = ""
    has_tools: bool = True
    all_runs: bool = False


class RunService:
    """Starts runs for callers, and looks after them. All state is in the runs: a server that is
    started again goes on with them. Every method raises SennitError with a sentence for the agent.
    """

    def __init__(self, connect: Connect, terms: Terms) -> None:
        self._connect = connect
        self._terms = terms
        self._checks = asyncio.Semaphore(MAX_CHECKS_AT_ONCE)

    async def ask(
        self,
        caller: Caller,
        goal: str,
        *,
        id: str = "",  # noqa: A002
        continues: str = "",
        agents_above: int = 0,
    ) -> RunState:
        """Start a run for a goal. With `id` at most one is started,
        however often this is called.
        """
        what: dict[str, Any] = {"goal": checked_goal(goal)}
        if agents_above:
            what["agents_above"] = agents_above
        if continues:
            sennit = await self._connect("never")
            await self._look_up(sennit, caller, continues)
            what["continues"] = continues
        return await self._start(caller, id, what)

    async def run_plan(
        self,
        caller: Caller,
        *,
        plan: str | dict[str, Any] | None = None,
        program: str = "",
        inputs: dict[str, Any] | None = None,
        id: str = "",  # noqa: A002
        title: str = "",
    ) -> RunState:
        """Start a run of a plan or a program, which is checked first: nothing is
        started if anything is wrong.
        """
        async with self._checks:
            file = await asyncio.to_thread(_file, plan, program)
            checked = await asyncio.to_thread(file.check, None)
            if self._terms.has_tools:
                checked = (await check_plan(file, _ignore, _ignore)).plan
        what: dict[str, Any] = {
            "inputs": inputs,
            "title": title or checked.goal or file.title or file.name,
        }
        if file.script:
            what["program"] = file.script
        else:
            what["plan"] = file.data
        return await self._start(caller, id, what)

    async def _start(self, caller: Caller, chosen_id: str, what: dict[str, Any]) -> RunState:
        if chosen_id:
            checked_new_id(chosen_id)
        options = self._terms.options
        if caller.tenant and options.get("tenant") is None:
            options = {**options, "tenant": caller.tenant}
        sennit = await self._connect("always")
        run = await sennit.start(
            **{**options, **what}, docs=self._terms.docs, id=chosen_id or None, caller=caller.name
        )
        return self._state(
            RunReport(id=run.id, run_id=run.run_id, status="running", ui_url=run.ui_url)
        )

    async def check(
        self, *, plan: str | dict[str, Any] | None = None, program: str = ""
    ) -> PlanCheck:
        """Return everything that is wrong with a plan or a program. Nothing is started."""
        try:
            async with self._checks:
                file = await asyncio.to_thread(_file, plan, program)
                if not self._terms.has_tools:
                    checked = await asyncio.to_thread(file.check, None)
                    return PlanCheck(problems=[], nodes=len(checked.nodes), unchecked=_UNCHECKED)
                found = await check_plan(file, _ignore, _ignore)
        except BadPlan as bad:
            return PlanCheck(problems=str(bad).splitlines())
        quote: list[str] = []
        if file.script:
            quote += file.quote(found.catalogue).lines()
        warnings = [*file.warnings(found.plan, found.catalogue), *file.lines(found.doubts)]
        return PlanCheck(problems=[], warnings=warnings, nodes=len(found.plan.nodes), quote=quote)

    async def catalogue(self) -> Catalogue | None:
        """Return the tools that plans may call, None if only the workers of
        another server know them.
        """
        if not self._terms.has_tools:
            return None
        async with self._checks:
            return await read_catalogue()

    async def status(self, caller: Caller, name: str, seconds: float, tell: Tell) -> RunState:
        """Return how a run stands: at once if it is over or blocked, otherwise as soon as it is, or
        asks something new, and at the latest after so many seconds.
        """
        sennit = await self._connect("never")
        run, is_open = await self._look_up(sennit, caller, name)
        if not is_open:
            return await self._ended(run)
        try:
            view = await run.view()
        except NoAnswer as error:
            return self._state(_unknown(run, str(error)))
        if view.status == "blocked":
            return self._state(report_of(view, run.ui_url))

        # Somebody may answer a question meanwhile, so only what was not asked
        # before ends the waiting.
        last = await _watch(run, view, seconds, tell)
        if last is None:
            return await self._ended(run)
        return self._state(report_of(last, run.ui_url))

    async def report(self, caller: Caller, name: str) -> RunReport:
        """Return the whole report of a run, or how it stands."""
        sennit = await self._connect("never")
        run, is_open = await self._look_up(sennit, caller, name)
        if not is_open:
            return (await run.outcome()).report
        try:
            return report_of(await run.view(), run.ui_url)
        except NoAnswer as error:
            return _unknown(run, str(error))

    async def output(
        self, caller: Caller, name: str, node: str = "", path: str = "", offset: int = 0
    ) -> OutputPart:
        """Return a part of the answer of a run, or of the output of one of its nodes."""
        sennit = await self._connect("never")
        run, _ = await self._look_up(sennit, caller, name)
        return OutputPart.of(await run.output(node, path), offset)

    async def answer(self, caller: Caller, name: str) -> str:
        """Return the answer of a run as text, which is read once. Raises NotAllowed if it is
        too long for one reply.
        """
        sennit = await self._connect("never")
        run, _ = await self._look_up(sennit, caller, name)
        text = as_text(await run.output())
        if len(text) > MAX_ANSWER_CHARACTERS:
            raise NotAllowed(
                f"the answer of {run.id} has {len(text):,} characters, and a resource at most "
                f"{MAX_ANSWER_CHARACTERS:,}; read it in parts with `output`"
            )
        return text

    async def retry(self, caller: Caller, name: str, node: str = "") -> Done:
        """Run a node again, or what blocks the run. What was written, or may have been, is not
        written again: that is for a person to say.
        """
        sennit = await self._connect("code")
        run, _ = await self._look_up(sennit, caller, name)
        return Done(run=run.id, message=await run.retry(node))

    async def cancel(self, caller: Caller, name: str) -> Done:
        """Ask a run to cancel. Raises NotAllowed if it is over."""
        sennit = await self._connect("never")
        run, is_open = await self._look_up(sennit, caller, name)
        if not is_open:
            raise NotAllowed(f"{run.id} is over")
        await run.cancel()
        return Done(run=run.id, message=f"{run.id} will be cancelled; `status` says when it is")

    async def list(
        self, caller: Caller, status: RunStatus | None = None, limit: int = 20
    ) -> RunList:
        """Return the runs of the caller, the newest first."""
        sennit = await self._connect("never")
        runs = await sennit.runs(status=status)
        if not self._terms.all_runs:
            runs = [run for run in runs if run.caller == caller.name]
        shown = runs[: min(limit, MAX_REPLY_RUNS)]
        return RunList(runs=[RunLine.of(run) for run in shown], more=len(runs) - len(shown))

    async def question(self, caller: Caller, name: str) -> BlockedOn | None:
        """Return what a blocked run asks first, None if it asks nothing or nobody can say."""
        sennit = await self._connect("never")
        run, is_open = await self._look_up(sennit, caller, name)
        if not is_open:
            return None
        try:
            view = await run.view()
        except NoAnswer:
            return None
        return next(iter(view.blocked), None)

    async def decide(self, name: str, item: BlockedOn, line: str, by: str) -> str:
        """Take the line that a person has typed about a question, as one that is typed at a
        terminal. The history names `by` as the one who has decided. Raises Refused for a line that
        decides nothing, or if the question has changed.
        """
        update, fields = decision(item, line)
        server = (await self._connect("never")).server
        speaker = Sennit(await connect_client(server, identity=by), server)
        run, _ = await speaker.look_up(name)
        return await run.update(update, **fields)

    async def _look_up(self, sennit: Sennit, caller: Caller, name: str) -> tuple[Run[Any], bool]:
        """Return a run that the caller may reach. Raises RunNotFound for all others, as
        if they were not there.
        """
        owner = None if self._terms.all_runs else caller.name
        return await sennit.look_up(checked_id(name), caller=owner)

    async def _ended(self, run: Run[Any]) -> RunState:
        return self._state((await run.outcome()).report)

    def _state(self, report: RunReport) -> RunState:
        return RunState.of(report, self._terms.flags)


async def _watch(run: Run[Any], view: RunView, seconds: float, tell: Tell) -> RunView | None:
    """Return the last view of a run that goes on after so many seconds, or asks something
    new; None if it is over.
    """
    began = monotonic()
    asked = view.blocked
    await tell(0.0, _progress(view))
    try:
        async with asyncio.timeout(seconds), aclosing(run.watch(every=True)) as views:
            async for view in views:  # the last one counts also if the time is up
                await tell(monotonic() - began, _progress(view))
                if view.status == "blocked" or any(item not in asked for item in view.blocked):
                    return view
    except TimeoutError:
        return view
    return None


def _progress(view: RunView) -> str:
    return f"{status_text(view)}: {counts_text(view.counts)}"


def _unknown(run: Run[Any], problem: str) -> RunReport:
    return RunReport(
        id=run.id, run_id=run.run_id, status="running", ui_url=run.ui_url, problem=problem
    )


def _file(plan: str | dict[str, Any] | None, program: str) -> PlanFile:
    """Return a plan or a program that an agent has written. Raises BadPlan, or InvalidRequest
    unless it is one of them.
    """
    if bool(plan) == bool(program):
        raise InvalidRequest("give either `plan` or `program`")
    if program:
        return program_of(program)
    if isinstance(plan, str):
        if text_bytes(plan) > MAX_SERVE_YAML_BYTES:
            raise BadPlan(
                f"plan: over {MAX_SERVE_YAML_BYTES // 1024} KiB of text; give it as an object, "
                "or use `map` for many alike nodes"
            )
        return plan_of(plan)
    file = PlanFile("plan", plan or {})
    file.check_bounds()
    return file


def _ignore(_: str) -> None:
    """Notes of a check are for people at a terminal; its problems say the same."""
