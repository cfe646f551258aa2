"""Plays a run: what the scheduler decides is done in this process, by a clock on which
waiting takes no time.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.binding import parse_unit
from sennit.activities.nodes.error_mapping import failure
from sennit.activities.nodes.group import GroupRun
from sennit.activities.nodes.runner import NodeRunner
from sennit.testing.clock import VirtualLoop
from sennit.testing.program import Fake, WrongFake, checked_value, fake_of
from sennit.workflows.messages.activity_options import pause_after
from sennit.workflows.messages.contracts import GroupReply, NodeReply
from sennit.workflows.messages.node_calls import AgentNodeCall, NodeCall, WriteNodeCall
from sennit.workflows.plan.scheduling.events import (
    Answered,
    ApprovalDecided,
    Cancel,
    Decision,
    End,
    EndStatus,
    Event,
    LookUp,
    NodeEnded,
    Outcome,
    RetryRequested,
    RunStarted,
    SkipRequested,
    Start,
    StopRequested,
    TimeAdvanced,
)
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.termination import blocking_failures
from sennit.workflows.plan.scheduling.unit import WAITING
from sennit.workflows.run.outcomes import failed_outcome, looked_up, outcome_of
from sennit.workflows.run.unit_calls import node_call
from sennit.workflows.views.nodes import error_at_place

RUN, PREFIX = "test", "test/test"
Ends = list[tuple[int, int, Outcome, NodeReply | None]]


class Play:
    """One run of a checked plan. `replies` has what each unit came to."""

    def __init__(
        self,
        loop: VirtualLoop,
        state: RunState,
        runner: NodeRunner,
        plan: str,
        fakes: Mapping[str, Fake],
    ) -> None:
        self._loop = loop
        self._state = state
        self._runner = runner
        self._plan = plan
        self._fakes = fakes
        self._status: EndStatus | None = None
        self._flights: dict[asyncio.Task[Ends], list[tuple[int, int]]] = {}
        self._people: dict[asyncio.Task[Event | None], None] = {}
        self._asked: dict[tuple[int, int, str], None] = {}

    async def to_the_end(self) -> EndStatus:
        """Return how the run ends. Raises WrongFake."""
        self._do(RunStarted())
        try:
            while self._status is None:
                self._ask()
                await self._wait()
        finally:
            left = [*self._flights, *self._people]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        return self._status

    async def _wait(self) -> None:
        """Wait for the next end, decision of a person, or deadline, and take it."""
        tasks: list[asyncio.Task[Any]] = [*self._flights, *self._people]
        due = self._state.next_due()
        if not tasks and due is None:
            raise WrongFake("nothing runs and nobody decides: the run would wait for ever")
        wait = None
        if due is not None:
            left = due / 1000 - self._loop.time()
            wait = max(0.0, left)
        if tasks:
            await asyncio.wait(tasks, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(wait or 0.0)

        # What has ended comes before what people say, and both before the deadline.
        ended = [task for task in self._flights if task.done()]
        for flight in ended:
            keys = self._flights.pop(flight)
            if flight.cancelled():
                ends: Ends = [
                    (unit, generation, failed_outcome(None), None) for unit, generation in keys
                ]
            else:
                ends = flight.result()
            for unit, generation, outcome, _ in ends:
                self._do(NodeEnded(unit, generation, outcome))
        decisions = [task for task in self._people if task.done()]
        for person in decisions:
            del self._people[person]
            decided = person.result()
            if decided is not None and self._fits(decided):
                self._do(decided)
        if due is not None and round(self._loop.time() * 1000) >= due:
            self._do(TimeAdvanced())

    def _fits(self, decided: Event) -> bool:
        """Whether a decision does not come too late."""
        if isinstance(decided, Answered | ApprovalDecided):
            return self._state.units[decided.unit].status == WAITING
        return self._state.parked

    def _do(self, event: Event) -> None:
        for decision in step(self._state, event, round(self._loop.time() * 1000)):
            self._carry_out(decision)

    def _carry_out(self, decision: Decision) -> None:
        state = self._state
        if isinstance(decision, Start):
            call = node_call(state, RUN, self._plan, decision.units, asks=decision.asks)
            keys = [(unit, state.units[unit].generation) for unit in decision.units]
            self._flights[asyncio.create_task(self._run(call, keys))] = keys
        elif isinstance(decision, LookUp):
            name = state.full_path(decision.unit, decision.generation)
            call = WriteNodeCall(run=RUN, plan=self._plan, nodes=(name,), looks_up=True)
            key = decision.unit, decision.generation
            self._flights[asyncio.create_task(self._look_up(call, key))] = [key]
        elif isinstance(decision, Cancel):
            for flight, keys in self._flights.items():
                if (decision.unit, decision.generation) in keys:
                    flight.cancel()
        elif isinstance(decision, End):
            self._status = decision.status

    async def _look_up(self, call: NodeCall, key: tuple[int, int]) -> Ends:
        with self._loop.work():
            reply = await self._runner.run(
                call, call.nodes[0], {}, run_prefix=PREFIX, attempts=Attempts(1, 0)
            )
        return [(*key, looked_up(outcome_of(reply)), reply)]

    async def _run(self, call: NodeCall, keys: list[tuple[int, int]]) -> Ends:
        """Run the units of a call, with the attempts that they have; return how each has ended."""
        unit, generation = keys[0]
        spec = self._state.spec_of(unit)
        attempt = 0
        while True:
            attempt += 1
            try:
                with self._loop.work():
                    replies = await self._replies(call, attempt)
            except WrongFake:
                raise
            except Exception as error:  # noqa: BLE001  as an activity fails
                failed = failure(error, attempt=attempt, final=attempt >= spec.attempts)
            else:
                return [
                    (*key, outcome_of(reply), reply)
                    for key, reply in zip(keys, replies, strict=True)
                ]
            if failed.non_retryable:
                return [(unit, generation, failed_outcome(failed), None)]
            backoff = failed.next_retry_delay or pause_after(attempt)
            await asyncio.sleep(backoff.total_seconds())

    async def _replies(self, call: NodeCall, attempt: int) -> tuple[NodeReply, ...]:
        if len(call.nodes) > 1:
            return (await self._group(call)).nodes
        if isinstance(call, AgentNodeCall):
            call = await self._with_answer(call)
        run = self._runner.run(
            call, call.nodes[0], call.refs, run_prefix=PREFIX, attempts=Attempts(attempt, 0)
        )
        return (await run,)

    async def _with_answer(self, call: AgentNodeCall) -> NodeCall:
        """Have the fake `agent` answer the goal of a sub-agent."""
        asked = await self._runner.subagent_request(PREFIX, call)
        fake = fake_of("agent", self._fakes)
        answer = await self._loop.in_its_time(
            fake, asked.request["goal"], node=parse_unit(call.nodes[0]).path
        )
        return call.model_copy(update={"report": {"status": "done", "answer": answer}})

    async def _group(self, call: NodeCall) -> GroupReply:
        library = self._runner.library
        checked = await library.plan(PREFIX, call.plan)

        async def run_one(path: str, refs: dict[str, str]) -> NodeReply:
            node = parse_unit(path).id
            read: dict[str, str] = {}
            for index in checked.spec(node).reads:
                name = checked.name_at(index)
                if name in refs:
                    read[name] = refs[name]
            return await self._runner.run(
                call, path, read, run_prefix=PREFIX, attempts=Attempts(1, 0)
            )

        group = GroupRun(checked, call.nodes, call.refs, run_one)
        await group.run(lambda digest: library.value(PREFIX, digest), checked.wanted)
        return GroupReply(nodes=group.replies())

    def _ask(self) -> None:
        """Have people decide on what waits for them, each question once."""
        state = self._state
        for unit in state.units_in(WAITING):
            spec = state.spec_of(unit)
            shown = spec.question
            digest = ""
            question = state.questions.get(unit)
            if question is not None:
                shown = question.text
                digest = question.digest
            ask = self._answer if spec.kind == "gate" else self._approve
            self._begin(unit, digest, ask(unit, shown))
        if state.parked and "repair" in self._fakes:
            for unit in blocking_failures(state):
                self._begin(unit, "repair", self._repair(unit))

    def _begin(self, unit: int, about: str, decision: Coroutine[Any, Any, Event | None]) -> None:
        key = unit, self._state.units[unit].generation, about
        if key in self._asked:
            decision.close()
            return
        self._asked[key] = None
        self._people[asyncio.create_task(self._decided(decision))] = None

    async def _decided(self, decision: Coroutine[Any, Any, Event | None]) -> Event | None:
        with self._loop.work():
            return await decision

    async def _answer(self, unit: int, question: str) -> Event:
        fake = fake_of("ask", self._fakes)
        value = await self._loop.in_its_time(fake, question, node=self._state.path(unit))
        checked_value(value, self._state.spec_of(unit).schema, "the fake of `ask`")
        return Answered(unit, value)

    async def _approve(self, unit: int, shown: str) -> Event:
        fake = fake_of("approve", self._fakes)
        word = await self._loop.in_its_time(fake, shown, node=self._state.path(unit))
        if isinstance(word, Mapping):
            return ApprovalDecided(unit, True, args=dict(word))
        if isinstance(word, bool):
            return ApprovalDecided(unit, word)
        return ApprovalDecided(unit, False, str(word))

    async def _repair(self, unit: int) -> Event | None:
        path = self._state.path(unit)
        error = error_at_place(self._state, unit)
        word = await self._loop.in_its_time(self._fakes["repair"], path, error)
        events: dict[Any, Event] = {
            "retry": RetryRequested(unit),
            "skip": SkipRequested(unit),
            "finish": StopRequested("partial"),
        }
        if word is not None and word not in events:
            raise WrongFake(
                f"the fake of `repair` returned {word!r}: not retry, skip, finish or None"
            )
        return events.get(word)
