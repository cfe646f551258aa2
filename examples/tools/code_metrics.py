"""A tool of one's own: counts what a Python file holds.

`SENNIT_TOOLS=code_metrics SENNIT_TOOLS_PATH=examples/tools` adds it to a worker; plans then call `tool: code_metrics`.
"""

import ast
import re
from collections.abc import Iterator
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from sennit import ToolContext, ToolError, documents_root, open_inside, tool

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

LARGEST = 2_000_000
_OPEN_NOTE = re.compile(rf"[^#]*+#.*\b(?:{'|'.join(word.upper() for word in ('todo', 'fixme', 'xxx', 'hack'))})\b")
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class CodeMetricsArguments(BaseModel):
    """Which file to measure. Extra arguments are refused, so that a slip in a plan is found before it runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, Field(min_length=1, max_length=1000, description="As list_files gave it")]


class CodeMetrics(BaseModel):
    """What one file holds. Lengths are in lines; `complexity` is McCabe's, of the function with most branches."""

    path: str
    lines: int
    functions: int
    classes: int
    imports: int
    todos: int
    longest: int
    longest_function: str
    complexity: int
    worst_function: str


@tool(effect="read", timeout="20s", resource="file:{docs}/{path}")
def code_metrics(args: CodeMetricsArguments, context: ToolContext) -> CodeMetrics:
    """Count lines, functions, classes, imported modules, open notes and branches of a Python file."""
    with open_inside(documents_root(context.docs), args.path) as file:
        source = file.read(LARGEST + 1)
    if len(source) > LARGEST:
        raise ToolError(f"{args.path!r} is larger than {LARGEST:,} bytes")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ToolError(f"{args.path!r} is no Python that this version reads: {error}") from None
    text = source.decode("utf-8", errors="replace").splitlines()
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    longest = max(functions, key=length, default=None)
    worst = max(functions, key=complexity, default=None)
    return CodeMetrics(
        path=args.path,
        lines=len(text),
        functions=len(functions),
        classes=sum(isinstance(node, ast.ClassDef) for node in ast.walk(tree)),
        imports=len(set(imported(tree))),
        todos=sum(bool(_OPEN_NOTE.match(line)) for line in text),
        longest=length(longest) if longest else 0,
        longest_function=longest.name if longest else "",
        complexity=complexity(worst) if worst else 0,
        worst_function=worst.name if worst else "",
    )


def length(function: Function) -> int:
    """Return how many lines a function takes, without its decorators."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def complexity(function: Function) -> int:
    """Return the number of independent ways through a function, 1 without branches.

    After McCabe, "A Complexity Measure", IEEE Transactions on Software Engineering, 1976. A function inside this one
    counts on its own.
    """
    ways = 1
    for node in own_nodes(function):
        if isinstance(node, ast.BoolOp):
            ways += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            ways += 1 + len(node.ifs)
        else:
            ways += isinstance(node, _BRANCHES)
    return ways


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield what belongs to a function itself, not to a function or class inside it."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        if isinstance(node, _SCOPES):
            continue
        yield node
        left += ast.iter_child_nodes(node)


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield each module that is imported, anywhere in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
