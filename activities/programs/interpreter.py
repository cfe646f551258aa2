"""Runs scripts in CPython, in processes that can do nothing but compute.

A script runs until everything in it waits for calls. Then it stays in its process, and whatever it
was told is on record: another process, of any worker, goes on from there. Equal scripts, arguments,
seeds and ends make equal calls in an equal order.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any, Self, TypeVar

from sennit.activities.limits import MAX_KEPT_CHECKS_BYTES, MAX_KEPT_CLASSES_BYTES
from sennit.activities.programs.checkouts import InterpreterCrashed, processors
from sennit.activities.programs.classes import Classes
from sennit.activities.programs.progress import Advance, Snapshot, Standing, Start
from sennit.activities.programs.reading import Read, Unreadable, problem_of, read
from sennit.activities.programs.replay_record import Record
from sennit.activities.programs.script_process import ScriptProcesses
from sennit.activities.programs.script_run import ScriptRun
from sennit.activities.programs.type_check import types_checked
from sennit.activities.programs.values import Answer, Call, Ended, ScriptError, packed
from sennit.activities.sandbox.computing import NoAnswer
from sennit.activities.sandbox.confinement import find_confinement
from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.programs.files import place_in
from sennit.workflows.plan.programs.syntax import DOUBT

T = TypeVar("T")

_LIMIT = "limit"
"""The code of a problem that a machine with less to do may not have."""
_NO_SECCOMP = (
    "programs run only where the kernel has seccomp, which this worker's machine lacks: use a "
    "worker on Linux. A program of your own runs on a local stack with `--trust-program`"
)
_NO_FUNCTION = ""
"""In the place of a function: the top of the script alone runs."""


class SnapshotLost(Exception):
    """No process of this worker has the script any more, and a part of its record is
    in the store: load that.
    """


class Interpreter:
    """The scripts' processes of a worker.

    Each advance runs in a thread, and so does its `answer`; a script that computes for long
    keeps no other thread of the worker busy. `reading` reads in scripts what the
    interpreter must know of them.

    Where the kernel has no seccomp, only an interpreter that `trusts_scripts` runs any: those of
    the person whose process this is.
    """

    def __init__(self, reading: Read = read, *, trusts_scripts: bool = False) -> None:
        self._read = reading
        self._trusts_scripts = trusts_scripts
        self._processes = ScriptProcesses()
        self._classes = BoundedCache[str, Classes](MAX_KEPT_CLASSES_BYTES)
        self._checked = BoundedCache[str, list[Problem]](MAX_KEPT_CHECKS_BYTES)
        self._threads = ThreadPoolExecutor(processors(), "sennit-scripts")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the processes. The next script starts new ones."""
        await asyncio.to_thread(self._processes.close)

    def warm_up(self) -> None:
        """Start what the first script would wait for. Raises InterpreterCrashed."""
        try:
            self._processes.warm_up()
        except NoAnswer as error:
            raise InterpreterCrashed(f"the processes of scripts: {error}") from error

    async def start(
        self,
        script: str,
        function: str,
        arguments: dict[str, Any],
        answer: Answer,
        seed: str = "",
        *,
        runs: Sequence[tuple[int, str]] = ((0, ""),),
        clock: int = 0,
        is_trusted: bool = False,
    ) -> Advance:
        """Call an async function of a script and run until everything waits, or it ends.

        `seed` is the session: where the script's random numbers begin. With the run it is
        what its UUIDs come from: the last of `runs` that has begun by then. `clock` is the
        time in milliseconds. A script that a person trusts runs without seccomp, too.
        Raises InterpreterCrashed.
        """

        def started() -> Advance:
            try:
                start = self.start_of(script, function, arguments, seed, runs, clock)
            except Unreadable as error:
                return Advance(error=ScriptError("MemoryError", problem_of(error).message, 1))
            return self._started(start, answer, is_trusted=is_trusted)

        return await self._timed(started)

    async def resume(
        self,
        snapshot: Snapshot | None,
        ended: Mapping[int, Ended],
        answer: Answer,
        *,
        since: int = 0,
        is_trusted: bool = False,
    ) -> Advance:
        """Go on from a snapshot with how some of its calls ended, in that order; those that are not
        open any more are passed over. For `since` see ScriptRun.

        Raises SnapshotLost, also for a script that has ended, OtherCalls and InterpreterCrashed.
        """
        if snapshot is None:
            raise SnapshotLost("the script has ended")
        return await self._timed(
            lambda: self._resumed(snapshot, ended, answer, since, is_trusted=is_trusted)
        )

    async def type_problems(self, script: str, stubs: str) -> list[Problem]:
        """Return what the types of a script do not allow, and what its top level raises, with
        the lines. What types merely suspect has the code DOUBT. Types are checked where the
        program `ty` is installed.

        The latest scripts are not checked again. Raises InterpreterCrashed.
        """
        problems = await self._in_thread(lambda: self._known_problems(script, stubs))
        return list(problems)

    def classes(self, script: str) -> Classes:
        """Return the fields of a script's classes. Not to be called in an event
        loop. Raises Unreadable.
        """
        return self._classes.get_or_make(_key(script), lambda: self._read("classes", script))

    def start_of(
        self,
        script: str,
        function: str,
        arguments: dict[str, Any],
        seed: str,
        runs: Sequence[tuple[int, str]],
        clock: int,
    ) -> Start:
        """Return how a session begins. Not to be called in an event loop. Raises Unreadable."""
        text = self._read("own_text", script)
        runs_as_json = [list(run) for run in runs]
        return Start(text, function, packed(arguments), seed, runs_as_json, clock)

    async def _timed(self, work: Callable[[], Advance]) -> Advance:
        def timed() -> Advance:
            began = time.monotonic()
            progress = work()
            return replace(progress, took=time.monotonic() - began)

        return await self._in_thread(timed)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _started(self, start: Start, answer: Answer, *, is_trusted: bool = False) -> Advance:
        if not (self._may_run or is_trusted):
            return Advance(error=ScriptError("RuntimeError", _NO_SECCOMP))
        while True:
            run = self._new_run(start, Standing(start.clock), answer)
            with run.place.process.lock:
                if run.is_alive:
                    with _ended_on_errors(run):
                        progress = run.until_it_waits({"start": start._asdict()}, {}, 0)
                    return self._kept(progress, run, start, Record())
            # Another script needed the memory before this one had its turn.

    def _resumed(
        self,
        snapshot: Snapshot,
        ended: Mapping[int, Ended],
        answer: Answer,
        since: int,
        *,
        is_trusted: bool,
    ) -> Advance:
        run = snapshot.run if isinstance(snapshot.run, ScriptRun) else None
        while True:
            if run is None or not run.is_alive or run.place.advances != snapshot.advances:
                run = self._replayed(snapshot, answer, is_trusted=is_trusted)
            with run.place.process.lock:
                if run.is_alive and run.place.advances == snapshot.advances:
                    run.go_on(answer)
                    with _ended_on_errors(run):
                        progress = run.until_it_waits(None, ended, since)
                    return self._kept(progress, run, snapshot.start, snapshot.record)

    def _replayed(self, snapshot: Snapshot, answer: Answer, *, is_trusted: bool) -> ScriptRun:
        """Return the script where it stood, in a new place. Raises SnapshotLost,
        OtherCalls, InterpreterCrashed.
        """
        start, record = snapshot.start, snapshot.record
        if start is None or not record.is_whole:
            raise SnapshotLost("its process has ended")
        if not (self._may_run or is_trusted):
            raise InterpreterCrashed(_NO_SECCOMP)
        run = self._new_run(start, snapshot.standing.copy(), answer)
        pieces = list(record.messages())
        for piece in pieces:
            run.know_refs(piece)
        run.place.advances = snapshot.advances
        with run.place.process.lock:
            if run.is_alive:
                run.replay(start._asdict(), pieces)
        return run

    @property
    def _may_run(self) -> bool:
        """Whether scripts run here: all of Python is only harmless in a process
        that the kernel holds.
        """
        return self._trusts_scripts or find_confinement().seccomp

    def _new_run(self, start: Start, standing: Standing, answer: Answer) -> ScriptRun:
        place = self._processes.place()
        run = ScriptRun(start.text, start.function, place, standing, answer, self._read)
        run.know_refs(start.arguments)
        return run

    def _kept(
        self, progress: Advance, run: ScriptRun, start: Start | None, record: Record
    ) -> Advance:
        """Return how far a script came and what it printed, with a snapshot if it waits."""
        progress = replace(progress, printed=run.printed)
        if not run.waits:
            run.place.leave()
            return progress
        run.place.advances += 1
        self._processes.used(run.place.process)
        standing = run.standing.copy()
        told = record.and_then(run.entries)
        snapshot = Snapshot(standing, told, start, run, run.place.advances)
        return replace(progress, snapshot=snapshot)

    def _known_problems(self, script: str, stubs: str) -> list[Problem]:
        key = _key(json.dumps([script, stubs]))
        known = self._checked.get(key)
        if known is not None:
            return known
        problems = types_checked(self._read("own_text", script), script, stubs)
        if self._may_run and all(problem.code == DOUBT for problem in problems):
            problems += self._top_problems(script)
        if all(problem.code != _LIMIT for problem in problems):
            self._checked.put(key, problems)
        return problems

    def _top_problems(self, script: str) -> list[Problem]:
        """Return what the top level of a script raises."""
        try:
            start = self.start_of(script, _NO_FUNCTION, {}, "", ((0, ""),), 0)
        except Unreadable as error:
            return [problem_of(error)]
        raised = self._started(start, _unanswered).error
        if raised is None:
            return []
        message = f"{raised.type}: {raised.message}"
        code = _LIMIT if raised.type in ("TimeoutError", "MemoryError") else "script"
        place = place_in(script, raised.line or 1)
        return [Problem(code, ("line", place), message)]


@contextmanager
def _ended_on_errors(run: ScriptRun) -> Iterator[None]:
    """End the process of a script if its call cannot be answered: it would wait
    for that answer for good.
    """
    try:
        yield
    except BaseException:
        run.place.process.end()
        raise


def _key(text: str) -> str:
    """Return what is kept of a text is known by."""
    return sha256(text.encode()).hexdigest()


def _unanswered(call: Call) -> Ended:
    return Ended(error=("NotImplementedError", f"{call.function} is not called here"))
