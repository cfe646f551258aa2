"""Classes, exceptions, generators and types do in a script what they do in CPython."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.providers import errors as provider_errors
from sennit.activities.providers.model import ProviderError
from sennit.activities.toolbox.errors import ToolError
from sennit.testing import run
from sennit.workflows.plan.programs.vocabulary import CALL_ERRORS
from sennit.workflows.plan.scheduling.slices import BUDGET_EXCEEDED

HEAD = '''
import re
from collections import namedtuple
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, NamedTuple, TypedDict


class Wrong(Exception):
    """It is wrong."""


class Worse(Wrong):
    pass


class Short(ValueError): pass


class Slow(TimeoutError):
    pass


class ApiError(Exception):
    """What an API says."""

    retries = 2

    def __init__(self, code, message="no word"):
        super().__init__(f"{code}: {message}")
        self.code = code

    def is_ours(self):
        return self.code >= 500


class NotFound(ApiError):
    pass


class Odd(RuntimeError):
    def __str__(self):
        return f"odd {self.args}"


class Spot(NamedTuple):
    """Where it is."""

    x: int
    y: int = 2


class Kind(str, Enum):
    BUG = "bug"
    WISH = "wish"


class Fact(TypedDict, total=False):
    claim: str


@dataclass
class Step:
    name: str
    minutes: int = 5


def chunks(text, size):
    # in pieces
    for start in range(0, len(text), size):
        if start > 6:
            return
        yield text[start:start + size]  # one piece
    yield from "xy"


def fail(kind, *what):
    raise kind(*what)


def kept(make):
    try:
        raise make()
    except NotFound as error:
        return ["not found", error.code, str(error), error.retries]
    except (ApiError, KeyError) as error:
        return ["api", str(error), isinstance(error, Exception), isinstance(error, ApiError) and error.is_ours()]
    except OSError as error:
        return f"os {error}"
    except RuntimeError as error:
        return "runtime " + str(error)
    except Exception as error:
        if isinstance(error, Wrong):
            return f"wrong {error}"
        return "other"


def caught(kind):
    out = []
    try:
        try:
            fail(kind, "it", 3) if kind is Worse else fail(kind, "it")
        except (KeyError, Wrong) as error:
            out.append("own")
            raise
        except ValueError as error:
            out.append(str(error))
            raise Wrong("new") from error
        else:
            out.append("else")
        finally:
            out.append("finally")
    except Worse:
        out.append("worse")
    except Wrong as error:
        out.append(f"wrong {error} {isinstance(error, Exception)}")
    except Exception as error:
        out.append("other")
    return out
'''
BODIES = (
    "return list(chunks('abcdefghij', 3))",
    "pieces = chunks('abc', 1)\nfirst = next(pieces)\nreturn [first, list(pieces)]",
    "return [caught(Wrong), caught(Short), caught(KeyError), caught(ValueError), caught(TypeError)]",
    "return isinstance(Worse('a'), Wrong)",
    "return [kept(lambda: ApiError(404)), kept(lambda: NotFound(500, 'gone')), kept(lambda: Odd(1, 'a')), kept(Wrong)]",
    "return [kept(lambda: Slow('late')), kept(lambda: Wrong('w')), kept(lambda: KeyError('k'))]",
    "return kept(lambda: ApiError(1))",
    "e = NotFound(503, 'x')\nreturn [str(e), e.code, e.retries, e.is_ours(), repr(e), list(e.args)]",
    "return isinstance(Slow('a'), (TimeoutError, KeyError)), isinstance(NotFound(1), ApiError)",
    "return isinstance(Odd(1), Exception), isinstance(Odd(1), RuntimeError), isinstance(Odd(1), ApiError)",
    "try:\n    raise ApiError(1) from Wrong('w')\nexcept ApiError as error: return error.code",
    "try:\n    try: raise NotFound(7)\n    except ApiError as e: raise e\nexcept NotFound as e: return str(e.code)",
    "found = {'a': 1, 'b': 2}\nx = y = 1\ndel x, found['a'], y\nfor x in [3]:\n    y = x\n    del y\nreturn [found, x]",
    "spot = Spot(1)\nx, y = spot\nreturn [spot, spot.x, spot.y, Spot(y=1, x=2)[0], x + y, spot == (1, 2), repr(spot)]",
    "found = {'b': 1, 'a': [1, 2, 3], ('x', 1): 2}\ndel found['b']\ndel found['a'][0]\ndel found['x', 1]\nreturn found",
    "rows = [1, 2, 3, 4]\ndel rows[1:3]\nreturn rows",
    "votes = {'a': 1, 'b': 3}\nreturn max(votes, key=votes.get)",
    "return sorted(['b', 'A', ' c'], key=str.lower), list(map(str.strip, [' a ', 'b ']))",
    "out = []\nadd = out.append\nadd(1)\nreturn out",
    "return next((x for x in [1, 2] if x > 1), None), next((x for x in []), 'none')",
    "several = (x * 2 for x in [1, 2])\nreturn next(several) + sum(several)",
    "return Kind.BUG == 'bug', Kind('wish') == Kind.WISH, Kind.BUG.value, Kind.BUG.name, [each.value for each in Kind]",
    "return Kind['BUG'].value, len(Kind), 'wish' in [each.value for each in Kind], {Kind.BUG: 1}[Kind.BUG]",
    "fact = Fact(claim='a')\nfact['claim'] += 'b'\nreturn fact",
    "step = Step('a')\nstep.minutes += 1\nreturn [step.name, step.minutes]",
    "return {**{'b': 1}, 'a': 2}",
    "Point = namedtuple('Point', ['title', 'count'])\npoint = Point('a', 2)\nreturn [point.title, point.count]",
    "with_default = lambda text, how=str.upper: how(text)\nreturn with_default('a')",
)  # fmt: skip


def script(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"{HEAD}\n\nasync def main():\n{lines}"


@pytest.mark.parametrize("body", BODIES)
def test_a_script_returns_what_it_returns_in_cpython(body: str) -> None:
    scope: dict[str, Any] = {}
    exec(script(body), scope)
    assert json.dumps(run(script(body), {})) == json.dumps(asyncio.run(scope["main"]()))


def test_an_error_names_the_line_of_the_script_where_lines_were_put_in() -> None:
    text = script("list(chunks('a', 1))\nreturn 1 / 0")
    with pytest.raises(ZeroDivisionError) as raised:
        run(text, {})
    assert f"line {len(text.splitlines())}, in main" in raised.value.__notes__[0]


def test_what_a_model_answers_is_an_instance_of_the_type_that_was_asked_for() -> None:
    text = f"""{HEAD}
@dataclass
class Plan:
    kind: Kind
    steps: list[Step]
    note: Step | None = None


async def main():
    plan = await llm("x", schema=Plan)
    kinds = await llm("y", schema=list[Kind])
    word = await llm("z", schema=Literal["a", "b"])
    both = {{**plan.steps[0], "kind": plan.kind}}
    return [plan.steps[1].minutes, plan["note"], plan.kind is not None, kinds[0] == Kind.WISH, word, both, plan]
"""
    answers = {"x": {"kind": "bug", "steps": [{"name": "a", "minutes": 1}, {"name": "b"}]}, "y": ["wish"], "z": "a"}
    found = run(text, {"llm": lambda prompt, schema: answers[prompt]})
    steps = [{"name": "a", "minutes": 1}, {"name": "b", "minutes": 5}]
    whole = {"kind": "bug", "steps": steps, "note": None}
    assert found == [5, None, True, True, "a", {"name": "a", "minutes": 1, "kind": "bug"}, whole]


def test_a_member_of_an_enum_is_known_again_behind_a_task() -> None:
    text = """
from enum import StrEnum


class K(StrEnum):
    SEND = "send"
    SKIP = "skip"


async def act(k):
    if k == K.SKIP:
        return {"verdict": K.SKIP}
    return await write(x="sent")


async def main():
    one = await task(act, k=K.SKIP)
    both = await parallel([task(act, k=k) for k in (K.SKIP, K.SKIP)])
    match one["verdict"]:
        case K.SEND:
            return "sent"
        case K.SKIP:
            return [found["verdict"] == K.SKIP and found["verdict"] != K.SEND for found in both]
"""
    assert run(text, {}) == [True, True]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("await look()", "no field '__typename' in '__Queue'"),
        ("raise ValueError('__wait_for() is mine')", "__wait_for() is mine"),
        ("await asyncio.wait_for()", "wait_for() missing 2 required"),
        ("asyncio.Queue().go()", "'Queue' object has no attribute 'go'"),
        ("asyncio.Semaphore(1, 2, 3)", "__init__() takes from 1 to 2"),
        ("[1][asyncio.Semaphore(1)]", "list indices must be integers or slices, not Semaphore"),
    ],
)
def test_an_error_names_what_the_prelude_defines_as_people_do(written: str, said: str) -> None:
    def look() -> None:
        raise ToolError("no field '__typename' in '__Queue'")

    with pytest.raises(Exception, match=re.escape(said)) as raised:
        run(f"import asyncio\n\n\nasync def main():\n    {written}\n", {"look": look})
    assert "__" in said or "__" not in str(raised.value)


def test_keys_that_become_the_same_text_are_refused() -> None:
    with pytest.raises(TypeError, match="two keys become '1': write str"):
        run("async def main():\n    return {1: 'a', '1': 'b'}\n", {})


def test_members_of_an_enum_that_are_keys_leave_a_session_as_their_values() -> None:
    text = f"""{HEAD}
async def count(words):
    return {{k: [{{k: len(words)}}] for k in Kind}}


async def main():
    here = await write(found=({{Kind.BUG: 1}}, {{2: Kind.WISH}}))
    return [here, await task(count, words={{Kind.BUG: 1}}), {{Kind.BUG: {{Kind.WISH: 3}}}}]
"""
    counted = {"bug": [{"bug": 1}], "wish": [{"wish": 1}]}
    assert run(text, {"write": lambda found: found}) == [[{"bug": 1}, {"2": "wish"}], counted, {"bug": {"wish": 3}}]


def test_what_a_module_defines_is_shown_by_the_name_that_it_has_there(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(f"{HEAD}\n\n@dataclass\nclass Size:\n    n: int\n    m: str = 'a'\n")
    program = tmp_path / "program.py"
    program.write_text("""
from parts import NotFound, Size, Worse


async def main():
    errors = [NotFound(3), Worse("so")]
    return [repr(Size(1)), f"{Size(2)} {[Size(3)]}", *[f"{e!r}" for e in errors]]
""")
    shown = ["Size(n=1, m='a')", "Size(n=2, m='a') [Size(n=3, m='a')]", "NotFound('3: no word')", "Worse('so')"]
    assert run(program, {}) == shown


def test_an_own_exception_keeps_its_fields_through_tasks() -> None:
    text = f"""{HEAD}
async def one():
    raise ApiError(3)


async def main():
    try:
        await task(one)
    except ApiError as error:
        return error.code
"""
    assert run(text, {}) == 3


@pytest.mark.parametrize("kind", ["Worse", "Short", "LookupError", "Slow", "TimeoutError"])
def test_an_exception_keeps_its_type_through_tasks(kind: str) -> None:
    text = f"""{HEAD}
async def deep():
    raise {kind}("it is so")


async def middle():
    return await parallel([task(deep)])


async def main():
    try:
        await first([task(middle)])
    except {kind} as error:
        return {{"b": str(error), "a": 1}}
"""
    found = run(text, {})
    assert list(found.items()) == [("b", "it is so"), ("a", 1)]


def test_an_own_exception_that_nobody_catches_is_named() -> None:
    with pytest.raises(RuntimeError) as raised:
        run(f"{HEAD}\nasync def main():\n    raise Worse('it is so')\n", {})
    assert raised.value.__notes__[0].endswith("Worse: it is so")


@pytest.mark.parametrize(
    "kind", ["CallRefused", "RuntimeError", "Exception", "(KeyError, DocumentNotFound, CallRefused)"]
)
def test_the_error_of_a_call_is_caught_by_its_name(kind: str) -> None:
    class CallRefused(Exception):
        """A provider's."""

    def search(query: str) -> str:
        raise CallRefused("not so")

    text = f"""
async def look():
    return await search(query="x")


async def main():
    found = []
    for tickets in (False, True):
        try:
            found.append(await parallel([task(look)]) if tickets else await search(query="x"))
        except ValueError:
            return "another"
        except {kind} as error:
            found.append(str(error).removeprefix("CallRefused: "))
    return found
"""
    assert run(text, {"search": search}) == ["not so", "not so"]


def test_the_errors_of_calls_that_a_script_may_catch_are_those_that_there_are() -> None:
    def kinds(base: type[Exception]) -> set[str]:
        return {name for kind in base.__subclasses__() for name in ({kind.__name__} | kinds(kind))}

    assert issubclass(provider_errors.CallRefused, ProviderError)
    known = {name for name in {"ToolError"} | kinds(ToolError) | kinds(ProviderError) if not name.startswith("_")}
    assert set(CALL_ERRORS) <= {*known, BUDGET_EXCEEDED}, "the last one is that of the budget of a task"
