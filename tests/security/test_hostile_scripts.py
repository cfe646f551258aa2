"""No script takes a worker's time or memory: it is refused with a line, or fails by itself, or runs like any other."""

import ast
import asyncio
import resource
from collections.abc import Iterator
from typing import Any

import pytest
from doubles.hostile_scripts import HOSTILE

from sennit.activities.programs import script_run
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.reader import ScriptReader
from sennit.activities.programs.session import Counts, Session
from sennit.activities.programs.values import Ended
from sennit.activities.programs.words import Surroundings, Words
from sennit.workflows.plan.programs.stubs import stubs_of

TOOLS: dict[str, dict[str, Any]] = {
    "search": {"name": "search", "effect": "read", "schema": {"properties": {"query": {}}}}
}
STEPS = 3
SMALL = 10_000
MEMORY_KB = 100_000


@pytest.fixture(scope="module")
def reader() -> Iterator[ScriptReader]:
    made = ScriptReader()
    yield made
    made.close()


@pytest.fixture(scope="module")
def interpreter(reader: ScriptReader) -> Iterator[Interpreter]:
    made = Interpreter(reader)
    yield made
    asyncio.run(made.close())


async def what_becomes_of(script: str, reader: ScriptReader, interpreter: Interpreter) -> tuple[str, str, int]:
    """Return what a worker makes of a script in a check, a quote and its first steps: with words and a line."""
    for _, where, message in reader("problems", script, [], list(TOOLS)):
        return "refused", message, where[-1]
    for problem in await interpreter.type_problems(script, stubs_of(TOOLS.values())):
        return "refused", problem.message, int(problem.where[-1])
    assert len(reader("quote", script, {"search": "read"}, {}, {})) == 4
    session = Session(script="", function="main", key="main")
    session.begin("main")
    around = Surroundings(script, TOOLS, ("offline",), classes=lambda: interpreter.classes(script))
    words = Words(session, Counts(session, []), around)
    came = await interpreter.start(script, "main", {}, words.answer, "main")
    for _ in range(STEPS):
        if came.snapshot:
            came = await interpreter.resume(came.snapshot, {number: Ended("x") for number in came.waits}, words.answer)
    if came.error is not None:
        return "fails", f"{came.error.type}: {came.error.message}", came.error.line
    return "runs", "", 1


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_script_is_the_trouble_of_its_own_run(
    reader: ScriptReader, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The worker itself walks no script: what it parses is one type of a schema at most."""
    parse = ast.parse

    def short(text: Any, *given: Any, **named: Any) -> Any:
        assert len(text) <= SMALL, "a script is parsed in the worker"
        return parse(text, *given, **named)

    if name == "phases":
        monkeypatch.setattr(script_run, "ADVANCE_SECONDS", 2.0)  # of 20
    hostile = HOSTILE[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with monkeypatch.context() as patched:  # pytest parses, too, if this fails
        patched.setattr(ast, "parse", short)
        becomes, said, line = await what_becomes_of(hostile.script, reader, interpreter)
    assert (becomes, hostile.words in said) == (hostile.becomes, True), said
    assert line > 0 or not hostile.has_line, said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_KB


def test_there_are_forty() -> None:
    assert len(HOSTILE) >= 40
