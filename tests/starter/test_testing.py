"""Programs in unit tests: fakes for what a run would call, everything else as in a run."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sennit.testing import Large, Spent, WrongFake, run
from sennit.workflows.plan.language.problems import InvalidPlan

HEAD = """
async def look(name: str) -> str:
    return await search(query=name)

async def upper(text: str) -> str:
    return text.upper()

async def shout(text: str) -> str:
    return text + "!"
"""


def main(*lines: str) -> str:
    return "\n".join([HEAD, "async def main(**_):", *(f"    {line}" for line in lines)]).replace("**_", "")


async def search(query: str) -> str:
    if query == "lost":
        raise LookupError("no such thing")
    await asyncio.sleep(0.4 if query == "slow" else 0)
    return f"found {query}"


TICKETS = "[task(look, name=name) for name in names]"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["return await search(query='$x')"], "found $x"),
        (["names = ['slow', 'b']", f"return await parallel({TICKETS})"], ["found slow", "found b"]),
        (["names = ['lost', 'slow', 'b']", f"return await first({TICKETS})"], "found b"),
        (["names = ['slow', 'b', 'c']", f"return await quorum(2, {TICKETS})"], ["found b", "found c"]),
        (["names = []", f"return await parallel({TICKETS})"], []),
        (["return await pipeline(['a', 'b'], upper, shout)"], ["A!", "B!"]),
        (["return await parallel([task(search, query='a')])"], ["found a"]),
        (
            ["try:", "    await search(query='lost')", "except LookupError as error:", "    return str(error)"],
            "no such thing",
        ),
        (
            ["try:", "    await parallel([task(look, name='lost')])", "except LookupError:", "    return 'lost'"],
            "lost",
        ),
        (["phase('a')", "return (await budget_left())['calls']"], None),
    ],
)
def test_the_words_do_what_they_do_in_a_run(lines: list[str], expected: Any) -> None:
    assert run(main(*lines), {"search": search}) == expected


def test_a_script_that_is_wrong_is_refused_with_all_problems() -> None:
    with pytest.raises(InvalidPlan, match=r"line 12: .*\nline 13: "):
        run(main("import os", "return open('x')"), {})


def test_settled_says_how_each_ended() -> None:
    lines = ["names = ['a', 'lost']", f"return await settled({TICKETS})"]
    good, bad = run(main(*lines), {"search": search})
    assert good == {"status": "succeeded", "value": "found a", "error": None}
    assert (bad["status"], bad["value"]) == ("failed", None)
    assert "LookupError: no such thing" in bad["error"]


def test_tasks_run_side_by_side() -> None:
    gate = asyncio.Barrier(2)

    async def meet(query: str) -> str:
        async with gate:
            return query

    lines = ["names = ['a', 'b']", f"return await parallel({TICKETS})"]
    assert run(main(*lines), {"search": meet}) == ["a", "b"]


def test_a_call_is_attempted_as_often_as_the_script_says() -> None:
    made: list[str] = []

    def search(query: str) -> str:
        made.append(query)
        if len(made) < 3:
            raise ConnectionError("away")
        return query

    assert run(main("return await search(query='a', retry=3)"), {"search": search}) == "a"
    made.clear()
    with pytest.raises(ConnectionError, match="away"):
        run(main("return await search(query='b', retry=2)"), {"search": search})
    assert made == ["b", "b"]


def test_a_script_is_a_file_or_a_text_and_gets_its_inputs(tmp_path: Path) -> None:
    script = "async def main(a: int, b: int = 2):\n    return a + b\n"
    (tmp_path / "sum.py").write_text(script)
    assert run(tmp_path / "sum.py", {}, a=1) == 3
    assert run(script, {}, a=1, b=1) == 2


def test_what_a_script_raises_is_raised_with_its_lines() -> None:
    with pytest.raises(ValueError, match="too few") as caught:
        run(main("raise ValueError('too few')"), {})
    assert 'File "script", line 12, in main' in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("lines", "fakes", "message"),
    [
        (["return await llm('x')"], {}, r"line 13 of the script needs `llm`"),
        (
            ["return await agent('x', tools=['serch'])"],
            {"agent": None, "search": None},
            r"line 13 of the script needs `serch`: .*did you mean `search`",
        ),
        (["return await llm('x', schema=list[str])"], {"llm": lambda *_, schema: [1]}, r"schema on line 13: \[0\]"),
        (["return await ask('x', schema={'a': int})"], {"ask": lambda *_, schema: {}}, r"schema on line 13"),
    ],
)
def test_a_wrong_fake_ends_the_test_and_not_the_script(lines: list[str], fakes: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongFake, match=message):
        run(main("try:", *(f"    {line}" for line in lines), "except Exception:", "    return 'caught'"), fakes)


def test_how_a_fake_is_called_is_how_the_script_calls_it() -> None:
    def llm(prompt: str, *material: Any, **options: Any) -> str:
        return f"{prompt} {material} {options}"

    expected = "x (1, ['$a']) {'schema': None, 'role': 'judge'}"
    assert run(main("return await llm('x', 1, ['$a'], schema=None, role='judge')"), {"llm": llm}) == expected
    assert run(main("return await llm('x')"), {"llm": llm, "budget_left": dict}) == "x () {}"
    assert run(main("return await budget_left()"), {"budget_left": lambda: {"calls": 3}}) == {"calls": 3}


def test_a_large_result_is_a_reference_and_other_fakes_are_given_its_value() -> None:
    fakes: dict[str, Any] = {"read": lambda path: Large(f"{path} text"), "llm": lambda prompt, *material: material}
    body = ["text = await read(path='a')", "[same] = await parallel([task(give, value=text)])"]
    body += ["said = await llm('x', text, [same, 1])", "return [text.size, await part(same, 0, 3), said, same]"]
    script = main(*body) + "\nasync def give(value):\n    return value\n"
    assert run(script, fakes) == [6, "a t", ["a text", ["a text", 1]], "a text"]


def test_coroutines_and_sleeps_take_no_time() -> None:
    script = """
import asyncio
from datetime import datetime

async def look(name, found):
    await asyncio.sleep(3600 if name == "a" else 60)
    found.append([await search(query=name), str(datetime.now())])

async def main():
    found = []
    await asyncio.gather(*[look(name, found) for name in "abc"])
    return found
"""
    late = [["b", "2026-01-01 00:01:00"], ["c", "2026-01-01 00:01:00"], ["a", "2026-01-01 01:00:00"]]
    assert run(script, {"search": lambda query: query}) == late


BUDGETS = """
async def look(name: str) -> list:
    found = []
    try:
        for k in range(10):
            found.append(await llm(f"{name} {k}"))
            found.append((await budget_left())["tokens"])
    except BudgetExceeded as error:
        found.append(str(error))
    return found


async def wide(name: str) -> list:
    return [end["status"] for end in await settled([task(llm, f"{name} {k}") for k in range(4)])]


async def outer(name: str) -> list:
    return await settled([task(look, name=f"{name}{k}", budget={"tokens": 2_500}) for k in range(2)])


async def main(way: str) -> list:
    if way == "deep":
        few = task(look, name="b", budget={"calls": 1})
        return await parallel([task(look, name="a", budget={"tokens": 1_500}), few])
    if way == "wide":
        return await parallel([task(wide, name="c", budget={"calls": 3}), task(wide, name="d")])
    return await parallel([task(outer, name="e", budget={"cost_usd": 0.03})])
"""


def test_the_budgets_of_tasks_count_what_fakes_say_that_calls_have_used() -> None:
    fakes = {"llm": lambda prompt: Spent(prompt, tokens=900, cost_usd=0.01)}
    deep = run(BUDGETS, fakes, way="deep")
    assert deep[0][:4] == ["a 0", 600, "a 1", 0]
    assert deep[0][4].startswith("BudgetExceeded: look#2:24 has used 1,800 tokens of its budget of 1,500 tokens")
    assert deep[1][0] == "b 0"
    assert deep[1][2].startswith("BudgetExceeded: look#1:23 has used 1 model calls of its budget of 1 model calls")
    assert run(BUDGETS, fakes, way="wide") == [["succeeded"] * 3 + ["failed"], ["succeeded"] * 4]
    [ends] = run(BUDGETS, fakes, way="nested")
    assert all("BudgetExceeded: outer#1:27 has used $0.0300 of its budget of $0.0300" in str(end) for end in ends)
    assert sum(str(end).count("'e0 ") + str(end).count("'e1 ") for end in ends) == 3, (
        "both share the budget of the task around them"
    )


def test_a_fake_may_say_what_it_has_used_beside_a_schema() -> None:
    script = "async def main():\n    return await llm('x', schema=int)\n"
    assert run(script, {"llm": lambda *_, **__: Spent(5, tokens=1)}) == 5
