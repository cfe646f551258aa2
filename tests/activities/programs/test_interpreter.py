import random
from collections.abc import Mapping
from dataclasses import replace

import psutil
import pytest

from sennit.activities.programs import script_run, type_check
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.programs.cpython.names import BEGUN, TOLD, shown_path
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.progress import Advance, Snapshot
from sennit.activities.programs.script_run import ScriptRun
from sennit.activities.programs.values import Call, Ended
from sennit.workflows.plan.programs.stubs import stubs_of
from sennit.workflows.plan.programs.syntax import problems_in

RESEARCH = """
async def look(question: str) -> str:
    hits = await search(query=question, k=5)
    return await llm("Answer from the passages.", question, hits)

async def main(topic: str):
    questions = await llm("Two questions.", topic, schema=list[str])
    answers = await parallel([task(look, question=q) for q in questions])
    for _ in range(3):
        review = await llm("What is wrong?", answers, schema={"good": bool, "faults": list[str]}, role="critic")
        if review["good"]:
            return answers
    return await ask("Publish anyway?", answers)
"""


class Calls:
    """Answers `phase`, and what is told of tasks; every other call stays open."""

    def __init__(self) -> None:
        self.made: list[Call] = []

    def __call__(self, call: Call) -> Ended | None:
        self.made.append(call)
        return Ended("a") if call.function in ("phase", *TOLD) else None


def later(_: Call) -> None:
    """Leave a call open."""


def main(body: str, head: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"{head}\nasync def main():\n{lines}\n"


async def run(interpreter: Interpreter, script: str, results: Mapping[str, Ended] | None = None) -> Advance:
    """Run a script to its end, each call with the result of its name."""
    calls = Calls()
    advance = await interpreter.start(script, "main", {}, calls)
    while advance.snapshot:
        made = {call.number: call.function for call in calls.made}
        ended = {number: (results or {}).get(made[number], Ended(number)) for number in advance.waits}
        advance = await interpreter.resume(advance.snapshot, ended, calls)
    return advance


async def test_a_script_runs_until_it_waits_and_goes_on_with_what_ended(interpreter: Interpreter) -> None:
    calls = Calls()
    first = await interpreter.start(RESEARCH, "main", {"topic": "tides"}, calls)
    assert [(call.function, call.args, call.line) for call in calls.made] == [("llm", ("Two questions.", "tides"), 7)]
    assert calls.made[0].kwargs == {"schema": "list[str]"}
    second = await interpreter.resume(first.snapshot, {first.waits[0]: Ended(["a", "b"])}, calls)
    begun = [call for call in calls.made if call.function == BEGUN]
    assert [shown_path(call.args[0]) for call in begun] == ["look#1", "look#2"]
    assert [call.args[1] for call in begun] == ['"a"', '"b"']
    assert len(second.waits) == 2
    asked = await interpreter.resume(second.snapshot, dict.fromkeys(second.waits, Ended([])), calls)
    third = await interpreter.resume(asked.snapshot, dict.fromkeys(asked.waits, Ended("x")), calls)
    assert calls.made[-1].kwargs == {"schema": {"good": "bool", "faults": "list[str]"}, "role": "critic"}
    end = await interpreter.resume(third.snapshot, {third.waits[0]: Ended({"good": True, "faults": []})}, calls)
    assert end.value == ["x", "x"]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("try:\n    await search()\nexcept TimeoutError as e:\n    return str(e)", "late"),
        (
            "try:\n    await write()\nexcept RuntimeError as e:\n    return str(e)\nfinally:\n    await tidy()",
            "Odd: no",
        ),
        ("late = tidy()\nfirst = await count()\nreturn first < await late", True),
        ("return await asyncio.gather(tidy(), count())", [0, 1]),
        ("phase('a')\nreturn (1, Point(2, [Point(3)]))", [1, {"x": 2, "y": [{"x": 3, "y": None}]}]),
        ("await count()\nreturn str(datetime.now())", "1970-01-01 00:00:00"),
        ("return 10**30", 10**30),
        ("return (await page()) + ' '", "<class 'page'> "),
        ("return ['<b>x</b>', '<module name=1/>']", ["<b>x</b>", "<module name=1/>"]),
    ],
)
async def test_what_a_script_does_with_results(interpreter: Interpreter, body: str, value: object) -> None:
    head = """
import asyncio, time
from dataclasses import dataclass
from datetime import datetime
@dataclass
class Point:
    x: int
    y: list | None = None
"""
    results = {
        "search": Ended(error=("TimeoutError", "late")),
        "write": Ended(error=("Odd", "no")),
        "page": Ended("<class 'page'>"),
    }
    assert await run(interpreter, main(body, head), results) == Advance(value=value)


async def test_a_tool_may_be_called_and_given_to_a_task(interpreter: Interpreter) -> None:
    calls = Calls()
    script = main("await search(q=1)\ntask(search, q=2)\nawait search(q=3)\nreturn await search(q=4)")
    advance = await interpreter.start(script, "main", {}, calls)
    while advance.snapshot:
        advance = await interpreter.resume(advance.snapshot, {advance.waits[0]: Ended(advance.waits[0])}, calls)
    assert [call.function for call in calls.made] == ["search"] * 4
    assert advance.error is None


async def test_types_in_lists_of_a_schema_are_texts(interpreter: Interpreter) -> None:
    calls = Calls()
    await interpreter.start(
        main("await llm('x', schema={'orders': [{'goal': str, 'to': int | None}]})"), "main", {}, calls
    )
    assert calls.made[0].kwargs == {"schema": {"orders": [{"goal": "str", "to": "int | None"}]}}


BAD = [
    ("key = 5\nraise KeyError(key)", "KeyError", "5", 4),
    ("raise ValueError('é', KeyError(5))", "ValueError", "('é', KeyError(5))", 3),
    ("raise SystemExit(5)", "SystemExit", "5", 3),
    ("return 1 / 0", "ZeroDivisionError", "division by zero", 3),
    ("try:\n    return 1 / 0\nfinally:\n    raise ValueError('in finally')", "ValueError", "in finally", 6),
    ("def deeper():\n    deeper()\ndeeper()", "RecursionError", "too many levels deep; write a loop", 4),
    ("x = [0] * 10**9", "MemoryError", "more than 64 MB", 3),
    ("return open('/etc/passwd').read()", "NotImplementedError", "a script has no open: use a tool", 3),
    ("import os\nreturn os.environ", "ModuleNotFoundError", "No module named 'os': a script reaches", 3),
    ("import socket", "ModuleNotFoundError", "socket", 3),
    ("return eval('1')", "NotImplementedError", "no eval", 3),
    ("exec('x = 1')", "NotImplementedError", "no eval and no exec", 3),
    ("return [].__dict__", "AttributeError", "__dict__", 3),
    ("await search(search())", "TypeError", "search: a coroutine is no value: await a call", 3),
    ("await search(main)", "TypeError", "search: a function is no value", 3),
    ("await search(tidy)", "TypeError", "search: a function is no value", 3),
    ("await search([lambda: 1])", "TypeError", "search: a function is no value", 3),
    ("task(lambda: 1)", "TypeError", "task: name a function of the script or a tool", 3),
    ("task(main())", "TypeError", "without calling it; this is a coroutine", 3),
    ("task('main')", "TypeError", "this is the text 'main'", 3),
    ("await search({1})", "TypeError", "a set has no JSON: write sorted(...)", 3),
    ("await search(b'')", "TypeError", "a bytes has no JSON: write .decode()", 3),
    ("await search(str)", "TypeError", "search: a type is no value", 3),
    ("await search(float('nan'))", "TypeError", "JSON has no nan", 3),
    ("await task(main, n={1: 2})", "TypeError", "write str(key)", 3),
    ("await search('x' * 1_100_000)", "TypeError", "more than 1 MB", 3),
    ("x = []\nfor i in range(40):\n    x = [x, x]\nawait search(x)", "TypeError", "more than 1 MB", 6),
    (
        "x = {}\nfor i in range(40):\n    x = {'a': x, 'b': x}\nawait llm('', schema=x)",
        "TypeError",
        "more than 1 MB",
        6,
    ),
    ("await search(iter([1]))", "TypeError", "search: a list_iterator is no value", 3),
    ("x = []\nfor i in range(200):\n    x = [x]\nawait search(x)", "TypeError", "50 levels", 6),
    ("return {1, 2}", "TypeError", "returned what is not JSON", 3),
    ("return await big()", "ValueError", "cannot be used in a script: it has more than 1 MB", 3),
    ("while True:\n    phase('x')", "RuntimeError", "without waiting", 4),
]


@pytest.mark.parametrize(("body", "kind", "message", "line"), BAD)
async def test_what_goes_wrong_in_a_script(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch, body: str, kind: str, message: str, line: int
) -> None:
    monkeypatch.setattr(script_run, "CALLS_IN_AN_ADVANCE", 1000)
    error = (await run(interpreter, main(body), {"big": Ended("x" * (1 << 21))})).error
    assert error is not None
    assert (error.type, error.line) == (kind, line)
    assert message in error.message
    assert "asyncio" not in error.traceback


@pytest.mark.parametrize(
    ("body", "line", "where"),
    [
        ("while True:\n    await clock()\n    break\nwhile True: pass", 6, ""),
        ("while True:\n    for x in 'ab': pass", 0, "a loop on one of the lines 3, 4 does not end; "),
    ],
)
async def test_an_endless_loop_without_calls_ends(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch, body: str, line: int, where: str
) -> None:
    monkeypatch.setattr(script_run, "TURN_SECONDS", 0.2)
    error = (await run(interpreter, main(body))).error
    assert error is not None
    assert (error.type, error.line) == ("TimeoutError", line)
    text = f"the script computed for 0 s without a call; {where}end the loop, or give the work to a tool"
    assert error.message == text
    assert await run(interpreter, main("return 1")) == Advance(value=1)


async def test_the_time_of_a_step_counts_with_all_its_calls(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_run, "ADVANCE_SECONDS", 0.5)
    body = "while True:\n    for n in range(10_000): pass\n    phase('x')"
    error = (await run(interpreter, main(body))).error
    assert error is not None
    assert (error.type, error.message.partition(";")[0]) == (
        "TimeoutError", "the script computed for 0 s without waiting for a call",
    )  # fmt: skip


async def test_a_call_never_awaited_is_named_when_the_script_ends(interpreter: Interpreter) -> None:
    body = "tool = a\ntool()\ntool()\nreturn 1"
    assert await interpreter.start(main(body), "main", {}, later) == Advance(value=1, kept=(("a", 4), ("a", 5)))


async def test_calls_that_are_answered_at_once_can_be_awaited(interpreter: Interpreter) -> None:
    script = main("left = budget_left()\nreturn [await left, await budget_left()]")
    assert await interpreter.start(script, "main", {}, lambda call: Ended(call.line)) == Advance(value=[3, 4])


async def test_a_long_script_runs(interpreter: Interpreter) -> None:
    assert await run(interpreter, main("return 1", "x = 1  # " + "x" * 200_000)) == Advance(value=1)


@pytest.mark.parametrize("top", ["x = [search][0]()", "x = 1 / 0", "import numpy", "async def main(:"])
async def test_a_top_level_that_fails_is_the_scripts_error(interpreter: Interpreter, top: str) -> None:
    error = (await run(interpreter, main("return 1", top))).error
    assert error is not None
    assert error.line == 1


async def test_random_numbers_follow_the_seed_and_go_on_after_a_snapshot(interpreter: Interpreter) -> None:
    script = main("import random\na = random.random()\nawait search()\nreturn [a, random.random()]")

    async def numbers(seed: str) -> list[float]:
        first = await interpreter.start(script, "main", {}, later, seed)
        value = (await interpreter.resume(first.snapshot, {0: Ended()}, later)).value
        assert isinstance(value, list)
        return value

    assert await numbers("a") == await numbers("a")
    assert await numbers("a") != await numbers("b")


async def test_a_generator_that_is_seeded_anew_follows_the_seed_of_the_run(interpreter: Interpreter) -> None:
    script = main("import random\nrandom.seed()\nreturn [random.random(), random.Random().random()]")
    first, second, other = [
        (await interpreter.start(script, "main", {}, later, seed)).value for seed in ("a", "a", "b")
    ]
    assert first == second
    assert first != other


def random_body(chance: random.Random, depth: int = 2) -> str:
    """Return statements that gather numbers in `seen`, with calls in loops, branches, handlers and gathers."""
    name = chance.choice("abc")
    inner = random_body(chance, depth - 1).replace("\n", "\n    ") if depth else "seen.append(await c())"
    return "\n".join(
        chance.sample(
            [
                f"seen.append(await {name}(sum(seen)))",
                f"seen += await asyncio.gather(a(1), {name}(2), c(len(seen)))",
                f"for i in range({chance.randint(1, 3)}):\n    {inner}",
                f"if sum(seen) % 2:\n    {inner}\nelse:\n    late = {name}()\n    seen += [await b(), await late]",
                f"try:\n    await fails({name!r})\nexcept ValueError:\n    {inner}",
                "seen.append(random.randint(1, 9))",
            ],
            4,
        )
    )


@pytest.mark.parametrize("seed", range(8))
async def test_a_script_makes_the_same_calls_however_its_results_come(interpreter: Interpreter, seed: int) -> None:
    chance = random.Random(seed)
    body = f"seen = [1]\n{random_body(chance)}\nreturn seen"
    script = main(body, "import asyncio, random")
    made: list[list[Call]] = [[], []]
    known = {}

    def later(call: Call) -> None:
        made[1].append(call)
        known[call.number] = call

    def end(call: Call) -> Ended:
        return Ended(error=("ValueError", "no")) if call.function == "fails" else Ended(call.line * 7 + len(call.args))

    def at_once(call: Call) -> Ended:
        made[0].append(call)
        return end(call)

    wanted = await interpreter.start(script, "main", {}, at_once)
    advance = await interpreter.start(script, "main", {}, later)
    while advance.snapshot:
        one = chance.choice(advance.waits)
        advance = await interpreter.resume(advance.snapshot, {one: end(known[one])}, later)
    assert advance == wanted
    assert [replace(call, number=0) for call in made[1]] == [replace(call, number=0) for call in made[0]]
    assert advance.error is None
    assert problems_in(script, dict.fromkeys(("a", "b", "c", "fails"))) == []


async def test_a_snapshot_goes_on_in_another_process(interpreter: Interpreter) -> None:
    script = main("x = [await a(), await b()]\nreturn x")
    first = await interpreter.start(script, "main", {}, later)
    second = await interpreter.resume(first.snapshot, {0: Ended(1)}, later)
    assert second.waits == (1,)
    assert second.snapshot is not None
    elsewhere = replace(second.snapshot, run=None)
    async with Interpreter() as other:
        assert (await other.resume(elsewhere, {1: Ended(3)}, later)).value == [1, 3]
    again = await interpreter.resume(first.snapshot, {0: Ended(2)}, later)
    assert (await interpreter.resume(again.snapshot, {1: Ended(3)}, later)).value == [2, 3], "it goes on as often"
    assert (await interpreter.resume(second.snapshot, {1: Ended(4)}, later)).value == [1, 4]


async def test_a_snapshot_goes_on_whoever_has_ended_its_process(interpreter: Interpreter) -> None:
    script = main("x = [await a(), await b()]\nreturn x")
    first = await interpreter.start(script, "main", {}, later)
    assert first.snapshot is not None
    killed(first.snapshot)
    second = await interpreter.resume(first.snapshot, {0: Ended(1)}, later)
    await interpreter.close()
    assert (await interpreter.resume(second.snapshot, {1: Ended(3)}, later)).value == [1, 3]


def killed(snapshot: Snapshot) -> None:
    """End the process in which a script waits, as the kernel does when memory is short."""
    assert isinstance(snapshot.run, ScriptRun)
    number = snapshot.run.place.process._process.number
    process = psutil.Process(number)
    process.kill()
    psutil.wait_procs([process], 10)


async def test_results_are_fed_in_the_order_of_the_ends(interpreter: Interpreter) -> None:
    """The first failure of a gather is what a script sees."""
    script = main("import asyncio\nawait asyncio.gather(a(), b())")
    advance = await interpreter.start(script, "main", {}, later)
    ended = {1: Ended(error=("ValueError", "first")), 0: Ended(error=("ValueError", "second"))}
    error = (await interpreter.resume(advance.snapshot, ended, later)).error
    assert error is not None
    assert error.message == "first"


async def test_what_a_script_prints_goes_nowhere(interpreter: Interpreter, capfd: pytest.CaptureFixture[str]) -> None:
    await run(interpreter, main("print('a')\nawait search()\nprint('b')"))
    assert capfd.readouterr() == ("", "")


async def test_a_process_that_dies_is_an_error_to_try_again(interpreter: Interpreter) -> None:
    def kill(_: Call) -> None:
        for process in interpreter._processes._latest:
            if process.lives:
                psutil.Process(process._process.number).kill()

    with pytest.raises(InterpreterCrashed):
        await interpreter.start(main("await a()\nawait b()"), "main", {}, kill)
    assert await run(interpreter, main("return 1")) == Advance(value=1)


TYPED_HEAD = """
from dataclasses import dataclass
@dataclass
class Point: x: int
async def llm_one(): return await llm('x')"""
TYPED = [
    ("return await search(query='a')", "", 0),
    ("return (await search(query='a'))[0].upper() + (await llm('x', schema=list[str]))[0]", "", 0),
    ("a = await parallel([task(search, query='a'), task(llm_one)])\nreturn a[0]", "", 0),
    ("return (await llm('x', 1, schema=Point))['x']", "", 0),
    ("await search(query=1)", "Argument to function 'search' is incorrect: Expected 'str', found 'Literal[1]'", 7),
    ("return (await search(query='a')).foo", "'list[str]' has no attribute 'foo'", 7),
    ("return (await llm('x')).foo", "'str' has no attribute 'foo'", 7),
    ("return task(search, query='a', q=1)", "'q' does not match any known parameter", 7),
    ("await parallel([search(query='a')])", "Argument to function 'parallel' is incorrect", 7),
    ("a = search(query='a')\nreturn a.foo", "; is an `await` missing?", 8),
    ("return 'a' + llm_one()", "; is an `await` missing?", 7),
    ("a = task(llm_one)\nreturn a.foo", "; wait for it with `await parallel([...])`", 8),
    ("await search()", "No argument provided for required parameter 'query'", 7),
]


@pytest.mark.skipif(type_check._program() is None, reason="ty is not installed")
@pytest.mark.parametrize(("body", "message", "line"), TYPED)
async def test_the_types_of_a_script_are_checked(interpreter: Interpreter, body: str, message: str, line: int) -> None:
    properties = {"query": {"type": "string"}, "k": {"type": "integer", "default": 5}}
    schema = {"properties": properties, "required": ["query"], "additionalProperties": False}
    output = {"type": "array", "items": {"type": "string"}}
    stubs = stubs_of([{"name": "search", "effect": "read", "schema": schema, "output_schema": output}])
    found = await interpreter.type_problems(main(body, TYPED_HEAD), stubs)
    places = [problem.where for problem in found if message in problem.message]
    assert places == [problem.where for problem in found] == ([("line", line)] if line else [])


async def test_what_the_top_level_raises_is_a_problem_too(interpreter: Interpreter) -> None:
    found = await interpreter.type_problems("import math\nx = [1][math.floor(1)]", "")
    assert [str(problem) for problem in found] == ["line 2: IndexError: list index out of range"]


async def test_members_of_an_enum_have_values_and_names(interpreter: Interpreter) -> None:
    script = "from enum import Enum\nclass K(Enum):\n    A = 'a'\nasync def main():\n    return [K.A.value, K.A.name]"
    assert await interpreter.type_problems(script, "") == []


async def test_a_script_that_runs_again_is_not_checked_again(interpreter: Interpreter) -> None:
    found = await interpreter.type_problems("x = [1][4]", "")
    await interpreter.close()
    assert found
    assert await interpreter.type_problems("x = [1][4]", "") == found
    assert not interpreter._processes._latest, "no process was started for it"
    assert await interpreter.type_problems("x = [1][0]", "") == []


async def test_a_top_level_that_ran_out_of_time_is_checked_again(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "x = sum(n for n in range(8_000_000))"
    with monkeypatch.context() as slow:
        slow.setattr(script_run, "TURN_SECONDS", 0.001)
        (found,) = await interpreter.type_problems(script, "")
        assert "TimeoutError" in found.message
    assert await interpreter.type_problems(script, "") == []
