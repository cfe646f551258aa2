"""Where tools run: plain functions in threads, coroutine functions on an event loop of their own.

Tools are never trusted to end. Whatever one does, the loop that polls Temporal, beats and
keeps time goes on turning.
"""

import asyncio
import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from sennit.activities.limits import MAX_LOST_THREADS
from sennit.activities.toolbox.errors import ToolExit
from sennit.activities.toolbox.loop import SteadyLoop

GRACE = 2.0
"""Seconds in which a cancelled coroutine may tidy up before its caller goes on."""
TICK = 1.0
LOST_TICKS: Final = 10
"""Ticks after which a loop is given up that something blocks for which no call waits any more."""
_REMEDY: Final = "write it as a plain function, which gets a thread of its own"
_HELPERS: Final = 32  # threads of a tool loop's own, for names of hosts and `asyncio.to_thread`

T = TypeVar("T")
log = logging.getLogger("tools")
_owner: ContextVar["_Call | None"] = ContextVar("owner", default=None)


class LoopBlocked(TimeoutError):
    """The event loop of the coroutine functions is blocked; the message says by which call."""


class ToolThreads:
    """The threads of this process in which tools run."""

    def __init__(self) -> None:
        # Callers bound how many calls run; the others are lost.
        self._threads = ThreadPoolExecutor(10_000, "tool")
        self._lost: dict[Future[Any], str] = {}
        self._loop: ToolLoop | None = None

    @property
    def lost(self) -> int:
        """How many threads are held by calls that were given up."""
        return len(self._lost)

    @property
    def blocked_seconds(self) -> float:
        """For how long one call has blocked the event loop of all coroutine functions."""
        if not self._loop:
            return 0.0
        return self._loop.blocked_seconds

    @property
    def exhausted(self) -> str | None:
        """Why this process should be replaced, or None."""
        if len(self._lost) < MAX_LOST_THREADS:
            return None
        names = ", ".join(name for name, _ in Counter(self._lost.values()).most_common(3))
        return (
            f"{len(self._lost)} threads are lost in calls that do not end, most of them of {names}"
        )

    async def run(self, function: Callable[[], T], tool: str) -> T:
        """Call a plain function in a thread. Cancelling gives up the thread, which is
        lost until the call ends.

        Raises what the function raises, and ToolExit for what is no error, such as SystemExit.
        """
        ended: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        future = self._threads.submit(copy_context().run, guarded, function)
        future.add_done_callback(partial(_report_end, _errands_here(), ended))
        try:
            return await ended
        finally:
            if not (future.cancel() or future.done()):
                self._lose(future, tool)

    async def run_async(
        self,
        function: Callable[[], Coroutine[Any, Any, T]],
        tool: str,
        node: str,
        limit: asyncio.Timeout | None = None,
        *,
        repeatable: bool,
    ) -> T:
        """Call a coroutine function on the tool loop. While another call blocks that loop, the
        time of `limit` stops.

        Cancelling cancels the call and waits a moment for its end. If a call blocks the loop and is
        given up, later calls get a new loop; those under way are called again there if they are
        `repeatable`, else LoopBlocked is raised. Raises what the function raises, and ToolExit for
        what is no error, such as SystemExit.
        """
        while True:
            if self._loop is None or self._loop.lost:
                self._loop = ToolLoop(self._lose)
            try:
                return await self._loop.run(_Call(tool, node, limit), function)
            except LoopBlocked:
                if not repeatable or (limit and limit.expired()):
                    raise

    def _lose(self, future: Future[Any], tool: str) -> None:
        self._lost[future] = tool
        future.add_done_callback(lambda ended: self._lost.pop(ended, None) and None)


class _Errands:
    """Has another event loop do something. It is woken once for all that has come meanwhile: that
    costs a system call, and the interpreter goes to and fro between the threads. A group of short
    calls begins, and ends, at one moment.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._waiting: list[Callable[[], object]] = []

    def add(
        self, errand: Callable[[], object], *, by: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """Add an errand. A loop `by` which it is added wakes the other one at the end of its turn.
        Raises RuntimeError if the other one is closed.
        """
        with self._lock:
            self._waiting.append(errand)
            is_first = len(self._waiting) == 1
        if is_first and by is not None:
            by.call_soon(self._wake)
        elif is_first:
            self._wake()

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._run, context=Context())

    def _run(self) -> None:
        with self._lock:
            found, self._waiting = self._waiting, []
        for errand in found:
            errand()


_errands: dict[asyncio.AbstractEventLoop, _Errands] = {}


def _errands_here() -> _Errands:
    """Return by what others tell the running loop how its calls have ended."""
    loop = asyncio.get_running_loop()
    found = _errands.get(loop)
    if found is None:
        for closed in [each for each in list(_errands) if each.is_closed()]:
            _errands.pop(closed, None)
        found = _errands[loop] = _Errands(loop)
    return found


class _Call:
    """A call on a tool loop. `ended` belongs to the caller's loop, `task` to the tool loop."""

    def __init__(self, tool: str, node: str, limit: asyncio.Timeout | None) -> None:
        self.tool, self.node, self.limit = tool, node, limit
        self.blocked = 0.0
        self.cancelled = False
        self.task: asyncio.Task[Any] | None = None
        self.home = asyncio.get_running_loop()
        self.errands = _errands_here()
        self.ended: asyncio.Future[Any] = self.home.create_future()
        # Seen, even if given up.
        self.ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    def begin(
        self, function: Callable[[], Coroutine[Any, Any, Any]], report: Callable[[], None]
    ) -> None:
        _owner.set(self)
        self.task = asyncio.get_running_loop().create_task(_guarded_async(function, self))
        self.task.add_done_callback(lambda _: report())
        if self.cancelled:
            self.task.cancel()

    def cancel(self) -> None:
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()

    def settle(self) -> None:
        task = self.task
        assert task is not None
        error = None
        if not task.cancelled():
            error = task.exception()
        if self.ended.done():
            return
        if task.cancelled():
            self.ended.cancel()
        elif error is not None:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(task.result())


class ToolLoop:
    """An event loop in a thread of its own. A watch on the caller's loop finds what blocks it."""

    def __init__(self, lose: Callable[[Future[Any], str], None]) -> None:
        self.lost = False
        self._closing = False
        self.blocked_seconds = 0.0
        self._lose = lose
        self._calls: set[_Call] = set()
        self._owners: WeakKeyDictionary[asyncio.Task[Any], _Call | None] = WeakKeyDictionary()
        self._turned = True
        self._watch: asyncio.Task[None] | None = None
        self._closed: Future[None] = Future()
        self._loop = SteadyLoop()
        self._loop.set_default_executor(ThreadPoolExecutor(_HELPERS, "tool-helper"))
        self._loop.set_task_factory(self._make_task)
        self._errands = _Errands(self._loop)
        self._thread = threading.Thread(target=self._serve, name="tools", daemon=True)
        self._thread.start()

    async def run(self, call: _Call, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Make the call. See `ToolThreads.run_async`."""
        report = partial(self._report, call)
        self._errands.add(partial(copy_context().run, call.begin, function, report), by=call.home)
        self._calls.add(call)
        if self._watch is None or self._watch.done():
            self._watch = call.home.create_task(self._keep_watch(), context=Context())
        try:
            result: T = await asyncio.shield(call.ended)
        except asyncio.CancelledError:
            self._loop.call_soon_threadsafe(call.cancel)
            await asyncio.wait({call.ended}, timeout=GRACE)
            if not call.ended.done():
                self._give_up(call)
            elif not call.ended.cancelled():
                return call.ended.result()  # type: ignore[no-any-return]
            if call.blocked and call.limit and call.limit.expired():
                problem = f"it blocked the event loop of all async tools for {call.blocked:.0f} s"
                raise LoopBlocked(f"{problem}; {_REMEDY}") from None
            raise
        finally:
            self._calls.discard(call)
        return result

    def _report(self, call: _Call) -> None:
        with suppress(RuntimeError):  # the caller's loop is closed
            call.errands.add(call.settle)

    async def _keep_watch(self) -> None:
        """Look every second whether the loop has turned, while there are calls."""
        ticks = orphaned = 0
        time = asyncio.get_running_loop().time
        while self._calls and not self.lost:
            self._turned, before = False, time()
            self._loop.call_soon_threadsafe(self._turn)
            await asyncio.sleep(TICK)
            if self._turned:
                self.blocked_seconds, ticks, orphaned = 0.0, 0, 0
                continue
            ticks += 1
            blocker = self._blocker()
            self._stop_clocks(blocker, time() - before)
            if ticks == 2:
                log.warning("%s", self._diagnosis(blocker))
            orphaned = 0 if blocker in self._calls else orphaned + 1
            if orphaned == LOST_TICKS:
                self._abandon(blocker)
        self.blocked_seconds = 0.0

    def _turn(self) -> None:
        self._turned = True

    def _blocker(self) -> _Call | None:
        """Return the call whose code runs now, also in a task that it has started."""
        task = asyncio.current_task(self._loop)
        if not task:
            return None
        return self._owners.get(task)

    def _stop_clocks(self, blocker: _Call | None, seconds: float) -> None:
        self.blocked_seconds += seconds
        for call in self._calls:
            if call is blocker:
                call.blocked = self.blocked_seconds
            elif (
                call.limit and not call.limit.expired() and (when := call.limit.when()) is not None
            ):
                call.limit.reschedule(when + seconds)

    def _give_up(self, call: _Call) -> None:
        if call.blocked and self._blocker() is call:
            self._abandon(call)

    def _abandon(self, blocker: _Call | None) -> None:
        """Leave the loop to what blocks it; calls under way end with LoopBlocked."""
        self.lost = True
        self._lose(self._closed, blocker.tool if blocker else "unknown")
        for call in self._calls:
            self._loop.call_soon_threadsafe(call.cancel)
            if call is not blocker and not call.ended.done():
                by = "what a tool left running"
                if blocker:
                    by = f"{blocker.tool} of {blocker.node}"
                call.ended.set_exception(
                    LoopBlocked(f"the event loop of all async tools is blocked by {by}")
                )
        asyncio.run_coroutine_threadsafe(self._close(), self._loop)

    async def _close(self) -> None:
        """End what is left, once the loop turns again."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=GRACE)
        self._closing = True
        self._loop.stop()

    def _serve(self) -> None:
        while not self._closing:
            try:
                self._loop.run_forever()
            except (KeyboardInterrupt, SystemExit) as error:  # of a task that no call waits for
                log.error("a tool left a task behind that ended with %r", error)
        self._loop.close()
        self._closed.set_result(None)

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, **options)
        self._owners[task] = _owner.get()
        return task

    def _diagnosis(self, blocker: _Call | None) -> str:
        frame = sys._current_frames().get(self._thread.ident or 0)
        where = ""
        if frame:
            where = f", at {frame.f_code.co_filename}:{frame.f_lineno}"
        who = "a task or callback that a tool left behind"
        if blocker:
            who = f"{blocker.tool} of {blocker.node}"
        return f"{who} blocks the event loop of all async tools{where}; {_REMEDY}"


def _report_end(errands: _Errands, ended: asyncio.Future[T], call: Future[T]) -> None:
    """Have the caller's loop learn how a call in a thread has ended."""
    with suppress(RuntimeError):  # the caller's loop is closed
        errands.add(partial(_settle, ended, call))


def _settle(ended: asyncio.Future[T], call: Future[T]) -> None:
    if ended.done():
        return
    error = call.exception()
    if error is not None:
        ended.set_exception(error)
    else:
        ended.set_result(call.result())


def guarded(function: Callable[[], T]) -> T:
    """Call the function. Raises ToolExit in place of what no future can carry, or
    would end an event loop.
    """
    try:
        return function()
    except (
        asyncio.CancelledError,
        CancelledError,
        KeyboardInterrupt,
        StopIteration,
        SystemExit,
    ) as error:
        raise ToolExit(f"it raised {error!r}") from error


async def _guarded_async(function: Callable[[], Coroutine[Any, Any, T]], call: _Call) -> T:
    try:
        return await function()
    except (KeyboardInterrupt, SystemExit) as error:
        raise ToolExit(f"it raised {error!r}") from error
    except asyncio.CancelledError as error:
        if call.cancelled:
            raise
        raise ToolExit(f"it raised {error!r}") from error


tool_threads: Final = ToolThreads()
"""Those of this process."""
