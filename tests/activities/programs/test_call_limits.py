"""What a script allows its calls beside their arguments, and how many calls and sleeps it has open."""

from collections.abc import Callable
from typing import Any

import pytest
from doubles.programs import Play

from sennit.activities.nodes.error_mapping import ProgramFailed
from sennit.activities.programs import script_run
from sennit.activities.programs.session import Snapshots
from sennit.testing import run
from sennit.workflows.plan.language.nodes import ToolNode
from sennit.workflows.plan.programs.syntax import problems_in


def search(query: str) -> int:
    return len(query)


def main(body: str) -> str:
    look = "async def look(n: int, timeout: int = 0):\n    return [n, timeout]\n"
    return f"{look}\nasync def main(n: int = 1):\n    {body}\n"


WRONG = [
    ("await search(query='a', timeout=0)", "`timeout` is a number of seconds above 0, not 0"),
    ("await search(query='a', timeout='5')", "`timeout` is a number of seconds above 0, not '5'"),
    ("await search(query='a', timeout=True)", "`timeout` is a number of seconds above 0, not True"),
    ("await llm('a', timeout=-1)", "`timeout` is a number of seconds above 0, not -1"),
    ("await search(query='a', retry=0)", "`retry` is 1 to 20 attempts, not 0"),
    ("await llm('a', retry=1.5)", "`retry` is 1 to 20 attempts, not 1.5"),
    ("await agent('a', retry=2)", "`agent` has no `retry`: that is for calls of tools and of `llm`"),
    ("await parallel([task(look, n=1, retry=2)])", "`look` has no `retry`: that is for calls of tools and of `llm`"),
    ("await look(1, retry=2)", "`look` has no argument `retry`: call it in a loop"),
    ("await sleep(5, timeout=3)", "`sleep` has no `timeout`"),
    ("await parallel([task(look, n=1)], limit=0)", "`limit` is how many run at once, 1 or more, not 0"),
    ("await pipeline([1], look, limit='3')", "`limit` is how many run at once, 1 or more, not '3'"),
    ("await pipeline([1], look, width=3)", "`pipeline` has no argument `width`; it takes `limit`"),
    ("await first([task(look, n=1)], limit=2)", "`first` has no argument `limit`"),
    ("await next_of(task(look, n=1))", "`next_of` takes a list of tickets: write `next_of([task(...)])`"),
    ("await next_of([])", "`next_of` of no tickets can never end"),
    ("next_of([task(look, n=1)])", "the call of `next_of` is never awaited: write `await next_of(...)`"),
    ("await next_of([search(query='a')])", "write `await parallel([task(search, ...), ...])`: it waits for tickets"),
    ("await now()", "`now` is called without `await`"),
    ("now(5)", "`now` takes no arguments without a name, not 1"),
    ("task(look, n=1, budget={'token': 5})", "the budget of a task has no `token`; did you mean `tokens`?"),
    ("task(look, n=1, budget={'time': '5s'})", "the budget of a task has no `time`"),
    ("task(look, n=1, budget={'tokens': -5})", "a budget of -5 tokens allows nothing: write 1 or more"),
    ("task(look, n=1, budget={'cost_usd': -0.5})", "a budget: `cost_usd`: "),
    ("task(look, n=1, budget={'tokens': 2.5})", "a budget: `tokens`: "),
    ("task(look, n=1, budget=500)", '`budget` is a dict: write budget={"tokens": 20000}'),
    ("task(search, query='a', budget={'tokens': 5})", "`search` has no `budget`: that is for tasks of functions"),
    ("await ask('a', budget={'tokens': 5})", "`ask` has no `budget`: that is for tasks of functions"),
    ("await look(1, budget={'tokens': 5})", "start it as a task, `task(look, ..., budget=...)`"),
    ("await search(query=now())", "a time has no JSON: write .isoformat()"),
    ("await search(query=now)", "the function `now` is no value"),
    ("await search(query=sleep(5))", "this uses the call of `sleep`, not its result: write `await sleep(...)`"),
]


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_wrong_limits_and_times_are_refused_before_the_run(body: str, message: str) -> None:
    tools = {"search": {"name": "search", "schema": {"properties": {"query": {}}, "additionalProperties": False}}}
    [problem] = [each for each in problems_in(main(body), tools) if message in str(each)]
    assert problem.where == ("line", 5)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("await search(query='a', timeout=0 * n)", "search: `timeout` is a number of seconds above 0, not 0"),
        ("await search(query='a', timeout=10**9 * n)", "ValueError: search: `timeout` is at most 31,622,400 seconds"),
        ("await llm('a', retry=30 * n)", "ValueError: llm: `retry` is how often it is attempted, 1 to 20, not 30"),
        ("await parallel([task(look, n=1)], limit=n - 1)", "ValueError: parallel: `limit` is how many run at once"),
        ("await sleep(**{'seconds': 1, 'timeout': 1})", "TypeError: sleep: has no `timeout`"),
        ("task(look, **{'n': 1, 'retry': 1})", "TypeError: task: has no `retry`: that is for calls of tools"),
        ("await next_of([n])", "TypeError: next_of takes a list of tickets that task(...) has returned; 1 is none"),
        ("now(*[n])", "now() takes"),
        ("task(look, n=1, budget={'tokens': n - 2})", "ValueError: task: `budget`: `tokens`: "),
        ("task(look, n=1, budget=dict(token=n))", "ValueError: task: the budget of a task has no `token`"),
        ("task(look, n=1, budget=dict())", "TypeError: task: `budget` is a dict such as {\"tokens\": 20000}, not {}"),
        ("task(look, n=1, budget=[n])", "TypeError: task: `budget` is a dict such as"),
        ("await llm('a', budget=dict(nodes=n))", "ValueError: llm: the budget of a task has no `nodes`"),
        ("await search(query='a', **{'budget': {'tokens': n}})", "TypeError: search: has no `budget`: that is for"),
    ],
)  # fmt: skip
async def test_what_only_the_run_can_know_is_raised_in_the_script(
    play: Callable[..., Play], body: str, message: str
) -> None:
    with pytest.raises(ProgramFailed) as found:
        await play(main(body), fakes={"search": search}).run()
    assert message in str(found.value)
    assert "(line 5: " in str(found.value)


def test_a_function_that_takes_a_timeout_gets_it() -> None:
    assert run(main("return await task(look, n=n, timeout=9)"), {}) == [1, 9]
    fakes = {"slow": lambda timeout: timeout}
    assert run(main("return await slow(timeout=7)"), fakes) == 7


async def test_calls_have_their_attempts_and_their_time(play: Callable[..., Play]) -> None:
    script = main("return await search(query='a', retry=3, timeout=2.5) + await search(query='b')")
    played = play(script, fakes={"search": search})
    assert await played.run() == 2
    limits = [(node.retry, spec.expires) for _, node, spec in played.nodes.values() if isinstance(node, ToolNode)]
    assert [(retry.attempts if retry else None, expires) for retry, expires in limits] == [(3, 2500), (None, 0)]
    assert played.nodes["main_1"][2].attempts == 3


def test_next_of_gives_each_ticket_once_as_it_ends() -> None:
    script = """
async def late(n: int):
    await sleep(n)
    if n == 2:
        raise ValueError("two")
    return n

async def main():
    found, tickets = [], [task(late, n=3), task(late, n=1), task(late, n=2)]
    for _ in tickets:
        try:
            ticket, value = await next_of(tickets)
            found.append([tickets.index(ticket), value])
        except ValueError as error:
            found.append(str(error))
    try:
        await next_of(tickets)
    except ValueError as error:
        found.append(str(error))
    return found
"""
    given_once = "next_of has given each of these tickets: each is given once"
    assert run(script, {}) == [[1, 1], "two", [0, 3], given_once]


@pytest.mark.parametrize("side_by_side", [False, True])
async def test_more_calls_than_may_be_open_wait_for_their_turn(
    play: Callable[..., Play], monkeypatch: pytest.MonkeyPatch, side_by_side: bool
) -> None:
    """Also when every snapshot is lost. Their time counts from when they were called."""
    monkeypatch.setattr(script_run, "MAX_OPEN_CALLS", 4)
    one = "async def one(i):\n    return await search(query='a' * i)\n"
    each = "one(i)" if side_by_side else "search(query='a' * i)"
    body = f"return await asyncio.gather(*[{each} for i in range(20)], sleep(5))"
    script = f"import asyncio\n\n{one}\nasync def main():\n    {body}\n"
    most = 0

    class Watched(Play):
        async def start(self, name: str) -> None:
            nonlocal most
            most = max(most, sum(isinstance(self.nodes[each][1], ToolNode) for each in self.going))
            await super().start(name)

    for lost in (False, True):
        if lost:
            monkeypatch.setattr(Snapshots, "find", lambda *_: None)
        played = play(script, fakes={"search": search})
        played.__class__ = Watched
        assert await played.run() == [*range(20), None]
        assert set(played.keys.values()) == {1}
    assert most == 5, "four, and the sleep"


async def test_ten_thousand_sleeps_are_one_node(play: Callable[..., Play]) -> None:
    body = "begun = now()\n    await asyncio.gather(*[sleep(60) for _ in range(10_000)])"
    script = f"import asyncio\n\nasync def main():\n    {body}\n    return (now() - begun).total_seconds()\n"
    played = play(script, takes=lambda _: 0)
    assert await played.run() == 60
    assert len(played.nodes) == 2


async def test_sleeps_that_are_over_together_end_one_after_the_other(play: Callable[..., Play]) -> None:
    """Of two that race, the second is cancelled by the first. What one of them calls is known before the next ends."""
    script = """
import asyncio

async def doze(n, found, others):
    await asyncio.sleep(5)
    found.append(n)
    if n == 2:
        others[3].cancel()
    if n % 2:
        found.append(await search(query=str(n)))

async def main():
    found, others = [], []
    others += [asyncio.create_task(doze(n, found, others)) for n in range(6)]
    await asyncio.gather(*others, return_exceptions=True)
    return found
"""
    for kills in (False, True):
        played: Any = play(script, fakes={"search": lambda query: f"on {query}"}, takes=lambda _: 1, kills=kills)
        assert await played.run() == [0, 1, 2, 4, 5, "on 1", "on 5"]


async def test_sleeps_end_in_order_and_a_cancelled_one_holds_nothing_up(play: Callable[..., Play]) -> None:
    script = """
import asyncio

async def doze(found, n):
    await asyncio.sleep(n)
    found.append(n)

async def main():
    found, begun = [], now()
    long = asyncio.create_task(doze(found, 3600))
    await asyncio.gather(*[doze(found, n) for n in (3, 1, 2, 1)])
    long.cancel()
    await sleep_until(begun)
    return [found, (now() - begun).total_seconds()]
"""
    played: Any = play(script, takes=lambda _: 0)
    assert await played.run() == [[1, 1, 2, 3], 3]


async def test_a_budget_that_is_larger_than_the_runs_is_refused_with_its_line(play: Callable[..., Play]) -> None:
    """A run that has spent some of its own does not refuse what fits into the whole: an edit would else fail there."""
    limits = {"tokens": 500, "cost": 250_000}
    for written, why in (
        ("{'tokens': 501 * n}", "task: a budget of 501 tokens is larger than that of the run, which is 500"),
        ("{'cost_usd': 0.5 * n}", "task: a budget of 0.5 cost_usd is larger than that of the run, which is 0.25"),
    ):
        with pytest.raises(ProgramFailed) as found:
            await play(main(f"task(look, n=1, budget={written})"), limits=limits).run()
        assert f"ValueError: {why} (line 5: " in str(found.value)
    fits = "return await parallel([task(look, n=1, budget={'tokens': 500})])"
    assert await play(main(fits), limits=limits, left={"tokens": 20}).run() == [[1, 0]]


async def test_a_function_that_takes_a_budget_gets_it(play: Callable[..., Play]) -> None:
    script = """
async def look(budget: dict) -> dict:
    return budget

async def main():
    return await parallel([task(look, budget={"apples": 3})])
"""
    assert await play(script).run() == [{"apples": 3}]


SLICED = """import asyncio


async def inner(name: str) -> list:
    await asyncio.gather(llm(f"{name} 1"), llm(f"{name} 2"))
    return [(await budget_left())["tokens"], await width(per_agent_tokens=100)]


async def outer(name: str) -> list:
    phase("deep")
    await llm(name)
    return await parallel([task(inner, name=f"{name}/{n}", budget={"tokens": 300}) for n in range(2)])


async def main() -> list:
    await llm("free")
    both = await parallel([task(outer, name="a", budget={"tokens": 900, "cost_usd": 0.5}), task(inner, name="b")])
    return [both, (await budget_left())["tokens"]]
"""


async def test_the_run_is_told_which_task_with_a_budget_each_call_is_in(play: Callable[..., Play]) -> None:
    """Also where the script's process is lost between its steps, and where it asks what is left."""
    for kills in (False, True):
        played = play(SLICED, fakes={"llm": lambda prompt, **_: prompt}, left={"tokens": 5_000}, kills=kills)
        assert await played.run() == [[[[300, 3], [300, 3]], [5_000, 50]], 5_000]
        sites = {spec.id: spec.call_site for spec in played.tasks}
        slices = {sites[spec.id]: (spec.slice, sites.get(spec.slice_of, "")) for spec in played.tasks}
        assert slices == {
            "outer#1:17": ({"tokens": 900, "cost": 500_000}, ""),
            "inner#1:17": ({}, ""),
            "outer#1/deep/inner#1:12": ({"tokens": 300}, "outer#1:17"),
            "outer#1/deep/inner#2:12": ({"tokens": 300}, "outer#1:17"),
        }
        calls = [spec for _, _, spec in played.nodes.values() if spec.kind == "llm"]
        around = {spec.call_site: sites.get(spec.slice_of, "") for spec in calls}
        assert around == {
            "llm:16": "",
            "outer#1/deep/llm:11": "outer#1:17",
            "inner#1/llm:5": "",
            "outer#1/deep/inner#1/llm:5": "outer#1/deep/inner#1:12",
            "outer#1/deep/inner#2/llm:5": "outer#1/deep/inner#2:12",
        }


async def test_a_model_call_may_have_a_budget_of_its_own(play: Callable[..., Play]) -> None:
    played = play(
        main("return await parallel([task(llm, 'a', budget={'tokens': 7})])"), fakes={"llm": lambda *_, **__: "b"}
    )
    assert await played.run() == ["b"]
    [call] = [spec for _, _, spec in played.nodes.values() if spec.kind == "llm"]
    assert (call.slice, call.slice_of) == ({"tokens": 7}, "")
