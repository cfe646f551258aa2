"""An event loop for asyncio in which only the worker ends what a script waits for.

Two runs of a script are equal if the worker tells both the same ends in the same order: callbacks run first in, first
out, the clock stands still between two ends, and sets of tasks and futures have one order.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from types import CodeType, FrameType
from typing import Any, Final

from sennit.activities.programs.cpython.private_interfaces import frame_above, set_running_loop

MakeCall = Callable[[str, list[Any], dict[str, Any], int, str], int]
"""Tells the worker of a call: word, arguments, line, and call site. Returns the number of the call."""

_AS_COMPLETED: Final = asyncio.as_completed
_TICKET_COROUTINE: Final = "_wrap_awaitable"
"""What asyncio wraps a ticket in, to wait for it."""
_WAKES_SLEEPER: Final = "_set_result_unless_cancelled"
"""The callback of the timer of `asyncio.sleep`. Other timers are those of timeouts."""


class ScriptTask(asyncio.Task[Any]):
    """A task that is known by where the script started it: `/look#2/fetch#1`.

    Its hash is the number of its creation, so that a set of tasks has the same order in each replay.
    """

    def __init__(self, coro: Any, *, site: str, ordinal: int, line: int, is_call: bool, **options: Any) -> None:
        self.site = site
        self.ordinal = ordinal
        self.line = line
        self.is_call = is_call
        self.started: dict[str, int] = {}
        """How many tasks of each name it has started."""
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self.ordinal


class ScriptFuture(asyncio.Future[Any]):
    """A future whose hash is the number of its creation."""

    ordinal = 0

    def __hash__(self) -> int:
        return self.ordinal


class _Timer(asyncio.TimerHandle):
    number: int
    _scheduled: bool


class ReplayLoop(asyncio.AbstractEventLoop):
    """Runs the coroutines of one session.

    `make_call` tells the worker of a timeout, and `make_call_later` of a sleep: it may hear of many at once.
    `call_codes` are those of the coroutines that a call of a tool is: a task of it has no name of its own, since the
    script never wrote that coroutine. `file` is the script's.
    """

    def __init__(
        self, make_call: MakeCall, make_call_later: MakeCall, call_codes: tuple[CodeType, ...], file: str
    ) -> None:
        self.clock = 0
        """In milliseconds."""
        self._make_call = make_call
        self._make_call_later = make_call_later
        self._call_codes = call_codes
        self._file = file
        self._ready = deque[asyncio.Handle]()
        self._futures: dict[int, ScriptFuture] = {}
        self._timers: dict[int, _Timer] = {}
        self._created = 0
        self._timeouts = 0

    # What asyncio asks of a loop.

    def time(self) -> float:
        return self.clock / 1000

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def create_future(self) -> ScriptFuture:
        self._created += 1
        future = ScriptFuture(loop=self)
        future.ordinal = self._created
        return future

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
        eager_start: bool | None = None,
    ) -> ScriptTask:
        # An eager task would run before the order of the ready queue says so.
        del eager_start
        self._created += 1
        line = self.line()
        is_call = getattr(coro, "cr_code", None) in self._call_codes
        kind = _kind_of(coro, is_call=is_call)
        site = ""
        starter = asyncio.current_task(self)
        if isinstance(starter, ScriptTask):
            count = starter.started.get(kind, 0) + 1
            starter.started[kind] = count
            site = f"{starter.site}/{kind}#{count}"
        return ScriptTask(
            coro,
            site=site,
            ordinal=self._created,
            line=line,
            is_call=is_call,
            loop=self,
            name=name or site,
            context=context,
        )

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = _Timer(self.time() + delay, callback, args, self, context)
        site = self.site()
        if getattr(callback, "__name__", "") == _WAKES_SLEEPER:
            timer.number = self._make_call_later("sleep", [delay], {}, self.line(), site)
        else:
            self._timeouts += 1
            site = f"{site}/__ring#{self._timeouts}"
            timer.number = self._make_call("sleep", [delay], {}, self.line(), site)
        timer._scheduled = True
        self._timers[timer.number] = timer
        return timer

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_later(when - self.time(), callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: Any) -> None:
        self._timers.pop(handle.number, None)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Say nothing: an error that nobody has asked for is no output of the script."""

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        pass

    async def shutdown_asyncgens(self) -> None:
        pass

    # What the session asks of it.

    def open_call(self, number: int) -> ScriptFuture:
        """Return the future of a call that the worker has taken."""
        future = self._futures[number] = self.create_future()
        return future

    def end_call(self, number: int, value: Any, error: BaseException | None) -> None:
        """Have a call or a timer end. One that nobody waits for any more is passed over."""
        timer = self._timers.pop(number, None)
        if timer is not None:
            timer._scheduled = False
            if error is None:
                self._ready.append(timer)
            else:
                # A sleep that the worker refuses: what the timer would wake fails.
                self._futures[number] = timer._args[0]
        future = self._futures.pop(number, None)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def open_numbers(self) -> list[int]:
        """Return the numbers of the calls and timers that the script still waits for."""
        for number, future in list(self._futures.items()):
            if future.done():
                del self._futures[number]
        return [*self._futures, *self._timers]

    def run_until_idle(self) -> None:
        """Run callbacks until all of the script waits."""
        set_running_loop(self)
        try:
            while self._ready:
                # Callbacks that one turn adds belong to the next turn, as in asyncio's own loop.
                for _ in range(len(self._ready)):
                    handle = self._ready.popleft()
                    if not handle.cancelled():
                        handle._run()
        finally:
            set_running_loop(None)

    def site(self) -> str:
        """Return the call site of the current coroutine: a task that is only a call or a ticket has none of its own."""
        task = asyncio.current_task(self)
        if not isinstance(task, ScriptTask):
            return ""
        if task.is_call or "/__ticket#" in task.site:
            return task.site.rpartition("/")[0]
        return task.site

    def line(self) -> int:
        """Return the line of the script that runs, or else the line that has started the current task."""
        frame: FrameType | None = frame_above(1)
        while frame is not None:
            if frame.f_code.co_filename == self._file:
                return frame.f_lineno
            frame = frame.f_back
        task = asyncio.current_task(self)
        return task.line if isinstance(task, ScriptTask) else 0


async def wait_for(fut: Any, timeout: float | None) -> Any:  # noqa: ASYNC109 - the signature is that of asyncio
    """Do what `asyncio.wait_for` does since Python 3.12, so that older versions make the same calls."""
    if timeout is None or timeout > 0:
        async with asyncio.timeout(timeout):
            return await fut
    task = asyncio.ensure_future(fut)
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    try:
        return task.result()
    except asyncio.CancelledError as error:
        raise TimeoutError from error


def as_completed(fs: Any, *, timeout: float | None = None) -> Any:
    """Do what `asyncio.as_completed` does, which begins coroutines in the order of their addresses, in that of `fs`."""
    if asyncio.isfuture(fs) or asyncio.iscoroutine(fs):
        return _AS_COMPLETED(fs, timeout=timeout)  # type: ignore[arg-type]  # which raises
    futures = [asyncio.ensure_future(each) for each in dict.fromkeys(fs)]
    return _AS_COMPLETED(futures, timeout=timeout)


def _kind_of(coro: Any, *, is_call: bool) -> str:
    if is_call:
        return "__call"
    kind = str(getattr(coro, "__name__", "coroutine"))
    if kind == _TICKET_COROUTINE:
        return "__ticket"
    # People look for functions of the script; `asyncio.sleep` as a task is none.
    code = getattr(coro, "cr_code", None)
    is_of_asyncio = code is not None and code.co_filename in (asyncio.tasks.__file__, __file__)
    return f"__{kind}" if is_of_asyncio else kind
