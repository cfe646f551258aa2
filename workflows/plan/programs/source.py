"""A script as a tree in which each node knows what is around it, and each name what it stands for.

A script may be put together from several files: first the program, then each module behind a line with its name.
"""

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.language.text import text_bytes
from sennit.workflows.plan.limits import (
    MAX_BRACES,
    MAX_EXPRESSION_CHARACTERS,
    MAX_KEPT_MODULES_BYTES,
    MAX_KEPT_NAMES_BYTES,
    MAX_KEPT_TREES_BYTES,
    MAX_SCRIPT_BYTES,
    MAX_TREE_LEVELS,
    MAX_TREE_NODES,
)
from sennit.workflows.plan.programs.vocabulary import MODULES, UNUSABLE, WORDS

_NUMBER_BITS = 14_000
"""Python writes no longer numbers as text."""
Tree = TypeVar("Tree", ast.Module, ast.Expression)
Function = ast.FunctionDef | ast.AsyncFunctionDef
FILE_MARK = "# ==== {}.py ===="
"""Stands before a module, with its name."""
NAME_MARK = "# ==== main: {} ===="
"""Stands behind a program that was read from a file, with the name of that."""
QUALIFIED = "{}__{}"
"""A name of a module, as it is written in a script: people read `module.name`."""
_MARKED = re.compile(r"^# ==== (\w+)\.py ====$", re.MULTILINE)
_NAMED = re.compile(r"^# ==== main: (\S.{,80}) ====\n?", re.MULTILINE)
_PLACED = re.compile(r" \((?:line \d+|(?:[^():]|\(\w*\)){1,80}\.py:\d+): ")
_NODE_BYTES = 400
"""Of a node of a tree, with its fields; 200 to 310 were measured."""
_NO_PLACE = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)


@dataclass(slots=True)
class Source:
    """A script that parses."""

    tree: ast.Module
    nodes: list[ast.AST] = field(default_factory=list)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    bound: dict[ast.AST, dict[str, ast.AST]] = field(default_factory=dict)
    """For each scope the names that it binds, with where it first does."""
    read: dict[ast.AST, set[str]] = field(default_factory=dict)
    """For each scope the names that are read in it, or in what it holds."""
    again: set[ast.AST] = field(default_factory=set)
    """Where names are bound first of those that are bound again in the same scope."""
    uses: dict[str, list[ast.Name]] = field(default_factory=dict)
    """Where each name is read."""
    _looping: dict[tuple[ast.AST, str], list[ast.AST]] = field(default_factory=dict)
    """For each scope the names that only comprehensions in it bind, with those."""
    _globals: dict[ast.AST, set[str]] = field(default_factory=dict)
    """For each function the names that it says are those of the module."""
    _scope: dict[ast.AST, ast.AST] = field(default_factory=dict)
    """The innermost scope that each node stands in."""

    def __post_init__(self) -> None:
        self.nodes.append(self.tree)
        for node in self.nodes:
            children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
            self.nodes.extend(children)
            self.parents.update(dict.fromkeys(children, node))
            scope = node if isinstance(node, _SCOPES) else self._scope[node]
            self._scope.update(dict.fromkeys(children, scope))
        for node in self.nodes:
            for name in _names_bound(node):
                scope = self._scope_bound_in(node)
                first = self.bound.setdefault(scope, {}).setdefault(name, node)
                if first is not node:
                    self.again.add(first)
                loop = self._comprehension(node)
                if loop is None or (first is not node and (scope, name) not in self._looping):
                    self._looping.pop((scope, name), None)
                else:
                    self._looping.setdefault((scope, name), []).append(loop)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.uses.setdefault(node.id, []).append(node)
                for scope in self.scopes(node):
                    self.read.setdefault(scope, set()).add(node.id)
        for node in self.nodes:
            if isinstance(node, ast.Nonlocal):
                self._share(node)
            elif isinstance(node, ast.Global):
                self._globals.setdefault(self._scope[node], set()).update(node.names)

    def _share(self, node: ast.Nonlocal) -> None:
        """Have names be those of a function around: they are bound there, and again here."""
        inner, *others = self.scopes(node)
        for name in node.names:
            outer = next((scope for scope in others if name in self.bound.get(scope, ())), None)
            if outer is not None:
                self.bound.get(inner, {}).pop(name, None)
                self.again.add(self.bound[outer][name])

    def is_global(self, name: ast.Name) -> bool:
        """Whether the function that a name stands in says that it is one of the module."""
        return name.id in self._globals.get(self._scope[name], ())

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node stands in, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def scopes(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the functions and classes a node stands in, from the inside out, and the module."""
        while (scope := self._scope.get(node)) is not None:
            yield scope
            node = scope

    def function(self, node: ast.AST) -> ast.AST:
        """Return the innermost function that a node stands in, or the module."""
        return next(scope for scope in self.scopes(node) if not isinstance(scope, ast.ClassDef))

    def scope_of(self, name: ast.Name) -> ast.AST | None:
        """Return the innermost scope that binds the name, None if none does. A method sees no names of its class."""
        for number, scope in enumerate(self.scopes(name)):
            if name.id not in self.bound.get(scope, ()) or (number and isinstance(scope, ast.ClassDef)):
                continue
            loops = self._looping.get((scope, name.id))
            if loops is None or any(around in loops for around in self.around(name)):
                return scope
        return None

    def _comprehension(self, node: ast.AST) -> ast.AST | None:
        """Return the comprehension whose variable a node is, None for any other."""
        for around in self.around(node):
            if isinstance(around, ast.comprehension):
                return self.parents[around]
            if not isinstance(around, ast.Tuple | ast.List | ast.Starred):
                return None
        return None

    def meaning(self, name: ast.Name) -> ast.AST | None:
        """Return where the name is bound, in the innermost scope that does; None if no scope does."""
        scope = self.scope_of(name)
        return None if scope is None else self.bound[scope][name.id]

    def assigned(self, value: ast.expr) -> ast.expr:
        """Return what a name is given where it is given something once, any other expression as it is."""
        meaning = self.meaning(value) if isinstance(value, ast.Name) else None
        around = self.parents.get(meaning) if meaning is not None and meaning not in self.again else None
        return around.value if isinstance(around, ast.Assign) and around.targets == [meaning] else value

    def imported(self, value: ast.AST) -> str:
        """Return what an expression is that a script imports, as `asyncio.gather`, "" for any other."""
        if isinstance(value, ast.Attribute):
            module = self.imported(value.value)
            return f"{module}.{value.attr}" if module else ""
        meaning = self.meaning(value) if isinstance(value, ast.Name) else None
        if not isinstance(meaning, ast.alias):
            return ""
        around = self.parents[meaning]
        if isinstance(around, ast.ImportFrom):
            return f"{around.module}.{meaning.name}"
        return meaning.name if meaning.asname else meaning.name.partition(".")[0]

    def is_top_level(self, node: ast.AST) -> bool:
        return self.parents.get(node) is self.tree

    def _scope_bound_in(self, node: ast.AST) -> ast.AST:
        return next(self.scopes(node), self.tree)


def _names_bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            yield name
        case ast.alias(name=name, asname=alias):
            yield alias or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


class TooLarge(SyntaxError):
    """The text is over the budget."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message, (None, line, None, None))


def parsed(script: str) -> ast.Module:
    """Return the tree of a script, which nobody changes: a check asks for the same one several times.

    Raises SyntaxError, also for a script that is over the budget: its bytes are counted first, and nothing walks its
    tree before its nodes and their depth are.
    """
    return _TREES.get_or_make(script, lambda: _parsed(script))


def _parsed(script: str) -> ast.Module:
    if text_bytes(script) > MAX_SCRIPT_BYTES:
        most = f"{MAX_SCRIPT_BYTES >> 20} MB"
        raise TooLarge(f"it has more than {most}: read data with tools, or give it as arguments")
    if script.count("{") > MAX_BRACES:
        raise TooLarge(f"it has more than {MAX_BRACES:,} `{{`: read data with tools")
    return _within_budget(script, ast.parse)


def modules_in(script: str) -> tuple[tuple[int, str], ...]:
    """Return the modules that a script was put together from: the line before the first of each, and its name."""
    return _MODULES.get_or_make(script, lambda: _modules_in(script))  # each call of a program asks


def _modules_in(script: str) -> tuple[tuple[int, str], ...]:
    found, line, begin = [], 1, 0
    for mark in _MARKED.finditer(script):
        line, begin = line + script.count("\n", begin, mark.start()), mark.start()
        found.append((line, mark[1]))
    return tuple(found)


def with_name(script: str, path: str) -> str:
    """Return a program that says from which file it was read; of "" it says nothing."""
    if not path:
        return script
    return f"{without_name(script).rstrip()}\n{NAME_MARK.format(path.rpartition('/')[2][-80:])}\n"


def without_name(script: str) -> str:
    """Return a script without the name of its file."""
    return _NAMED.sub("", script)


def file_of(script: str) -> str:
    """Return the name of the file that a program was read from, "" if it does not say it."""
    found = _NAMED.search(script)
    return found[1] if found is not None else ""


def place_in(script: str, line: int) -> int | str:
    """Return a line of a script as people know it: `12` of the program, `"helpers.py:3"` of a module."""
    return place_among(modules_in(script), line)


def place_among(modules: Sequence[tuple[int, str]], line: int) -> int | str:
    """Return a line as people know it in a script that has these modules, as `modules_in` gives them."""
    number = bisect_left(modules, (line, ""))
    if not number:
        return line
    first, name = modules[number - 1]
    return f"{name}.py:{line - first}"


def line_text(place: int | str) -> str:
    """Return a place in a script as people read it: `line 12`, `helpers.py:3`."""
    return place if isinstance(place, str) else f"line {place}"


def line_in_file(script: str, line: int) -> str:
    """Return a line of a script as people read it, with its file if that is known: `research.py:12`."""
    place, file = place_in(script, line), file_of(script)
    return f"{file}:{place}" if file and isinstance(place, int) else line_text(place)


def without_line(error: str) -> str:
    """Return an error of a script without the place and the text of its line, with which it may end."""
    placed = [found.start() for found in _PLACED.finditer(error)]
    return error[: placed[-1]] if placed else error


def cause_in(error: str) -> str:
    """Return what a task raised, by the error of its node: with its own type, and without its line."""
    for kind in ("ProgramFailed: ", "CallFailed: "):
        if error.startswith(kind):
            return without_line(error.removeprefix(kind))
    return error


def as_known(script: str, text: str) -> str:
    """Return a text about a script with the names of its modules as people know them: `helpers.look`."""
    names = _NAMES.get_or_make(script, lambda: _qualified(script))
    return re.sub(r"(?<!\w)\w+__\w+", lambda found: names.get(found[0], found[0]), text) if names else text


def _qualified(script: str) -> dict[str, str]:
    """Return the names of a script's modules as people know them, by those that they have in the script."""
    modules = [name for _, name in modules_in(script)]
    try:
        tree = parsed(script) if modules else ast.Module([], [])
    except SyntaxError:
        return {}
    begin = {QUALIFIED.format(module, ""): f"{module}." for module in modules}
    bound = Source(tree).bound.get(tree, {})
    return {name: known + name[len(mine) :] for name in bound for mine, known in begin.items() if name.startswith(mine)}


_TREES = BoundedCache[str, ast.Module](MAX_KEPT_TREES_BYTES, lambda tree: _NODE_BYTES * sum(1 for _ in ast.walk(tree)))
_MODULES = BoundedCache[str, tuple[tuple[int, str], ...]](MAX_KEPT_MODULES_BYTES)
_NAMES = BoundedCache[str, dict[str, str]](MAX_KEPT_NAMES_BYTES)


def done_by_the_run(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements at the top of a script that say what the run does anyway: imports of words and tools, and a
    call of `main`, as scripts have it that are run by themselves.
    """
    return [statement for statement in tree.body if _imports_words(statement) or _calls_main(statement)]


def _without_effect(tree: ast.Module) -> list[ast.stmt]:
    """Return what a script has at its top beside its work: what the run does anyway, and imports of Python's modules
    that nothing else needs.
    """
    found = done_by_the_run(tree)
    ours = set(map(id, found))
    work = [each for each in tree.body if id(each) not in ours]
    imports = [each for each in work if isinstance(each, ast.Import | ast.ImportFrom)]
    if all(map(_is_known, imports)):
        return found
    used = {part.id for each in work for part in ast.walk(each) if isinstance(part, ast.Name)}
    return [*found, *(each for each in imports if not (_is_known(each) or used.intersection(_bound(each))))]


def _bound(statement: ast.Import | ast.ImportFrom) -> list[str]:
    return [name.asname or name.name.partition(".")[0] for name in statement.names]


def _is_known(statement: ast.Import | ast.ImportFrom) -> bool:
    """Whether all that an import names is for the check: a module that scripts have, or none of Python's."""
    names = [each.name for each in statement.names]
    names = [statement.module or ""] if isinstance(statement, ast.ImportFrom) else names
    roots = [name.partition(".")[0] for name in names]
    return any(name in MODULES for name in names) or not set(roots) <= set(UNUSABLE)


def _imports_words(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import):
        return all(name.name == "sennit" and name.asname is None for name in statement.names)
    if not isinstance(statement, ast.ImportFrom) or any(name.asname for name in statement.names):
        return False
    is_ours = (statement.module or "").partition(".")[0] in ("sennit", "tools")
    return (is_ours and all(name.name != "*" for name in statement.names)) or all(
        name.name in WORDS for name in statement.names
    )


def _calls_main(statement: ast.stmt) -> bool:
    match statement:
        case ast.If(
            test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant("__main__")])
        ):
            return not statement.orelse
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[value])) | ast.Expr(value=value):
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "asyncio.run" and len(value.args) == 1:
                value = value.args[0]
            elif isinstance(value, ast.Await):
                value = value.value
            return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "main"
    return False


def own_text(script: str) -> str:
    """Return a script without what the run does anyway, each other line in its place. One that does not parse stays as
    it is.
    """
    try:
        tree = ast.parse(script)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return script
    lines = script.encode().split(b"\n")
    for statement in _without_effect(tree):
        first, last = statement.lineno - 1, (statement.end_lineno or 1) - 1
        after = lines[last][statement.end_col_offset or 0 :]
        lines[first : last + 1] = [lines[first][: statement.col_offset] + b"pass", *[b""] * (last - first)]
        lines[last] += after
    return b"\n".join(lines).decode(errors="replace")


def expression(text: str) -> ast.expr:
    """Return the tree of an expression. Raises SyntaxError, also for one that is over the budget."""
    if len(text) > MAX_EXPRESSION_CHARACTERS:
        raise TooLarge(f"it has more than {MAX_EXPRESSION_CHARACTERS:,} characters")
    return _within_budget(text, lambda text: ast.parse(text, mode="eval")).body


def _within_budget(text: str, parse: Callable[[str], Tree]) -> Tree:
    try:
        tree = parse(text)
    except ValueError as error:
        raise SyntaxError(str(error), (None, 1, None, None)) from None
    except (RecursionError, MemoryError):
        raise TooLarge("it is too large or nested too deep: write it in several steps") from None
    _count(tree)
    if isinstance(tree, ast.Module):
        ignored = {id(statement) for statement in _without_effect(tree)}
        tree.body = [statement for statement in tree.body if id(statement) not in ignored]
    return tree


def _count(tree: ast.AST) -> None:
    """Raise TooLarge for a tree of too many nodes or too many levels, and for a number too long to be written."""
    level: list[tuple[ast.AST, int]] = [(tree, 1)]
    count = depth = 0
    while level:
        depth += 1
        below = list[tuple[ast.AST, int]]()
        for node, above in level:
            count += 1
            line = getattr(node, "lineno", above)
            if count > MAX_TREE_NODES:
                raise TooLarge(f"it has more than {MAX_TREE_NODES:,} parts: give a part of it to tools", line)
            if depth > MAX_TREE_LEVELS:
                raise TooLarge(f"it is nested more than {MAX_TREE_LEVELS} levels deep: write it in several steps", line)
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value.bit_length() > _NUMBER_BITS:
                raise TooLarge("the number is too long: compute it", line)
            below += [(child, line) for child in ast.iter_child_nodes(node) if not isinstance(child, _NO_PLACE)]
        level = below


def line_of(node: Any) -> int:
    return getattr(node, "lineno", 0)
