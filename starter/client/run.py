"""One run, seen from a client: its view, its changes, its outcome, and the updates
that a client sends it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar, Unpack, cast

from pydantic import ValidationError
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.exceptions import TerminatedError
from temporalio.service import RPCError

from sennit.starter.client.activity_details import activity_details
from sennit.starter.client.decisions import Decisions
from sennit.starter.client.dry_run import dry_run
from sennit.starter.client.errors import (
    InvalidRequest,
    NoAnswer,
    NoOutput,
    NotEnded,
    Refused,
    SennitError,
    ServerUnreachable,
)
from sennit.starter.client.events import QUERY_TIMEOUT, EventReader
from sennit.starter.client.outcome import (
    RunOutcome,
    looked_up,
    outcome_of_failure,
    outcome_of_result,
    result_of,
    writes_at_end,
)
from sennit.starter.client.output import read_output, read_outputs, with_whole_answer
from sennit.starter.client.repairs import plan_repairs
from sennit.starter.client.request import ForkOptions
from sennit.starter.client.run_plan import run_plan
from sennit.starter.client.server_errors import error_of, retry_outages, unless_stopped
from sennit.starter.client.texts import TextListener
from sennit.workflows.limits import MAX_PAGE_NODES
from sennit.workflows.messages.dry_run import DryRunCall, DryRunReport
from sennit.workflows.messages.figures import FiguresPage
from sennit.workflows.messages.result import RunReport
from sennit.workflows.messages.views import RunEvent, RunView, ScriptView
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.references import BindError, part_of
from sennit.workflows.plan.language.text import format_names, one_line

FAST, SLOW = 0.3, 2.0
LAST_VIEW_TIMEOUT = 1.5
T = TypeVar("T")


Fork = Callable[[str, str, str, ForkOptions], Awaitable["Run[RunReport]"]]
"""Starts a fork of the run of that name, with another script of its program, the node
named, unless that is empty.
"""


class Run(Decisions, Generic[T]):
    """A run by its id, whose result is a `T`. It goes on whatever becomes of this object or of the
    process that holds it.

    `joined` says that it was there already when it was asked for; `ui_url` is its page in the web
    UI, if known; `stopped` returns whether its local server was stopped; `began` and `closed` are
    seconds of the Unix clock, 0 if not known or not yet.
    """

    began: float = 0.0
    closed: float = 0.0

    def __init__(
        self,
        client: Client,
        name: str,
        run_id: str,
        fork: Fork,
        *,
        ui_url: str | None = None,
        joined: bool = False,
        stopped: Callable[[], bool] = lambda: False,
        result: type[T] | None = None,
    ) -> None:
        super().__init__(client, name)
        self.run_id = run_id
        self.ui_url = ui_url
        self.joined = joined
        self._latest = client.get_workflow_handle(name)
        self._first = client.get_workflow_handle(name, run_id=run_id)
        self._fork = fork
        self._stopped = stopped
        self._result = result
        self._outcome: RunOutcome | None = None

    async def outcome(self) -> RunOutcome:
        """Wait until the run is over, also after resets, and return how it ended.

        Raises SennitError if the server goes away.
        """
        if self._outcome is None:
            self._outcome = await unless_stopped(retry_outages(self._wait_for_end), self._stopped)
        return self._outcome

    async def result(self) -> T:
        """Wait until the run is over and return its result: a value of the type that `start` or
        `find` was given for it, or without one the report, however the run has ended.

        Raises NoResult if a type was given and the run has no whole answer of it;
        and what `report` raises.
        """
        report = await self.report()
        if self._result is None:
            return cast("T", report)
        return result_of(report, self._result)

    async def report(self) -> RunReport:
        """Wait until the run is over and return its report; `status` is done, partial, failed or
        cancelled. If the server has ended it, the ledger of effects is asked about the writes that
        were in flight: without a worker they stay unknown.

        Raises InvalidRequest if the request or the plan was wrong, so that nothing was run;
        ServerUnreachable if the server goes away.
        """
        outcome = await self.outcome()
        if outcome.refused:
            raise InvalidRequest(outcome.report.problem or outcome.refused)
        report = outcome.report
        if report.nodes or all(write.status != "unknown" for write in report.writes):
            return report
        return await unless_stopped(
            retry_outages(lambda: self._by_the_ledger(report)), self._stopped
        )

    async def _by_the_ledger(self, report: RunReport) -> RunReport:
        """Return the report of a run that the server has ended, with what the ledger of
        effects says of its writes.
        """
        last = await self._last()
        if last.status is WorkflowExecutionStatus.CANCELED:
            return report
        return report.model_copy(update={"writes": await looked_up(self._client, last)})

    async def _wait_for_end(self) -> RunOutcome:
        run = self._first
        while True:
            try:
                outcome = outcome_of_result(self.id, await run.result())
            except WorkflowFailureError as failure:
                successor = None
                if isinstance(failure.cause, TerminatedError):
                    successor = await self._successor()
                if successor is not None:
                    run = successor
                    continue
                outcome = outcome_of_failure(self.id, self.run_id, failure.cause)
                if not outcome.refused and not outcome.report.nodes:
                    writes = await writes_at_end(self._client, await self._last())
                    outcome = RunOutcome(outcome.report.model_copy(update={"writes": writes}))
            report = await with_whole_answer(self._client, outcome.report)
            if self.ui_url:
                report = report.model_copy(update={"ui_url": self.ui_url})
            return RunOutcome(report, outcome.refused)

    async def _last(self) -> WorkflowExecutionDescription:
        """Return the last run of the chain, as the server has it."""
        first = await self._first.describe()
        latest = await self._latest.describe()
        if _first_run_of(latest) == _first_run_of(first):
            return latest
        return first  # the id belongs to another run by now

    async def _successor(self) -> WorkflowHandle[Any, Any] | None:
        """Return the run that goes on after a reset, which terminates the one before;
        None after any other end.
        """
        first = await self._first.describe()
        latest = await self._latest.describe()
        is_same = _first_run_of(latest) == _first_run_of(first)
        if not is_same or latest.status is WorkflowExecutionStatus.TERMINATED:
            return None
        return self._client.get_workflow_handle(self.id, run_id=latest.run_id)

    async def view(self) -> RunView:
        """Return the run as it stands, with every node. Raises NoAnswer if no worker answers,
        or another SennitError.
        """
        return await activity_details(self._client, await self._with_all_pages(await self._page(0)))

    async def last_view(self) -> RunView | None:
        """Return the view of a run that is over, or None if no worker gives it at once."""
        try:
            async with asyncio.timeout(LAST_VIEW_TIMEOUT):
                return await self.view()
        except (TimeoutError, SennitError):
            return None

    async def repairs(self) -> int:
        """Return how often the planner of the run's goal was shown what is wrong with its plan.
        Needs no worker. Raises SennitError.
        """
        try:
            found = await self._latest.describe()
        except RPCError as error:
            raise error_of(error) from None
        return await plan_repairs(self._client, self.id, _first_run_of(found))

    async def script(self, node: str = "") -> ScriptView:
        """Return a program of the run, with what each line has called. Raises Refused,
        or another SennitError.
        """
        found = await self._query("script", {"node": node}, "shows no script")
        if "problem" in found:
            raise Refused(f"{self.id}: {one_line(found['problem'])}")
        try:
            return ScriptView.model_validate(found)
        except ValidationError:
            raise Refused(
                f"{self.id} is not a run of this Sennit: its script has another form"
            ) from None

    async def plan(self, *, on_mask: Callable[[], None] | None = None) -> Plan:
        """Return the plan that the run works on, whoever wrote it: with the nodes that a
        planner has added, the scripts that programs were given last, and the inputs of this run
        as the values that its inputs have by default. So it starts another run as it is. Calls
        of tool loops and of programs are no nodes of it. `on_mask` is called if the worker that
        reads it masks a secret in it.

        A worker reads it. Raises NotEnded while there is no plan yet, NoOutput if it is gone,
        Refused if the run is none of this Sennit, or another SennitError.
        """
        return await run_plan(self._client, self.id, self.script, on_mask)

    async def sharing(self) -> dict[str, str]:
        """Return of the first 500 nodes whether they may share an activity, and if not why. Raises
        Refused, or another SennitError.
        """
        reply = await self._query("sharing", {}, "does not say it")
        reasons = None
        problem = reply
        if isinstance(reply, dict):
            reasons = reply.get("nodes")
            problem = reply.get("problem")
        if not isinstance(reasons, dict):
            raise Refused(f"{self.id}: {one_line(str(problem))}")
        return {str(node): one_line(str(reason)) for node, reason in reasons.items()}

    async def figures(self) -> FiguresPage:
        """Return the figures of the run as it stands, with when each of its calls ran. Raises
        NoAnswer if no worker answers, Refused if it has no plan yet, or another SennitError.
        """
        page = await self._figures_page(0)
        calls = list(page.calls)
        flow = list(page.flow)
        after = page.next
        while after is not None:
            more = await self._figures_page(after)
            calls += more.calls
            flow += more.flow
            after = _following(more.next, after)
        return page.model_copy(update={"calls": tuple(calls), "flow": tuple(flow), "next": None})

    async def _figures_page(self, start: int) -> FiguresPage:
        found = await self._query(
            "figures", {"from": start, "limit": MAX_PAGE_NODES}, "gives no figures"
        )
        if isinstance(found, dict) and "problem" in found:
            raise Refused(f"{self.id}: {one_line(found['problem'])}")
        try:
            return FiguresPage.model_validate(found)
        except ValidationError:
            raise Refused(
                f"{self.id} is not a run of this Sennit: its figures have another form"
            ) from None

    async def output(
        self, node: str = "", path: str = "", *, on_mask: Callable[[], None] | None = None
    ) -> Any:
        """Return the output of a node that has ended, whole, also while the run goes on: `n7`, an
        item of a map (`notes[1]`), a call of a program, a node of a sub-agent (`sub.n1`). Without a
        node it is the run's answer. With `path`, such as `items[0].title`, it is what is there.
        `on_mask` is called if the worker that reads it masks a secret in it that is stored.

        A worker reads it. Raises NotEnded if the node or the run goes on, NoOutput if it has ended
        without one or the output is gone, InvalidRequest with the reason if the run was refused,
        Refused if there is no such node or path, or another SennitError.
        """
        if not node:
            return await self._answer(path)
        try:
            return await read_output(self._client, self.id, node, path, on_mask)
        except NotEnded as error:
            if not await self._is_over():
                raise
            await self._raise_if_refused()
            raise NoOutput(f"{error}, and the run is over") from None
        except (NoOutput, Refused):
            if await self._is_over():
                await self._raise_if_refused()
            raise

    async def outputs(self) -> dict[str, Any]:
        """Return the outputs of all nodes that have one by now, by their names, in
        plan order. See `output`.
        """
        view = await self.view()
        succeeded = [node for node in view.nodes if node.status == "succeeded"]
        names = [node.id for node in succeeded if node.ref is not None]
        return await read_outputs(self._client, self.id, names)

    async def _is_over(self) -> bool:
        return (await self._latest.describe()).status is not WorkflowExecutionStatus.RUNNING

    async def _raise_if_refused(self) -> None:
        """Raise InvalidRequest with the reason if the run, which is over, was refused, so
        that it has no outputs.
        """
        outcome = await self.outcome()
        if outcome.refused:
            raise InvalidRequest(
                f"{self.id} was refused, and nothing was run: {outcome.report.problem}"
            )

    async def _answer(self, path: str) -> Any:
        if not await self._is_over():
            view = await self.view()
            known = [node.id for node in view.nodes if node.status == "succeeded"]
            raise NotEnded(
                f"{self.id} has no answer yet; there are outputs of {format_names(known)}"
            )
        await self._raise_if_refused()
        report = (await self.outcome()).report
        if report.answer is None:
            raise NoOutput(
                f"{self.id} has no answer: {one_line(report.problem or report.status, 500)}"
            )
        if report.answer_ref is not None:
            raise NoOutput(report.warnings[-1])
        try:
            return part_of(report.answer, path, "answer")
        except BindError as error:
            raise Refused(str(error)) from None

    async def _with_all_pages(self, first: RunView) -> RunView:
        nodes = list(first.nodes)
        after = first.next
        while after is not None:
            page = await self._page(after)
            nodes += page.nodes
            after = _following(page.next, after)
        return first.model_copy(update={"nodes": tuple(nodes), "next": None})

    async def _page(self, start: int) -> RunView:
        found = await self._query(
            "plan", {"from": start, "limit": MAX_PAGE_NODES}, "gives no view of itself"
        )
        try:
            return RunView.model_validate(found)
        except ValidationError:
            raise Refused(
                f"{self.id} is not a run of this Sennit: its view has another form"
            ) from None

    async def _query(self, name: str, fields: dict[str, Any], failing: str) -> Any:
        """Return what the run answers. Raises NoAnswer, which names what it is `failing` at,
        or another SennitError.
        """
        try:
            return await self._latest.query(name, fields, rpc_timeout=QUERY_TIMEOUT)
        except WorkflowQueryFailedError as failure:
            raise NoAnswer(f"the run {failing}: {one_line(failure.message)[:300]}") from None
        except RPCError as error:
            raise await self._explained(error_of(error)) from None

    async def watch(
        self, *, every: bool = False, on_silence: Callable[[str], None] | None = None
    ) -> AsyncGenerator[RunView, None]:
        """Yield the run's view whenever it changed, until the run is over; with
        `every`, after each query.

        Queries every 0.3 s, less often up to 2 s while nothing changes. While no worker answers it
        calls `on_silence` and goes on. Raises SennitError if the server stays away.
        """
        ended = asyncio.ensure_future(self.outcome())
        query: asyncio.Future[tuple[RunView | None, RunView | None]] | None = None
        view: RunView | None = None
        last_page: RunView | None = None
        pause = FAST
        try:
            while not ended.done():
                began = asyncio.get_running_loop().time()
                query = asyncio.ensure_future(self._changed_view(last_page, view, on_silence))
                await asyncio.wait({ended, query}, return_when=asyncio.FIRST_COMPLETED)
                if ended.done():  # a run that is over needs no worker to look at it
                    break

                page, view = await query
                answered = page is not None
                changed = answered and page != last_page
                if answered:
                    last_page = page
                is_news = changed or (every and answered)
                if view is not None and is_news:
                    yield await activity_details(self._client, view)

                pause = _next_pause(pause, changed=changed)
                took = asyncio.get_running_loop().time() - began
                await asyncio.wait({ended}, timeout=pause_after(took, pause, answered=answered))
            await ended
        finally:
            for task in (ended, query):
                if task is not None:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

    async def _changed_view(
        self,
        last_page: RunView | None,
        view: RunView | None,
        on_silence: Callable[[str], None] | None,
    ) -> tuple[RunView | None, RunView | None]:
        """Return the first page and the whole view, read again if that page has changed; no
        page if nobody answers.
        """
        try:
            page = await self._page(0)
            if page != last_page:
                view = await self._with_all_pages(page)
            return page, view
        except (
            NoAnswer,
            ServerUnreachable,
        ) as error:  # whether the server stays away is for `outcome` to say
            if on_silence:
                on_silence(str(error))
        return None, view

    async def events(
        self, *, after: int = 0, follow: bool = True, texts: bool = True, position: int = 0
    ) -> AsyncGenerator[RunEvent, None]:
        """Yield what has happened in the run, from the beginning or `after` the event of that
        number, and then what happens, until the run is over. Its last event is `ended`. It waits as
        long as the run does, also for a person. Without `follow` it waits for nothing: it yields
        what has happened by now.

        Each event is a fact that the run has recorded, and keeps its number whatever becomes of
        workers and readers. Numbers rise; after a reset the events that it took back are followed
        by `reset`, with higher numbers. Without a worker there is nothing new, and once the run is
        over it is NoAnswer. Raises ServerUnreachable.

        With `texts`, what models write comes piece by piece as `text`, and `discarded` for what
        is no output: see `RunEvent`. A reader that comes again goes on at the `position` of the
        last piece that it had.
        """
        facts = self._facts(after=after, follow=follow)
        listener: TextListener | None = None
        upcoming: asyncio.Future[RunEvent | None] | None = None
        try:
            if (
                texts
                and follow
                and not await unless_stopped(retry_outages(self._is_over), self._stopped)
            ):
                listener = TextListener(self._client, self.id, position)
            while True:
                # Texts do not wait for a worker that answers for the run.
                upcoming = asyncio.ensure_future(anext(facts, None))
                if listener is not None:
                    async for text in listener.until(upcoming):
                        yield text
                event = await upcoming

                # All text comes before the end of the run.
                if listener is not None and (event is None or event.kind == "ended"):
                    for text in await listener.rest():
                        yield text
                    listener = None
                if event is None:
                    return
                if listener is not None:
                    listener.number = event.number
                yield event
        finally:
            if upcoming is not None:
                upcoming.cancel()
                await asyncio.gather(upcoming, return_exceptions=True)
            if listener is not None:
                await listener.close()

    async def _facts(self, *, after: int, follow: bool) -> AsyncGenerator[RunEvent, None]:
        """Yield what the run has recorded, and what the server says of running nodes."""
        reader = EventReader(self._client, self.id, self._last)
        pause = FAST
        while True:
            events = await unless_stopped(retry_outages(partial(reader.read, after)), self._stopped)
            news = [event for event in events if follow or event.number > after]
            for event in news:
                after = max(after, event.number)
                yield event
            if not news and (reader.is_over or not follow):
                return
            pause = _next_pause(pause, changed=bool(events))
            if not reader.is_over:
                await asyncio.sleep(pause)

    async def texts(self, *, position: int = 0) -> AsyncGenerator[RunEvent, None]:
        """Yield what models write for the run while they write, and nothing else, until the run is
        over: the events `text` and `discarded` of `events`. A run that is over has none. Raises
        SennitError if the server stays away.
        """
        if await unless_stopped(retry_outages(self._is_over), self._stopped):
            return
        ended = asyncio.ensure_future(self.outcome())
        listener = TextListener(self._client, self.id, position)
        try:
            async for text in listener.until(ended):
                yield text
            await ended
            for text in await listener.rest():
                yield text
        finally:
            ended.cancel()
            await listener.close()

    async def fork(
        self, script: str = "", *, node: str = "", **options: Unpack[ForkOptions]
    ) -> "Run[RunReport]":
        """Start a run that does again what this one did, which is over, and return it: what it
        calls as this did is taken over, and not called. `script` is another script of its program,
        or of the program `node` of its plan.

        Raises NotAllowed if this run goes on; for the rest see `Sennit.fork`.
        """
        return await self._fork(self.id, script, node, options)

    async def dry_run(
        self, script: str, *, node: str = "main", repeat_writes: bool = False
    ) -> DryRunReport:
        """Return what an edit would do that gives the program `node` this script, as far as the
        recorded ends of calls reach: what is taken over, what is made again, and what is
        cancelled. Nothing is changed.

        The run may go on meanwhile. Raises NoAnswer if no worker plays it, or another SennitError.
        """
        subagent, _, node = node.rpartition(".")
        workflow = self.id
        if subagent:
            workflow = f"{self.id}.{subagent}"
        call = DryRunCall(workflow=workflow, node=node, script=script, repeat_writes=repeat_writes)
        return await dry_run(self._client, call)

    async def cancel(self) -> None:
        """Ask the run to cancel: it stops running nodes and ends as cancelled. A run that
        is over stays as it is.
        """
        try:
            await self._latest.cancel()
        except RPCError as error:
            raise self._call_error(error) from None


def pause_after(took: float, pause: float, *, answered: bool) -> float:
    """Return for how many seconds to leave a run alone after a query. One that takes long is
    asked less often; but a lost worker costs a whole query, and as soon as another one is
    there, the next is answered.
    """
    if answered:
        return max(pause, 2 * took)
    return min(pause, FAST)


def _next_pause(pause: float, *, changed: bool) -> float:
    """Return how long to wait before the next look: a moment after news, and
    each time longer without.
    """
    if changed:
        return FAST
    return min(pause * 1.25, SLOW)


def _following(following: int | None, after: int) -> int | None:
    """Return the number at which the page after this one begins; None also if a reply does not lead
    on, so that no reader goes round for ever.
    """
    if following is None or following <= after:
        return None
    return following


def _first_run_of(found: WorkflowExecutionDescription) -> str:
    return found.raw_description.workflow_execution_info.first_run_id
