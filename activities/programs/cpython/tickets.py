"""Tasks of a script, which run beside each other in its process, and the words that wait for them.

What a task is given and what it returns are copied as JSON. The worker hears when a task begins and
how it ends, for people to see.
"""

# ruff: noqa: ASYNC109 - a script limits the time of these words by their argument `timeout`
import asyncio
import collections.abc
import hashlib
import json
import types
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from sennit.activities.limits import MAX_NEWS_CHARACTERS, MAX_PROGRAM_LEVELS, MAX_SLEEP_SECONDS
from sennit.activities.programs.cpython.failures import CallError, Errors
from sennit.activities.programs.cpython.loop import Branch, ReplayLoop, Ticket
from sennit.activities.programs.cpython.modules import whole_name
from sennit.activities.programs.cpython.names import (
    BEGUN,
    BOUNDED,
    ENDED,
    FILE,
    JOINED,
    identity_of,
)
from sennit.activities.programs.cpython.values import NotJson, json_of, shown, value_of
from sennit.activities.storage.escapes import REFERENCE
from sennit.workflows.plan.language.text import arguments_text
from sennit.workflows.plan.programs.vocabulary import AS_TASKS, LIMITS, OWN, WORDS

IS_TOOL: Final = "__is_tool__"
"""The field of a function that is a tool, or a word that waits."""
_DUMPS: Final = json.dumps
"""As no script has changed it."""
_DIGEST_CHARACTERS: Final = 12
Value = TypeVar("Value")
CallLater = Callable[[str, list[Any], dict[str, Any], int, str], int]
"""Makes a call for whose end the script waits: word, arguments, line, call
site. Returns its number.
"""
CallAtOnce = Callable[[str, list[Any], dict[str, Any]], Any]
"""Makes a call that the worker answers at once: word, arguments, arguments by
name. Returns the answer.
"""
BeginCall = Callable[..., Coroutine[Any, Any, Any]]
"""Returns the coroutine of a call of a tool or a model, which begins it: name,
arguments, arguments by name.
"""


class Join:
    """Waits for tickets. It is decided as soon as as many have a value as are wanted, or can have
    none any more; where no number is wanted, when all have ended.
    """

    def __init__(self, loop: ReplayLoop, tickets: Sequence[Ticket], wanted: int | None) -> None:
        self._wanted = wanted
        self._open = len(tickets)
        self.decided = loop.create_future()
        self.with_value: list[Ticket] = []
        """The tickets that have a value, in the order in which they ended."""
        for ticket in tickets:
            if ticket.done():
                self._count(ticket)
        for ticket in tickets:
            if not ticket.done():
                ticket.add_done_callback(self._ended)
        self._decide()

    @property
    def has_enough(self) -> bool:
        return self._wanted is None or len(self.with_value) >= self._wanted

    def _ended(self, ticket: Any) -> None:
        self._count(ticket)
        self._decide()

    def _count(self, ticket: Ticket) -> None:
        self._open -= 1
        if not ticket.cancelled() and ticket.exception() is None:
            self.with_value.append(ticket)

    def _decide(self) -> None:
        if self.decided.done():
            return
        if self._wanted is None:
            is_decided = not self._open
        else:
            is_decided = self.has_enough or len(self.with_value) + self._open < self._wanted
        if is_decided:
            self.decided.set_result(None)


class Tickets:
    """The tasks of one script."""

    def __init__(
        self,
        loop: ReplayLoop,
        call_later: CallLater,
        call_at_once: CallAtOnce,
        begin_call: BeginCall,
        errors: Errors,
    ) -> None:
        self._loop = loop
        self._call_later = call_later
        self._call_at_once = call_at_once
        self._begin_call = begin_call
        self._errors = errors
        self.running = 0
        """How many tasks have begun and not ended."""
        self._watched: dict[Any, asyncio.Future[Any] | None] = {}
        """The tickets that `next_of` waits for; None once it has given one."""
        self._ended_tickets: list[Any] = []

    def words(self) -> dict[str, Callable[..., Any]]:
        """Return what a script calls, by its names."""
        names = ("task", "parallel", "settled", "first", "quorum", "next_of", "pipeline", "cancel")
        return {name: getattr(self, name) for name in names}

    # What starts tasks.

    def task(self, function: Any, /, *args: Any, **kwargs: Any) -> Ticket:
        """Start a function of the script, a tool or a model call."""
        name = function_name(function, "task")
        if not is_of_script(function):
            if name in WORDS and name not in AS_TASKS:
                raise TypeError(f"task: {name} is no task; write an `async def` that calls it")
            return self._task_of_call(self._begin_call(name, args, kwargs))
        if args:
            raise TypeError("task: takes arguments by name: task(function, name=value)")
        limits, named = _limits_in(function, kwargs)
        if limits.get("retry") is not None:
            raise TypeError("task: has no `retry`: that is for calls of tools and of `llm`")
        seconds = _checked_seconds("task", limits.get("timeout"))
        budget = limits.get("budget")
        if budget is not None:
            budget = json_of(budget, "task")
            self._call_at_once(BOUNDED, [budget], {})
        sent = {key: json_of(part, "task") for key, part in named.items()}
        given = value_of(sent)
        return self._start(name, sent, lambda: function(**given), seconds, budget)

    async def pipeline(
        self, items: Any, /, *stages: Any, limit: Any = None, timeout: Any = None
    ) -> list[Any]:
        """Take each item through all stages. No item waits for another."""
        names = [function_name(stage, "pipeline") for stage in stages]
        if isinstance(items, str) or not isinstance(items, collections.abc.Iterable) or not stages:
            raise TypeError(
                "pipeline: write pipeline(items, stage, ...): a list, and functions of one argument"
            )
        seconds = _checked_seconds("pipeline", timeout)
        places = _places(limit, "pipeline")
        begun = []
        for item in list(items):
            sent = json_of(item, "pipeline")
            ticket = self._start(
                ">".join(names), {"item": sent}, _through(value_of(sent), stages), None
            )
            ticket.places = places
            begun.append(ticket)
        return await within(seconds, self._all(begun))

    def _start(
        self,
        name: str,
        sent: dict[str, Any],
        begin: Callable[[], Coroutine[Any, Any, Any]],
        seconds: float | None,
        budget: Any = None,
    ) -> Ticket:
        loop, outer = self._loop, self._loop.branch()
        if outer.depth >= MAX_PROGRAM_LEVELS:
            message = f"tasks of tasks go {MAX_PROGRAM_LEVELS} levels deep; this one is deeper"
            raise RecursionError(f"task: {message}")
        # A task is known by its function and its arguments, so that an edited
        # script finds what it called.
        around = loop.site()
        written = _DUMPS([name, sent, identity_of(around)], sort_keys=True).encode()
        digest = hashlib.sha256(written).hexdigest()[:_DIGEST_CHARACTERS]
        count_of_equal = outer.count(f"~{digest}")
        count_of_name = outer.count(name)
        site = f"{around}/{name}~{digest}.{count_of_equal}#{count_of_name}"
        branch = Branch(site, outer.depth + 1)
        line = loop.line()
        run = self._run(sent, begin, seconds, line, around)
        ticket = loop.start(Ticket, run, branch, "", line)
        ticket.tell_joined = self._tell_joined
        ticket.budget = budget
        return ticket

    def _task_of_call(self, call: Coroutine[Any, Any, Any]) -> Ticket:
        """Start a call. It has no site of its own: it is one of the coroutine that starts it."""
        branch = self._loop.branch()
        site = self._loop.site().removeprefix(branch.place)
        ticket = self._loop.start(Ticket, self._run_call(call), branch, site, self._loop.line())
        # One that is cancelled before it begins is not forgotten by the script.
        ticket.add_done_callback(lambda _: call.close())
        return ticket

    async def _run_call(self, call: Coroutine[Any, Any, Any]) -> Any:
        ticket = asyncio.current_task(self._loop)
        assert isinstance(ticket, Ticket)
        async with ticket.places or _NoLimit():
            return await call

    async def _run(
        self,
        sent: dict[str, Any],
        begin: Callable[[], Coroutine[Any, Any, Any]],
        seconds: float | None,
        line: int,
        around: str,
    ) -> Any:
        """Run a task, and tell the worker when it begins and how it ends."""
        ticket = asyncio.current_task(self._loop)
        assert isinstance(ticket, Ticket)
        try:
            # The time of a task counts from its call: it includes the wait for a place.
            value = await within(seconds, self._run_in_its_place(ticket, sent, begin, line, around))
        except GeneratorExit:
            # The process lets go of a script that waits.
            raise
        except BaseException as error:
            if ticket.number < 0 and isinstance(error, asyncio.CancelledError):
                # A task that is cancelled before it begins is none.
                raise
            if ticket.number < 0:
                # Its time was over before it had a place. People see that it failed.
                self._tell_begin(ticket, sent, line, around)
            self._tell_end(ticket, error, line, around)
            raise
        self._tell_end(ticket, None, line, around)
        return value

    async def _run_in_its_place(
        self,
        ticket: Ticket,
        sent: dict[str, Any],
        begin: Callable[[], Coroutine[Any, Any, Any]],
        line: int,
        around: str,
    ) -> Any:
        """Run a task as soon as its join lets it."""
        async with ticket.places or _NoLimit():
            self._tell_begin(ticket, sent, line, around)
            return value_of(self._returned(await begin()))

    def _tell_begin(self, ticket: Ticket, sent: dict[str, Any], line: int, around: str) -> None:
        """Tell the worker that a task begins."""
        self.running += 1
        news = [ticket.branch.site, _whole(_about(sent))]
        if ticket.budget is not None:
            news.append(ticket.budget)
        ticket.number = self._call_later(BEGUN, news, {}, line, around)

    def _tell_end(
        self, ticket: Ticket, error: BaseException | None, line: int, around: str
    ) -> None:
        """Tell the worker how a task has ended, and cancel what it has
        started and not waited for.
        """
        self.running -= 1
        ticket.branch.end()
        status, message = "succeeded", ""
        if isinstance(error, asyncio.CancelledError):
            status = "cancelled"
        elif error is not None:
            status, message = "failed", self._told(error)[:MAX_NEWS_CHARACTERS]
        self._call_later(ENDED, [ticket.number, status, _whole(message)], {}, line, around)

    def _returned(self, value: Any) -> Any:
        try:
            return json_of(value, "return")
        except (NotJson, ValueError) as problem:
            message = str(problem).removeprefix("return: ")
            raise TypeError(f"the script returned what is not JSON: {message}") from None

    # What waits for tasks.

    async def parallel(self, tickets: Any, *, limit: Any = None, timeout: Any = None) -> list[Any]:
        """Return the values of all. Raises the first error."""
        seconds = _checked_seconds("parallel", timeout)
        joined = self._joined("parallel", tickets, limit)
        return await within(seconds, self._all(joined))

    async def settled(
        self, tickets: Any, *, limit: Any = None, timeout: Any = None
    ) -> list[dict[str, Any]]:
        """Return how each has ended."""
        seconds = _checked_seconds("settled", timeout)
        joined = self._joined("settled", tickets, limit)
        await within(seconds, self._wait(joined, None))
        self._tell_joined(joined)
        return [self._end_of(ticket) for ticket in joined]

    async def first(self, tickets: Any, *, timeout: Any = None) -> Any:
        """Return the first value, and cancel the others. Raises an error if none has a value."""
        seconds = _checked_seconds("first", timeout)
        joined = self._joined("first", tickets)
        if not joined:
            raise ValueError("first: there are no tickets")
        [taken] = await within(seconds, self._some(joined, 1))
        return taken.result()

    async def quorum(self, k: Any, tickets: Any, *, timeout: Any = None) -> list[Any]:
        """Return the first k values in the order of the tickets, and cancel the others."""
        seconds = _checked_seconds("quorum", timeout)
        count = len(tickets) if isinstance(tickets, list) else 1
        if type(k) is not int or not 1 <= k <= count:
            raise ValueError(f"quorum: {k!r:.20} of {count} tickets can never end")
        taken = await within(seconds, self._some(self._joined("quorum", tickets), k))
        return [ticket.result() for ticket in taken]

    def cancel(self, ticket: Any) -> None:
        """Give up a ticket unless something else waits for it."""
        [given_up] = self._checked("cancel", [ticket])
        if not given_up.waiting:
            given_up.cancel()

    async def next_of(self, tickets: Any) -> tuple[Any, Any]:
        """Return the next of some tickets that ends, with its value. Each is given once."""
        if not isinstance(tickets, list | tuple) or not tickets:
            raise ValueError(
                "next_of takes a list of tickets that task(...) has returned; this has none"
            )
        for ticket in tickets:
            self._watch(ticket)
        while True:
            for ticket in self._ended_tickets:
                if ticket in tickets:
                    self._ended_tickets.remove(ticket)
                    watched, self._watched[ticket] = self._watched[ticket], None
                    assert watched is not None
                    self._tell_joined([ticket])
                    return ticket, watched.result()
            waiting: list[asyncio.Future[Any]] = []
            for ticket in tickets:
                future = self._watched[ticket]
                if future is not None:
                    waiting.append(future)
            if not waiting:
                raise ValueError("next_of has given each of these tickets: each is given once")
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)

    def _watch(self, ticket: Any) -> None:
        if not isinstance(ticket, asyncio.Task):
            raise TypeError(
                f"next_of takes a list of tickets that task(...) has returned; {ticket!r} is none"
            )
        if ticket in self._watched:
            return
        self._watched[ticket] = ticket
        ticket.add_done_callback(lambda _: self._ended_tickets.append(ticket))

    async def _all(self, tickets: Sequence[Ticket]) -> list[Any]:
        join = await self._wait(tickets, len(tickets))
        if not join.has_enough:
            _raise_first(tickets)
        self._tell_joined(tickets)
        return [ticket.result() for ticket in tickets]

    async def _some(self, tickets: Sequence[Ticket], wanted: int) -> list[Ticket]:
        """Return the first tickets with a value, in the order of the tickets,
        and cancel the others.
        """
        join = await self._wait(tickets, wanted)
        if not join.has_enough:
            _raise_first(tickets)
        taken = join.with_value[:wanted]
        for ticket in tickets:
            if ticket not in taken and not ticket.waiting:
                ticket.cancel()
        return [ticket for ticket in tickets if ticket in taken]

    async def _wait(self, tickets: Sequence[Ticket], wanted: int | None) -> Join:
        """Wait until a join is decided. If nobody waits for it any more,
        nobody does for its tickets.
        """
        join = Join(self._loop, tickets, wanted)
        for ticket in tickets:
            ticket.waiting += 1
        is_decided = False
        try:
            await join.decided
            is_decided = True
        finally:
            for ticket in tickets:
                ticket.waiting -= 1
                if not (is_decided or ticket.waiting):
                    ticket.cancel()
        return join

    def _tell_joined(self, tickets: Sequence[Any]) -> None:
        """Tell the worker that the script knows how these have ended."""
        numbers = [
            ticket.number for ticket in tickets if isinstance(ticket, Ticket) and ticket.number >= 0
        ]
        if numbers:
            self._call_later(JOINED, [numbers], {}, self._loop.line(), self._loop.site())

    def _joined(self, word: str, tickets: Any, limit: Any = None) -> list[Ticket]:
        """Return the tickets that a word is given. Those that have not begun
        wait for their places.
        """
        if isinstance(tickets, str) or not isinstance(tickets, collections.abc.Iterable):
            raise TypeError(f"{word}: takes a list of tickets, not {tickets!r:.60}")
        joined = self._checked(word, list(tickets))
        if len(set(joined)) < len(joined):
            raise ValueError(f"{word}: a ticket is named twice")
        places = _places(limit, word)
        if places is not None:
            for ticket in joined:
                ticket.places = places
        return joined

    def _checked(self, word: str, tickets: Sequence[Any]) -> list[Ticket]:
        for ticket in tickets:
            if not isinstance(ticket, Ticket):
                message = f"takes tickets that task(...) has returned here; {ticket!r:.60} is none"
                raise ValueError(f"{word}: {message}")
        return list(tickets)

    def _end_of(self, ticket: Ticket) -> dict[str, Any]:
        if ticket.cancelled():
            return {
                "status": "cancelled",
                "value": None,
                "error": "CancelledError: the ticket was cancelled",
            }
        error = ticket.exception()
        if error is not None:
            return {"status": "failed", "value": None, "error": self._told(error)}
        return {"status": "succeeded", "value": ticket.result(), "error": None}

    def _told(self, error: BaseException) -> str:
        """Return an error as a person reads it."""
        if isinstance(error, CallError):
            return str(error)
        kind, message, _, _ = self._errors.report(error)
        return f"{kind}: {message}"


def _about(sent: dict[str, Any]) -> str:
    """Return the arguments of a task in a few words."""
    parts = {}
    for key, part in sent.items():
        is_ref = isinstance(part, dict) and REFERENCE in part
        if is_ref:
            part = f"Ref({part.get('size', 0):,})"
        parts[key] = part
    return arguments_text(parts)[:MAX_NEWS_CHARACTERS]


def _whole(text: str) -> str:
    """Return a text that can be told: halves of characters become question marks."""
    return text.encode(errors="replace").decode()


class _NoLimit:
    """The place of a task that nothing holds back."""

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        pass


def is_of_script(function: Any) -> bool:
    """Whether this is a function of the script."""
    return isinstance(function, types.FunctionType) and function.__code__.co_filename == FILE


def function_name(function: Any, word: str) -> str:
    """Return the name of a function of the script, or of a tool. Raises NotJson."""
    is_tool = getattr(function, IS_TOOL, False) is True
    if not (is_of_script(function) or is_tool) or function.__name__ == "<lambda>":
        message = "name a function of the script or a tool, without calling it"
        raise NotJson(f"{word}: {message}; this is {shown(function)}")
    return whole_name(function)


async def within(seconds: float | None, work: Coroutine[Any, Any, Value]) -> Value:
    """Return what a coroutine returns. Raises TimeoutError if it takes longer."""
    if seconds is None:
        return await work
    try:
        async with asyncio.timeout(seconds) as scope:
            return await work
    except TimeoutError:
        if not scope.expired():
            raise
        raise TimeoutError(f"more than {seconds:g} s") from None


def _through(item: Any, stages: Sequence[Any]) -> Callable[[], Coroutine[Any, Any, Any]]:
    """Return what takes an item through stages."""

    async def go() -> Any:
        value = item
        for stage in stages:
            value = await stage(value)
        return value

    return go


def _limits_in(
    function: types.FunctionType, given: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the limits of a task, and the arguments of its function, among which are
    limits that it takes itself.
    """
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    limits: dict[str, Any] = {}
    named: dict[str, Any] = {}
    for key, part in given.items():
        if key in LIMITS and key not in own:
            limits[key] = part
        else:
            named[key.removeprefix(OWN)] = part
    return limits, named


def _checked_seconds(word: str, seconds: Any) -> float | None:
    """Return a limit of time. Raises ValueError."""
    if seconds is None:
        return None
    if type(seconds) not in (int, float) or not seconds > 0:
        raise ValueError(f"{word}: `timeout` is a number of seconds above 0, not {seconds!r:.40}")
    if seconds > MAX_SLEEP_SECONDS:
        raise ValueError(
            f"{word}: `timeout` is at most {MAX_SLEEP_SECONDS:,} seconds, not {seconds!r:.40}"
        )
    return float(seconds)


def _places(limit: Any, word: str) -> asyncio.Semaphore | None:
    """Return places for as many tasks as may run at once. Raises ValueError."""
    if limit is None:
        return None
    if type(limit) is not int or limit < 1:
        raise ValueError(f"{word}: `limit` is how many run at once, 1 or more, not {limit!r:.40}")
    return asyncio.Semaphore(limit)


def _raise_first(tickets: Sequence[Ticket]) -> None:
    """Raise the error of the first ticket that has none of a value."""
    for ticket in tickets:
        if ticket.done() and (ticket.cancelled() or ticket.exception() is not None):
            ticket.result()
