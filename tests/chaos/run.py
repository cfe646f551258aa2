"""Runs under fire: `make chaos N=300 SEED=1 SLEEP=25`. Processes are killed N times while runs go on, and once all of
them are stopped for SLEEP seconds, longer than any time limit that a server keeps.

All runs are queried all the time, joins of theirs cancel calls, and their programs are edited while they run. Two runs
in five pay bills: their edits and forks rename, shift and reorder what pays them, and a person ends some of them in the
middle. Runs are reset, also to the task of a person's answer. Two of the workers have one core each, and one has a
clock that is ahead.

Then each run must have ended with the answer that it has when nothing disturbs it, with no payment made twice, no call
made again that had succeeded, no artifact collected, the usage that the model server has counted, and nothing left
behind. Every history must replay, and every run answer a query. With N=0 there is only the sleep, and the clients that
watch the runs sleep too: they must end with the answers, and no payment may have become uncertain.

With `SPECULATE=1` the runs make calls early that may be made early, and all of that must hold all the same.

Prints one line of JSON with the figures; exits with 1 if a promise was broken.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from chaos.answers import task_of_answer, task_of_any
from chaos.bills import RATES
from chaos.budget import wrong_usage
from chaos.cases import AT_ONCE, Case, bills_case, case_of
from chaos.fleet import ROLES, Fleet
from chaos.histories import recoveries, replayed
from chaos.ledger import Ledger, ledger_service
from chaos.paid_bills import wrong_bills
from chaos.person import Watch, watch
from chaos.queries import Onlooker
from doubles.worker_processes import WorkerProcesses
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from sennit.starter.client.client import Sennit
from sennit.starter.client.errors import NoAnswer, NotAllowed, SennitError, ServerUnreachable
from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer
from sennit.starter.dev.workers import GC
from sennit.testing.models import ModelServer, model_server
from sennit.workflows.messages.converter import connect
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.messages.trajectory import NOTE_RUN_TYPE

OVER_AT_ONCE = 2
TOOLS = "doubles.tools,doubles.bank,doubles.slow_store,doubles.fast_clock"
DISK = "64m"
LAST_ONES = 240.0
"""Seconds that the runs may take to end when the fire has stopped."""


@dataclass
class Storm:
    """Runs, the fleet that carries them, and the fire on it."""

    client: Client
    fleet: Fleet
    ledger: Ledger
    model: ModelServer
    chance: Random
    kills: int
    has_disk: bool
    sleep: float
    onlooker: Onlooker
    watches: list[Watch] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    resets: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    over: bool = False
    speculates: bool = False
    under_reset: str = ""
    """The run that is about to be reset: nobody forks it meanwhile."""

    def request_of(self, case: Case) -> dict[str, Any]:
        """Return what a run is started with."""
        if not self.speculates:
            return case.request
        return {**case.request, "speculate": "on"}

    async def keep_starting(self, seed: int) -> None:
        """Keep some runs going, one after the other, until the fire stops."""
        while not self.over:
            await self._run(seed)
            seed += AT_ONCE

    async def _run(self, seed: int) -> None:
        """See a run through to its end, and then its forks."""
        case = case_of(seed, self.model)
        await self._start(case)
        seen = await self._watched(case)
        for stretch in range(1, len(case.bills.stretches) if case.bills is not None else 0):
            if self.over and stretch > 1:
                break
            assert case.bills is not None
            fork = bills_case(case.bills, stretch)
            if not await self._fork(seen, fork):
                break
            seen = await self._watched(fork)

    async def _start(self, case: Case) -> None:
        while True:
            try:
                await self.client.start_workflow("AgentRun", self.request_of(case), id=case.name, task_queue=WORKFLOW)
                break
            except WorkflowAlreadyStartedError:  # the server took it before it was killed
                break
            except RPCError:
                await asyncio.sleep(0.5)
        with suppress(RPCError, WorkflowAlreadyStartedError):  # a second client with the same id
            await self.client.start_workflow("AgentRun", self.request_of(case), id=case.name, task_queue=WORKFLOW)
            self.faults["duplicate taken"] += 1

    async def _watched(self, case: Case) -> Watch:
        seen = Watch(case, await self._first_run(case.name))
        self.watches.append(seen)
        await watch(self.client, seen, self.fleet.calls, self.ledger)
        return seen

    async def _fork(self, seen: Watch, fork: Case) -> bool:
        """Fork a run that is over. Return False, and note why, if that is refused."""
        assert fork.bills is not None
        first = fork.bills.stretches[fork.stretch].versions[0]
        sennit = Sennit(self.client)
        while True:
            while self.under_reset == seen.case.name:
                await asyncio.sleep(0.1)
            try:
                origin = (await sennit.origin(seen.case.name)).with_script(first.script)
                await sennit.fork(origin, id=fork.name, approval="never", repeat_writes=first.repeat_writes)
            except NotAllowed:  # it was reset in its last moment, and goes on
                seen.report, seen.problem = {}, ""
                await watch(self.client, seen, self.fleet.calls, self.ledger)
            except (ServerUnreachable, NoAnswer):
                await asyncio.sleep(0.5)
            except SennitError as refused:
                self.problems.append(f"{seen.case.name} could not be forked: {refused}")
                return False
            else:
                self.faults["fork"] += 1
                return True

    async def _first_run(self, name: str) -> str:
        while True:
            try:
                found = await self.client.get_workflow_handle(name).describe()
                return str(found.raw_description.workflow_execution_info.first_run_id)
            except RPCError:
                await asyncio.sleep(0.5)

    def shown(self) -> list[str]:
        """Return the runs that somebody looks at now: all that go on, with their sub-agents, and some that are over."""
        over = [seen.case.name for seen in self.watches if seen.ended]
        running = [seen.case.name for seen in self.watches if not seen.ended]
        return [*running, *(f"{name}.sub" for name in running), *random.sample(over, min(OVER_AT_ONCE, len(over)))]

    async def fire(self) -> None:
        """Disturb the fleet until so many processes were killed."""
        faults = {self.kill_one: 20, self.kill_all: 1, self.kill_server: 2, self.lid: 1, self.reset: 3}
        faults |= {self.reset_to_answer: 3}
        faults |= {self.slow_store: 1, self.store_away: 2, self.collect_garbage: 1}
        if self.has_disk:
            faults[self.full_disk] = 1
        asleep_after = self.chance.randint(0, self.kills // 2)
        certain = [self.store_away, self.first_reset_to_answer] if self.kills else []
        while len(self.fleet.killed) < self.kills or self.sleep:
            await asyncio.sleep(self.chance.uniform(0.3, 3.0))
            if self.sleep and len(self.fleet.killed) >= asleep_after:
                await self.long_sleep()
                continue
            is_time = certain and 3 * len(self.fleet.killed) >= self.kills
            fault = certain.pop() if is_time else self.chance.choices(list(faults), list(faults.values()))[0]
            self.faults[fault.__name__] += 1
            await fault()
        self.over = True

    async def long_sleep(self) -> None:
        """Let all processes sleep once, if possible while a payment is made."""
        watched = [seen for seen in self.watches if not seen.ended and seen.case.bills is None and not self.kills]
        clients = [await self._client(seen) for seen in watched]
        for _ in range(600):
            if self.ledger.busy:
                break
            await asyncio.sleep(0.05)
        seconds, self.sleep = self.sleep, 0.0
        self.faults["payments in flight at the long sleep"] = self.ledger.busy
        await self.fleet.sleep(seconds, *(process.pid for process, _ in clients))
        for process, seen in clients:
            out, err = await process.communicate()
            if process.returncode or json.loads(out)["answer"] != seen.case.answer:
                self.problems.append(f"the client of {seen.case.name} ended with {process.returncode}: {err.decode()}")

    async def _client(self, seen: Watch) -> tuple[asyncio.subprocess.Process, Watch]:
        """Start `sennit watch`."""
        command = [str(Path(sys.executable).parent / "sennit"), "watch", seen.case.name, "--wait", "--output", "json"]
        address = self.fleet.server.address
        process = await asyncio.create_subprocess_exec(
            *command, "--address", address, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        return process, seen

    async def slow_store(self) -> None:
        await self.fleet.slow_store(self.chance.uniform(3, 8))

    async def store_away(self) -> None:
        slot, leaves = self.chance.randrange(len(ROLES)), self.chance.random() < 0.5
        problem = await self.fleet.take_store_away(self.chance.uniform(2, 20), slot, leaves=leaves)
        if problem:
            self.problems.append(problem)

    async def collect_garbage(self) -> None:
        """Have artifacts collected, as old as they may be: none may go, since the server knows all runs."""
        process = await asyncio.create_subprocess_exec(
            *GC, "--older-than", "0.001", "--output", "json", stdout=PIPE, stderr=PIPE, env=self.fleet.workers.env
        )
        out, err = await process.communicate()
        if process.returncode not in (0, 5) or json.loads(out)["runs"]:
            self.problems.append(f"garbage was collected of known runs, or none could be: {out!r} {err!r}")

    async def kill_one(self) -> None:
        await self.fleet.kill_workers(self.chance.randrange(len(ROLES)))

    async def kill_all(self) -> None:
        await self.fleet.kill_workers(*range(len(ROLES)))

    async def kill_server(self) -> None:
        await self.fleet.kill_server()

    async def lid(self) -> None:
        await self.fleet.sleep(self.chance.uniform(2, 15))

    async def full_disk(self) -> None:
        await self.fleet.fill_disk(self.chance.uniform(1, 4))

    async def reset(self) -> None:
        """Reset a run to one of its workflow tasks."""
        await self._reset(task_of_any)

    async def reset_to_answer(self) -> None:
        """Reset a run to the task in which it has taken what a person had decided, which then comes again."""
        if await self._reset(task_of_answer):
            self.faults["resets to an answer"] += 1

    async def first_reset_to_answer(self) -> None:
        """Do so for certain, as soon as somebody has answered."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_ONES):
                while not self.faults["resets to an answer"]:
                    await self.reset_to_answer()
                    await asyncio.sleep(0.5)

    async def _reset(self, task_among: Callable[[list[HistoryEvent], Random], int]) -> bool:
        """Reset one of the runs that go on, if it has such a task. Return whether the server has."""
        running = [seen for seen in self.watches if not seen.ended]
        if not running:
            return False
        self.under_reset = name = self.chance.choice(running).case.name
        try:
            return await self._reset_to(name, task_among)
        finally:
            self.under_reset = ""

    async def _reset_to(self, name: str, task_among: Callable[[list[HistoryEvent], Random], int]) -> bool:
        self.resets.append(time.time())
        with suppress(RPCError):
            events = [event async for event in self.client.get_workflow_handle(name).fetch_history_events()]
            task = task_among(events, self.chance)
            if task:
                await self.client.workflow_service.reset_workflow_execution(
                    ResetWorkflowExecutionRequest(
                        namespace=self.client.namespace,
                        workflow_execution=WorkflowExecution(workflow_id=name),
                        reason="chaos",
                        workflow_task_finish_event_id=task,
                        request_id=f"{name}-{time.time()}",
                    )
                )
                return True
        return False

    async def figures(self) -> dict[str, Any]:
        """Return what happened, with every broken promise."""
        tasks = [await recoveries(self.client, seen.case.name, self.fleet.killed) for seen in self.watches]
        calls = {name: len(times) for name, times in self.fleet.calls.called.items()}
        alone, disturbed = self.fleet.recoveries()
        left_behind = await self._left_behind()
        histories = [each async for each in replayed(self.client)]
        happened = {
            "outages of the store": self.faults["store_away"],
            "resets to an answer": self.faults["resets to an answer"],
            "calls cancelled by runs": sum(each.cancelled for each in histories),
            "edited by a person": sum(seen.edited for seen in self.watches),
            "edited into other ways to pay": sum(seen.edited for seen in self.watches if seen.case.bills is not None),
            "forks": self.faults["fork"],
            "queries answered": self.onlooker.answers,
            "histories replayed": len(histories),
        }
        return {
            "kills": len(self.fleet.killed),
            "killed": dict(Counter(role for role, _, _ in self.fleet.killed)),
            "faults": dict(self.faults),
            "runs": len(self.watches),
            "calls": sum(calls.values()),
            "called again": sum(calls.values()) - len(calls),
            "payments": len({text for seen in self.watches for text in seen.case.payments}),
            "changes of what pays": dict(self._changes()),
            "ended by a person": sum(seen.is_stopped for seen in self.watches),
            "approved by a person": sum(seen.approved for seen in self.watches),
            "retried by a person": sum(seen.retries for seen in self.watches),
            "unknown outcomes": sum(seen.unknown for seen in self.watches),
            **happened,
            "recovery of calls, s": spread(alone),
            "recovery of calls disturbed again meanwhile, s": spread(disturbed),
            "recovery of workflow tasks, s": spread([each for found in tasks for each in found]),
            "broken": [
                *self.problems,
                *self.onlooker.problems,
                *self._broken(),
                *left_behind,
                *(f"the history of {each.run}: {each.wrong}" for each in histories if each.wrong),
                *(
                    f"{what}: none, so this shows nothing"
                    for what, times in happened.items()
                    if not times and self.kills
                ),
            ],
        }

    def _changes(self) -> Counter[str]:
        """Return what edits and forks have changed of the scripts that pay bills."""
        found = Counter[str]()
        for seen in self.watches:
            if seen.case.bills is not None:
                versions = seen.case.bills.stretches[seen.case.stretch].versions[: 1 + seen.edited]
                found.update(version.change for version in versions if version.number)
        return found

    def _broken(self) -> Iterator[str]:
        chains: dict[int, list[Watch]] = {}
        for seen in self.watches:
            name = seen.case.name
            if seen.case.bills is None:
                yield from self._wrong_end(seen)
            else:
                chains.setdefault(seen.case.seed, []).append(seen)
            for (node, arguments), before in seen.settled.items():
                after = self.fleet.calls.times(f"{seen.run} {node}", arguments)
                if after > before:
                    yield f"{name}: {node} had succeeded and was called again"
            if seen.unknown and not self.kills:
                yield f"{name}: {seen.unknown} payments are uncertain, and nothing was killed"
            disturbed = [*(at for _, _, at in self.fleet.killed), *self.fleet.outages, *self.resets]
            yield from wrong_usage(seen, self.model, sum(seen.began < at < seen.ended for at in disturbed))

        for chain in chains.values():
            yield from wrong_bills(chain, self.ledger)

    def _wrong_end(self, seen: Watch) -> Iterator[str]:
        name = seen.case.name
        if seen.problem or seen.report.get("status") != "done":
            ending = seen.problem or seen.report.get("status", "nothing")
            yield f"{name} ended as {ending}, last blocked on: {seen.blocked or 'nothing'}"
        elif seen.report["answer"] != seen.case.answer:
            yield f"{name} answered {seen.report['answer']!r}, not {seen.case.answer!r}"
        for text in seen.case.payments:
            paid, allowed = self.ledger.paid(text), 1 + seen.repeats[text]
            if not (1 if seen.report else 0) <= paid <= allowed:
                yield f"{text} was paid {paid} times, at most {allowed} allowed"

    async def _left_behind(self) -> list[str]:
        await asyncio.sleep(2)  # lists lag behind, also for longer, so each run is asked for itself
        found = list[str]()
        async for run in self.client.list_workflows(
            f"ExecutionStatus = 'Running' AND WorkflowType != '{NOTE_RUN_TYPE}'"
        ):
            description = await self.client.get_workflow_handle(run.id, run_id=run.run_id).describe()
            if description.status is WorkflowExecutionStatus.RUNNING:
                found.append(f"{run.id} still runs")
        return found


def spread(seconds: list[float]) -> dict[str, float]:
    """Return the count, median, 95th percentile and maximum."""
    ordered = sorted(seconds)
    if not ordered:
        return {"count": 0}
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    middle = ordered[len(ordered) // 2]
    return {"count": len(ordered), "median": round(middle, 2), "p95": round(p95, 2), "max": round(ordered[-1], 2)}


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small file system on a folder; yield False where that is not allowed."""
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    mounted = mount is not None and os.getuid() == 0 and subprocess.run(command, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


async def storm(kills: int, seed: int, sleep: float, folder: Path, *, speculates: bool = False) -> dict[str, Any]:
    """Run the whole; returns its figures."""
    began = time.monotonic()
    binary = await obtain(pinned_only=True)
    server = DevServer(binary, folder / "temporal.db", folder / "server.log", port=0, headless=True)
    with small_disk(folder / "state") as has_disk, ledger_service() as ledger:
        async with model_server() as model:
            await server.start()
            docs = folder / "docs"
            docs.mkdir()
            (docs / RATES).write_text("one for one\n")
            env = {"OPENAI_BASE_URL": model.openai_url, "PAYMENTS_URL": ledger.url}
            env |= {"SENNIT_TOOLS": TOOLS, "SENNIT_DOCS": str(docs), "SENNIT_WRITE_ROOT": str(docs)}
            if speculates:
                env["SENNIT_LEARN"] = "on"
            workers = WorkerProcesses(server.address, folder / "state", **env)
            chance = Random(seed)
            fleet = Fleet(server, workers, chance)
            try:
                fleet.start()
                client = await connect(server.address)
                onlooker = Onlooker(client)
                storm = Storm(client, fleet, ledger, model, chance, kills, has_disk, sleep, onlooker)
                storm.speculates = speculates
                runs = [asyncio.create_task(storm.keep_starting(seed * 10_000 + first)) for first in range(AT_ONCE)]
                helpers = [fleet.follow(), fleet.supervise(), onlooker.look(storm.shown)]
                helping = [asyncio.create_task(helper) for helper in helpers]
                await storm.fire()
                done, late = await asyncio.wait(runs, timeout=LAST_ONES)
                for task in (*helping, *late):
                    task.cancel()
                for task in done:
                    task.result()
                await onlooker.last_look(seen.case.name for seen in storm.watches)
                figures = await storm.figures()
            finally:
                workers.kill()
                await server.stop()
                for log in workers.state.glob("*.log"):  # the disk goes away
                    shutil.copy(log, folder)
    return {"seed": seed, "seconds": round(time.monotonic() - began), **figures}


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description="Kill processes under running agents and check every promise.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sleep", type=float, default=25.0)
    parser.add_argument("--speculate", action="store_true", help="have runs make calls early")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sennit-chaos-"))
    figures = asyncio.run(storm(given.kills, given.seed, given.sleep, folder, speculates=given.speculate))
    print(json.dumps(figures))
    if figures["broken"]:
        print(f"logs and database: {folder}", file=sys.stderr)
        os._exit(1)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
