"""Programs and snippets give what they give in plain CPython: the same value or error, and the same calls in the same
order. Each runs in a confined process, and beside it in the same Python without Sennit.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from doubles.small_world import World

from sennit.testing import run
from sennit.workflows.plan.language.problems import InvalidPlan

TESTS = Path(__file__).parents[2]
CASES = Path(__file__).parent / "conformance"
PROGRAMS = sorted((CASES / "programs").glob("*.py"))
SNIPPETS = sorted((CASES / "snippets").glob("*.txt"))
BETWEEN = "\n---\n"
COMMENT = re.compile(r"^# .*\n", re.MULTILINE)
REFUSED = re.compile(
    r"a script reaches no files|no module `(sys|numpy)`|no `(eval|exec|open|input)`|no `to_thread`|no `Runner`"
)
"""What scripts have not, as docs/python.md lists it."""
HIDES_NAMES = re.compile(r"name what you import, in the place of `\*`|there is a word `\w+` already")
NO_JSON = "the script returned what is not JSON: "
Outcome = dict[str, Any]
Plain = Callable[[str, dict[str, Any], list[Any]], Outcome]


@pytest.fixture(scope="module")
def plain() -> Iterator[Plain]:
    """Runs a script in plain CPython."""
    command = [sys.executable, "-m", "doubles.plain_python"]
    with subprocess.Popen(command, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        requests, replies = process.stdin, process.stdout
        assert requests is not None
        assert replies is not None

        def outcome(script: str, inputs: dict[str, Any], answers: list[Any]) -> Outcome:
            print(json.dumps({"script": script, "inputs": inputs, "answers": answers}), file=requests, flush=True)
            return dict(json.loads(replies.readline()))

        yield outcome
        requests.close()


def in_sennit(script: str, inputs: dict[str, Any], answers: list[Any]) -> Outcome:
    """Return how a script ends in Sennit, what it has called and what it has printed."""
    world, printed = World(answers), StringIO()
    found: Outcome = {}
    with redirect_stdout(printed):
        try:
            found["value"] = run(script, world.tools(), **inputs)
        except InvalidPlan as refused:
            found["refused"] = str(refused)
        except Exception as error:  # noqa: BLE001 - whatever the script raises
            found["error"] = [*kind_and_message(error), last_line(error)]
    return {**found, "effects": world.effects, "printed": printed.getvalue()}


def kind_and_message(error: Exception) -> list[str]:
    """Return the type of an error as the script has it, and its message."""
    message = str(error.args[0]) if error.args else ""
    named = re.match(r"(\w+): ", message) if type(error) is RuntimeError else None
    if named is not None:
        return [named[1], message.removeprefix(named[0])]
    return [type(error).__name__, message]


def last_line(error: Exception) -> int:
    lines = re.findall(r"line (\d+), in", "".join(getattr(error, "__notes__", ())))
    return int(lines[-1]) if lines else 0


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_does_what_it_does_in_plain_python(path: Path, plain: Plain) -> None:
    about = path.with_suffix(".json")
    given = json.loads(about.read_text()) if about.exists() else {"inputs": {}, "answers": []}
    expected = plain(path.read_text(), given["inputs"], given["answers"])
    assert in_sennit(path.read_text(), given["inputs"], given["answers"]) == expected


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_snippets_do_what_they_do_in_plain_python(path: Path, plain: Plain) -> None:
    for snippet in COMMENT.sub("", path.read_text()).split(BETWEEN):
        script = f"{snippet.strip()}\n\n\nasync def main():\n    return {'await ' * ('async def f(' in snippet)}f()\n"
        expected, found = plain(script, {}, []), in_sennit(script, {}, [])
        if "refused" in found:
            is_no_python = "error" in expected and expected["error"][0] == "SyntaxError"
            assert is_no_python or REFUSED.search(found["refused"]) or HIDES_NAMES.search(found["refused"]), script
        elif NO_JSON in str(found.get("error")):
            assert expected["error"][0] == "TypeError", script
        else:
            assert found == expected, script


def test_there_are_enough_of_them() -> None:
    assert len(PROGRAMS) >= 70
    assert sum(path.read_text().count(BETWEEN) + 1 for path in SNIPPETS) >= 720
