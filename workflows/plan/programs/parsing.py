"""Parses scripts, within a budget of bytes, parts and levels, and leaves out what the run does anyway."""

import ast
from collections.abc import Callable
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
"""The trees of a script by the names of its modules: "" is the program. Lines are those of the whole script."""
_NUMBER_BITS = 14_000
"""Python writes no longer numbers as text."""
_NODE_BYTES = 400
"""Of a node of a tree, with its fields; 200 to 310 were measured."""
_NO_PLACE = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


class TooLarge(SyntaxError):
    """The text is over the budget."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message, (None, line, None, None))


def parsed(script: str) -> ast.Module:
    """Return the tree of a program, without those of its modules. Raises what `trees_in` raises."""
    return trees_in(script)[""]


def trees_in(script: str) -> Trees:
    """Return the trees of a script, which nobody changes: a check asks for the same ones several times.

    Raises SyntaxError, also for a script that is over the budget: its bytes are counted first, and nothing walks its
    trees before their nodes and their depth are.
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
    return _NODE_BYTES * sum(1 for tree in trees.values() for _ in ast.walk(tree))


_TREES = BoundedCache[str, Trees](MAX_KEPT_TREES_BYTES, _size_of)


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
    if not isinstance(statement, ast.ImportFrom) or statement.level or any(name.asname for name in statement.names):
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
    """Return a script without what the run does anyway, each other line in its place. A file that does not parse stays
    as it is.
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
    after = lines[last][statement.end_col_offset or 0 :]
    lines[first : last + 1] = [lines[first][: statement.col_offset] + b"pass", *[b""] * (last - first)]
    lines[last] += after


def expression(text: str) -> ast.expr:
    """Return the tree of an expression. Raises SyntaxError, also for one that is over the budget."""
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
    left_out = {id(statement) for statement in _without_effect(tree)}
    tree.body = [statement for statement in tree.body if id(statement) not in left_out]


def _count(tree: ast.AST, most: int) -> int:
    """Return how many nodes a tree has. Raises TooLarge for more than `most` or too many levels, and for a number too
    long to be written.
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
                raise TooLarge(f"it has more than {MAX_TREE_NODES:,} parts: give a part of it to tools", line)
            if depth > MAX_TREE_LEVELS:
                raise TooLarge(f"it is nested more than {MAX_TREE_LEVELS} levels deep: write it in several steps", line)
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value.bit_length() > _NUMBER_BITS:
                raise TooLarge("the number is too long: compute it", line)
            below += [(child, line) for child in ast.iter_child_nodes(node) if not isinstance(child, _NO_PLACE)]
        level = below
    return count
