"""What a script finds defined that runs coroutines of its own side by side: the names of asyncio, in Monty's Python.

Monty runs coroutines side by side only in a `gather` that is there from the beginning. So a pool of slots waits in one,
beside `main`, and grows by doubling; a coroutine that is started runs in a free slot. What waits in the script waits
for a future of the host, which wakes one coroutine after the other in the order of asyncio: see `scheduler`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sennit.activities.programs.coroutines.groups import AS_COMPLETED, GATHER, SHIELD, WAIT
from sennit.activities.programs.coroutines.primitives import (
    BOUNDED,
    EVENT,
    LIFO_QUEUE,
    LOCK,
    NEXT_OF,
    PRIORITY_QUEUE,
    QUEUE,
    SEMAPHORE,
    TASK_GROUP,
    TIMEOUT,
    WAIT_FOR,
)
from sennit.activities.programs.python.exceptions import has_own_errors

_TASKS = """
from asyncio import gather as __native
__tasks = {}
__at = {"line": 0}
__CANCELLED = KeyboardInterrupt
class __Task:
    def __init__(self, name, coroutine, state, line=0):
        self._name = self._shown = name
        self._line = line
        self._coroutine = coroutine
        self._state = state
        self._value = None
        self._error = None
        self._on = None
        self._then = []
        self._begun = {}
        self._doomed = False
        self._hops = 1
    def done(self):
        return self._state == "done"
    def cancelled(self):
        return self.done() and isinstance(self._error, __CANCELLED)
    def exception(self):
        if not self.done():
            raise RuntimeError("the task has not ended")
        if self.cancelled():
            raise self._error
        return self._error
    def result(self):
        if self.exception() is not None:
            raise __raised(self._error)
        return self._value
    def get_name(self):
        return self._shown
    def set_name(self, name):
        self._shown = name
    def add_done_callback(self, then, *, context=None):
        if self.done():
            then(self)
        else:
            self._then.append(then)
    def cancel(self, msg=None):
        if self.done():
            return False
        if self._on is not None:
            return self._on.cancel()
        if self._state == "new" or not __cancel(self._name):
            self._doomed = True
        return True
    async def wait(self):
        if not self.done():
            me = __current()
            self._then.append(lambda task: __wake(me._name, task._hops))
            await __pause(me, self)
        return self.result()
    def end(self, value, error):
        self._value, self._error, self._state = value, __caught(error), "done"
        __tasks.pop(self._name, None)
        for then in self._then:
            then(self)
        self._then = []
__kept = {}
class __Call:
    def __init__(self, function, site, args, kwargs):
        self._parts = (function, site[1], args, kwargs)
        __kept[self] = site
    def begin(self):
        if self._parts is None:
            raise RuntimeError("cannot reuse already awaited coroutine")
        (function, line, args, kwargs), self._parts = self._parts, None
        __kept.pop(self, None)
        return function(*args, __line=line, **kwargs)
def __later(function, name, line):
    return lambda *args, **kwargs: __Call(function, [name, line], args, kwargs)
def __on(line, value):
    __at["line"] = line
    return value
def __current():
    return __tasks[__me()]
def __check(me):
    if me._doomed:
        me._doomed = False
        raise __CANCELLED("cancelled")
async def __pause(me, on=None):
    __check(me)
    me._on = on
    try:
        await __wait(__at["line"])
    finally:
        me._on = None
def __spawn(coroutine, *, name=None, context=None, line=0):
    if isinstance(coroutine, __Task):
        return coroutine
    kind, text, line = str(type(coroutine)), str(coroutine), line or __at["line"]
    if kind == "<class 'str'>":
        coroutine, is_a = __one(coroutine), "__ticket"
    elif isinstance(coroutine, __Call) or "external_future" in text:
        if isinstance(coroutine, __Call):
            __kept.pop(coroutine, None)
        coroutine, is_a = __end_of(coroutine), "__call"
    elif kind == "<class 'coroutine'>":
        is_a = text[len("<coroutine object "):-1]
    else:
        raise TypeError(f"a coroutine is needed, not {coroutine!r}: write create_task(function(...))")
    me = __current()
    me._begun[is_a] = number = me._begun.get(is_a, 0) + 1
    task = __Task(f"{me._name}/{is_a}#{number}", coroutine, "new", line)
    task._shown = name or task._name
    __tasks[task._name] = task
    __begin(task._name)
    return task
async def __one(ticket):
    return (await __join([ticket], __at["line"]))[0]
async def __end_of(call):
    if isinstance(call, __Call):
        return await call.begin()
    __adopt(str(call))
    return await call
async def __live(task):
    if task._doomed:
        task.end(None, __CANCELLED("cancelled"))
        return
    task._state = "running"
    __at["line"] = task._line
    try:
        value = await task._coroutine
    except BaseException as error:
        task.end(None, error)
    else:
        task.end(value, None)
async def __slot():
    while True:
        await __live(__tasks[await __idle()])
async def __grow(count):
    await __more()
    slots = [__slot() for _ in range(count)]
    await __native(*slots, __grow(min(2 * count, 500)))
async def __run(function, arguments):
    __tasks[""] = __Task("", None, "running")
    value = await function(**arguments)
    __leave(value, list(__kept.values()))
async def __enter(function, arguments):
    await __native(__run(function, arguments), __grow(4))
async def __awaited(value, line):
    __at["line"] = line
    if isinstance(value, __Task):
        return await value.wait()
    if str(type(value)) == "<class 'str'>":
        return await __spawn(value, line=line).wait()
    if isinstance(value, __Call) or "external_future" in str(value):
        return await __end_of(value)
    return await value
"""
_SLEEP = """
async def __ring(seconds, then):
    await __sleep(seconds)
    then()
async def __sleep(seconds, result=None):
    if isinstance(seconds, (int, float)) and seconds <= 0:
        me = __current()
        __wake(me._name, 1)
        await __pause(me)
    else:
        __check(__current())
        await __nap(seconds, __at["line"])
    return result
"""
_WITH = """
class __With:
    def __init__(self, line):
        self._line = line
        self._inside = []
    async def enter(self, manager):
        __at["line"] = self._line
        value = await manager.__aenter__()
        self._inside.append(manager)
        return value
    async def exit(self, raised):
        begun = error = __caught(raised)
        while self._inside:
            __at["line"] = self._line
            manager = self._inside.pop()
            try:
                if await manager.__aexit__(None if error is None else type(error), error, None):
                    error = None
            except BaseException as other:
                error = __caught(other)
        made = __raised(error)
        return raised if error is begun else made
    async def leave(self):
        error = await self.exit(None)
        if error is not None:
            raise error
"""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of the prelude: what is in it by its names in asyncio, and which other parts it takes."""

    text: str
    names: dict[str, str] = field(default_factory=dict)
    takes: tuple[str, ...] = ()


_STATES = {name: f'"{name}"' for name in ("FIRST_COMPLETED", "FIRST_EXCEPTION", "ALL_COMPLETED")}
_PARTS = {
    "with": _Part(_WITH),
    "next_of": _Part(NEXT_OF),
    "sleep": _Part(_SLEEP, {"sleep": "__sleep"}),
    "gather": _Part(GATHER, {"gather": "__gather"}),
    "as_completed": _Part(AS_COMPLETED, {"as_completed": "__as_completed"}, ("sleep",)),
    "shield": _Part(SHIELD, {"shield": "__shield"}),
    "wait": _Part(WAIT, {"wait": "__wait_for_tasks", **_STATES}, ("sleep",)),
    "timeout": _Part(TIMEOUT, {"timeout": "__Timeout"}, ("sleep",)),
    "wait_for": _Part(WAIT_FOR, {"wait_for": "__wait_for"}, ("timeout",)),
    "Semaphore": _Part(SEMAPHORE, {"Semaphore": "__Semaphore"}),
    "BoundedSemaphore": _Part(BOUNDED, {"BoundedSemaphore": "__bounded"}, ("Semaphore",)),
    "Lock": _Part(LOCK, {"Lock": "__Lock"}),
    "Event": _Part(EVENT, {"Event": "__Event"}),
    "Queue": _Part(QUEUE, {"Queue": "__Queue", "QueueEmpty": "IndexError", "QueueFull": "IndexError"}, ("Event",)),
    "PriorityQueue": _Part(PRIORITY_QUEUE, {"PriorityQueue": "__priority_queue"}, ("Queue",)),
    "LifoQueue": _Part(LIFO_QUEUE, {"LifoQueue": "__lifo_queue"}, ("Queue",)),
    "TaskGroup": _Part(TASK_GROUP, {"TaskGroup": "__TaskGroup"}),
}
_MARKS = {"with": "__With(", "next_of": "next_of"}
"""What stands in a script that uses a part without a name in asyncio."""
_ALWAYS = {
    "create_task": "__spawn", "ensure_future": "__spawn", "Task": "__Task", "Future": "__Task",
    "CancelledError": "__CANCELLED", "TimeoutError": "TimeoutError",
}  # fmt: skip
ASYNCIO = (*_ALWAYS, *(name for part in _PARTS.values() for name in part.names))
"""The names of asyncio that a script has."""


def prelude_for(text: str) -> str:
    """Return what a script, as Monty has it, finds defined to run coroutines side by side, "" if it does not. Only what
    it names, because each snapshot has that.
    """
    if not is_side_by_side(text):
        return _ENDED if "__ended(" in text else ""
    taken = dict.fromkeys(_taken(text))
    names = dict(_ALWAYS)
    for name in taken:
        names |= _PARTS[name].names
    assigned = "".join(f"__asyncio.{name} = {stands}\n" for name, stands in names.items() if name in text)
    errors = "" if has_own_errors(text) else _NO_OWN_ERRORS
    return "".join((errors, _TASKS, *(_PARTS[name].text for name in taken), _ASYNCIO, assigned))


def is_side_by_side(text: str) -> bool:
    """Whether a script, as Monty has it, may run coroutines of its own side by side."""
    return any(name in text for name in ("__asyncio", "__awaited(", "__later(", "__With("))


def _taken(text: str) -> Iterator[str]:
    for name, part in _PARTS.items():
        if any(each in text for each in part.names or (_MARKS[name],)):
            yield from _with_others(name)


def _with_others(name: str) -> Iterator[str]:
    for other in _PARTS[name].takes:
        yield from _with_others(other)
    yield name


_NO_OWN_ERRORS = """
def __caught(error):
    return error
def __raised(error):
    return error
"""
_ENDED = """
async def __ended(value, line):
    return (await __join([value], line))[0] if str(type(value)) == "<class 'str'>" else await value
"""
_ASYNCIO = """
class __Asyncio:
    pass
__asyncio = __Asyncio()
"""
WHOLE = prelude_for(" ".join((*ASYNCIO, *_MARKS.values(), "__asyncio")))
"""All that any script finds defined to run coroutines side by side."""
