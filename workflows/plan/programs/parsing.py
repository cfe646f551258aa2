"""Parses scripts, within a budget of bytes, parts and levels, and leaves out
what the run does anyway.
"""

import ast
from collections.abc import Callable, Iterator
from typing import TypeVar

from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.language.text import text_bytes
from sennit.workflows.plan.limits import (
    MAX_BRACES,
    MAX_EXPRESSION_CHARACTERS,
    MAX_KEPT_TREES_BYTES,
    MAX_SCRIPT_BYTES,
    MAX_TREE_LEVELS,
    MAX_TREE_NODES,
)
from sennit.workflows.plan.programs.files import files_in
from sennit.workflows.plan.programs.vocabulary import MODULES, UNUSABLE, WORDS

Tree = TypeVar("Tree", ast.Module, ast.Expression)
Trees = dict[str, ast.Module]
"""The trees of a script by the names of its modules: "" is the program. Lines are
those of the whole script.
"""
_NUMBER_BITS = 14_000
"""Python writes no longer numbers as text."""
_NODE_BYTES = 400
"""Of a node of a tree, with its fields; 200 to 310 were measured."""
_Import = ast.Import | ast.ImportFrom
_NO_PLACE = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


class TooLarge(SyntaxError):
    """The text is over the budget."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message, (None, line, None, None))


def parsed(script: str) -> ast.Module:
    """Return the tree of a program, without those of its modules. Raises what `trees_in` raises."""
    return trees_in(script)[""]


def trees_in(script: str) -> Trees:
    """Return the trees of a script, which nobody changes: a check asks for the
    same ones several times.

    Raises SyntaxError, also for a script that is over the budget: its bytes are counted first, and
    nothing walks its trees before their nodes and their depth are.
    """
    return _TREES.get_or_make(script, lambda: new_trees(script))


def new_trees(script: str) -> Trees:
    """Return trees of a script that the caller may change. Raises what `trees_in` raises."""
    if text_bytes(script) > MAX_SCRIPT_BYTES:
        most = f"{MAX_SCRIPT_BYTES >> 20} MB"
        raise TooLarge(f"it has more than {most}: read data with tools, or give it as arguments")
    if script.count("{") > MAX_BRACES:
        raise TooLarge(f"it has more than {MAX_BRACES:,} `{{`: read data with tools")
    trees: Trees = {}
    nodes = 0
    for file in files_in(script):
        try:
            tree = _parsed_within_budget(file.text, ast.parse)
            nodes += _count(tree, MAX_TREE_NODES - nodes)
        except SyntaxError as error:
            error.lineno = file.before + (error.lineno or 1)
            raise
        _leave_out(tree)
        trees[file.module] = ast.increment_lineno(tree, file.before)
    return trees


def _size_of(trees: Trees) -> int:
    nodes = 0
    for tree in trees.values():
        for _ in ast.walk(tree):
            nodes += 1
    return _NODE_BYTES * nodes


_TREES = BoundedCache[str, Trees](MAX_KEPT_TREES_BYTES, _size_of)


def done_by_the_run(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements at the top of a script that say what the run does anyway: imports of
    words and tools, and a call of `main`, as scripts have it that are run by themselves.
    """
    found: list[ast.stmt] = []
    for statement in tree.body:
        if _imports_words(statement) or _calls_main(statement):
            found.append(statement)
    return found


def _without_effect(tree: ast.Module) -> list[ast.stmt]:
    """Return what a script has at its top beside its work: what the run does anyway, and imports of
    Python's modules that nothing else needs.
    """
    without_effect = done_by_the_run(tree)
    done_ids = set(map(id, without_effect))
    work = [statement for statement in tree.body if id(statement) not in done_ids]
    unusable: list[_Import] = []
    for statement in work:
        if isinstance(statement, _Import) and not _is_known(statement):
            unusable.append(statement)
    if not unusable:
        return without_effect

    # An unusable module that the script needs stays: the check says what to write instead.
    used: set[str] = set()
    for statement in work:
        used.update(names_in(statement))
    for statement in unusable:
        if used.isdisjoint(_bound(statement)):
            without_effect.append(statement)
    return without_effect


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield the names that a tree uses or binds, each as often as it does."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id


def _bound(statement: _Import) -> list[str]:
    """Return the names that an import binds."""
    names: list[str] = []
    for alias in statement.names:
        root = alias.name.partition(".")[0]
        names.append(alias.asname or root)
    return names


def _is_known(statement: _Import) -> bool:
    """Whether all that an import names is for the check: a module that scripts
    have, or none of Python's.
    """
    if isinstance(statement, ast.ImportFrom):
        modules = [statement.module or ""]
    else:
        modules = [alias.name for alias in statement.names]
    if any(module in MODULES for module in modules):
        return True
    roots = {module.partition(".")[0] for module in modules}
    return not roots.issubset(UNUSABLE)


def _imports_words(statement: ast.stmt) -> bool:
    """Whether an import names `sennit`, words or tools alone, each by its own name."""
    if not isinstance(statement, _Import):
        return False
    names: list[str] = []
    for alias in statement.names:
        if alias.asname is not None:
            return False
        names.append(alias.name)
    if isinstance(statement, ast.Import):
        return all(name == "sennit" for name in names)

    if statement.level:
        return False
    package = (statement.module or "").partition(".")[0]
    if package in ("sennit", "tools") and "*" not in names:
        return True
    return all(name in WORDS for name in names)


def _calls_main(statement: ast.stmt) -> bool:
    """Whether a statement runs `main`, or asks whether the script is run by itself
    and does something then.
    """
    match statement:
        case ast.If(
            test=ast.Compare(
                left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant("__main__")]
            )
        ):
            return not statement.orelse
        case (
            ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[value]))
            | ast.Expr(value=value)
        ):
            return _is_run_of_main(value)
    return False


def _is_run_of_main(value: ast.expr) -> bool:
    """Whether an expression is `asyncio.run(main(...))`, `await main(...)` or `main(...)`."""
    call = value
    if isinstance(value, ast.Await):
        call = value.value
    elif isinstance(value, ast.Call):
        is_run = ast.unparse(value.func) == "asyncio.run"
        if is_run and len(value.args) == 1:
            call = value.args[0]
    match call:
        case ast.Call(func=ast.Name(id="main")):
            return True
    return False


def own_text(script: str) -> str:
    """Return a script without what the run does anyway, each other line in its place. A file that
    does not parse stays as it is.
    """
    lines = script.encode().split(b"\n")
    for file in files_in(script):
        try:
            tree = ast.parse(file.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for statement in _without_effect(tree):
            _blank(lines, statement, file.before)
    return b"\n".join(lines).decode(errors="replace")


def _blank(lines: list[bytes], statement: ast.stmt, before: int) -> None:
    """Write `pass` in the place of a statement of a file that begins behind so many lines."""
    first = before + statement.lineno - 1
    last = before + (statement.end_lineno or 1) - 1
    indent = lines[first][: statement.col_offset]
    after = lines[last][statement.end_col_offset or 0 :]
    for number in range(first, last + 1):
        lines[number] = b""
    lines[first] = indent + b"pass"
    lines[last] += after


def expression(text: str) -> ast.expr:
    """Return the tree of an expression. Raises SyntaxError, also for one
    that is over the budget.
    """
    if len(text) > MAX_EXPRESSION_CHARACTERS:
        raise TooLarge(f"it has more than {MAX_EXPRESSION_CHARACTERS:,} characters")
    tree = _parsed_within_budget(text, lambda text: ast.parse(text, mode="eval"))
    _count(tree, MAX_TREE_NODES)
    return tree.body


def _parsed_within_budget(text: str, parse: Callable[[str], Tree]) -> Tree:
    try:
        return parse(text)
    except ValueError as error:
        raise SyntaxError(str(error), (None, 1, None, None)) from None
    except (RecursionError, MemoryError):
        raise TooLarge("it is too large or nested too deep: write it in several steps") from None


def _leave_out(tree: ast.Module) -> None:
    """Leave out what the run does anyway."""
    left_out = set(map(id, _without_effect(tree)))
    tree.body = [statement for statement in tree.body if id(statement) not in left_out]


def _count(tree: ast.AST, most: int) -> int:
    """Return how many nodes a tree has. Raises TooLarge for more than `most` or too many levels,
    and for a number too long to be written.
    """
    level: list[tuple[ast.AST, int]] = [(tree, 1)]
    count = depth = 0
    while level:
        depth += 1
        below = list[tuple[ast.AST, int]]()
        for node, above in level:
            count += 1
            line = getattr(node, "lineno", above)
            if count > most:
                raise TooLarge(
                    f"it has more than {MAX_TREE_NODES:,} parts: give a part of it to tools", line
                )
            if depth > MAX_TREE_LEVELS:
                raise TooLarge(
                    f"it is nested more than {MAX_TREE_LEVELS} levels deep: write it in several "
                    "steps",
                    line,
                )
            if isinstance(node, ast.Constant) and _is_long_number(node.value):
                raise TooLarge("the number is too long: compute it", line)
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, _NO_PLACE):
                    below.append((child, line))
        level = below
    return count


def _is_long_number(value: object) -> bool:
    """Whether a constant is a number that Python does not write as text."""
    if type(value) is not int:
        return False
    return value.bit_length() > _NUMBER_BITS
