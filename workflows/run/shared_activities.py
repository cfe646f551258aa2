"""Activities that several sub-agents of a run share: one prepares the runs of many, one
stores the answers of many.

An activity for each sub-agent, before and behind it, would cost more than its work. Sub-agents that
ask in one workflow task, or while as many activities are under way as may be, share the next one.
So an activity starts at once if few ask, and has the more members the more ask. Its members follow
from the history alone: a task in which a sub-agent asks either starts an activity, or none may
start before one ends.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import FailureError

from sennit.workflows.limits import (
    MAX_ANSWER_ACTIVITIES,
    MAX_PREPARE_ACTIVITIES,
    MAX_SHARED_BYTES,
    MAX_SHARING,
)
from sennit.workflows.messages.activity_ids import ActivityId
from sennit.workflows.messages.activity_options import Options
from sennit.workflows.messages.contracts import (
    ANSWERS,
    PREPARE_AGENTS,
    Call,
    GroupReply,
    NodeReply,
    PreparedAgent,
    PreparedAgents,
)
from sennit.workflows.messages.message import message_bytes
from sennit.workflows.messages.node_calls import AgentsCall, AnswersCall, NodeCall
from sennit.workflows.plan.language.summary import for_bar
from sennit.workflows.run.outcomes import invalid_result, result_of
from sennit.workflows.run.task_order import last_in_this_task

C = TypeVar("C", bound=NodeCall)
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class _Asked(Generic[C, R]):
    """The wish of one sub-agent: its part of a call, and the reply that it waits for."""

    call: C
    ident: ActivityId
    options: Options
    reply: "asyncio.Future[R]" = field(default_factory=asyncio.Future)

    def fits(self, other: "_Asked[C, R]", without: dict[str, Any]) -> bool:
        """Whether both may share an activity: what they do not name themselves is equal."""
        if self.options.get("priority") != other.options.get("priority"):
            return False
        common = self.call.model_copy(update=without)
        return common == other.call.model_copy(update=without)


class SharedActivity(Generic[C, R]):
    """One kind of activity that sub-agents share. `merge` makes one call of several, and `share`
    gives each its reply, None to those for which there was no room: they ask again. `own` are the
    fields that a call has for itself.
    """

    def __init__(
        self,
        contract: Call[C, Any],
        own: dict[str, Any],
        merge: Callable[[Sequence[C]], C],
        share: Callable[[Any], Sequence[R | None]],
        label: str,
        at_once: int,
    ) -> None:
        self._contract = contract
        self._own = own
        self._merge = merge
        self._share = share
        self._label = label
        self._at_once = at_once
        self._waiting: deque[_Asked[C, R]] = deque()
        self._under_way = 0
        self._begins: asyncio.Task[None] | None = None

    async def ask(self, call: C, ident: ActivityId, options: Options) -> R:
        """Return the reply for one sub-agent. Raises the error of the activity."""
        asked: _Asked[C, R] = _Asked(call, ident, options)
        self._waiting.append(asked)
        self._begin_soon()
        return await asked.reply

    def _begin_soon(self) -> None:
        if self._begins is None:
            self._begins = asyncio.create_task(self._begin())

    async def _begin(self) -> None:
        """Start what may start, once all who ask in this workflow task have done so."""
        await last_in_this_task()
        self._begins = None
        while self._under_way < self._at_once:
            members = self._next()
            if not members:
                return
            self._under_way += 1
            asyncio.create_task(self._run(members))  # noqa: RUF006  it is waited for by its members

    def _next(self) -> list[_Asked[C, R]]:
        """Take the members of the next activity from the queue, in its order. Sub-agents that have
        been cancelled drop out.
        """
        members: list[_Asked[C, R]] = []
        size = 0
        left = deque[_Asked[C, R]]()
        for asked in self._waiting:
            if asked.reply.done():
                continue
            own = message_bytes(asked.call, exclude_unset=True)
            has_room = len(members) < MAX_SHARING and size + own <= MAX_SHARED_BYTES
            if not members or (has_room and asked.fits(members[0], self._own)):
                members.append(asked)
                size += own
            else:
                left.append(asked)
        self._waiting = left
        return members

    async def _run(self, members: list[_Asked[C, R]]) -> None:
        """Run one activity, and give each member its reply."""
        handle = self._start(members)
        try:
            replies = self._share(result_of(self._contract, await handle))
            if len(replies) != len(members):
                raise invalid_result()
            self._settle(members, replies)
        except asyncio.CancelledError:
            if not all(asked.reply.done() for asked in members):
                raise  # the worker forgets the run
        except FailureError as error:
            for asked in members:
                if not asked.reply.done():
                    asked.reply.set_exception(error)
        finally:
            self._under_way -= 1
        self._begin_soon()

    def _start(self, members: list[_Asked[C, R]]) -> "workflow.ActivityHandle[Any]":
        """Start an activity, which is cancelled if all of its members are."""
        leader = members[0]
        others = len(members) - 1
        ident = replace(leader.ident, others=others)
        options = leader.options.copy()
        if others:
            options["summary"] = for_bar(f"{leader.ident.full_path}+{others} {self._label}")
        calls = [asked.call for asked in members]
        call = self._merge(calls)
        handle = workflow.start_activity(
            self._contract.name,
            call,
            activity_id=str(ident),
            result_type=self._contract.gives,
            **options,
        )

        def given_up(_: object) -> None:
            is_unwanted = all(asked.reply.cancelled() for asked in members)
            if is_unwanted and not handle.done():
                handle.cancel()

        for asked in members:
            asked.reply.add_done_callback(given_up)
        return handle

    def _settle(self, members: list[_Asked[C, R]], replies: Sequence[R | None]) -> None:
        """Give the members their replies. Those who have none are the next
        in turn, in their order.
        """
        again: list[_Asked[C, R]] = []
        for asked, reply in zip(members, replies, strict=True):
            if asked.reply.done():
                continue
            if reply is None:
                again.append(asked)
            else:
                asked.reply.set_result(reply)
        self._waiting.extendleft(reversed(again))


class AgentActivities:
    """The activities that the sub-agents of one run share."""

    def __init__(self) -> None:
        self.goals: SharedActivity[AgentsCall, PreparedAgent] = SharedActivity(
            PREPARE_AGENTS, {"nodes": ()}, _merged, _prepared, "prepare", MAX_PREPARE_ACTIVITIES
        )
        self.answers: SharedActivity[AnswersCall, NodeReply] = SharedActivity(
            ANSWERS,
            {"nodes": (), "reports": ()},
            _with_reports,
            _stored,
            "keep answers",
            MAX_ANSWER_ACTIVITIES,
        )


def _merged(calls: Sequence[AgentsCall]) -> AgentsCall:
    return calls[0].model_copy(update={"nodes": _nodes_of(calls)})


def _with_reports(calls: Sequence[AnswersCall]) -> AnswersCall:
    reports: list[JsonValue] = []
    for call in calls:
        reports += call.reports
    return calls[0].model_copy(update={"nodes": _nodes_of(calls), "reports": tuple(reports)})


def _nodes_of(calls: Sequence[NodeCall]) -> tuple[str, ...]:
    """Return the nodes of several calls, in their order."""
    nodes: list[str] = []
    for call in calls:
        nodes += call.nodes
    return tuple(nodes)


def _prepared(found: PreparedAgents) -> list[PreparedAgent | None]:
    """Return each sub-agent with the fields that are common to all of them; None for
    each that was left out.
    """
    common: dict[str, Any] = {}
    for name in ("attributes", "rates", "workers", "timings"):
        value = getattr(found, name)
        if value:
            common[name] = value

    agents: list[PreparedAgent | None] = []
    for agent in found.agents:
        if agent.is_left_out:
            agents.append(None)
            continue
        prepared = agent.prepared
        if prepared is not None:
            prepared = prepared.model_copy(update=common)
        request: dict[str, JsonValue] = {}
        if agent.request:
            request = {**found.request, **agent.request}
        agents.append(agent.model_copy(update={"request": request, "prepared": prepared}))
    if not found.agents or agents[0] is None:
        raise invalid_result()
    return agents


def _stored(found: GroupReply) -> Sequence[NodeReply]:
    return found.ends({len(found.nodes)})
