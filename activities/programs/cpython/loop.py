"""An event loop for asyncio in which only the worker ends what a script waits for.

Two runs of a script are equal if the worker tells both the same ends in the same order:
callbacks run first in, first out, the clock stands still between two ends, and sets of tasks and
futures have one order.

What `main` or a task of a script runs is a `Branch`: its own coroutines, and
the phase that it is in.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from functools import partial
from types import CodeType, FrameType
from typing import Any, Final, TypeVar

from sennit.activities.programs.cpython.modules import is_own
from sennit.activities.programs.cpython.names import MODULE
from sennit.activities.programs.cpython.private_interfaces import frame_above, set_running_loop

MakeCall = Callable[[str, list[Any], dict[str, Any], int, str], int]
"""Tells the worker of a call: word, arguments, line, and call site. Returns
the number of the call.
"""

_AS_COMPLETED: Final = asyncio.as_completed
Started = TypeVar("Started", bound="ScriptTask")
_WAKES_SLEEPER: Final = "_set_result_unless_cancelled"
"""The callback of the timer of `asyncio.sleep`. Other timers are those of timeouts."""


class Branch:
    """What `main` or a task of the script runs. `site` names it, `depth` says
    in how many tasks it is.
    """

    def __init__(self, site: str = "", depth: int = 0) -> None:
        self.site = site
        self.depth = depth
        self.phase = ""
        self.started: dict[str, int] = {}
        """How many tasks of each name, and how many that are equal, it has started."""
        self.running: dict[int, asyncio.Task[Any]] = {}
        """The tasks of asyncio that it has started and that have not ended, by their ordinals."""

    @property
    def place(self) -> str:
        """The site of what it calls or starts now: with its phase."""
        if not self.phase:
            return self.site
        return f"{self.site}/={self.phase}"

    def count(self, name: str) -> int:
        """Count one more of that name, and return which it is."""
        count = self.started[name] = self.started.get(name, 0) + 1
        return count

    def end(self) -> None:
        """Cancel what it has started and not waited for."""
        for task in list(self.running.values()):
            task.cancel()


class ScriptTask(asyncio.Task[Any]):
    """A task of asyncio that is known by where its branch started it: `/fetch#1`.

    Its hash is the number of its creation, so that a set of tasks has the
    same order in each replay.
    """

    def __init__(
        self,
        coro: Any,
        *,
        branch: Branch,
        site: str,
        ordinal: int,
        line: int,
        is_call: bool,
        **options: Any,
    ) -> None:
        self.branch = branch
        self.site = site
        self.ordinal = ordinal
        self.line = line
        self.is_call = is_call
        self.started: dict[str, int] = {}
        """How many tasks of each name it has started."""
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self.ordinal


class Ticket(ScriptTask):
    """What `task` returns. `waiting` counts the joins and awaits that wait for it."""

    waiting = 0
    number = -1
    """Of the call with which the worker heard that it began."""
    budget: Any = None
    """What its calls may spend, as the script has written it."""
    places: asyncio.Semaphore | None = None
    """Those of the join that lets only so many of its tickets run at once."""
    tell_joined: Callable[[list["Ticket"]], None] | None = None
    """Called when the script has read the value of a task."""

    def __await__(self) -> Generator[Any, Any, Any]:
        self.waiting += 1
        try:
            value = yield from super().__await__()
        finally:
            self.waiting -= 1
        if self.tell_joined is not None:
            self.tell_joined([self])
        return value

    __iter__ = __await__

    def __repr__(self) -> str:
        return f"<Ticket {self.get_name()}>"


class ScriptFuture(asyncio.Future[Any]):
    """A future whose hash is the number of its creation."""

    ordinal = 0
    given_up: Callable[[], None] | None = None
    """What is to be done when the script waits for it no longer: only for that of a call."""

    def cancel(self, msg: Any | None = None) -> bool:
        was_pending = super().cancel(msg)
        if was_pending and self.given_up is not None:
            self.given_up()
        return was_pending

    def __hash__(self) -> int:
        return self.ordinal


class _Timer(asyncio.TimerHandle):
    number: int
    _scheduled: bool


class ReplayLoop(asyncio.AbstractEventLoop):
    """Runs the coroutines of one session.

    `make_call` tells the worker of a timeout, and `make_call_later` of a sleep: it may hear of many
    at once. `call_codes` are those of the coroutines that a call of a tool is: a task of it has no
    name of its own, since the script never wrote that coroutine. `file` is the script's.
    """

    def __init__(
        self,
        make_call: MakeCall,
        make_call_later: MakeCall,
        call_codes: tuple[CodeType, ...],
        file: str,
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
        self._closed: list[int] = []
        """The calls and timers that the script has given up since the worker
        was told of such ones.
        """
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
        line = self.line()
        is_call = getattr(coro, "cr_code", None) in self._call_codes
        starter = asyncio.current_task(self)
        if not isinstance(starter, ScriptTask):
            return self.start(
                ScriptTask, coro, Branch(), "", line, is_call=is_call, name=name, context=context
            )
        kind = _kind_of(coro, is_call=is_call)
        count = starter.started.get(kind, 0) + 1
        starter.started[kind] = count
        site = f"{starter.site}/{kind}#{count}"
        return self.start(
            ScriptTask,
            coro,
            starter.branch,
            site,
            line,
            is_call=is_call,
            name=name,
            context=context,
        )

    def start(
        self,
        kind: type[Started],
        coro: Coroutine[Any, Any, Any],
        branch: Branch,
        site: str,
        line: int,
        *,
        is_call: bool = False,
        name: str | None = None,
        context: Context | None = None,
    ) -> Started:
        """Start a task of asyncio in a branch, at a site of that. The branch that starts it
        keeps it until it ends.
        """
        self._created += 1
        task = kind(
            coro,
            branch=branch,
            site=site,
            ordinal=self._created,
            line=line,
            is_call=is_call,
            loop=self,
            name=name or f"{branch.site}{site}",
            context=context,
        )
        starter = asyncio.current_task(self)
        if isinstance(starter, ScriptTask):
            running, ordinal = starter.branch.running, task.ordinal
            running[ordinal] = task
            task.add_done_callback(lambda _: running.pop(ordinal, None))
        return task

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
        if self._timers.pop(handle.number, None) is not None:
            self._closed.append(handle.number)

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
        future.given_up = partial(self._give_up, number)
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

    def _give_up(self, number: int) -> None:
        if self._futures.pop(number, None) is not None:
            self._closed.append(number)

    @property
    def open_numbers(self) -> list[int]:
        """The numbers of the calls and timers that the script waits for."""
        return [*self._futures, *self._timers]

    @property
    def waits(self) -> bool:
        """Whether the script waits for a call or a timer."""
        return bool(self._futures or self._timers)

    def give_up_all(self) -> None:
        """Have the script wait for nothing any more."""
        self._closed += self.open_numbers
        self._futures.clear()
        self._timers.clear()

    def take_closed(self) -> list[int]:
        """Return the numbers of the calls and timers that the script has given up
        since this was asked last.
        """
        closed, self._closed = self._closed, []
        return closed

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
        """Return the call site of the current coroutine: a task that is only a call or a
        ticket has none of its own.
        """
        task = asyncio.current_task(self)
        if not isinstance(task, ScriptTask):
            return ""
        site = task.site
        if task.is_call:
            site = site.rpartition("/")[0]
        return f"{task.branch.place}{site}"

    def branch(self) -> Branch:
        """Return what the current coroutine belongs to."""
        task = asyncio.current_task(self)
        return task.branch if isinstance(task, ScriptTask) else Branch()

    def line(self) -> int:
        """Return the line of the script that runs, or else the line that has
        started the current task.
        """
        frame = self._script_frame()
        if frame is not None:
            return frame.f_lineno
        task = asyncio.current_task(self)
        return task.line if isinstance(task, ScriptTask) else 0

    def module_names(self) -> dict[str, Any]:
        """Return the names of the module whose code runs, none if no code of the script does."""
        frame = self._script_frame()
        return frame.f_globals if frame is not None else {}

    def _script_frame(self) -> FrameType | None:
        """Return the innermost frame of the script."""
        frame: FrameType | None = frame_above(1)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        return frame


async def wait_for(fut: Any, timeout: float | None) -> Any:  # noqa: ASYNC109 - the signature is that of asyncio
    """Do what `asyncio.wait_for` does since Python 3.12, so that older
    versions make the same calls.
    """
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
    """Do what `asyncio.as_completed` does, which begins coroutines in the order of their
    addresses, in that of `fs`.
    """
    if asyncio.isfuture(fs) or asyncio.iscoroutine(fs):
        return _AS_COMPLETED(fs, timeout=timeout)  # type: ignore[arg-type]  # which raises
    futures = [asyncio.ensure_future(each) for each in dict.fromkeys(fs)]
    return _AS_COMPLETED(futures, timeout=timeout)


def _kind_of(coro: Any, *, is_call: bool) -> str:
    if is_call:
        return "__call"
    kind = str(getattr(coro, "__name__", "coroutine"))
    # People look for functions of the script; `asyncio.sleep` as a task is none.
    code = getattr(coro, "cr_code", None)
    is_of_asyncio = code is not None and code.co_filename in (asyncio.tasks.__file__, __file__)
    if is_of_asyncio:
        return f"__{kind}"
    frame = getattr(coro, "cr_frame", None)
    module = MODULE
    if frame is not None:
        module = frame.f_globals.get("__name__", MODULE)
    if module == MODULE or not is_own(module):
        return kind
    return f"{module}.{kind}"
