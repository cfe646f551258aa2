"""Patterns, replacements and sums have the values that Python gives them."""

import re
from typing import Any

import pytest

from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.progress import Advance

HEAD = "import re\nfrom re import sub as replace\nNUMBER = re.compile(r'(\\d+)$')\n"
NAMES: dict[str, Any] = {"re": re, "replace": re.sub, "NUMBER": re.compile(r"(\d+)$")}
PATTERNS = [
    r're.search(r"Answer: (.*)$", "Let me think.\nAnswer: 42\n").group(1)',
    r're.sub(r"^```(?:json)?\s*|\s*```$", "", "```json\n{}\n```\n")',
    r're.search(r"end\Z", "end\n") is None',
    r're.search(r"a$", "a\n\n") is None',
    r're.search(pattern=r"a$", string="a\n") is None',
    r're.match(r"(?i)A$", "a\n") is not None',
    r're.fullmatch(r"a$", "a\n") is None',
    r're.findall(r"^a$", "a\na\n")',
    r're.findall(r"(?m)^a$", "a\na\n")',
    r're.findall(r"(?m)a$|b\Z", "a\nb\n")',
    r're.findall(r"^a$", "a\na\n", re.M)',
    r're.findall(r"^a$", "a\na\n", flags=re.MULTILINE | re.I)',
    r're.split(r",|;$", "a,b;\n")',
    r're.search(r"\$$", "5$\n").group()',
    r're.search(r"[]$]$", "]\n").group()',
    r're.findall(r"[^]$]+$", "a$b\n")',
    r'[found.group() for found in re.finditer(r"\w$", "ab\n")]',
    r'NUMBER.search("a 5\n").group(1)',
    r're.sub(NUMBER, "x", "a 5\n")',
    r're.sub(r"(\d+)", r"\1km", "5 and 6")',
    r're.sub(r"(\w+)@(\w+)", r"\1_at_\2", "ann@home")',
    r're.sub(r"([.!?])\s+", r"\1\n", "One. Two! Three")',
    r're.sub(r"(a)(b)", r"\2\\\1\t|\.", "ab")',
    r're.sub("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)", r"\10\1", "abcdefghij")',
    r're.sub(r"(?P<w>\w+)", r"<\g<w>>\n", "ab cd")',
    r're.sub("a", "$1\\\\", "a")',
    r're.sub(pattern="(a)", repl=r"\1_", string="a", count=1)',
    r'replace(r"(a)$", r"\1_x", "ba\n")',
    r'NUMBER.sub(r"\1px", "a 5")',
    r're.sub(r"(a)", "b" + "\\n", "a")',
]
SUMS = [
    "sum([0.1] * 10)",
    "sum([1e16, 1.0, -1e16])",
    "sum(x * 0.1 for x in range(10))",
    "sum([0.1] * 10, 5)",
    "sum([1, 0.1, 0.2, 3])",
    "sum([True, 0.5])",
    "sum([], 0.5)",
    "str(sum([float('inf'), 1.0]))",
    "list(map(sum, [[0.1] * 10, [1, 2]]))",
    "sum([[1], [2]], [])",
    "sum({1: 2, 3: 4})",
    "sum(len(word) for word in ['a', 'bc'])",
    "sum([10**30, 1])",
]


async def value_of(interpreter: Interpreter, expression: str) -> Advance:
    script = f"{HEAD}\nasync def main():\n    return {expression}\n"
    return await interpreter.start(script, "main", {}, lambda _: None)


@pytest.mark.parametrize("expression", PATTERNS)
async def test_patterns_and_replacements_are_those_of_python(interpreter: Interpreter, expression: str) -> None:
    assert await value_of(interpreter, expression) == Advance(value=eval(expression, NAMES))


@pytest.mark.parametrize("expression", SUMS)
async def test_sums_are_those_of_python(interpreter: Interpreter, expression: str) -> None:
    assert await value_of(interpreter, expression) == Advance(value=eval(expression))
