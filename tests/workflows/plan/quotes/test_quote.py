"""What scripts can cost, counted without running them."""

import json
from pathlib import Path
from typing import Any

import pytest

from sennit.workflows.plan.quotes.estimate import Quote
from sennit.workflows.plan.quotes.quote import quote_of

TOOLS = {name: {"effect": "read"} for name in ("search", "read")} | {"save": {"effect": "write"}}
PRICES = {"worker": (1_000_000, 5_000_000), "critic": (1_000_000, 5_000_000), "openai:big": (2_000_000, 9_000_000)}
EXAMPLE = Path(__file__).parents[4] / "examples/programs/topic.py"
FUNCTIONS = """
async def one(x):
    return await search(query=x)


async def two(n: int):
    return [await read(path=i) for i in range(n)]


async def deep(goal):
    await llm("Split.", goal)
    return await parallel([task(deep, goal=part) for part in await read(path=goal)])


async def left(x):
    return await right(x)


async def right(x):
    await search(query=x)
    return await left(x)


async def down(n: int):
    await llm("a")
    return n if n <= 0 else await deeper(n)


async def deeper(n: int):
    if n < 1:
        return 0
    return await down(n - 1)


class Desk:
    async def look(self):
        return await search(query="a")


WAYS = ("a", "b", "c")
"""


def quote(body: str, head: str = "goal: str, k: int = 3, names: list = None", **inputs: Any) -> Quote:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return quote_of(f"{FUNCTIONS}\n\nasync def main({head}):\n{lines}", TOOLS, PRICES.get, inputs)


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ("return 1", "0"),
        ("for x in {'a': 1, 'b': 2}.items():\n    await llm('a')", "2"),
        ("for i, x in enumerate(goal):\n    if i >= 3:\n        break\n    await llm('a')", "any number"),
        ("for i, x in enumerate(goal):\n    if x:\n        continue\n    if i >= 3:\n        break", "0"),
        ("for x in 'abc':\n    await llm('a')", "3"),
        ("for x in (await search(query='a', k=4))['items']:\n    await llm('a')", "at least 1"),
        ("x = [await llm('a') for w, v in [(w, v) for w in WAYS for v in 'xy']]", "6"),
        ("await first([task(one, x=w) for w in WAYS])\nawait quorum(2, [task(one, x=w) for w in WAYS])", "0 to 6"),
        ("await search(query='a')\nawait llm('b')\nawait ask('c')\nawait agent('d')", "4"),
        ("if goal:\n    await search(query='a')\n    await llm('b')\nelse:\n    await read(path='a')", "1 to 2"),
        ("if goal:\n    return await llm('a')\nawait search(query='a')\nreturn await llm('b')", "1 to 2"),
        ("x = await llm('a') if goal else await read(path='b')", "1"),
        ("x = goal and await llm('a')", "0 to 1"),
        ("for _ in range(3):\n    await llm('a')", "3"),
        ("for _ in range(1, k + 1):\n    await llm('a')", "3"),
        ("for _ in ('a', 'b'):\n    for _ in WAYS:\n        await llm('a')", "6"),
        ("for x in range(3):\n    if await llm('a'):\n        return x\n    await llm('b')\nawait ask('c')", "1 to 7"),
        ("for x in range(3):\n    if await llm('a'):\n        break\nelse:\n    await ask('b')", "1 to 4"),
        ("for x in range(3):\n    if x:\n        continue\n    await llm('a')", "0 to 3"),
        ("for x in range(3):\n    return await llm('a')", "1 to 3"),
        ("for x in []:\n    await llm('a')", "0"),
        ("for x in goal:\n    await llm('a')", "any number"),
        ("await llm('a')\nfor x in goal:\n    await llm('a')\n    await llm('b')", "at least 1"),
        ("while goal:\n    await llm('a')", "any number"),
        ("while True:\n    if await llm('a'):\n        break", "at least 1"),
        ("while True:\n    await llm('a')", "at least 1"),
        ("while await llm('a'):\n    pass", "at least 1"),
        ("x = [await llm('a') for w in WAYS for _ in range(2)]", "6"),
        ("x = {w: await llm('a') for w in WAYS if w != goal}", "0 to 3"),
        ("x = [await llm('a') for part in goal[:4]]", "any number"),
        ("await one('a')\nawait one('b')", "2"),
        ("await two(2)\nawait two(n=k)", "any number"),
        ("await parallel([task(one, x=w) for w in WAYS])", "3"),
        ("await settled([task(search, query=w) for w in WAYS])", "0 to 3"),
        ("await pipeline(WAYS, one, search)", "6"),
        ("await pipeline(goal, one)", "any number"),
        ("await asyncio.gather(search(query='a'), read(path='b'))", "2"),
        ("x = await search(query='a')\nfor k in range(0, 30, 10):\n    await part(x, k)", "4"),
        ("await deep(goal)", "at least 2"),
        ("await left(goal)", "at least 1"),
        ("await Desk().look()", "any number"),
        ("try:\n    await llm('a')\n    await llm('b')\nexcept ValueError:\n    await search(query='c')", "1 to 3"),
        ("try:\n    return await llm('a')\nfinally:\n    await search(query='c')", "2"),
        ("try:\n    x = await llm('a')\nexcept ValueError:\n    raise\nawait llm('b')", "2"),
        ("if goal:\n    raise ValueError(await llm('a'))\nreturn 1", "0 to 1"),
        ("match k:\n    case 1:\n        await ask('a')\n    case _:\n        await two(2)", "any number"),
        ("match goal:\n    case 'a':\n        await llm('a')", "0 to 1"),
        ("await llm('a', tools=['search'], max_turns=4)", "at least 1"),
        ("for _ in range(200):\n    for _ in range(200):\n        await llm('a')", "at least 10,000"),
        ("for x in range(10 ** 30):\n    await llm('a')", "any number"),
        ("names = []\nfor x in goal:\n    names.append(x)\nfor x in names:\n    await llm('a')", "any number"),
        ("k += 1\nfor _ in range(k):\n    await llm('a')", "any number"),
        ("todo = [1]\ntodo.append(2)\nfor _ in todo:\n    await llm('a')", "any number"),
        ("i = 0\nwhile i < k:\n    await llm('a')\n    i += 1", "any number"),
        ("i = 0\nwhile True:\n    await llm('a')\n    i += 1\n    if i >= 5:\n        break", "at least 1"),
        ("out = []\nwhile len(out) < k:\n    out.append(await llm('a'))", "any number"),
        ("for a, b in zip(WAYS, await llm('x')):\n    await llm(a)", "at least 1"),
        ("for i, a in enumerate(sorted(WAYS), 1):\n    await llm(a)", "3"),
        ("await down(k)", "at least 1"),
        ("f = llm\nawait f('a')", "any number"),
        ("f = one\nawait f(goal)", "any number"),
        ("import asyncio\nawait asyncio.gather(*[one(w) for w in WAYS])", "3"),
        ("import asyncio\nx = [asyncio.create_task(one(w)) for w in WAYS]", "3"),
        ("import asyncio\nasync with asyncio.timeout(3):\n    for w in WAYS:\n        await one(w)", "3"),
        (("def three(f):\n    async def g(x): return await f(x)\n    return g\n"
         "@three\nasync def look(x): return await one(x)\nawait look(1)"), "any number"),
        ("for x in WAYS:\n    try:\n        return await llm('a')\n    except ValueError:\n        pass", "0 to 3"),
    ],
)  # fmt: skip
def test_calls_are_counted_from_the_least_to_the_most(body: str, calls: str) -> None:
    assert str(quote(body).calls) == calls


@pytest.mark.parametrize(
    ("body", "rounds"),
    [
        ("for x in goal:\n    await llm('a')", ["for each of `goal`: llm 1"]),
        ("x = [await one(x) for x in goal]", ["for each of `goal`: search 1"]),
        ("while goal:\n    await llm('a')\n    if k:\n        await one('a')", ["each round: llm 1, search 0 to 1"]),
        ("for x in goal:\n    y = 1", []),
    ],
)
def test_a_round_that_may_come_any_number_of_times_is_counted_for_itself(body: str, rounds: list[str]) -> None:
    found = quote(body).rounds
    assert [
        f"{each.what}: {', '.join(f'{name} {count}' for name, count in each.functions.items())}" for each in found
    ] == rounds


@pytest.mark.parametrize(
    ("body", "writes"),
    [
        ("await search(query='a')", ()),
        ("await save(path='a')", ("save",)),
        ("await parallel([task(save, path=w) for w in WAYS])", ("save",)),
        ("await agent('a')", ("save",)),
        ("await agent('a', tools=['search'])", ()),
        ("await agent('a', tools=goal)", ("save",)),
        ("await llm('a', tools=['search', 'save'])", ("save",)),
        ("await llm('a')", ()),
    ],
)
def test_a_quote_names_what_may_be_written(body: str, writes: tuple[str, ...]) -> None:
    assert quote(body).writes == writes


LEASE = """
class Lease:
    async def __aenter__(self):
        await save(path="a.lock")

    async def __aexit__(self, *_):
        pass


class Store:
    async def keep(self, x):
        await save(path=x)

    @property
    def kept(self):
        return save(path="a")


async def by_default(x, keep=save):
    await keep(path=x)


async def agents(x):
    return await agent(x, tools=["search", "save"])


async def models(x, make=llm):
    return await make(x, tools=["save"])


"""


@pytest.mark.parametrize(
    "body",
    [
        "async with Lease():\n    pass",
        "await getattr(Store(), 'keep')('a')",
        "name = 'ke' + 'ep'\nawait getattr(Store(), name)('a')",
        "await Store().kept",
        "await by_default('a')",
        "await models('a')",
        "f = Store().keep\nawait f('a')",
        "f = save\nawait f(path='a')",
        "await {'a': print, 'b': save}[goal](goal)",
        "@save\nasync def f(): pass\nawait f()",
    ],
)
def test_a_quote_says_that_it_cannot_see_what_is_written(body: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    found = quote_of(f"{LEASE}async def main(goal):\n{lines}", TOOLS, PRICES.get)
    assert (found.writes, found.may_write) == ((), ("save",))
    assert found.lines()[-1] == "may write: any tool among save, in calls that cannot be counted"
    assert "none" not in " ".join(found.lines())
    assert found.in_short().text.startswith("calls any number; ")
    assert found.in_short().text.endswith("; may write any tool among save")
    assert found.data()["may_write"] == ["save"]


@pytest.mark.parametrize(
    "body",
    ["await search(query='a')", "await getattr(goal, 'upper')()", "save = 1\nreturn save"],
)
def test_what_cannot_run_is_nothing_that_may_be_written(body: str) -> None:
    found = quote(body)
    assert (found.writes, found.may_write) == ((), ())
    assert "writes: none" in found.lines()


def test_what_stands_in_a_branch_or_a_function_that_is_called_may_be_written() -> None:
    assert quote("if k < 2:\n    await save(path='a')").writes == ("save",)
    script = f"{LEASE}async def f(k):\n    if k > 1:\n        async with Lease():\n            pass\n\n"
    assert quote_of(script + "async def main():\n    pass\n", TOOLS, PRICES.get).may_write == ()
    assert quote_of(script + "async def main():\n    await f(2)\n", TOOLS, PRICES.get).may_write == ("save",)


def test_functions_of_modules_are_followed_and_their_tops_may_write() -> None:
    script = "import a\n\n\nasync def main():\n    await parallel([task(a.look, x=x) for x in 'abc'])\n"
    script += "    await a.b.keep()\n"
    script += "# ==== file: a.py ====\nimport b\n\n\nasync def look(x):\n    return await search(query=x)\n"
    script += "# ==== file: b.py ====\nasync def keep():\n    await llm('x')\n    await save(path='a')\n"
    found = quote_of(script, TOOLS, PRICES.get)
    assert found.lines()[0] == "calls: 5 (search 3, llm 1, save 1)"
    assert (found.writes, found.models) == (("save",), 1)
    by_name = script.replace("await a.b.keep()", "await getattr(a.b, 'ke' + 'ep')()")
    as_value = script.replace("await a.b.keep()", "m = a.b\n    await m.keep()")
    for other in (by_name, as_value):
        found = quote_of(other, TOOLS, PRICES.get)
        assert (found.writes, found.may_write, found.models) == ((), ("save",), 0)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("await parallel([task(agent, n, tools=['save']) for n in range(300)])", "agent 300"),
        ("await parallel([task(llm, 'a', role='critic') for n in range(300)])", "llm 300"),
        ("await parallel([task(ask, 'a') for n in range(300)])", "ask 300"),
        ("t = task(llm, 'a', tools=['save'], max_turns=4)\nawait parallel([t])", "(llm 0 to 4, save any number)"),
    ],
)
def test_a_task_of_a_word_counts_as_its_call(body: str, text: str) -> None:
    found = quote(body)
    assert text in found.lines()[0]
    assert found.writes == (("save",) if "save" in body else ())
    assert (found.models > 0) == ("role=" in body), "a task that is not begun in `parallel` may be cancelled"
    assert (found.tokens.most != 0) == ("task(ask" not in body)


def test_tokens_and_dollars_are_a_range() -> None:
    found = quote("await llm('a')\nif goal:\n    await llm('b', role='critic')")
    assert (str(found.tokens), found.cost) == ("1,000 to 2,000", (0.001, 0.01))
    assert quote("await llm('a', model='openai:big')").cost == (0.002, 0.009)
    assert quote("await llm('a', model='openai:other')").cost is None
    assert str(quote("await agent('a', budget={'tokens': 5000})").tokens) == "5,000"


def test_inputs_bound_loops_by_what_is_given_or_by_default() -> None:
    body = "for _ in range(k):\n    for name in names:\n        await llm(name)"
    assert str(quote(body, names=[1, 2]).calls) == "6"
    given = quote(body, names=[1, 2], k=5)
    assert (str(given.calls), given.assumed) == ("10", {"k": 5})


def test_the_quote_of_the_example_in_lines_and_as_json() -> None:
    found = quote_of(EXAMPLE.read_text(), TOOLS, PRICES.get)
    assert found.lines() == [
        "calls: at least 3, no upper bound (llm at least 3, search any number, ask 0 to 1)",
        "  for each of `questions[:5]` (line 17): search 1, llm 1",
        "tasks: any number",
        "tokens: at least about 3,026, no upper bound; at least $0.0030",
        "writes: none",
    ]
    unpriced = quote_of(EXAMPLE.read_text(), TOOLS, lambda model: None)
    assert unpriced.lines()[3] == "tokens: at least about 3,026, no upper bound"
    assert unpriced.lines(in_dollars=True)[3].endswith("; not all prices are known")
    data = json.loads(json.dumps(found.data()))
    assert data["calls"] == {"least": 3, "most": None}
    assert data["functions"]["ask"] == {"least": 0, "most": 1}


def test_functions_that_call_each_other_over_many_levels_are_counted_or_have_no_bound() -> None:
    def calls(levels: int) -> Quote:
        twice = "async def f{0}():\n    await f{1}()\n    await f{1}()\n\n"
        functions = "".join(twice.format(level, level + 1) for level in range(levels))
        last = f"async def f{levels}():\n    await save(path='a')\n\nasync def main():\n    await f0()\n"
        return quote_of(functions + last, TOOLS, PRICES.get)

    assert (str(calls(10).calls), calls(10).writes) == ("1,024", ("save",))
    assert (str(calls(40).calls), calls(40).writes) == ("at least 10,000", ("save",))
    assert (str(calls(2_000).calls), calls(2_000).writes) == ("any number", ("save",))


@pytest.mark.parametrize(
    ("body", "models"),
    [
        ("for _ in range(3):\n    await llm('a')", 3),
        ("await search(query='a')\nawait agent('d')\nawait ask('c')", 0),
        ("await asyncio.gather(llm('a'), llm('b'))", 2),
        ("await parallel([task(ask_model, x=w) for w in WAYS])", 3),
        ("await pipeline(['a', 'b'], ask_model)", 2),
        ("await first([task(ask_model, x=w) for w in WAYS])", 0),
        ("await settled([task(ask_model, x=w) for w in WAYS])", 0),
        ("tickets = [task(ask_model, x=w) for w in WAYS]\nawait parallel(tickets)", 0),
        ("try:\n    await llm('a')\n    await llm('b')\nexcept ValueError:\n    pass\nawait llm('c')", 1),
        ("if goal:\n    raise ValueError(goal)\nawait llm('a')", 1),
        ("while goal:\n    await llm('a')\nawait llm('b', tools=['search'])", 1),
        ("for x in WAYS:\n    if await llm('a'):\n        break\nelse:\n    await llm('b')", 1),
        ("for x in WAYS:\n    if x:\n        return await llm('a')\nawait llm('b')", 0),
        ("for x in WAYS:\n    try:\n        await llm('a')\n    except ValueError:\n        continue", 0),
        ("with contextlib.suppress(ValueError):\n    await llm('a')\nawait llm('b')", 1),
        ("match goal:\n    case 'a':\n        await llm('a')\n    case _:\n        raise ValueError(goal)", 1),
        ("while True:\n    if goal:\n        continue\n    await llm('a')\n    break\nawait llm('b')", 1),
    ],
)
def test_no_run_that_ends_calls_models_less_often(body: str, models: int) -> None:
    functions = f"import asyncio, contextlib\n{FUNCTIONS}\n\nasync def ask_model(x):\n    return await llm('a', x)\n\n"
    script = f"{functions}\nasync def main(goal):\n"
    body = "".join(f"    {line}\n" for line in body.splitlines())
    assert quote_of(script + body, TOOLS, PRICES.get).models == models


def test_a_run_shows_a_quote_in_one_line() -> None:
    found = quote("await save(x=1)\nfor _ in range(2):\n    await llm('a')").in_short()
    assert found.text == "calls 3; tokens about 2,000; $0.0020 to $0.0100; writes save"
    assert found[1:] == (2, 2_000, 2_000)


def test_a_table_of_functions_counts_what_each_may_call() -> None:
    script = """
async def look(q):
    return await search(query=q)

TABLE = {"look": look}

async def main(kind: str):
    return await TABLE[kind]("x")
"""
    assert quote_of(script, TOOLS, PRICES.get).lines()[0] == "calls: any number (search any number)"


def test_the_budget_of_a_task_bounds_what_its_calls_are_quoted_at() -> None:
    endless = quote("return await parallel([task(deep, goal=goal, budget={'tokens': 5_000}) for _ in range(3)])")
    assert endless.tokens == (3_006, 15_000)
    assert endless.cost == (0.003006, None)
    paid = quote("return await task(deep, goal=goal, budget={'cost_usd': 0.25, 'calls': 4})")
    assert paid.cost == (0.001002, 0.25)
    assert paid.functions["llm"] == (1, 4)
    small = quote("return await task(deep, goal=goal, budget={'tokens': 10})")
    assert small.tokens == (10, 10)
    known = quote("return await task(down, n=2, budget={'tokens': k * 1_000})")
    assert known.tokens.most == 3_000
    own = quote("return await task(llm, goal, tools=['search'], budget={'tokens': 2_000, 'cost_usd': 9})")
    assert own.tokens == (1_000, 2_000)
    unknown = quote("return await task(deep, goal=goal, budget={'tokens': len(goal)})")
    assert unknown.tokens.most is None
