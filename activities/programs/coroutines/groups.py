"""How a script waits for several coroutines, or for one that is not to be cancelled, in Monty's Python: what `gather`,
`as_completed`, `wait` and `shield` give ends, and wakes who waits for it, as in asyncio.
"""

GATHER = """
class __Group:
    def __init__(self, tasks):
        self.tasks = tasks
        self.is_cancelled = False
    def cancel(self):
        self.is_cancelled = any([task.cancel() for task in self.tasks])
        return self.is_cancelled
async def __soon(then, task):
    then(task, 1)
async def __gather(*given, return_exceptions=False):
    is_each_once = len({id(each) for each in given}) == len(given)
    if given and is_each_once and not return_exceptions and all([isinstance(each, __Call) for each in given]):
        me = __current()
        __wake(me._name, 1)  # what was started before begins first
        await __pause(me)
        return await __native(*[each.begin() for each in given])
    return await __gather_now(*given, return_exceptions=return_exceptions).wait()
def __gather_now(*given, return_exceptions=False):
    line, future = __at["line"], __Task(None, None, "running")
    started = {}  # asyncio starts once what it is given twice
    for each in given:
        if id(each) not in started:
            started[id(each)] = __spawn(each, line=line)
    tasks = list(started.values())
    future._on = group = __Group(tasks)
    state = {"left": len(tasks)}
    def ended(task, hops):
        state["left"] -= 1
        if future.done():
            return
        error = None if return_exceptions else task._error
        if error is None and not state["left"] and group.is_cancelled:
            error = __CANCELLED("cancelled")
        if error is not None or not state["left"]:
            future._hops = hops
            ends = [started[id(each)] for each in given]
            future.end([each._value if each._error is None else each._error for each in ends], error)
    for task in tasks:
        if task.done():
            __spawn(__soon(ended, task), line=line)
        else:
            task._then.append(lambda task: ended(task, task._hops + 1))
    if not tasks:
        future.end([], None)
    return future
"""
AS_COMPLETED = """
async def __tell_end(waiter):
    me = __current()
    while not waiter["ended"]:
        if waiter["is_late"]:
            raise TimeoutError(f"more than {waiter['timeout']} s")
        waiter["who"].append(me._name)
        await __pause(me)
    return await waiter["ended"].pop(0).wait()
def __as_completed(given, *, timeout=None):
    tasks = [__spawn(each) for each in given]
    waiter = {"ended": [], "who": [], "is_late": False, "timeout": timeout}
    def ended(task):
        waiter["ended"].append(task)
        if waiter["who"]:
            __wake(waiter["who"].pop(0), 2)
    def late():
        waiter["is_late"] = True
        while waiter["who"]:
            __wake(waiter["who"].pop(0), 1)
    if timeout is not None:
        __spawn(__ring(timeout, late))
    for task in tasks:
        if task.done():
            ended(task)
        else:
            task._then.append(ended)
    return [__tell_end(waiter) for _ in tasks]
"""
SHIELD = """
class __Shielded:
    def __init__(self, outer):
        self._outer = outer
    def cancel(self):
        self._outer.end(None, __CANCELLED("cancelled"))
        return True
def __shield(value):
    inner = __spawn(value)
    if inner.done():
        return inner
    outer = __Task(None, None, "running")
    outer._on, outer._hops = __Shielded(outer), 1
    def ended(task):
        if not outer.done():
            outer._hops = task._hops + 1
            outer.end(task._value, task._error)
    inner._then.append(ended)
    return outer
"""
WAIT = """
async def __wait_for_tasks(given, *, timeout=None, return_when="ALL_COMPLETED"):
    line = __at["line"]
    if return_when not in ("FIRST_COMPLETED", "FIRST_EXCEPTION", "ALL_COMPLETED"):
        raise ValueError(f"wait: there is no return_when {return_when!r}")
    tasks = [__spawn(each, line=line) for each in given]
    if not tasks:
        raise ValueError("wait: there is nothing to wait for")
    me, state = __current(), {"is_over": False}
    def is_enough():
        ends = [task for task in tasks if task.done()]
        fails = return_when == "FIRST_EXCEPTION" and any([task._error is not None for task in ends])
        return len(ends) == len(tasks) or fails or (return_when == "FIRST_COMPLETED" and len(ends) > 0)
    def ended(task):
        if not state["is_over"] and is_enough():
            state["is_over"] = True
            __wake(me._name, 2)
    if not is_enough():
        for task in tasks:
            if not task.done():
                task._then.append(ended)
        if timeout is None:
            await __pause(me)
        else:
            timer = __spawn(__ring(timeout, lambda: ended_late()), line=line)
            def ended_late():
                if not state["is_over"]:
                    state["is_over"] = True
                    __wake(me._name, 1)
            try:
                await __pause(me)
            finally:
                timer.cancel()
    return {task for task in tasks if task.done()}, {task for task in tasks if not task.done()}
"""
