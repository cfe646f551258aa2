import pytest
from doubles.programs import TOPIC

from sennit.workflows.plan.limits import MAX_SCRIPT_PROBLEMS
from sennit.workflows.plan.programs.syntax import Parameter, parameters_of, problems_in

TOOLS = dict.fromkeys(("search", "write"), 0)
MUCH = """
from __future__ import annotations
import asyncio
import json as j
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

ROLES: list[str] = ["critic", "worker"]
PATTERN = re.compile(r"[a-z]+")

@dataclass
class Claim:
    text: str
    sources: list[str] = field(default_factory=list)

    def score(self) -> int:
        return len(self.sources)

def best(claims: list[Claim]) -> Claim:
    return max(claims, key=lambda claim: claim.score())

def order(claim): return -claim.score()

async def check(claim: str, *, strict: bool = True) -> bool:
    try:
        found = await search(claim, k=3)
    except TimeoutError as error:
        return False
    finally:
        await write(text="checked")
    return any(claim in hit for hit in found)

async def grade(item: Any):
    return await check(item)

async def main(topic: str, depth: int = 2, filters: dict[str, Any] | None = None, *, names: list[str] = []):
    phase("gather")
    early = search(query=topic)
    first, *others = await asyncio.gather(search(query="a"), llm("b"), *[ask(q) for q in names])
    calls = [search(query=name) for name in names]
    calls.append(write(text="x"))
    results = await asyncio.gather(*calls)
    tickets = {name: task(check, claim=name) for name in names}
    tickets["tool"] = task(search, query="x")
    votes = await quorum(2, list(tickets.values()))
    graded = await pipeline(results, grade, search)
    claims = sorted([Claim(str(vote)) for vote in votes], key=order)
    def helper(claim):
        nonlocal depth
        depth += 1
        return [claim, *map(order, claims)]
    match filters:
        case {"site": site, **rest} if (n := len(rest)) > 1:
            print(site, n)
        case [one, *more] | (one, *more):
            helper(one)
        case None:
            pass
    while depth and (await budget_left())["calls"] > 3:
        depth -= 1
        if await check("x"):
            break
    scores = [await grade(claim) for claim in names]
    texts = {key: await llm("{}".format(key), model=value) for key, value in (filters or {}).items()}
    return j.dumps([best(claims).text, Counter(names), await early, graded, first, others, scores, texts])
"""


@pytest.mark.parametrize("script", [TOPIC, MUCH, "async def main(): return 1"])
def test_a_script_that_runs_has_no_problems(script: str) -> None:
    assert problems_in(script, TOOLS) == []


def in_main(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"async def look(q): return q\ndef plain(q): return q\nLIMITS = [1]\nasync def main():\n{lines}\n"


IN_MAIN = [
    ("async with look(1): pass", "await", "uses the call of `look`, not its result"),
    ("import os", "import", "no module `os`: a script reaches no files"),
    ("import os.path", "import", "no module `os.path`: a script reaches no files"),
    ("import socket", "import", "no module `socket`: a script reaches no network; use a tool"),
    ("import jsn", "import", "no module `jsn`; did you mean `json`?"),
    ("from json import *", "import", "name what you import"),
    ("from . import x", "import", "in no package"),
    (
        "import asyncio\nasyncio.to_thread(look, 1)",
        "construct",
        "no `to_thread` here: call the tool",
    ),
    ("from asyncio import to_thread", "construct", "asyncio has no `to_thread` here: call the tool"),
    ("await sleep()", "argument", "`seconds`"),
    ("await sleep(1, 2)", "argument", "`sleep` takes 1"),
    ("await sleep_until(tim=1)", "argument", "`tim`"),
    ("sleep(1)", "await", "the call of `sleep` is never awaited"),
    ("import time\ntime.sleep(1)", "construct", "write `await sleep(seconds)`"),
    ("__import__('os')", "name", "there is no `__import__`"),
    ("eval('1')", "name", "there is no `eval`: write the code itself"),
    ("return open('x').read()", "name", "there is no `open`: a script reaches no files"),
    ("first = await first([])\nreturn first", "name", "`first` is a variable here, not the word or tool"),
    ("return serch(1)", "name", "there is no `serch`; did you mean `search`?"),
    ("return [qq for q in [1]]", "name", "there is no `qq`"),
    ("return search", "function", "the function `search` is no value: call it, or give it to task"),
    ("return [look]", "function", "the function `look` is no value"),
    ("return await llm('x', look)", "function", "the function `look` is no value"),
    ("await llm('x', tools=[search])", "function", 'write its name as a text, "search"'),
    ("write(text='x')", "await", "the call of `write` is never awaited: write `await write(...)`"),
    ("look(1)", "await", "the call of `look` is never awaited"),
    ("x = write(text='x')\nreturn 1", "await", "the call of `write` is never awaited"),
    ("task(look, x=1)", "await", "nothing waits for this task: write `await parallel([task(...), ...])`"),
    ("[task(write, text=x) for x in 'ab']", "await", "nothing waits for this task"),
    ("x = task(look, x=1)\nreturn 1", "await", "nothing waits for this task"),
    ("return search(1)", "await", "uses the call of `search`, not its result"),
    ("return search(1)[0]", "await", "uses the call of `search`, not its result"),
    ("return f'{llm(1)}'", "await", "uses the call of `llm`, not its result"),
    ("if search(1): pass", "await", "uses the call of `search`, not its result"),
    ("return len(search(1))", "await", "uses the call of `search`, not its result"),
    ("import json\nreturn json.dumps(search(1))", "await", "uses the call of `search`, not its result"),
    ("return await llm('x', search(1))", "await", "uses the call of `search`, not its result"),
    ("for hit in search(1): pass", "await", "uses the call of `search`, not its result"),
    ("return [hit for hit in search(1)]", "await", "uses the call of `search`, not its result"),
    ("import asyncio\nawait asyncio.gather(search(1), exceptions=True)", "argument", "`gather` has no `exceptions`"),
    ("return await parallel([look(1)])", "await", "parallel([task(look, ...), ...])"),
    ("return await parallel([search(1)])", "await", "parallel([task(search, ...), ...])"),
    ("return await plain(1)", "await", "`plain` is no `async def`"),
    ("await phase('x')", "await", "`phase` is called without `await`"),
    ("def f(): return await look(1)\nf()", "await", "in an `async def` only"),
    ("task(lambda: 1)", "function", "write the name of an `async def` at the top of the script, or of a tool"),
    ("async def inner(): pass\ntask(inner)", "function", "`inner` stands inside another function: move it to the top"),
    ("task(plain, q=1)", "function", "`plain` is no `async def`: define it with `async`"),
    ("task(part, prompt='x')", "function", "`part` is no function for this"),
    ("task(look(1))", "function", "without calling it"),
    ("task()", "function", "write the name of an `async def`"),
    ("task(look, 1)", "argument", "`task` takes arguments by name"),
    ("return await pipeline([1], plain)", "function", "`plain` is no `async def`"),
    ("return await pipeline(items=look)", "argument", "`pipeline`"),
    ("return await pipeline([1], lambda x: x)", "function", "write the name of an `async def`"),
]


def test_a_write_where_no_worker_may_write_names_the_setting() -> None:
    [found] = problems_in(in_main("return await write(path='a', text='b')"), {})
    assert found.message == "there is no `write`: workers offer it where SENNIT_WRITE_ROOT is set"


@pytest.mark.parametrize(("body", "code", "message"), IN_MAIN)
def test_what_a_script_may_not_do(body: str, code: str, message: str) -> None:
    found = problems_in(in_main(body), TOOLS)
    assert (code, True) in [(problem.code, message in problem.message) for problem in found], found
    assert all(5 <= int(problem.where[1]) <= 7 for problem in found)


WHOLE = [
    ("", "main", "a script has an `async def main(...)`", 1),
    ("def main(): pass", "main", "a script has an `async def main(...)`", 1),
    ("async def main(*a): pass", "argument", "by name: write `a` alone", 1),
    ("async def main(a, /): pass", "argument", "by name: write `a` alone", 1),
    ("async def main(\n  a: set[str]): pass", "argument", "`set` has no JSON", 2),
    ("\nasync def search(): pass\nasync def main(): pass", "name", "there is a tool `search` already", 2),
    ("first = 1\nasync def main(): pass", "name", "there is a word `first` already", 1),
    ("async def main(): pass\nif 1: main()", "top_level", "call `main` in a function", 2),
    ("x = search(1)\nasync def main(): return x", "top_level", "call `search` in a function", 1),
    ("async def main(): return x\nx = task(main)", "top_level", "call `task` in a function", 2),
    (
        "async def main(): await parallel([task(look)])\n@x\nasync def look(): pass\ndef x(f): return f",
        "function",
        "write the name of an `async def` at the top",
        1,
    ),
    ("async def main(:", "syntax", "this is not Python", 1),
    ("async def main(): return '\0'", "syntax", "this is not Python", 1),
    ("x = " + "(" * 5000, "syntax", "this is not Python", 1),
    ("x = f'" + "{a}" * 50_000 + "'", "size", "more than 20,000 `{`: read data with tools", 1),
    ("x = 1 # " + "x" * (1 << 20), "size", "more than 1 MB", 1),
    ("x = '" + "é" * 600_000 + "'", "size", "more than 1 MB", 1),
    ("x = 1\ny = [" + "x, " * 50_000 + "]", "size", "more than 50,000 parts", 2),
    ("x = 1\ny = x" + ".a" * 2_500, "size", "nested more than 120 levels deep", 2),
    ("y = 0x" + "f" * 5_000, "size", "the number is too long", 1),
]


@pytest.mark.parametrize(("script", "code", "message", "line"), WHOLE)
def test_what_a_script_must_have(script: str, code: str, message: str, line: int | None) -> None:
    found = problems_in(script, TOOLS)
    assert (code, True) in [(problem.code, message in problem.message) for problem in found], found
    assert found[-1].where == (() if line is None else ("line", line))


def test_all_problems_are_found_at_once_in_the_order_of_their_lines_and_some_of_very_many() -> None:
    found = problems_in("import requests\nasync def main():\n    yield serch()\n    write()\n", TOOLS)
    assert [str(problem).partition(": ")[0] for problem in found] == ["line 1", "line 3", "line 3", "line 4"]
    many = problems_in("async def main():\n" + "".join(f"    unknown{n}\n" for n in range(3_000)), TOOLS)
    assert len(many) == MAX_SCRIPT_PROBLEMS


def test_the_parameters_of_main() -> None:
    assert parameters_of("async def main(a: str, b: int = 2, *, c=None, d: list[str] = X): pass") == {
        "a": Parameter("str", required=True),
        "b": Parameter("int", required=False, default=2),
        "c": Parameter("", required=False),
        "d": Parameter("list[str]", required=False),
    }
    assert parameters_of("def other(:") == parameters_of("x = 1") == {}
