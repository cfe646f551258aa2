"""Modules do in scripts what they do in CPython."""

import asyncio
import random
from typing import Any

import pytest

from sennit.activities.programs.interpreter import Interpreter
from sennit.testing import run as played

HEAD = """
import contextlib, csv, heapq, io, json, operator, statistics, string, textwrap, urllib.parse, uuid
import urllib.parse as u
"""
RANDOM = random.Random(5)
WHOLE = [RANDOM.randint(-50, 50) for _ in range(31)]
FLOATS = [round(RANDOM.uniform(-9, 9), 3) for _ in range(32)]
SPREAD = [RANDOM.uniform(-1, 1) * 10 ** RANDOM.randint(-9, 9) for _ in range(40)]
PROSE = (
    "The Nile is a   river -- the well-known one--of north-east Africa, e.g. of Egypt's\n\tdelta, "
    "http://example.org/a-very-long-path/with-no-break-in-it and so on."
)
LINKS = (
    "", "g", "./g", "g/", "/g", "//g", "?y", "#s", "..", "../../../g", "g;x=1/./y", "http:g", "https://o.org/x", ".",
    "a//b",
)  # fmt: skip
CASES = (
    "isinstance(contextlib.suppress(KeyError), contextlib.nullcontext)",
    "uuid.uuid5(uuid.NAMESPACE_DNS, 'a.b'), uuid.uuid5(uuid.NAMESPACE_URL, 'é')",
    *(
        f"statistics.{name}({data})"
        for name in ("mean", "fmean", "median", "median_low", "median_high", "mode", "multimode", "pstdev", "pvariance",
                     "stdev", "variance", "quantiles")
        for data in (WHOLE, FLOATS, SPREAD, [1, 2, 4], [0.1] * 10, [3, 3, True])
    ),
    "statistics.geometric_mean([1, 2, 8.5])",
    "statistics.quantiles([5, 1, 4, 2.5], n=10, method='inclusive')",
    "[statistics.mean(each for each in [1, 2]), statistics.mode('abca'), statistics.mean([float('inf'), 1])]",
    *(
        f"[operator.{name}(a, b) for a, b in [(7, 2), (-7, 2), (3, 3)]]"
        for name in ("add", "and_", "eq", "floordiv", "ge", "gt", "le", "lshift", "lt", "mod", "mul", "ne", "or_",
                     "pow", "rshift", "sub", "truediv", "xor")
    ),
    "[operator.abs(-3), operator.invert(4), operator.neg(4), operator.pos(4), operator.not_(0), operator.truth('a')]",
    "[operator.concat('a', 'b'), operator.contains([1], 1), operator.countOf('aba', 'a'), operator.getitem([5], 0)]",
    "[operator.is_(None, None), operator.is_not(None, 1), operator.setitem([1], 0, 2)]",
    "sorted([{'a': 2}, {'a': 1}], key=operator.itemgetter('a'))",
    "operator.itemgetter(1, 0)(['a', 'b']), operator.attrgetter('real')(P), operator.attrgetter('x', 'y')(P)",
    "heaped([5, 1, 4, 1, 3], lambda heap: [heapq.heappop(heap) for _ in range(5)])",
    "heaped([5, 1, 4], lambda heap: [heapq.heappush(heap, 2), heapq.heapreplace(heap, 9), heapq.heappushpop(heap, 0)])",
    f"heaped({WHOLE}, lambda heap: heapq.heapify(heap))",
    "heapq.nlargest(2, ['a', 'ccc', 'bb', 'ddd'], key=len), heapq.nsmallest(2, [3, 1, 2]), heapq.nsmallest(-1, [1])",
    "list(heapq.merge([1, 4], [2, 3], [])), list(heapq.merge(['bb', 'a'], ['cc'], key=len, reverse=True))",
    "[string.ascii_letters, string.ascii_lowercase, string.ascii_uppercase, string.digits, string.hexdigits]",
    "[string.octdigits, string.printable, string.punctuation, string.whitespace, string.capwords(' aB  c')]",
    "string.capwords('a-b c', '-')",
    r"textwrap.dedent('  a\n   b\n \n\n  c\n'), textwrap.dedent('\ta\n  b'), textwrap.dedent('a\n b')",
    r"textwrap.indent('a\n\nb', '> '), textwrap.indent('a\n\nb', '> ', lambda line: True)",
    *(
        f"textwrap.{name}({PROSE!r}, {width})"
        for name in ("wrap", "fill", "shorten")
        for width in (6, 10, 17, 40, 70, 500)
    ),
    f"textwrap.wrap({PROSE!r}, 20, initial_indent='* ', subsequent_indent='  ', max_lines=3, placeholder='...')",
    f"textwrap.wrap({PROSE!r}, 12, break_long_words=False), textwrap.wrap(''), textwrap.shorten('a b', 9)",
    "[urllib.parse.quote(each) for each in ('a b/c', 'é&=?', '~_-.', '100%')], urllib.parse.quote('a/b', safe='')",
    "urllib.parse.quote_plus('a b&c/d'), urllib.parse.unquote('a%20b%C3%A9%zz%4'), urllib.parse.unquote_plus('a+b%2B')",
    "urllib.parse.unquote('%ff%e2%82'), urllib.parse.urlencode({'q': 'a b', 'n': 3})",
    "urllib.parse.urlencode([('a', 'é')])",
    "urllib.parse.urlencode({'a': [1, 2], 'b': 'x'}, doseq=True)",
    "urllib.parse.parse_qs('a=1&b=2&a=3&c=&d'), urllib.parse.parse_qsl('a=1&b=x+y%21&c=', keep_blank_values=True)",
    *(
        f"[list(u.{name}({url!r})), parts(u.{name}({url!r})), u.{name}({url!r}).geturl()]"
        for name in ("urlsplit", "urlparse")
        for url in ("https://Me:pw@Example.org:8080/a/b;p?q=1#top", "a/b?c", "//host/x", "mailto:me@example.org",
                    "http://[::1]:80/", "", "HTTP://x", "/a;b/c", "x:y:z", " http://e.org/a\tb")
    ),
    "urllib.parse.urlsplit('a').scheme, urllib.parse.urlparse('a').path",
    "urllib.parse.urlunsplit(('https', 'e.org', 'a', 'q', 'f')), urllib.parse.urlunparse(('', '', 'a', 'p', '', ''))",
    *(
        f"[urllib.parse.urljoin({base!r}, each) for each in {LINKS}]"
        for base in ("http://a/b/c/d;p?q", "http://a", "", "mailto:x", "http://a/b/")
    ),
    "[each for each in io.StringIO('a\\nb\\n\\nc')], io.StringIO('ab\\nc').readline(), io.StringIO('abc').read(2)",
    "written(io.StringIO('abc'))",
    "list(csv.DictReader(io.StringIO('a,b\\n1,\"2\\n3\"\\n')))",
    "json.load(io.StringIO('[1]'))",
    "[str(uuid.UUID('{12345678-1234-5678-1234-567812345678}')), uuid.UUID('12345678123456781234567812345678').hex]",
    "[len(str(uuid.uuid4())), uuid.uuid4() == uuid.uuid4(), uuid.uuid4().version, str(uuid.uuid4())[14]]",
)  # fmt: skip
HELPERS = """
from dataclasses import dataclass


@dataclass
class Point:
    x: int
    y: int
    real: int = 7


P = Point(1, 2)


def heaped(items, does):
    heap = []
    for item in items:
        heapq.heappush(heap, item)
    return [does(heap), heap]


def parts(url):
    host = [url.hostname, url.port, url.username, url.password]
    return [url.scheme, url.netloc, url.path, url.query, url.fragment, *host]


def written(buffer):
    with buffer as out:
        csv.writer(out).writerow([1, "a,b"])
        out.seek(8)
        out.write("x")
        out.writelines(["y", "z"])
        return out.getvalue(), out.tell(), out.readlines()
"""


def both(script: str) -> tuple[Any, Any]:
    """What a script returns in a program and in this process."""
    scope: dict[str, Any] = {}
    exec(script, scope)
    return played(script, {}), asyncio.run(scope["main"]())


@pytest.mark.parametrize("begin", range(0, len(CASES), 20))
def test_functions_return_what_they_return_in_cpython(begin: int) -> None:
    cases = CASES[begin : begin + 20]
    shown = "".join(f"    found.append((repr(({case})), type(({case})) is float))\n" for case in cases)
    found, wanted = both(f"{HEAD}{HELPERS}\n\nasync def main():\n    found = []\n{shown}    return found\n")
    assert dict(zip(cases, map(tuple, found), strict=True)) == dict(zip(cases, wanted, strict=True))


@pytest.mark.parametrize(
    "case",
    ["statistics.mean([])", "statistics.stdev([1])", "urllib.parse.urlsplit('http://[a')", "uuid.UUID('a')"],
)
def test_what_raises_in_cpython_raises_a_value_error(case: str) -> None:
    shown = "try:\n        return str(CASE)\n    except ValueError as error:\n        return str(error)"
    found, wanted = both(f"{HEAD}\n\nasync def main():\n    {shown}\n".replace("CASE", case))
    assert found == wanted


@pytest.mark.parametrize(
    "imports",
    [
        "from statistics import mean as m, median\nfrom urllib import parse\nfrom urllib.parse import (\n    quote,\n)",
        "import statistics as s, urllib.parse as parse\nm, median, quote = s.mean, s.median, parse.quote",
        "import json, statistics as s, urllib.parse as p\nm, median, parse = s.mean, s.median, p\nquote = parse.quote",
    ],
)
def test_a_module_may_be_imported_as_in_python(imports: str) -> None:
    body = "    return [m([1, 2]), median([1]), parse.quote('a b'), quote('é'), list(map(m, [[1], [2]]))]"
    found, wanted = both(f"{imports}\n\n\nasync def main():\n{body}\n")
    assert found == wanted


async def test_a_uuid_is_the_same_when_the_script_runs_again_and_another_in_another_run(
    interpreter: Interpreter,
) -> None:
    script = "import uuid\n\nasync def main():\n    return [str(uuid.uuid4()) for _ in range(3)]\n"
    runs = [("main", "one"), ("main", "one"), ("main", "other"), ("main_1", "one")]
    first, again, *others = [
        (await interpreter.start(script, "main", {}, lambda call: None, seed, runs=[(0, run)])).value
        for seed, run in runs
    ]
    assert first == again
    assert len({each for values in (first, *others) for each in values}) == 9


@pytest.mark.parametrize("name", ["os", "sys", "subprocess", "sennit"])
async def test_a_file_of_a_script_does_not_open_a_module_of_its_process(interpreter: Interpreter, name: str) -> None:
    """Nobody could import its own file by that name anyway: Python has one of that name already."""
    script = f"""
async def main():
    import {name}
    return {name}.__name__
# ==== file: {name}.py ====
x = 1
"""
    came = await interpreter.start(script, "main", {}, lambda _: None, "main")
    assert came.error is not None
    assert (came.error.type, came.error.line) == ("ModuleNotFoundError", 3)
