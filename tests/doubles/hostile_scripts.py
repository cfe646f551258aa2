"""Scripts that were made to take a worker's time or memory, or to fail its code instead of themselves."""

from typing import NamedTuple


class Hostile(NamedTuple):
    """A script, what becomes of it (`refused` by the check, `fails` when it runs, `runs`), words of what is said, and
    whether that has a line.
    """

    script: str
    becomes: str
    words: str = ""
    has_line: bool = True


def main(*lines: str, top: str = "", parameters: str = "") -> str:
    return f"{top}\nasync def main({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


def _lines(count: int, line: str) -> str:
    return "".join(f"    {line.replace('#', str(number))}\n" for number in range(count))


def _twice(count: int) -> str:
    classes = "".join(f"@dataclass\nclass C{n}:\n    a: 'C{n + 1}'\n    b: 'C{n + 1}'\n\n" for n in range(count))
    return f"from dataclasses import dataclass\n{classes}@dataclass\nclass C{count}:\n    a: int\n"


def _chain(count: int) -> str:
    classes = "".join(f"class C{n}:\n    a: 'list[C{n + 1}]'\n\n" for n in range(count))
    return f"{classes}class C{count}:\n    a: int\n"


def _comprehensions(depth: int, leaf: str) -> str:
    text = leaf
    for _ in range(depth):
        text = f"[x for x in {text}]"
    return text


PARTS, LEVELS, DEEP = "more than 50,000 parts", "nested more than 120 levels deep", "nested too deep"
HOSTILE: dict[str, Hostile] = {
    "a long tuple": Hostile(main("return (" + "x, " * 60_000 + ")"), "refused", PARTS),
    "a tuple of 200 KB": Hostile(main("return (" + "x," * 125_000 + ")"), "refused", PARTS),
    "a tuple within the budget": Hostile(main("return (" + "1," * 45_000 + ")"), "runs"),
    "a megabyte": Hostile(main("return 1", top="x = '" + "x" * (1 << 20) + "'"), "refused", "more than 1 MB"),
    "attributes": Hostile(main("return x" + ".a" * 2_500), "refused", LEVELS),
    "many attributes": Hostile(main("return x" + ".a" * 100_000), "refused", DEEP),
    "not": Hostile(main("return " + "not " * 50_000 + "x"), "refused", DEEP),
    "minus": Hostile(main("return " + "-" * 100_000 + "x"), "refused", DEEP),
    "lambdas": Hostile(main("return " + "lambda: " * 20_000 + "x"), "refused", DEEP),
    "parentheses": Hostile(main("return " + "(" * 5_000), "refused", "this is not Python"),
    "sums": Hostile(main("return " + "+".join("x" * 1_000)), "refused", LEVELS),
    "many sums": Hostile(main("return " + "+".join("1" * 100_000)), "refused", DEEP),
    "elif": Hostile(main("if a:", " pass", *(f"elif a == {n}:\n     pass" for n in range(500))), "refused", LEVELS),
    "nested functions": Hostile(
        "".join(f"{' ' * n}def f{n}():\n" for n in range(90)) + " " * 90 + "return x\n" + main("return f0()"),
        "refused",
        "there is no `x`",
    ),
    "a deep name": Hostile(main(f"return {'x' * 200_000}"), "refused", "there is no `xxx"),
    "a type of main": Hostile(main("return 1", parameters="x: " + "a." * 1_000 + "a"), "refused", LEVELS),
    "a type of main within the budget": Hostile(
        main("return 1", parameters="x: " + "a." * 80 + "a"), "refused", "`a` has no JSON"
    ),
    "a number": Hostile(main("return 0x" + "f" * 10_000), "refused", "the number is too long"),
    "a number in the signature": Hostile(
        main("return 1", parameters="x: int = 0x" + "f" * 10_000), "refused", "the number is too long"
    ),
    "braces": Hostile(main("return f'" + "{x}" * 30_000 + "'"), "refused", "20,000"),
    "modules": Hostile(
        main("return 1", top="import " + ", ".join(f"m{n}" for n in range(20_000))), "refused", "no module"
    ),
    "names": Hostile(main("return [" + ", ".join(f"n{n}" for n in range(20_000)) + "]"), "refused", "there is no `n0`"),
    "arguments by place": Hostile(
        main(f"x = [{'task(f), ' * 8_000}]", top=f"async def f({', '.join(f'a{n}' for n in range(8_000))}, /): pass\n"),
        "refused",
        "by name",
    ),
    "targets": Hostile(
        main(" = ".join(f"a{n}" for n in range(8_000)) + f" = [{'search(query=1), ' * 3_000}]", "return a1"),
        "fails",
        "a coroutine is no value",
    ),
    "surrogates": Hostile(main("return '\ud800'"), "refused", "this is not Python"),
    "classes that name the next one twice": Hostile(main("return await llm('x', schema=C0)", top=_twice(20)), "runs"),
    "classes without end": Hostile(main("return await llm('x', schema=C0)", top=_chain(1_000)), "fails", "levels deep"),
    "an empty type": Hostile(main("return await llm('x', schema='list[()]')"), "fails", "no type that a model"),
    "a long union": Hostile(main("return await llm('x', schema='|'.join(['int'] * 3_000))"), "fails", "too large"),
    "a large schema": Hostile(
        main("return await llm('x', schema={f'a{n}': 'int' for n in range(5_000)})"), "fails", "more than 2,000 types"
    ),
    "a literal that is no JSON": Hostile(main("return await llm('x', schema='Literal[1e999]')"), "fails", "is no JSON"),
    "a power": Hostile(main("return 10 ** 5_000"), "fails", "more than 14,000 bits"),
    "a power as an argument": Hostile(main("return await search(query=10 ** 5_000)"), "fails", "more than 14,000 bits"),
    "phases": Hostile(
        main("for n in range(100_000):", "    for _ in range(300_000): pass", "    phase('x')"),
        "fails",
        "the script computed for",
        has_line=False,
    ),
    "no end": Hostile(main("while True: 1 + 1"), "fails", "the script computed for"),
    "no end that can be seen": Hostile(main("while 1 < 2: pass"), "fails", "the script computed for"),
    "calls of calls": Hostile(
        main(
            "return await f0(1)",
            top="".join(
                f"async def f{n}(k):\n    await f{n + 1}(k + 1)\n    await f{n + 1}(k * 2)\n\n" for n in range(40)
            )
            + "async def f40(k):\n    await search(query='x')\n",
        ),
        "runs",
    ),
    "a long range": Hostile(
        main("for x in range(n):", "    await search(query='x')", "    return 1", parameters="n: int = 10 ** 30"),
        "runs",
    ),
    "comprehensions": Hostile(main("return " + _comprehensions(30, "[" + "1, " * 30_000 + "]")), "runs"),
    "exceptions": Hostile(
        main("x = 1", "return [" + "KeyError(x), " * 8_000 + "][0]"), "fails", "KeyError", has_line=False
    ),
    "matches": Hostile(
        main("match 1:", *(f"    case {n}:\n            return await search(query='x')" for n in range(4_000))), "runs"
    ),
    "returns in loops": Hostile(
        "async def main():\n"
        + "".join(f"    for x in []:\n        return await search(query='{n}')\n" for n in range(4_000)),
        "runs",
    ),
    "types of a loop": Hostile(
        main("x = 0", "y = 0", "while a:", *(f"    x, y = y, x + {n}" for n in range(4_000)), parameters="a: int = 0"),
        "runs",
    ),
    "types of branches": Hostile(
        main("x = 1", *(f"if a: x = {n}" for n in range(6_000)), parameters="a: bool = False"), "runs"
    ),
    "shared parts": Hostile(
        main("x = []", "for _ in range(60): x = [x, x]", "return await search(query=x)"), "fails", "levels"
    ),
    "levels": Hostile(main("x = []", "for _ in range(5_000): x = [x]", "return x"), "fails", "levels"),
    "a text": Hostile(main("return 'x' * 10 ** 10"), "fails", "64 MB"),
    "a pattern": Hostile(
        main("import re", "return re.match('(a+)+$', 'a' * 40 + 'b') is None"),
        "fails",
        "the script computed for",
        has_line=False,
    ),
}
