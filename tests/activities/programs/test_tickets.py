"""Tasks of a script, and the words that wait for them."""

from collections.abc import Callable

import pytest
from doubles.programs import Play

from sennit.activities.limits import MAX_PROGRAM_LEVELS
from sennit.activities.nodes.error_mapping import CallFailed, ProgramFailed
from sennit.activities.programs.cpython.names import identity_of, shown_path, task_of
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.values import Ended
from sennit.testing import run

LOOK = """
async def look(n, deeper=0):
    if deeper:
        return await task(look, n=n, deeper=deeper - 1)
    return n

async def main():
    ticket = task(look, n=1)
"""
WRONG = [
    ("cancel('x')", "ValueError", "cancel: takes tickets that task(...) has returned here; 'x' is none"),
    ("cancel(*[])", "TypeError", "missing 1 required positional argument: 'ticket'"),
    ("task(part, ref='a')", "TypeError", "task: part is no task; write an `async def` that calls it"),
    ("task(look, 1)", "TypeError", "task: takes arguments by name: task(function, name=value)"),
    ("task('look', n=1)", "TypeError", "task: name a function of the script or a tool, without calling it"),
    ("task(look, n=print)", "TypeError", "task: a function is no value"),
    ("await task(look, n={1: 2})", "TypeError", "task: the keys of a dict are texts, not a number: write str(key)"),
    ("await task(look, n=1, deeper=30)", "RecursionError", "too many levels deep"),
    ("await parallel('ticket:1')", "TypeError", "parallel: takes a list of tickets, not 'ticket:1'"),
    ("await parallel([None])", "ValueError", "parallel: takes tickets that task(...) has returned here; None is none"),
    ("await parallel([ticket, ticket])", "ValueError", "parallel: a ticket is named twice"),
    ("await parallel([ticket], timeout=0)", "ValueError", "parallel: `timeout` is a number of seconds above 0, not 0"),
    ("await first([])", "ValueError", "first: there are no tickets"),
    ("await quorum(1, [])", "ValueError", "quorum: 1 of 0 tickets can never end"),
    ("await quorum(True, [ticket])", "ValueError", "quorum: True of 1 tickets can never end"),
    ("await quorum(1, 5)", "TypeError", "quorum: takes a list of tickets, not 5"),
    ("await pipeline(['a'])", "TypeError", "pipeline: write pipeline(items, stage, ...)"),
]


@pytest.mark.parametrize(("line", "kind", "message"), WRONG)
async def test_a_wrong_call_is_raised_in_the_script(
    interpreter: Interpreter, line: str, kind: str, message: str
) -> None:
    found = await interpreter.start(f"{LOOK}    {line}\n", "main", {}, lambda _: Ended())
    assert found.error is not None
    assert found.error.type == kind
    assert message in found.error.message


async def test_tasks_of_tasks_go_so_many_levels_deep(interpreter: Interpreter) -> None:
    deepest = f"{LOOK}    return await task(look, n=7, deeper={MAX_PROGRAM_LEVELS - 1})\n"
    assert (await interpreter.start(deepest, "main", {}, lambda _: Ended())).value == 7


async def test_nothing_is_waited_for_without_tickets(interpreter: Interpreter) -> None:
    script = f"{LOOK}    return [await parallel([]), await settled([]), await pipeline([], look)]\n"
    assert (await interpreter.start(script, "main", {}, lambda _: Ended())).value == [[], [], []]


def test_what_a_task_is_given_and_returns_is_a_copy() -> None:
    script = """
async def change(items):
    items.append(1)
    kept.append(items)
    return items

kept = []

async def main():
    items = []
    returned = await task(change, items=items)
    returned.append(2)
    return [items, kept[0], returned]
"""
    assert run(script, {}) == [[], [1], [1, 2]]


def test_the_time_of_a_task_counts_from_its_call() -> None:
    script = """
async def nap(n):
    await sleep(n)
    return n

async def main():
    waits = [task(nap, n=5), task(nap, n=1, timeout=3), task(nap, n=2, timeout=9)]
    begun = now()
    ends = await settled(waits, limit=1)
    return [[end["error"] or end["value"] for end in ends], (now() - begun).total_seconds()]
"""
    assert run(script, {}) == [[5, "TimeoutError: more than 3 s", 2], 7.0]


async def test_people_see_a_task_whose_time_was_over_before_it_had_a_place(play: Callable[..., Play]) -> None:
    script = """
async def nap(n):
    await sleep(n)

async def main():
    await settled([task(nap, n=5), task(nap, n=1, timeout=3)], limit=1)
"""
    played = play(script)
    await played.run()
    names = [spec.id for spec in played.tasks]
    news = [(names.index(told.id), told.status, told.error) for told in played.news]
    assert (1, "failed", "TimeoutError: more than 3 s") in news
    assert (0, "succeeded", "") in news


def test_the_others_are_cancelled_when_enough_have_a_value() -> None:
    script = """
ended = []

async def late(n):
    try:
        await sleep(n)
    except asyncio.CancelledError:
        ended.append(n)
        raise
    return n

async def main():
    one = await first([task(late, n=n) for n in (3, 1, 2)])
    shared = task(late, n=9)
    kept = asyncio.ensure_future(parallel([shared]))
    two = await quorum(2, [task(late, n=5), task(late, n=7), shared, task(late, n=4)])
    cancel(shared)
    await kept
    given_up = task(late, n=60)
    await sleep(1)
    cancel(given_up)
    await sleep(1)
    return [one, two, sorted(ended)]
"""
    assert run(f"import asyncio\n{script}", {}) == [1, [5, 4], [2, 3, 7, 60]]


def test_what_a_task_has_started_and_not_awaited_is_cancelled_with_its_end() -> None:
    script = """
import asyncio
ended = []

async def inner():
    try:
        await sleep(60)
    finally:
        ended.append("inner")

async def outer():
    begun = [task(inner), asyncio.create_task(inner())]
    await sleep(1)
    return len(begun)

async def main():
    await task(outer)
    await sleep(1)
    return ended
"""
    assert run(script, {}) == ["inner", "inner"]


async def test_people_see_when_tasks_begin_and_how_they_end(play: Callable[..., Play]) -> None:
    script = """
async def look(text):
    found = await search(query=text)
    if text == "b":
        raise ValueError("no b")
    return found

async def main():
    ends = await settled([task(look, text=text) for text in ("a", "b", "a")])
    phase("last")
    slow = task(look, text="c")
    await search(query="d")
    cancel(slow)
    await search(query="e")
    return [end["status"] for end in ends]
"""
    run = play(script, fakes={"search": lambda query: query})
    assert await run.run() == ["succeeded", "failed", "succeeded"]
    sites = [spec.call_site for spec in run.tasks]
    assert sites == ["look#1:9", "look#2:9", "look#3:9", "last/look#4:11"]
    assert len({spec.key for spec in run.tasks}) == 4
    news: dict[str, list[tuple[str, str]]] = {spec.id: [] for spec in run.tasks}
    for told in run.news:
        news[told.id].append((told.status, told.error))
    ends = [told[1] for told in news.values()]
    assert ends[:3] == [("succeeded", ""), ("failed", "ValueError: no b"), ("succeeded", "")]
    assert ends[3] in [("cancelled", ""), ("succeeded", "")], "it may have ended before"
    places = sorted(spec.call_site for _, _, spec in run.nodes.values() if spec.kind == "tool")
    assert [f"look#{n}/search:3" for n in (1, 2, 3)] == [place for place in places if place.startswith("look")]
    assert "last/look#4/search:3" in places


async def test_a_failure_that_ends_the_script_is_told_when_other_tasks_have_ended(play: Callable[..., Play]) -> None:
    """With each seed calls end in another order, in activities of their own or made by steps."""
    script = """
async def look(n):
    text = await search(query=f"{n}")
    if n in (1, 3):
        await search(query="fails")
    return await search(query=text)

async def main():
    return await parallel([task(look, n=n) for n in range(5)])
"""

    def search(query: str) -> str:
        if query == "fails":
            raise OSError("disk")
        return f"{query}."

    for seed in range(8):
        run = play(script, fakes={"search": search}, seed=seed, in_place=seed % 2 == 1)
        with pytest.raises(Exception, match="disk"):
            await run.run()
        tools = [name for name, (_, _, spec) in run.nodes.items() if spec.kind == "tool"]
        with_value = [name for name in tools if name in run.ends and run.ends[name].ref]
        assert len(with_value) == 5 + 3, "all other tasks have come to their ends"
        failed = [name for name, end in run.ends.items() if end.status == "failed" and name.startswith("main_")]
        assert len([name for name in tools if name in failed]) == 2


def test_call_sites_tell_equal_tasks_apart_and_people_see_only_names() -> None:
    site = "/=first/look~0123456789ab.2#3/=second/fetch#1/__ring#4"
    assert identity_of(site) == "/look~0123456789ab.2/fetch#1/__ring#4"
    assert shown_path(site) == "first/look#3/second/fetch#1"
    assert task_of(site) == "/=first/look~0123456789ab.2#3"
    assert task_of("/fetch#1") == ""


def test_a_limit_holds_back_tickets_that_have_not_begun() -> None:
    script = """
open_ones, most = [], [0]

async def one(n):
    open_ones.append(n)
    most[0] = max(most[0], len(open_ones))
    await sleep(n)
    open_ones.remove(n)
    return n

async def main():
    found = await parallel([task(one, n=n) for n in range(1, 9)], limit=3)
    found += await pipeline(range(1, 9), one, limit=2)
    return [found, most]
"""
    assert run(script, {}) == [[*range(1, 9), *range(1, 9)], [3]]


FORGED = {
    "the number of a list": ("__ended", '[[1], "succeeded", ""]'),
    "an error that is no text": ("__ended", '[ticket.number, "failed", ["x"]]'),
    "an error of a megabyte": ("__ended", '[ticket.number, "failed", "x" * 1_000_000]'),
    "one number": ("__joined", "[3]"),
    "numbers that are none": ("__joined", "[[[1]]]"),
    "arguments of a megabyte": ("__begun", '["/look~000000000000.1#1", "x" * 1_000_000]'),
    "arguments that are no text": ("__begun", '["/look~000000000000.1#1", 5]'),
    "nothing": ("__begun", "[]"),
}


@pytest.mark.parametrize("forged", FORGED)
async def test_a_process_that_tells_untrue_news_of_tasks_ends_its_own_script(
    play: Callable[..., Play], forged: str
) -> None:
    """Neither the worker nor the workflow takes them: they are in every report of the run."""
    word, args = FORGED[forged]
    script = f"""
import asyncio

async def look():
    return await search(query="a")

async def main():
    ticket = task(look)
    await asyncio.sleep(0)
    ticket.tell_joined.__self__._call_later("{word}", {args}, {{}}, 2, "")
    return await ticket
"""
    with pytest.raises(ProgramFailed, match=r"RuntimeError: the process of the script has ended: it has told"):
        await play(script, fakes={"search": lambda query: query}).run()


async def test_people_see_that_a_task_failed_also_if_its_error_cannot_be_stored(play: Callable[..., Play]) -> None:
    script = """
async def look(text):
    raise ValueError(text)

async def main():
    [end] = await settled([task(look, text="half " + chr(0xD800))])
    return end["status"]
"""
    run = play(script)
    assert await run.run() == "failed"
    assert [(news.status, news.error) for news in run.news] == [("running", ""), ("failed", "ValueError: half ?")]


FAILS_BESIDE_A_TASK = """
import asyncio

async def slow():
    await sleep(20)
    return await search(query="late")

async def main():
    late = task(slow)
    try:
        async with asyncio.timeout(10):
            await search(query="x")
    except TimeoutError:
        return "timed out"
    return await late
"""


@pytest.mark.parametrize("in_place", [False, True])
async def test_a_failure_that_is_held_back_comes_before_a_later_timeout(
    play: Callable[..., Play], *, in_place: bool
) -> None:
    def search(query: str) -> int:
        if "x" in query:
            raise RuntimeError(query)
        return len(query)

    played = play(FAILS_BESIDE_A_TASK, fakes={"search": search}, takes=lambda _: 1.0, in_place=in_place)
    with pytest.raises(CallFailed, match=r"x"):
        await played.run()
