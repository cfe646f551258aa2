"""What a script waits for beside calls: timeouts, semaphores, locks, events, queues and groups of tasks, in Monty's
Python. They wait and wake as those of asyncio do, so that coroutines go on in the same order.
"""

TIMEOUT = """
class __Timeout:
    def __init__(self, delay):
        if delay is not None and not isinstance(delay, (int, float)):
            raise TypeError(f"a timeout is a number of seconds, not {delay!r}")
        self._seconds = delay
        self._timer = None
        self._expired = False
        self._is_over = False
    def expired(self):
        return self._expired
    async def __aenter__(self):
        self._task = __current()
        if self._seconds is not None:
            self._timer = __spawn(__ring(self._seconds, self._expire))
        return self
    def _expire(self):
        if not self._is_over:
            self._expired = True
            self._task.cancel()
    async def __aexit__(self, kind, error, traceback):
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._expired and isinstance(error, __CANCELLED):
            raise TimeoutError(f"more than {self._seconds} s")
        return False
"""
WAIT_FOR = """
async def __wait_for(value, timeout):
    line = __at["line"]
    within = __Timeout(timeout)
    if timeout is not None and timeout <= 0:
        task = __spawn(value)
        task.cancel()
        try:
            return await task.wait()
        except __CANCELLED:
            raise TimeoutError(f"more than {timeout} s")
    await within.__aenter__()
    try:
        found = await __awaited(value, line)
    except BaseException as error:
        await within.__aexit__(None, error, None)
        raise error
    await within.__aexit__(None, None, None)
    return found
"""
SEMAPHORE = """
class __Semaphore:
    def __init__(self, value=1):
        if not isinstance(value, int) or value < 0:
            raise ValueError("a semaphore has a number of 0 or more")
        self._value = value
        self._most = None
        self._waiters = []
    def locked(self):
        return self._value == 0 or len(self._waiters) > 0
    async def acquire(self):
        if not self.locked():
            self._value -= 1
            return True
        me = __current()
        waiter = [me._name, False]
        self._waiters.append(waiter)
        try:
            await __pause(me)
        except __CANCELLED as error:
            self._waiters = [each for each in self._waiters if each is not waiter]
            if waiter[1]:
                self._value += 1
                self._next()
            raise error
        self._waiters = [each for each in self._waiters if each is not waiter]
        if self._value > 0:
            self._next()
        return True
    def _next(self):
        for waiter in self._waiters:
            if not waiter[1] and self._value > 0:
                self._value -= 1
                waiter[1] = True
                __wake(waiter[0], 1)
                return
    def release(self):
        if self._most is not None and self._value >= self._most:
            raise ValueError("it is released more often than acquired")
        self._value += 1
        self._next()
    async def __aenter__(self):
        await self.acquire()
    async def __aexit__(self, kind, error, traceback):
        self.release()
"""
BOUNDED = """
def __bounded(value=1):
    made = __Semaphore(value)
    made._most = value
    return made
"""
LOCK = """
class __Lock:
    def __init__(self):
        self._locked = False
        self._waiters = []
    def locked(self):
        return self._locked
    async def acquire(self):
        if not self._locked and not self._waiters:
            self._locked = True
            return True
        me = __current()
        waiter = [me._name, False]
        self._waiters.append(waiter)
        try:
            await __pause(me)
        except __CANCELLED as error:
            self._waiters = [each for each in self._waiters if each is not waiter]
            if not self._locked:
                self._next()
            raise error
        self._waiters = [each for each in self._waiters if each is not waiter]
        self._locked = True
        return True
    def _next(self):
        if self._waiters and not self._waiters[0][1]:
            self._waiters[0][1] = True
            __wake(self._waiters[0][0], 1)
    def release(self):
        if not self._locked:
            raise RuntimeError("the lock is not held")
        self._locked = False
        self._next()
    async def __aenter__(self):
        await self.acquire()
    async def __aexit__(self, kind, error, traceback):
        self.release()
"""
EVENT = """
class __Event:
    def __init__(self):
        self._is_set = False
        self._waiters = []
    def is_set(self):
        return self._is_set
    def set(self):
        if not self._is_set:
            self._is_set = True
            for name in self._waiters:
                __wake(name, 1)
            self._waiters = []
    def clear(self):
        self._is_set = False
    async def wait(self):
        if not self._is_set:
            me = __current()
            self._waiters.append(me._name)
            try:
                await __pause(me)
            finally:
                self._waiters = [name for name in self._waiters if name != me._name]
        return True
"""
QUEUE = """
class __Queue:
    def __init__(self, maxsize=0):
        self.maxsize = maxsize
        self._taken = lambda items: 0
        self._items = []
        self._getters = []
        self._putters = []
        self._unfinished = 0
        self._finished = __Event()
        self._finished.set()
    def qsize(self):
        return len(self._items)
    def empty(self):
        return not self._items
    def full(self):
        return 0 < self.maxsize <= len(self._items)
    def _next(self, waiters):
        if waiters:
            waiter = waiters.pop(0)
            waiter[1] = True
            __wake(waiter[0], 1)
    async def _wait(self, which, is_blocked):
        me = __current()
        waiters = self._getters if which == "get" else self._putters
        while is_blocked():
            waiter = [me._name, False]
            waiters.append(waiter)
            try:
                await __pause(me)
            except __CANCELLED as error:
                if waiter in waiters:
                    waiters.remove(waiter)
                elif not is_blocked():
                    self._next(waiters)
                raise error
    async def put(self, item):
        await self._wait("put", self.full)
        self.put_nowait(item)
    async def get(self):
        await self._wait("get", self.empty)
        return self.get_nowait()
    def put_nowait(self, item):
        if self.full():
            raise IndexError("the queue is full")
        self._items.append(item)
        self._unfinished += 1
        self._finished.clear()
        self._next(self._getters)
    def get_nowait(self):
        if not self._items:
            raise IndexError("the queue is empty")
        item = self._items.pop(self._taken(self._items))
        self._next(self._putters)
        return item
    def task_done(self):
        if not self._unfinished:
            raise ValueError("task_done() is called more often than get()")
        self._unfinished -= 1
        if not self._unfinished:
            self._finished.set()
    async def join(self):
        if self._unfinished:
            await self._finished.wait()
"""
PRIORITY_QUEUE = """
def __priority_queue(maxsize=0):
    made = __Queue(maxsize)
    made._taken = lambda items: items.index(min(items))
    return made
"""
LIFO_QUEUE = """
def __lifo_queue(maxsize=0):
    made = __Queue(maxsize)
    made._taken = lambda items: -1
    return made
"""
TASK_GROUP = """
class __TaskGroup:
    def __init__(self):
        self._tasks = []
        self._errors = []
        self._is_over = False
        self._waits = False
        self._stops_own = False
    async def __aenter__(self):
        self._own = __current()
        return self
    def create_task(self, coroutine, *, name=None, context=None):
        if self._is_over:
            raise RuntimeError("the task group has ended")
        task = __spawn(coroutine, name=name)
        self._tasks.append(task)
        task._then.append(self._ended)
        return task
    def _ended(self, task):
        self._tasks = [each for each in self._tasks if each is not task]
        if task._error is not None and not task.cancelled():
            self._errors.append(task._error)
            if len(self._errors) == 1:
                self._stop()
                if not self._waits:
                    self._stops_own = True
                    self._own.cancel()
        if self._waits and not self._tasks:
            __wake(self._own._name, 2)
    def _stop(self):
        for task in self._tasks:
            task.cancel()
    async def __aexit__(self, kind, error, traceback):
        stopped = isinstance(error, __CANCELLED) and not self._stops_own
        if error is not None and not self._stops_own:
            self._stop()
        while self._tasks:
            self._waits = True
            try:
                await __pause(self._own)
            except __CANCELLED as late:
                stopped = True
                error = late
                self._stop()
            self._waits = False
        self._is_over = True
        if stopped and not self._errors:
            raise error
        if error is not None and not isinstance(error, __CANCELLED):
            return False
        if self._errors:
            raise __raised(self._errors[0])
        return stopped is False and self._stops_own
"""
NEXT_OF = """
__watched = {}
__came = []
__watchers = []
def __comes(ticket):
    def ended(task):
        __came.append(ticket)
        while __watchers:
            __wake(__watchers.pop(0), 2)
    return ended
async def next_of(tickets):
    if str(type(tickets)) not in ("<class 'list'>", "<class 'tuple'>") or not tickets:
        raise ValueError("next_of takes a list of tickets that task(...) has returned; this has none")
    line = __at["line"]
    for ticket in tickets:
        if not isinstance(ticket, (str, __Task)):
            raise TypeError(f"next_of takes a list of tickets that task(...) has returned; {ticket!r} is none")
        if ticket not in __watched:
            __watched[ticket] = task = __spawn(ticket, line=line)
            if task.done():
                __comes(ticket)(task)
            else:
                task._then.append(__comes(ticket))
    me = __current()
    while True:
        for ticket in __came:
            if ticket in tickets:
                __came.remove(ticket)
                task = __watched[ticket]
                __watched[ticket] = None
                return ticket, task.result()
        if all([__watched[ticket] is None for ticket in tickets]):
            raise ValueError("next_of has given each of these tickets: each is given once")
        __watchers.append(me._name)
        try:
            await __pause(me)
        finally:
            if me._name in __watchers:
                __watchers.remove(me._name)
"""
