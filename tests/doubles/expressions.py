"""Every regular expression of the source, and the texts on which one that backtracks takes longest."""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, TypeGuard

from sennit.activities.toolbox.registry import default_registry

ROOT = Path(__file__).parents[2]
FOLDERS = ("workflows", "activities", "workers", "starter", "examples")
SEARCHES = ("search", "sub", "subn", "split", "findall", "finditer")
METHODS = ("match", "fullmatch", *SEARCHES)
_FLAGS_AT = {"compile": 1, "sub": 4, "subn": 4, "split": 3}
_SAMPLES = "a0 \n`\"'.,:;-_=<>()[]{}/\\|*#&!?@$%~^+xzAé\u2028\x1b\x7f\x00"
_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression, with the methods by which it is used."""

    place: str
    pattern: re.Pattern[str]
    methods: frozenset[str]

    def run(self, text: str) -> None:
        """Use it on a text as the source does; whatever searches finds all there is."""
        if self.methods.intersection(SEARCHES):
            for _ in self.pattern.finditer(text):
                pass
        if "match" in self.methods:
            self.pattern.match(text)
        if "fullmatch" in self.methods:
            self.pattern.fullmatch(text)


def _import(name: str) -> ModuleType:
    """Import a module. Tools of an example do not stay registered: others load it under another name."""
    if not name.startswith("examples."):
        return importlib.import_module(name)
    before = list(default_registry)
    for known in before:
        default_registry.discard(known.name)
    module = importlib.import_module(name)
    for added in list(default_registry):
        default_registry.discard(added.name)
    for known in before:
        default_registry.add(known)
    return module


def expressions(local: Mapping[str, list[Any]]) -> list[Expression]:
    """Return every expression of the source. `local` has values of the names in those that functions build."""
    found = []
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        name = path.relative_to(ROOT).as_posix()
        if not any(_base(node) == "re" for node in ast.walk(tree)):
            continue
        home = "" if name.startswith("examples/") else "sennit."
        module = vars(_import(home + name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")))
        constants = {key: list(_held(value)) for key, value in module.items()}
        used = _used(tree, {key for key, held in constants.items() if held})
        for key, held in constants.items():
            found += [Expression(f"{name}:{key}", pattern, used[key]) for pattern in held]
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for function in functions:
            for call in filter(_builds, ast.walk(function)):
                found += _built(f"{name}:{function.name}", call, module, local)
    found = [replace(each, pattern=_as_text(each.pattern)) for each in found]
    return sorted({(each.place, each.pattern): each for each in found}.values(), key=lambda each: each.place)


def _as_text(pattern: re.Pattern[Any]) -> re.Pattern[str]:
    """Return a pattern of bytes as one of text."""
    if isinstance(pattern.pattern, str):
        return pattern
    return re.compile(pattern.pattern.decode("latin-1"), pattern.flags | re.ASCII)


def _held(value: Any, around: tuple[int, ...] = ()) -> Iterator[re.Pattern[str]]:
    """Find what a value holds. Another test may have left one that holds itself."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, list | tuple | dict) and id(value) not in around:
        for part in value.values() if isinstance(value, dict) else list(value):
            yield from _held(part, (*around, id(value)))


def _base(node: ast.AST) -> str:
    """Return the name of which something is called: `a` of `a.search`, of `a[0].search`."""
    inner = node.value if isinstance(node, ast.Attribute) else node
    inner = inner.value if isinstance(inner, ast.Subscript) else inner
    return inner.id if isinstance(inner, ast.Name) else ""


def _used(tree: ast.AST, names: set[str]) -> dict[str, frozenset[str]]:
    """Return how each constant is used: by its name, else by whatever name stands for none of them."""
    used = [(_base(node), node.attr) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    others = {method for name, method in used if name not in {*names, "re"} and method in METHODS and method != "split"}
    own = {name: {method for base, method in used if base == name and method in METHODS} for name in names}
    return {name: frozenset(methods or others or {"search"}) for name, methods in own.items()}


def _builds(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or _base(node.func) != "re":
        return False
    return node.func.attr in ("compile", *METHODS)


def _built(place: str, call: ast.Call, module: dict[str, Any], local: Mapping[str, list[Any]]) -> list[Expression]:
    """Return what a call in a function compiles; what is compiled there for later is searched for."""
    assert isinstance(call.func, ast.Attribute)
    method = call.func.attr
    position = _FLAGS_AT.get(method, 2)
    parts = [call.args[0], *(item.value for item in call.keywords if item.arg == "flags")]
    parts += call.args[position : position + 1]
    names = sorted({node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)} & set(local))
    found = []
    for values in product(*(local[name] for name in names)):
        known = {**module, **dict(zip(names, values, strict=True))}
        pattern, *flags = (eval(compile(ast.Expression(part), place, "eval"), known) for part in parts)
        ways = {"search" if method == "compile" else method}
        found.append(Expression(place, re.compile(pattern, *flags), frozenset(ways)))
    return found


def nasty_texts(pattern: re.Pattern[str], length: int) -> Iterator[str]:
    """Yield texts of about `length` that lead each repeat of a pattern as far as it goes, and let it fail then."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    units: dict[tuple[str, str], None] = {}
    for choice in range(3):
        for before, body in _repeats(list(tree), "", choice):
            units[before, body] = None
            units["", before + body] = None
        units["", _sample(list(tree), choice)] = None
    units |= {("", unit): None for unit in ("a", " ", "\n", "`", "[", "<", "1", "a ", " \n", ". ")}
    for (before, body), end in product(units, ("", "\n\x00")):
        if body:
            yield before + body * (length // len(body)) + end


def _repeats(parts: list[Any], before: str, choice: int) -> Iterator[tuple[str, str]]:
    """Yield (what leads to it, one turn of it) for each repeat, the inner ones too."""
    for kind, value in parts:
        for inner in _inside(kind, value):
            yield from _repeats(inner, before, choice)
        if kind in _REPEATS and value[1] > 8:
            yield before, _sample(list(value[2]), choice) or ""
        before += _sample([(kind, value)], choice)


def _inside(kind: Any, value: Any) -> list[list[Any]]:
    if kind in _REPEATS:
        return [list(value[2])]
    if kind is op.SUBPATTERN:
        return [list(value[3])]
    if kind is op.BRANCH:
        return [list(part) for part in value[1]]
    if kind in (op.ASSERT, op.ASSERT_NOT):
        return [list(value[1])]
    return [list(value)] if kind is op.ATOMIC_GROUP else []


def _sample(parts: list[Any], choice: int) -> str:
    """Return a text that these parts match, if it is easily found; `choice` picks among several."""
    return "".join(_one(kind, value, choice) for kind, value in parts)


def _one(kind: Any, value: Any, choice: int) -> str:
    if kind is op.LITERAL:
        return chr(value)
    if kind in (op.IN, op.NOT_LITERAL, op.ANY):
        fitting = [sample for sample in (*_literals(kind, value), *_SAMPLES) if _fits(kind, value, sample)]
        return str(fitting[choice * 2 % len(fitting)]) if fitting else ""
    if kind in _REPEATS:
        return _sample(list(value[2]), choice) * int(max(value[0], min(1, choice)))
    inside = _inside(kind, value) if kind in (op.SUBPATTERN, op.BRANCH, op.ATOMIC_GROUP) else []
    return _sample(inside[choice % len(inside)], choice) if inside else ""


def _literals(kind: Any, value: Any) -> list[str]:
    return [chr(item) for name, item in value if name is op.LITERAL] if kind is op.IN else []


def _fits(kind: Any, value: Any, sample: str) -> bool:
    if kind is op.ANY:
        return sample != "\n"
    if kind is op.NOT_LITERAL:
        return sample != chr(value)
    return _in_set(value, sample)


def _in_set(value: Any, sample: str) -> bool:
    negated = bool(value) and value[0][0] is op.NEGATE
    held = any(_holds(name, item, sample) for name, item in value if name is not op.NEGATE)
    return held != negated


def _holds(name: Any, item: Any, sample: str) -> bool:
    if name is op.LITERAL:
        return sample == chr(item)
    if name is op.RANGE:
        return ord(sample) in range(item[0], item[1] + 1)
    classes = {op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s",
               op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W"}  # fmt: skip
    return re.match(classes[item], sample) is not None
